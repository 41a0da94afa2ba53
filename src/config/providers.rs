//! `${provider:path:key}` in values (KIP-297, KIP-421): replaced once, before anything is parsed.
//!
//! Only providers named in `config.providers` with a class take part; a variable that its provider
//! does not have stays as it is written, as in Java.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::finding::{Finding, Severity};
use super::pairs::Pairs;
use super::properties::{self, Charset, FILE_BYTES_MAX};
use super::values;
use crate::types::{pattern, quote};

static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
        .expect("a constant pattern that the tests compile")
});

const CLASSES: &str = "org.apache.kafka.common.config.provider.";
const PROVIDERS: &str = "config.providers";

/// Reads an environment variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

enum Provider<'a> {
    Environment {
        variables: Environment<'a>,
        allowed: Option<Regex>,
    },
    File {
        allowed: Option<Vec<PathBuf>>,
    },
    Directory {
        allowed: Option<Vec<PathBuf>>,
    },
}

/// Replaces the variables of all `pairs`.
pub(crate) fn resolve(pairs: &mut Pairs, environment: Environment<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let providers = configured(pairs, environment, &mut findings);
    if providers.is_empty() {
        return findings;
    }
    for (key, entry) in pairs.iter_mut() {
        match replace(&entry.written, &providers) {
            Ok((text, left)) => {
                entry.text = text;
                for variable in left {
                    findings.push(Finding {
                        severity: Severity::Warning,
                        key: quote(key),
                        value: None,
                        rule: format!("{} has no value, the text stays as it is", quote(&variable)),
                        fix: "set what it names, or remove it".to_owned(),
                    });
                }
            }
            Err(rule) => findings.push(Finding {
                severity: Severity::Error,
                key: quote(key),
                value: values::shown(key, &entry.written),
                rule,
                fix: "correct the variable or what it reads".to_owned(),
            }),
        }
    }
    findings
}

fn configured<'a>(
    pairs: &Pairs,
    environment: Environment<'a>,
    findings: &mut Vec<Finding>,
) -> BTreeMap<String, Provider<'a>> {
    let mut providers = BTreeMap::new();
    let names = pairs.get(PROVIDERS).map_or("", |entry| &entry.written);
    for name in names.split(',').filter(|name| !name.is_empty()) {
        let class_key = format!("{PROVIDERS}.{name}.class");
        let Some(class) = pairs.get(&class_key) else {
            findings.push(Finding {
                severity: Severity::Warning,
                key: PROVIDERS.to_owned(),
                value: Some(names.to_owned()),
                rule: format!(
                    "\"{}\" has no class, its variables stay as they are",
                    quote(name)
                ),
                fix: format!(
                    "set {}, and leave no blanks between names",
                    quote(&class_key)
                ),
            });
            continue;
        };
        match provider(name, class.written.trim(), pairs, environment) {
            Ok(provider) => drop(providers.insert(name.to_owned(), provider)),
            Err((severity, key, rule, fix)) => findings.push(Finding {
                severity,
                value: pairs.get(&key).map(|entry| entry.written.clone()),
                key: quote(&key),
                rule,
                fix: fix.to_owned(),
            }),
        }
    }
    providers
}

type Refusal = (Severity, String, String, &'static str);

fn provider<'a>(
    name: &str,
    class: &str,
    pairs: &Pairs,
    environment: Environment<'a>,
) -> Result<Provider<'a>, Refusal> {
    let param = |param: &str| {
        let key = format!("{PROVIDERS}.{name}.param.{param}");
        let value = pairs.get(&key).map(|entry| entry.written.as_str());
        (key, value)
    };
    match class.strip_prefix(CLASSES) {
        Some("EnvVarConfigProvider") => {
            let (key, pattern) = param("allowlist.pattern");
            let allowed = pattern.map(pattern::whole).transpose();
            let allowed =
                allowed.map_err(|rule| (Severity::Error, key, rule, "correct the expression"))?;
            Ok(Provider::Environment {
                variables: environment,
                allowed,
            })
        }
        Some(kind @ ("FileConfigProvider" | "DirectoryConfigProvider")) => {
            let (key, paths) = param("allowed.paths");
            let allowed = paths.filter(|paths| !paths.is_empty()).map(allowed_paths);
            let allowed = allowed
                .transpose()
                .map_err(|rule| (Severity::Error, key, rule, "name absolute paths that exist"))?;
            Ok(if kind == "FileConfigProvider" {
                Provider::File { allowed }
            } else {
                Provider::Directory { allowed }
            })
        }
        _ => Err((
            Severity::Unsupported,
            format!("{PROVIDERS}.{name}.class"),
            "kraftd knows the providers EnvVarConfigProvider, FileConfigProvider and \
             DirectoryConfigProvider, other classes are Java plugins"
                .to_owned(),
            "use one of the three",
        )),
    }
}

fn allowed_paths(text: &str) -> Result<Vec<PathBuf>, String> {
    text.split(',')
        .map(|path| {
            if !Path::new(path).is_absolute() {
                return Err(format!("{} is not absolute", quote(path)));
            }
            fs::canonicalize(path).map_err(|error| format!("{}: {error}", quote(path)))
        })
        .collect()
}

/// The text with its variables replaced, and the variables that have no value.
fn replace(
    text: &str,
    providers: &BTreeMap<String, Provider<'_>>,
) -> Result<(String, Vec<String>), String> {
    let mut replaced = String::with_capacity(text.len());
    let mut left = Vec::new();
    let mut copied = 0;
    for groups in VARIABLE.captures_iter(text) {
        let all = groups.get(0).expect("group 0 is the match itself");
        let group = |index| groups.get(index).map_or("", |group| group.as_str().trim());
        let Some(provider) = providers.get(group(1)) else {
            continue;
        };
        replaced.push_str(&text[copied..all.start()]);
        if let Some(value) = provider.get(group(2), group(3))? {
            replaced.push_str(&value);
        } else {
            replaced.push_str(all.as_str());
            left.push(all.as_str().to_owned());
        }
        if replaced.len() as u64 > FILE_BYTES_MAX {
            return Err(format!(
                "is longer than {FILE_BYTES_MAX} bytes with its variables replaced"
            ));
        }
        copied = all.end();
    }
    replaced.push_str(&text[copied..]);
    Ok((replaced, left))
}

impl Provider<'_> {
    fn get(&self, path: &str, key: &str) -> Result<Option<String>, String> {
        match self {
            Self::Environment { variables, allowed } => {
                if !path.is_empty() {
                    let path = quote(path);
                    return Err(format!(
                        "an environment variable has no path, found \"{path}\""
                    ));
                }
                let allowed = allowed.as_ref().is_none_or(|pattern| pattern.is_match(key));
                Ok(allowed.then(|| variables(key)).flatten())
            }
            Self::File { allowed } => match permitted(path, allowed.as_deref()) {
                Some(path) => from_file(&path, key),
                None => Ok(None),
            },
            Self::Directory { allowed } => match permitted(path, allowed.as_deref()) {
                Some(path) => from_directory(&path, key),
                None => Ok(None),
            },
        }
    }
}

/// The path, when it is not empty and inside one of the allowed ones.
fn permitted(path: &str, allowed: Option<&[PathBuf]>) -> Option<PathBuf> {
    if path.is_empty() {
        return None;
    }
    let Some(allowed) = allowed else {
        return Some(PathBuf::from(path));
    };
    let real = fs::canonicalize(path).ok()?;
    allowed
        .iter()
        .any(|root| real.starts_with(root))
        .then_some(real)
}

/// A path that a value names, for a sentence.
fn shown(path: &Path) -> String {
    quote(&path.display().to_string())
}

fn from_file(path: &Path, key: &str) -> Result<Option<String>, String> {
    let failed = |why: String| format!("cannot read properties from {}: {why}", shown(path));
    let bytes = properties::read(path).map_err(failed)?;
    let pairs = properties::parse(&bytes, Charset::Utf8)
        .map_err(|malformed| failed(malformed.to_string()))?;
    let value = pairs.into_iter().rev().find(|(name, _)| name == key);
    Ok(value.map(|(_, value)| value))
}

fn from_directory(path: &Path, key: &str) -> Result<Option<String>, String> {
    // A key is the name of a file in the directory itself, never a path out of it.
    let mut parts = Path::new(key).components();
    let name = match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) if name == key => name,
        _ => return Ok(None),
    };
    let file = path.join(name);
    if !file.is_file() {
        return Ok(None);
    }
    let bytes = properties::read(&file)
        .map_err(|error| format!("cannot read {}: {error}", shown(&file)))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", shown(&file)))?;
    Ok(Some(text))
}

#[cfg(test)]
#[path = "providers_tests.rs"]
mod tests;
