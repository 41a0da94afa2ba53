//! The authorizer that a file asks for, and the keys that only an authorizer reads.

use std::collections::BTreeSet;

use super::checks::Review;
use super::finding::Severity;
use super::model::Authorizer;
use super::values::Values;
use crate::types::quote;

const CLASS: &str = "authorizer.class.name";
const SUPER_USERS: &str = "super.users";
const ALLOW_EVERYONE: &str = "allow.everyone.if.no.acl.found";

/// The one that comes with Kafka, and that kraftd has built in.
const STANDARD: &str = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
/// The one of clusters with ZooKeeper.
const ZOOKEEPERS: &str = "kafka.security.authorizer.AclAuthorizer";

impl Review<'_> {
    /// The class must be one whose rules kraftd knows: not to enforce what a class would enforce
    /// opens a cluster.
    pub(super) fn authorizer(&mut self) {
        match self.values.text(CLASS).unwrap_or_default() {
            "" => {
                for key in [SUPER_USERS, ALLOW_EVERYONE] {
                    if self.values.is_set(key) {
                        let rule = "has no effect without authorizer.class.name";
                        self.warn(key, rule, "remove it");
                    }
                }
                return;
            }
            STANDARD => {}
            ZOOKEEPERS => {
                self.error(
                    CLASS,
                    "this authorizer kept its entries in ZooKeeper and is gone since 4.0",
                    &format!("use {STANDARD}"),
                );
                return;
            }
            _ => {
                self.find(
                    Severity::Unsupported,
                    CLASS,
                    "authorizers are Java plugins, kraftd has only the one of Kafka built in",
                    &format!("use {STANDARD}, or remove it to let everybody do everything"),
                );
                return;
            }
        }
        let users = super_users(self.values);
        if let Some(user) = users.iter().find(|user| !user.contains(':')) {
            let user = quote(user);
            let rule = format!("has {user}, which is not of the form type:name");
            self.error(
                SUPER_USERS,
                &rule,
                "write it as User:name; a semicolon separates users",
            );
        }
        if let Some(user) = users.iter().find(|user| is_list(user)) {
            let user = quote(user);
            let rule = format!("has one user, {user}, where commas seem to separate several");
            let fix = "separate users by semicolons; a comma belongs to a name";
            self.warn(SUPER_USERS, &rule, fix);
        }
        let written = self.values.texts().get(ALLOW_EVERYONE);
        let word = written.map(|text| text.trim().to_lowercase());
        if word.is_some_and(|word| word != "true" && word != "false") {
            let rule = "is neither true nor false, which counts as false";
            self.warn(ALLOW_EVERYONE, rule, "write true or false");
        }
    }
}

/// Whether a user looks like several: behind a comma, as in `User:a,User:b`, its type comes again.
/// A distinguished name has commas of its own: `User:CN=a,OU=b`.
fn is_list(user: &str) -> bool {
    let mut parts = user.split(',').map(|part| part.trim().split_once(':'));
    let first = parts.next().flatten().map(|(kind, _)| kind);
    first.is_some() && parts.any(|part| part.map(|(kind, _)| kind) == first)
}

/// The authorizer of values that no check refuses.
pub(super) fn of(values: &Values) -> Option<Authorizer> {
    let allow = values.texts().get(ALLOW_EVERYONE);
    (values.text(CLASS) == Some(STANDARD)).then(|| Authorizer {
        super_users: super_users(values),
        allow_everyone_if_no_acl_found: allow
            .is_some_and(|text| text.trim().eq_ignore_ascii_case("true")),
    })
}

fn super_users(values: &Values) -> BTreeSet<String> {
    let written = values.texts().get(SUPER_USERS).map(String::as_str);
    let users = written.unwrap_or_default().split(';').map(str::trim);
    users
        .filter(|user| !user.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_list;

    #[test]
    fn users_separated_by_commas_are_told_from_names_with_commas() {
        for list in ["User:a,User:b", "User:a, User:b", "User:CN=a,OU=b,User:c"] {
            assert!(is_list(list), "{list}");
        }
        for one in [
            "User:a",
            "User:CN=a,OU=b",
            "User:a,b",
            "User:CN=a,O=User:b",
            "a,a",
        ] {
            assert!(!is_list(one), "{one}");
        }
    }
}
