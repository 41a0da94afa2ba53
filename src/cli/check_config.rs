//! `kraftd check-config FILE [--strict] [--json]`: every finding of a configuration at once.

use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

use crate::config::{self, Finding, Loaded, Severity};
use crate::types::OneLine;

/// Nothing was found that stands in the way.
pub const FINE: u8 = 0;
/// kraftd would not start with the file, or `--strict` and there are warnings.
pub const FOUND: u8 = 2;

/// Checks the file at `path` with `overrides` over it as a start would, and prints what it finds:
/// refusals first, one finding a line, then a sum. Returns the exit code.
///
/// # Errors
///
/// Those of writing to `out`.
pub fn check_config(
    path: &Path,
    overrides: &[String],
    strict: bool,
    as_json: bool,
    out: &mut dyn Write,
) -> io::Result<u8> {
    let (mut findings, starts) = match config::load(path, overrides) {
        Ok(Loaded { warnings, .. }) => (warnings, true),
        Err(findings) => (findings, false),
    };
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    if as_json {
        print_json(path, &findings, starts, out)?;
    } else {
        print_text(path, &findings, starts, out)?;
    }
    let fails = !starts || (strict && !findings.is_empty());
    Ok(if fails { FOUND } else { FINE })
}

const fn label(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Unsupported => "unsupported",
        Severity::Error => "error",
    }
}

fn print_text(
    path: &Path,
    findings: &[Finding],
    starts: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for finding in findings {
        let sentence = finding.to_string();
        writeln!(
            out,
            "{:<11} {}",
            label(finding.severity),
            OneLine(&sentence)
        )?;
    }
    let refusals = findings.iter().filter(|finding| finding.refuses()).count();
    let warnings = findings.len() - refusals;
    let count = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    let result = if starts { "starts" } else { "does not start" };
    writeln!(
        out,
        "{}: kraftd {result} with it, {}, {}",
        path.display(),
        count(refusals, "refusal"),
        count(warnings, "warning"),
    )
}

fn print_json(
    path: &Path,
    findings: &[Finding],
    starts: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = findings.iter().map(|finding| {
        json!({
            "severity": label(finding.severity),
            "key": finding.key,
            "value": finding.value,
            "rule": finding.rule,
            "fix": finding.fix,
        })
    });
    let document = json!({
        "file": path.display().to_string(),
        "starts": starts,
        "findings": rows.collect::<Vec<_>>(),
    });
    writeln!(out, "{document}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "process.roles=controller\nnode.id=1\nlog.dirs=/data\n\
        controller.listener.names=CONTROLLER\nlisteners=CONTROLLER://localhost:9093\n\
        controller.quorum.bootstrap.servers=localhost:9093\n";

    fn check(more: &str, strict: bool, as_json: bool) -> (u8, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.properties");
        std::fs::write(&path, format!("{GOOD}{more}")).unwrap();
        let mut out = Vec::new();
        let code = check_config(&path, &[], strict, as_json, &mut out).unwrap();
        (code, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_good_file_ends_with_0_even_when_strict() {
        let (code, text) = check("", true, false);
        assert_eq!(code, FINE, "{text}");
        assert!(text.ends_with("kraftd starts with it, 0 refusals, 0 warnings\n"));
    }

    #[test]
    fn warnings_fail_only_when_strict() {
        let open = "listeners=CONTROLLER://:9093\n";
        assert_eq!(check(open, false, false).0, FINE);
        let (code, text) = check(open, true, false);
        assert_eq!(code, FOUND);
        assert!(text.contains("warning     listeners=CONTROLLER://:9093: CONTROLLER is PLAINTEXT"));
    }

    #[test]
    fn refusals_come_first_and_end_with_2() {
        let (code, text) = check("a.b=1\nauthorizer.class.name=X\nnode.id=-1\n", false, false);
        assert_eq!(code, FOUND);
        let labels: Vec<_> = text
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(&labels[..3], ["error", "unsupported", "warning"]);
        assert!(text.contains("kraftd does not start with it, 2 refusals"));
    }

    /// `node.id` and `broker.id` stand for each other: only the one that is written is told.
    #[test]
    fn a_wrong_value_is_told_of_the_key_that_has_it() {
        let (_, text) = check("node.id=99999999999\n", false, false);
        assert!(text.contains("error       node.id=99999999999: "), "{text}");
        assert!(!text.contains("broker.id"), "{text}");
    }

    #[test]
    fn a_pattern_that_is_none_is_told_with_place_and_reason() {
        let pattern = "kraftd.create.topic.policy.name.pattern=a(b\n";
        let (_, text) = check(pattern, false, false);
        assert!(text.contains("at character 2: unclosed group"), "{text}");
    }

    #[test]
    fn values_of_the_file_do_not_move_the_cursor() {
        let (_, text) = check("num.partitions=\\u001b[2J\n", false, false);
        assert!(text.contains("num.partitions=\\u{1b}[2J: "), "{text}");
    }

    #[test]
    fn json_has_every_part_of_a_finding() {
        let (_, text) = check("num.partitions=0\n", false, true);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["starts"], false);
        let finding = &document["findings"][0];
        assert_eq!(finding["severity"], "error");
        assert_eq!(finding["key"], "num.partitions");
        assert_eq!(finding["value"], "0");
        assert_eq!(finding["rule"], "must be from 1 to 2147483647");
    }
}
