//! Texts of two clusters made comparable: ids made by chance, ports, clocks and offsets differ.

use regex::Regex;

use crate::harness::Setup;

/// Replaces what differs from run to run by a name in angle brackets.
pub(crate) struct Normal {
    rules: Vec<(Regex, &'static str)>,
    ports: Vec<(String, &'static str)>,
}

impl Normal {
    pub(crate) fn new(setup: &Setup) -> Self {
        let ports = [
            (setup.controller_port.to_string(), "<controller>"),
            (setup.broker_port.to_string(), "<broker>"),
        ];
        Self {
            ports: ports.to_vec(),
            ..Self::without_ports()
        }
    }

    /// Only what differs in every cluster.
    pub(crate) fn without_ports() -> Self {
        let rules = [
            (r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z(\[UTC\])?", "<time>"),
            (r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]", "[<time>]"),
            (r"\b1[6-9]\d{11}\b", "<ms>"),
            // 22 characters of base64url with a digit and a letter of each case nearby enough.
            (r"(?-u:\b|-)[A-Za-z0-9_-]{21}[AQgw](?-u:\b|$)", "<uuid>"),
        ];
        Self {
            rules: rules
                .map(|(rule, to)| (Regex::new(rule).expect("a regex"), to))
                .to_vec(),
            ports: Vec::new(),
        }
    }

    /// Adds a rule.
    pub(crate) fn with(mut self, rule: &str, to: &'static str) -> Self {
        self.rules.push((Regex::new(rule).expect("a regex"), to));
        self
    }

    pub(crate) fn line(&self, line: &str) -> String {
        let mut line = line.trim_end().to_owned();
        for (port, name) in &self.ports {
            line = line.replace(port.as_str(), name);
        }
        for (rule, to) in &self.rules {
            line = rule.replace_all(&line, *to).into_owned();
        }
        line
    }
}

/// What differs between two lists of lines, as a readable text; empty when nothing does.
pub(crate) fn difference(expected: &[String], found: &[String]) -> String {
    let common = |a: &[String], b: &[String]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let head = common(expected, found);
    let reversed = |lines: &[String]| lines[head..].iter().rev().cloned().collect::<Vec<_>>();
    let tail = common(&reversed(expected), &reversed(found));
    let part = |sign: &str, lines: &[String]| {
        let lines = &lines[head..lines.len() - tail];
        lines
            .iter()
            .map(|line| format!("{sign} {line}\n"))
            .collect::<String>()
    };
    part("-", expected) + &part("+", found)
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_shows_only_the_lines_that_differ() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(difference(&lines("a\nb\nc"), &lines("a\nb\nc")), "");
        assert_eq!(
            difference(&lines("a\nb\nc"), &lines("a\nx\nc")),
            "- b\n+ x\n"
        );
        assert_eq!(difference(&lines("a\nb"), &lines("a\nb\nc")), "+ c\n");
    }
}
