//! Who may do what, and how much.

use std::collections::BTreeSet;

use bytes::Bytes;
use kafka_protocol::messages as km;
use kafka_protocol::messages::alter_client_quotas_request as quota;
use kafka_protocol::messages::alter_user_scram_credentials_request as scram;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::create_delegation_token_request::CreatableRenewers;
use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;
use kafka_protocol::protocol::StrBytes;

use super::super::Reply;
use super::super::quotas::AlterClientQuotas;
use super::{Request, Run};

impl Run {
    fn byte(&mut self) -> i8 {
        match self.below(12) {
            0 => self.pick(&[i8::MIN, -1, i8::MAX]),
            _ => self.below(8) as i8,
        }
    }

    fn period_ms(&mut self) -> i64 {
        self.pick(&[i64::MIN, -1, 0, 1, 1_000, 1_000_000, i64::MAX])
    }

    pub(super) fn alter_quotas(&mut self) -> (i16, Request) {
        let entries = self.some(|run| {
            let entity = run.some(|run| {
                let kind = match run.below(10) {
                    0 => run.text(),
                    _ => StrBytes::from_static_str(run.pick(&["user", "client-id", "ip"])),
                };
                quota::EntityData::default()
                    .with_entity_type(kind)
                    .with_entity_name((!run.once_in(3)).then(|| run.text()))
            });
            let ops = run.some(|run| {
                let key = match run.below(10) {
                    0 => run.text(),
                    _ => StrBytes::from_static_str(run.pick(&[
                        "producer_byte_rate",
                        "request_percentage",
                        "connection_creation_rate",
                        "controller_mutation_rate",
                    ])),
                };
                let values = [f64::NAN, f64::INFINITY, -0.0, -1.0, 0.5, 1.0, 1e9, f64::MAX];
                quota::OpData::default()
                    .with_key(key)
                    .with_value(run.pick(&values))
                    .with_remove(run.once_in(3))
            });
            quota::EntryData::default()
                .with_entity(entity)
                .with_ops(ops)
        });
        let body = km::AlterClientQuotasRequest::default()
            .with_entries(entries)
            .with_validate_only(self.once_in(8));
        let unknown_hosts = BTreeSet::from(["a".to_owned()]);
        let request = AlterClientQuotas {
            body,
            unknown_hosts,
        };
        (1, Request::AlterClientQuotas(request))
    }

    pub(super) fn alter_scram(&mut self) -> (i16, Request) {
        let deletions = self.some(|run| {
            scram::ScramCredentialDeletion::default()
                .with_name(run.text())
                .with_mechanism(run.byte() % 4)
        });
        let upsertions = self.some(|run| {
            let salt = run.below(3);
            let password = run.below(3);
            scram::ScramCredentialUpsertion::default()
                .with_name(run.text())
                .with_mechanism(run.byte() % 4)
                .with_iterations(run.pick(&[4_096, 4_096, 16_384, 0, -1, i32::MAX, i32::MIN]))
                .with_salt(Bytes::from(vec![1; salt]))
                .with_salted_password(Bytes::from(vec![1; password]))
        });
        let request = km::AlterUserScramCredentialsRequest::default()
            .with_deletions(deletions)
            .with_upsertions(upsertions);
        (0, Request::AlterUserScramCredentials(request))
    }

    /// A token that was made is asked for later.
    pub(super) fn note_token(&mut self, reply: &Reply) {
        if let Reply::CreateDelegationToken(reply) = reply
            && !reply.hmac.is_empty()
        {
            self.hmacs.push(reply.hmac.clone());
        }
    }

    fn hmac(&mut self) -> Bytes {
        if self.hmacs.is_empty() || self.once_in(8) {
            return Bytes::from_static(b"of no token");
        }
        let hmacs = self.hmacs.clone();
        self.pick(&hmacs)
    }

    pub(super) fn create_token(&mut self) -> (i16, Request) {
        let renewers = self.some(|run| {
            CreatableRenewers::default()
                .with_principal_type(StrBytes::from_static_str("User"))
                .with_principal_name(run.text())
        });
        let request = km::CreateDelegationTokenRequest::default()
            .with_owner_principal_type(self.once_in(2).then(|| self.text()))
            .with_owner_principal_name(self.once_in(2).then(|| self.text()))
            .with_renewers(renewers)
            .with_max_lifetime_ms(self.period_ms());
        (3, Request::CreateDelegationToken(request))
    }

    pub(super) fn renew_token(&mut self) -> (i16, Request) {
        let request = km::RenewDelegationTokenRequest::default()
            .with_hmac(self.hmac())
            .with_renew_period_ms(self.period_ms());
        (2, Request::RenewDelegationToken(request))
    }

    pub(super) fn expire_token(&mut self) -> (i16, Request) {
        let request = km::ExpireDelegationTokenRequest::default()
            .with_hmac(self.hmac())
            .with_expiry_time_period_ms(self.period_ms());
        (2, Request::ExpireDelegationToken(request))
    }

    fn principal(&mut self) -> StrBytes {
        match self.below(6) {
            0 => self.text(),
            _ => StrBytes::from_static_str(self.pick(&["User:alice", "User:*", ":", "User:"])),
        }
    }

    fn host(&mut self) -> StrBytes {
        StrBytes::from_static_str(self.pick(&["*", "::1", "10.0.0.0/8", "10.0.0.0/99", "/", ""]))
    }

    pub(super) fn create_acls(&mut self) -> (i16, Request) {
        let creations = self.some(|run| {
            AclCreation::default()
                .with_resource_type(run.pick(&[2, 2, 3, 7, 4, 0, 9, -1]))
                .with_resource_name(run.text())
                .with_resource_pattern_type(run.pick(&[3, 3, 4, 0, 9]))
                .with_principal(run.principal())
                .with_host(run.host())
                .with_operation(run.byte().wrapping_add(2))
                .with_permission_type(run.pick(&[2, 3, 3, 0]))
        });
        let request = km::CreateAclsRequest::default().with_creations(creations);
        (3, Request::CreateAcls(request))
    }

    pub(super) fn delete_acls(&mut self) -> (i16, Request) {
        let filters = self.some(|run| {
            DeleteAclsFilter::default()
                .with_resource_type_filter(run.pick(&[1, 1, 2, 3, 0, -1]))
                .with_resource_name_filter(run.once_in(2).then(|| run.text()))
                .with_pattern_type_filter(run.pick(&[1, 1, 2, 3, 4, 0, 9]))
                .with_principal_filter(run.once_in(2).then(|| run.principal()))
                .with_host_filter(run.once_in(3).then(|| run.host()))
                .with_operation(run.pick(&[1, 1, 2, 3, 0]))
                .with_permission_type(run.pick(&[1, 1, 2, 3, 0]))
        });
        let request = km::DeleteAclsRequest::default().with_filters(filters);
        (3, Request::DeleteAcls(request))
    }
}
