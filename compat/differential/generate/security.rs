//! Who may do what, and how much: quotas, credentials, tokens and access control entries.

use bytes::Bytes;
use kafka_protocol::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use kafka_protocol::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::create_delegation_token_request::CreatableRenewers;
use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;
use kafka_protocol::messages::describe_delegation_token_request::DescribeDelegationTokenOwner;
use kafka_protocol::messages::describe_user_scram_credentials_request::UserName;
use kafka_protocol::messages::{
    AlterClientQuotasRequest, AlterUserScramCredentialsRequest, CreateAclsRequest,
    CreateDelegationTokenRequest, DeleteAclsRequest, DescribeAclsRequest,
    DescribeDelegationTokenRequest, DescribeUserScramCredentialsRequest,
    ExpireDelegationTokenRequest, RenewDelegationTokenRequest,
};
use kafka_protocol::protocol::StrBytes;

use super::{Ask, Generator, text};

const USERS: [&str; 5] = ["alice", "bob", "carol", "dave", ""];
/// Quotas that a run may have. `controller_mutation_rate` is never small: how long it throttles
/// depends on the clock.
const QUOTAS: [(&str, &[f64]); 7] = [
    (
        "producer_byte_rate",
        &[1_000.0, 2_000.0, 0.0, -1.0, 1.5, 1e300],
    ),
    ("consumer_byte_rate", &[1_000.0, 500.0]),
    ("request_percentage", &[12.5, 200.0, 0.0, -0.5]),
    ("controller_mutation_rate", &[1e9, 2e9]),
    ("connection_creation_rate", &[10.0, 20.0, 0.5]),
    ("no.such.quota", &[1.0]),
    ("", &[1.0]),
];
const ENTITIES: [(&str, &[&str]); 5] = [
    ("user", &["alice", "bob", ""]),
    ("client-id", &["c1", "c2", ""]),
    ("ip", &["127.0.0.1", "10.0.0.1", "::1", ""]),
    ("group", &["g"]),
    ("", &["x"]),
];

impl Generator {
    fn user(&mut self) -> StrBytes {
        let user = *self.dice.pick(&USERS);
        text(user)
    }

    pub(super) fn alter_quotas(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(8, 1), (3, 2), (1, 0)]);
        let mut entries: Vec<_> = (0..count).map(|_| self.quota_entry()).collect();
        if self.dice.once_in(20) {
            entries.extend(entries.first().cloned());
        }
        AlterClientQuotasRequest::default()
            .with_entries(entries)
            .with_validate_only(self.dice.once_in(6))
            .into()
    }

    fn quota_entry(&mut self) -> EntryData {
        let count = *self.dice.weighted(&[(8, 1), (5, 2), (1, 0)]);
        let entity = (0..count).map(|_| {
            // The first three are known, the rest is not.
            let (kind, names) = match self.dice.once_in(12) {
                true => *self.dice.pick(&ENTITIES),
                false => *self.dice.pick(&ENTITIES[..3]),
            };
            let name = (!self.dice.once_in(4)).then(|| *self.dice.pick(names));
            EntityData::default()
                .with_entity_type(text(kind))
                .with_entity_name(name.map(text))
        });
        let entity = entity.collect();
        let count = *self.dice.weighted(&[(8, 1), (4, 2), (1, 3), (1, 0)]);
        let ops = (0..count).map(|_| {
            let (key, values) = *self.dice.pick(&QUOTAS);
            let at = self
                .dice
                .below(values.len())
                .min(self.dice.below(values.len()));
            OpData::default()
                .with_key(text(key))
                .with_value(values[at])
                .with_remove(self.dice.once_in(4))
        });
        EntryData::default()
            .with_entity(entity)
            .with_ops(ops.collect())
    }

    pub(super) fn alter_scram(&mut self) -> Ask {
        let (deletions, upsertions) = (self.dice.below(3), self.dice.below(3));
        let deletions = (0..deletions).map(|_| {
            ScramCredentialDeletion::default()
                .with_name(self.user())
                .with_mechanism(*self.dice.weighted(&[(8, 1), (8, 2), (1, 0), (1, 3)]))
        });
        let deletions = deletions.collect();
        let upsertions = (0..upsertions).map(|_| {
            let iterations = [
                (8, 4_096),
                (3, 8_192),
                (1, 4_095),
                (1, 16_385),
                (1, -1),
                (1, 16_384),
            ];
            let bytes = |length: usize| Bytes::from(vec![7; length]);
            let length = *self.dice.weighted(&[(8, 32), (4, 64), (1, 1)]);
            ScramCredentialUpsertion::default()
                .with_name(self.user())
                .with_mechanism(*self.dice.weighted(&[(8, 1), (8, 2), (1, 0), (1, 3)]))
                .with_iterations(*self.dice.weighted(&iterations))
                .with_salt(bytes(*self.dice.weighted(&[(8, 16), (1, 3)])))
                .with_salted_password(bytes(length))
        });
        let upsertions = upsertions.collect();
        AlterUserScramCredentialsRequest::default()
            .with_deletions(deletions)
            .with_upsertions(upsertions)
            .into()
    }

    /// Of named users: asked for all, Java's controller does not answer.
    pub(super) fn describe_scram(&mut self) -> Ask {
        let count = self.dice.below(3);
        let users = (0..count).map(|_| UserName::default().with_name(self.user()));
        DescribeUserScramCredentialsRequest::default()
            .with_users(Some(users.collect()))
            .into()
    }

    pub(super) fn describe_tokens(&mut self) -> Ask {
        let count = self.dice.below(3);
        let owners = (0..count).map(|_| {
            DescribeDelegationTokenOwner::default()
                .with_principal_type(text("User"))
                .with_principal_name(self.user())
        });
        let owners = owners.collect();
        DescribeDelegationTokenRequest::default()
            .with_owners((!self.dice.once_in(3)).then_some(owners))
            .into()
    }

    pub(super) fn create_token(&mut self) -> Ask {
        let count = self.dice.below(3);
        let renewers = (0..count).map(|_| {
            CreatableRenewers::default()
                .with_principal_type(text(if self.dice.once_in(10) {
                    "Group"
                } else {
                    "User"
                }))
                .with_principal_name(self.user())
        });
        let renewers = renewers.collect();
        let request = CreateDelegationTokenRequest::default()
            .with_renewers(renewers)
            .with_max_lifetime_ms(*self.dice.pick(&[-1, 0, 1_000_000, 86_400_000, i64::MAX]));
        if self.dice.once_in(2) {
            return request.into();
        }
        let kind = *self.dice.weighted(&[(9, "User"), (1, "Group"), (1, "")]);
        request
            .with_owner_principal_type(Some(text(kind)))
            .with_owner_principal_name(Some(self.user()))
            .into()
    }

    fn some_hmac(&mut self) -> Bytes {
        match self.dice.maybe(&self.hmacs) {
            Some(hmac) if !self.dice.once_in(6) => hmac.clone(),
            _ => Bytes::from_static(b"no such token"),
        }
    }

    pub(super) fn renew_token(&mut self) -> Ask {
        RenewDelegationTokenRequest::default()
            .with_hmac(self.some_hmac())
            .with_renew_period_ms(*self.dice.pick(&[-1, 0, 3_600_000, i64::MAX]))
            .into()
    }

    pub(super) fn expire_token(&mut self) -> Ask {
        ExpireDelegationTokenRequest::default()
            .with_hmac(self.some_hmac())
            .with_expiry_time_period_ms(*self.dice.pick(&[-1, 3_600_000, 86_400_000]))
            .into()
    }

    pub(super) fn create_acls(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(8, 1), (4, 3), (1, 0)]);
        let mut creations: Vec<_> = (0..count).map(|_| self.acl()).collect();
        if self.dice.once_in(10) {
            creations.extend(creations.first().cloned());
        }
        CreateAclsRequest::default()
            .with_creations(creations)
            .into()
    }

    /// TOPIC 2, GROUP 3, CLUSTER 4, TRANSACTIONAL_ID 5, DELEGATION_TOKEN 6, USER 7.
    fn acl_resource(&mut self) -> (i8, &'static str) {
        match *self
            .dice
            .weighted(&[(8, 0), (4, 1), (4, 2), (2, 3), (1, 4), (1, 5)])
        {
            0 => (2, *self.dice.pick(&["a", "a.b", "orders", "o", "*", ""])),
            1 => (3, *self.dice.pick(&["g1", "g2", "*"])),
            2 => (
                4,
                *self.dice.weighted(&[(8, "kafka-cluster"), (1, "other")]),
            ),
            3 => (7, *self.dice.pick(&["User:alice", "alice"])),
            4 => (*self.dice.pick(&[5, 6]), "t"),
            _ => (*self.dice.pick(&[0, 1, 8, -1]), "x"),
        }
    }

    fn acl(&mut self) -> AclCreation {
        let (kind, name) = self.acl_resource();
        let principals = [
            "User:alice",
            "User:bob",
            "User:*",
            "alice",
            "",
            "User:",
            ":x",
        ];
        let hosts = [
            "*",
            "127.0.0.1",
            "10.0.0.0/8",
            "10.0.0.0/99",
            "",
            "somewhere",
            "/",
            "::1",
        ];
        let principal = self.mostly_first(&principals, 3);
        let host = self.mostly_first(&hosts, 3);
        // LITERAL 3, PREFIXED 4; MATCH 2 and ANY 1 are for filters.
        let pattern = *self
            .dice
            .weighted(&[(8, 3), (5, 4), (1, 2), (1, 1), (1, 0), (1, 5)]);
        let operation = i8::try_from(self.dice.between(2, 12)).expect("small");
        let odd = *self.dice.pick(&[0, 1, 13, 14, 15, -1]);
        let permission = *self
            .dice
            .weighted(&[(4, 2), (14, 3), (1, 0), (1, 1), (1, 4)]);
        AclCreation::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_resource_pattern_type(pattern)
            .with_principal(text(principal))
            .with_host(text(host))
            .with_operation(if self.dice.once_in(12) {
                odd
            } else {
                operation
            })
            .with_permission_type(permission)
    }

    /// One of the first `good`, now and then one of the others.
    fn mostly_first(&mut self, items: &[&'static str], good: usize) -> &'static str {
        let among = if self.dice.once_in(10) {
            items
        } else {
            &items[..good]
        };
        let chosen: &&'static str = self.dice.pick(among);
        chosen
    }

    fn acl_filter(&mut self) -> DeleteAclsFilter {
        let (kind, name) = self.acl_resource();
        let acl = self.acl();
        let kind = if self.dice.once_in(2) { 1 } else { kind };
        let operation = if self.dice.once_in(2) {
            1
        } else {
            acl.operation
        };
        let pattern = *self
            .dice
            .weighted(&[(6, 1), (4, 2), (4, 3), (2, 4), (1, 0), (1, 9)]);
        DeleteAclsFilter::default()
            .with_resource_type_filter(kind)
            .with_resource_name_filter(self.dice.once_in(2).then(|| text(name)))
            .with_pattern_type_filter(pattern)
            .with_principal_filter(self.dice.once_in(2).then_some(acl.principal))
            .with_host_filter(self.dice.once_in(3).then_some(acl.host))
            .with_operation(operation)
            .with_permission_type(*self.dice.weighted(&[(8, 1), (2, 2), (2, 3), (1, 0)]))
    }

    pub(super) fn describe_acls(&mut self) -> Ask {
        let filter = self.acl_filter();
        DescribeAclsRequest::default()
            .with_resource_type_filter(filter.resource_type_filter)
            .with_resource_name_filter(filter.resource_name_filter)
            .with_pattern_type_filter(filter.pattern_type_filter)
            .with_principal_filter(filter.principal_filter)
            .with_host_filter(filter.host_filter)
            .with_operation(filter.operation)
            .with_permission_type(filter.permission_type)
            .into()
    }

    pub(super) fn delete_acls(&mut self) -> Ask {
        let count = self.dice.below(3);
        let filters = (0..count).map(|_| self.acl_filter());
        DeleteAclsRequest::default()
            .with_filters(filters.collect())
            .into()
    }
}
