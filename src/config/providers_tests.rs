//! Indirection as Java does it.

use super::super::pairs;
use super::*;

const ENV: &str = "org.apache.kafka.common.config.provider.EnvVarConfigProvider";
const FILE: &str = "org.apache.kafka.common.config.provider.FileConfigProvider";
const DIRECTORY: &str = "org.apache.kafka.common.config.provider.DirectoryConfigProvider";

fn resolved(given: &[(&str, &str)]) -> (Pairs, Vec<Finding>) {
    let given = given
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    let (mut pairs, _) = pairs::merge(given.collect(), Vec::new());
    let variables = |name: &str| match name {
        "HOST" => Some("h.example".to_owned()),
        "SECRET" => Some("s3".to_owned()),
        _ => None,
    };
    let findings = resolve(&mut pairs, &variables);
    (pairs, findings)
}

#[test]
fn environment_variables_are_replaced_inside_a_text() {
    let (pairs, findings) = resolved(&[
        ("config.providers", "env"),
        ("config.providers.env.class", ENV),
        ("listeners", "C://${env:HOST}:1,D://${ env : HOST }:2"),
        ("other", "${other:HOST} ${env:MISSING}"),
    ]);
    assert_eq!(pairs["listeners"].text, "C://h.example:1,D://h.example:2");
    assert_eq!(pairs["other"].text, "${other:HOST} ${env:MISSING}");
    assert_eq!(findings.len(), 1);
    assert!(findings[0].rule.contains("${env:MISSING} has no value"));
}

#[test]
fn nothing_is_replaced_without_a_provider() {
    let (pairs, findings) = resolved(&[("a", "${env:HOST}")]);
    assert_eq!(pairs["a"].text, "${env:HOST}");
    assert_eq!(findings, []);
}

#[test]
fn variables_outside_the_allowed_pattern_have_no_value() {
    let (pairs, findings) = resolved(&[
        ("config.providers", "env"),
        ("config.providers.env.class", ENV),
        ("config.providers.env.param.allowlist.pattern", "HO.."),
        ("a", "${env:HOST}"),
        ("b", "${env:SECRET}"),
    ]);
    assert_eq!(pairs["a"].text, "h.example");
    assert_eq!(pairs["b"].text, "${env:SECRET}");
    assert_eq!(findings.len(), 1);
}

#[test]
fn a_path_for_the_environment_refuses() {
    let (_, findings) = resolved(&[
        ("config.providers", "env"),
        ("config.providers.env.class", ENV),
        ("a", "${env:/x:HOST}"),
    ]);
    assert!(findings[0].refuses());
}

#[test]
fn files_and_directories_are_read_and_stay_inside_the_allowed_paths() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("in");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("f"), "k=v\u{e9}\nk2 = x").unwrap();
    fs::write(root.join("password"), "p\n").unwrap();
    fs::write(directory.path().join("outside"), "k=v").unwrap();
    let root = root.to_str().unwrap();
    let (pairs, findings) = resolved(&[
        ("config.providers", "file,dir"),
        ("config.providers.file.class", FILE),
        ("config.providers.file.param.allowed.paths", root),
        ("config.providers.dir.class", DIRECTORY),
        ("a", &format!("${{file:{root}/f:k}}${{file:{root}/f:k2}}")),
        ("b", &format!("${{dir:{root}:password}}")),
        ("c", &format!("${{file:{root}/../outside:k}}")),
        ("d", &format!("${{dir:{root}:../outside}}")),
        ("e", &format!("${{dir:{root}/f:x}}")),
    ]);
    assert_eq!(pairs["a"].text, "v\u{e9}x");
    assert_eq!(pairs["b"].text, "p\n");
    for kept in ["c", "d", "e"] {
        assert_eq!(pairs[kept].text, pairs[kept].written, "{kept}");
    }
    assert_eq!(findings.len(), 3);
    assert!(findings.iter().all(|finding| !finding.refuses()));
}

#[test]
fn a_file_that_cannot_be_read_refuses_and_names_it() {
    let (_, findings) = resolved(&[
        ("config.providers", "file"),
        ("config.providers.file.class", FILE),
        ("a", "${file:/no/such/file:k}"),
    ]);
    assert!(findings[0].refuses());
    assert!(findings[0].rule.contains("/no/such/file"));
}

#[test]
fn an_unknown_provider_class_refuses() {
    let (_, findings) = resolved(&[
        ("config.providers", "vault"),
        ("config.providers.vault.class", "com.example.Vault"),
    ]);
    assert_eq!(findings[0].severity, Severity::Unsupported);
    assert_eq!(findings[0].key, "config.providers.vault.class");
}

#[test]
fn an_allowed_path_must_be_absolute_and_exist() {
    for path in ["relative", "/no/such/path"] {
        let (_, findings) = resolved(&[
            ("config.providers", "file"),
            ("config.providers.file.class", FILE),
            ("config.providers.file.param.allowed.paths", path),
        ]);
        assert!(findings[0].refuses(), "{path}");
    }
}

#[test]
fn a_provider_without_a_class_is_warned_of_and_ignored() {
    let (pairs, findings) = resolved(&[
        ("config.providers", "env, file"),
        ("config.providers.env.class", ENV),
        ("config.providers.file.class", FILE),
        ("a", "${file:/x:y}"),
    ]);
    assert_eq!(pairs["a"].text, "${file:/x:y}");
    assert!(findings[0].rule.contains("\" file\" has no class"));
    assert!(!findings[0].refuses());
}
