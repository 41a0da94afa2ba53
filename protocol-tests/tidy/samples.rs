//! Proof of the checks: bad samples that they must find, good ones that they must let pass.

use super::code::Source;
use super::{Finding, fixtures, rules};

fn texts(found: &[Finding]) -> Vec<String> {
    found
        .iter()
        .map(|f| format!("{}: {}", f.line, f.text))
        .collect()
}

#[track_caller]
fn finds(rule: impl Fn(&Source) -> Vec<Finding>, path: &str, text: &str, expected: &[&str]) {
    let found = texts(&rule(&Source::new(path, text)));
    assert_eq!(found.len(), expected.len(), "{path}: {found:#?}");
    for (finding, expected) in found.iter().zip(expected) {
        assert!(
            finding.starts_with(expected),
            "{finding}\nshould start with\n{expected}"
        );
    }
}

#[test]
fn an_import_against_the_arrows_is_found() {
    let rule = rules::arrows;
    finds(
        rule,
        "src/raft/vote.rs",
        "use crate::image::Image;\n",
        &["1: `raft` must not import `image`"],
    );
    finds(
        rule,
        "src/types/ids.rs",
        "\nfn f(x: crate::raft::Epoch) {}\n",
        &["2: `types` must not"],
    );
    let grouped = "use crate::{\n    types::Offset,\n    server::{self, Frame},\n};\n";
    finds(
        rule,
        "src/image/mod.rs",
        grouped,
        &["1: `image` must not import `server`"],
    );
    finds(
        rule,
        "src/node/mod.rs",
        "use crate::storage::segment::Segment;\n",
        &["1: `node` sees only"],
    );
    finds(
        rule,
        "src/raft/mod.rs",
        "use kafka_protocol::messages;\n",
        &["1: only `server` and"],
    );
    finds(
        rule,
        "src/attic/mod.rs",
        "\n",
        &["1: `attic` is no known room"],
    );
}

#[test]
fn an_import_along_the_arrows_passes() {
    finds(
        rules::arrows,
        "src/controller/mod.rs",
        "use crate::image::Image;\n",
        &[],
    );
    finds(
        rules::arrows,
        "src/controller/mod.rs",
        "use kafka_protocol::messages;\n",
        &[],
    );
    finds(
        rules::arrows,
        "src/node/mod.rs",
        "use crate::storage::Command;\n",
        &[],
    );
    finds(
        rules::arrows,
        "src/raft/mod.rs",
        "// crate::image is not ours\n",
        &[],
    );
    finds(
        rules::arrows,
        "src/main.rs",
        "use crate::image::Image;\n",
        &[],
    );
    let test = "#[cfg(test)]\nmod tests {\n    use crate::image::Image;\n}\n";
    finds(rules::arrows, "src/raft/mod.rs", test, &[]);
}

#[test]
fn a_pure_room_that_reads_the_clock_is_found_and_told_what_to_do() {
    let rule = rules::purity;
    let text = "use std::time::Instant;\nuse std::collections::{BTreeMap, HashMap};\n";
    let expected = [
        "1: `std::time` in a pure room: take `now: types::Instant`",
        "2: `HashMap` in",
    ];
    finds(rule, "src/raft/vote.rs", text, &expected);
    finds(
        rule,
        "src/node/mod.rs",
        "    std::fs::read(path)?;\n",
        &["1: `std::fs` in a pure room"],
    );
    finds(
        rule,
        "src/image/mod.rs",
        "async fn f() {}\n",
        &["1: `async fn` in a pure room"],
    );
    finds(
        rule,
        "src/controller/a.rs",
        "let r = rand::random();\n",
        &["1: `rand::` in"],
    );
}

#[test]
fn words_in_comments_strings_tests_and_longer_names_are_no_finding() {
    let rule = rules::purity;
    finds(
        rule,
        "src/raft/a.rs",
        "/* std::time /* nested */ tokio */ // HashMap\n",
        &[],
    );
    finds(
        rule,
        "src/raft/a.rs",
        "let a = \"tokio \\\" HashMap\"; let b = 'x';\n",
        &[],
    );
    finds(
        rule,
        "src/raft/a.rs",
        "let a = r#\"tokio \" HashMap\"#;\n",
        &[],
    );
    finds(
        rule,
        "src/raft/a.rs",
        "let operand::B = MyHashMapLike;\n",
        &[],
    );
    finds(
        rule,
        "src/raft/tests.rs",
        "use std::collections::HashMap;\n",
        &[],
    );
    finds(
        rule,
        "src/server/a.rs",
        "use std::collections::HashMap;\n",
        &[],
    );
    let lifetimes = "fn f<'a>(x: &'a str) -> &'a str { tokio(x) }\n";
    finds(
        rule,
        "src/raft/a.rs",
        lifetimes,
        &["1: `tokio` in a pure room"],
    );
}

#[test]
fn leftovers_are_found() {
    let rule = rules::leftovers;
    finds(rule, "src/server/a.rs", "    dbg!(x);\n", &["1: `dbg!`"]);
    finds(
        rule,
        "src/server/a.rs",
        "fn f() { todo!() }\n",
        &["1: `todo!`"],
    );
    finds(
        rule,
        "src/server/a.rs",
        "fn f() { unimplemented!() }\n",
        &["1: `unimplemented!`"],
    );
    finds(
        rule,
        "src/server/a.rs",
        "let x = y.unwrap();\n",
        &["1: `.unwrap()`"],
    );
    finds(
        rule,
        "compat/a.rs",
        "#[ignore = \"slow\"]\n",
        &["1: `#[ignore`"],
    );
    finds(
        rule,
        "src/raft/tests.rs",
        "std::thread::sleep(d);\n",
        &["1: `thread::sleep`"],
    );
    let after = "#[cfg(test)]\nmod tests {\n    fn f() { x.unwrap() }\n}\nfn g() { x.unwrap() }\n";
    finds(rule, "src/server/a.rs", after, &["5: `.unwrap()`"]);
}

#[test]
fn long_lines_functions_and_files_are_found() {
    let rule = |source: &Source| rules::sizes(source, &[]);
    let long = format!("//! a b\n// {}\n", "x".repeat(98));
    finds(rule, "src/a.rs", &long, &["2: 101 characters"]);
    finds(rule, "src/a.rs", &format!("// {}\n", "é".repeat(97)), &[]);
    let body = "    x();\n".repeat(69);
    finds(
        rule,
        "src/a.rs",
        &format!("fn f() {{\n{body}}}\n"),
        &["1: `f` has 71 lines"],
    );
    let body = "    x();\n".repeat(68);
    finds(rule, "src/a.rs", &format!("fn f() {{\n{body}}}\n"), &[]);
    finds(rule, "src/a.rs", &"\n".repeat(601), &["600: 601 lines"]);
    let excepted = |source: &Source| rules::sizes(source, &[("src/a.rs", "f")]);
    let body = "    x();\n".repeat(90);
    finds(excepted, "src/a.rs", &format!("fn f() {{\n{body}}}\n"), &[]);
    finds(rule, "src/a.rs", "trait T {\n    fn f(&self);\n}\n", &[]);
}

#[test]
fn a_file_that_does_not_say_what_it_is_is_found() {
    finds(
        rules::first_line,
        "src/a.rs",
        "use std::fs;\n",
        &["1: the first line is no"],
    );
    finds(
        rules::first_line,
        "src/a.rs",
        "//! x\n",
        &["1: the first line is no"],
    );
    finds(
        rules::first_line,
        "src/a.rs",
        "",
        &["1: the first line is no"],
    );
    finds(
        rules::first_line,
        "src/a.rs",
        "//! The votes of an epoch.\n",
        &[],
    );
}

#[test]
fn a_path_of_a_machine_is_found() {
    let found = |text: &str| rules::machine_paths("a.txt", text).len();
    assert_eq!(found(&format!("log.dirs={}x/y\n", "/tm\u{70}/")), 1);
    assert_eq!(found(&format!("see {}someone/notes\n", "/hom\u{65}/")), 1);
    assert_eq!(found("log.dirs=/tmp/kafka-logs\n"), 0);
    assert_eq!(found(&format!("http://example.com{}x\n", "/hom\u{65}/")), 0);
}

#[test]
fn a_dead_fixture_and_a_wrong_manifest_are_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let listed = format!("file\tkafka\tmade by\tsha256\n4.4.0/used/a\t4.4.0\tx\t{empty}\n");
    let mut tree = vec![
        file("fixtures/4.4.0/used/a", ""),
        file("fixtures/MANIFEST.tsv", &listed),
        file("src/a.rs", "read(\"fixtures/4.4.0/used\")"),
    ];
    assert_eq!(texts(&fixtures::dead(&tree)), Vec::<String>::new());
    assert_eq!(texts(&fixtures::manifest(&tree)), Vec::<String>::new());
    tree[0].1 = b"edited".to_vec();
    tree.push(file("fixtures/4.4.0/unused/b", ""));
    let dead = fixtures::dead(&tree);
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].path, "fixtures/4.4.0/unused/b");
    let wrong = texts(&fixtures::manifest(&tree));
    assert!(
        wrong[0].starts_with("2: 4.4.0/used/a has changed"),
        "{wrong:?}"
    );
    assert!(
        wrong[1].starts_with("1: 4.4.0/unused/b is not listed"),
        "{wrong:?}"
    );
    tree.remove(0);
    assert!(texts(&fixtures::manifest(&tree))[0].contains("is not listed"));
    assert!(texts(&fixtures::manifest(&tree))[1].contains("4.4.0/used/a is gone"));
}
