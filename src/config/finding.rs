//! What a check of the configuration found: key, value, the rule it breaks and how to mend it.

use std::fmt;

use crate::types::quote;

/// What a [`Finding`] means for the start of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The process starts. `check-config --strict` fails.
    Warning,
    /// Java's controller would start with it, kraftd refuses: it asks for something that kraftd
    /// does not do, where ignoring it would be a silent change of behaviour, or for what nobody can
    /// mean, like a limit that lets nobody connect.
    Unsupported,
    /// Java's controller refuses it too.
    Error,
}

/// One thing that is wrong, or worth a warning, in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it means for the start.
    pub severity: Severity,
    /// The key, as written in the file (with its listener prefix) and [`quote`]d; the file's path
    /// where the text itself is malformed.
    pub key: String,
    /// The value as written, `None` when the key is not set. Secrets are already masked.
    pub value: Option<String>,
    /// The rule, as the rest of a sentence or a sentence without its full stop.
    pub rule: String,
    /// What the operator can do, in the imperative and without a full stop.
    pub fix: String,
}

impl Finding {
    /// True when the process must not start with it.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.severity > Severity::Warning
    }
}

/// One line: `key=value: rule; fix`, with the value quoted.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => {
                let value = quote(value);
                write!(f, "{}={value}: {}; {}", self.key, self.rule, self.fix)
            }
            None => write!(f, "{}: {}; {}", self.key, self.rule, self.fix),
        }
    }
}
