//! The controller's rules: `decide(view, soft, request) -> Decision`.
//!
//! A rule reads the working image (which may be ahead of what is committed), the settings and the
//! soft state, and answers with records and a reply. It cannot write to the image: `node` replays
//! the records on the working image, has them appended, and holds the reply until their last offset
//! is committed. A decision without records waits for the highest pending offset all the same: it
//! was computed on uncommitted state and could vanish with it.
//!
//! [`Soft`] is what is not replicated: heartbeat times, deadlines, the placement seed. It is made
//! anew whenever this node becomes the active controller.

pub mod acls;
pub mod activation;
mod alter_partition;
#[cfg(test)]
mod answers_tests;
mod assign_dirs;
pub mod authorize;
#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod broker_life_tests;
#[cfg(test)]
mod broker_log_tests;
pub mod configs;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod described;
mod elect_leaders;
mod elections;
#[cfg(test)]
mod elections_log_tests;
mod endpoints;
pub mod features;
mod handover;
mod heartbeat;
pub mod heartbeats;
#[cfg(test)]
mod java_log_tests;
mod java_map;
mod leaders;
pub mod levels;
pub mod mutation_quota;
mod new_partitions;
pub mod partition_change;
pub mod periodic;
pub mod placement;
pub mod policies;
mod producer_ids;
pub mod quotas;
#[cfg(test)]
mod quotas_tests;
mod reassign;
mod register_broker;
pub mod register_controller;
#[cfg(test)]
mod replayable_tests;
pub mod scram;
#[cfg(test)]
mod testing;
pub mod tokens;
mod told;
mod topic_names;
#[cfg(test)]
mod topics_tests;
mod unregister;
pub mod works;

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages as km;

pub use self::create_topics::creates_nothing;
use self::elections::Round;
pub use self::heartbeat::Before;
use crate::image::Image;
use crate::records::VersionedRecord;
use crate::records::rpc::{
    BrokerHeartbeatRequest, UnregisterControllerRequest, UnregisterControllerResponse,
};
use crate::types::{
    ApiError, ErrorCode, Instant, NodeId, Now, Offset, Principal, SecurityProtocol, SplitMix,
};

/// What does not change while the process runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This controller.
    pub node_id: NodeId,
    /// The cluster's id as in `meta.properties`.
    pub cluster_id: String,
    /// `broker.session.timeout.ms`.
    pub session_timeout_ms: u64,
    /// `broker.heartbeat.interval.ms`.
    pub heartbeat_interval_ms: u64,
    /// `num.partitions`.
    pub num_partitions: i32,
    /// `default.replication.factor`.
    pub default_replication_factor: i16,
    /// `delete.topic.enable`.
    pub delete_topic_enable: bool,
    /// `metadata.max.idle.interval.ms`; 0 writes no NoOpRecord.
    pub idle_interval_ms: u64,
    /// What this node's file and the command line set, key by key as written there: the static
    /// values behind topic configurations (`log.retention.hours`, `min.insync.replicas`, ...) and
    /// what a description of this node shows. Defaults are not in it.
    pub static_configs: BTreeMap<String, String>,
    /// Features that this release supports: name -> (min, max), both inclusive.
    pub supported_features: BTreeMap<String, (i16, i16)>,
    /// The voters of a static quorum (`controller.quorum.voters`); empty for a dynamic one.
    pub static_voters: BTreeSet<NodeId>,
    /// `leader.imbalance.check.interval.seconds` in ms; `None` where `auto.leader.rebalance.enable`
    /// is false.
    pub rebalance_interval_ms: Option<u64>,
    /// `unclean.leader.election.interval.ms`, at least 1.
    pub unclean_election_interval_ms: u64,
    /// `controller.quota.window.num`, at least 1.
    pub quota_windows: u32,
    /// `controller.quota.window.size.seconds`, at least 1.
    pub quota_window_seconds: u32,
    /// `delegation.token.*`.
    pub tokens: tokens::TokenSettings,
    /// The rules of `authorizer.class.name`; `None` without an authorizer.
    pub authorizer: Option<authorize::AuthorizerRules>,
    /// `kraftd.create.topic.policy.*` and `kraftd.alter.config.policy.*`.
    pub policies: policies::Policies,
}

impl Default for Settings {
    /// Node 1 of a cluster without a name, whose file sets nothing: Kafka's defaults, and no
    /// features.
    fn default() -> Self {
        Self {
            node_id: NodeId(1),
            cluster_id: String::new(),
            session_timeout_ms: 9_000,
            heartbeat_interval_ms: 2_000,
            num_partitions: 1,
            default_replication_factor: 1,
            delete_topic_enable: true,
            idle_interval_ms: 500,
            static_configs: BTreeMap::new(),
            supported_features: BTreeMap::new(),
            static_voters: BTreeSet::new(),
            rebalance_interval_ms: Some(300_000),
            unclean_election_interval_ms: 300_000,
            quota_windows: 11,
            quota_window_seconds: 1,
            tokens: tokens::TokenSettings::default(),
            authorizer: None,
            policies: policies::Policies::default(),
        }
    }
}

/// Who asks, as far as rules care.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// On whose behalf.
    pub principal: Principal,
    /// Where that client is; `None` for this process itself.
    pub client_address: Option<IpAddr>,
    /// The client's id.
    pub client_id: String,
    /// The listener on which the (outer) request came in.
    pub listener: String,
    /// How that listener's clients talk to it. It says nothing of a client that a broker forwards
    /// for.
    pub protocol: SecurityProtocol,
    /// True when a broker forwarded the request (in an Envelope): what only brokers check has been
    /// checked then.
    pub forwarded: bool,
    /// The name of the request; empty for this process itself.
    pub request: &'static str,
}

/// What a rule may look at.
pub struct View<'a> {
    /// The working image.
    pub image: &'a Image,
    /// The last published (committed) image, for rules that must not see what may vanish.
    pub committed: &'a Image,
    /// Settings of this node.
    pub settings: &'a Settings,
    /// Both clocks.
    pub now: Now,
    /// The offset that the first record of the decision will get.
    pub next_offset: Offset,
    /// kraft.version as the quorum has finalized it (it is no feature record).
    pub kraft_version: i16,
}

impl View<'_> {
    /// The offset that the last of these records will get: that of the newest record of all, if
    /// there are none.
    #[must_use]
    pub fn last_of(&self, records: &[VersionedRecord]) -> Offset {
        let count = i64::try_from(records.len()).unwrap_or(0);
        self.next_offset.plus(count).prev()
    }
}

/// What is not replicated.
pub struct Soft {
    /// Randomness for placement and ids.
    pub rng: SplitMix,
    /// Sessions of brokers and what they told last.
    pub brokers: heartbeats::Heartbeats,
    /// What answers tell of new topics.
    pub described: described::Described,
    /// Brokers that come and go, as far as one step did not do it all.
    pub handovers: handover::Handovers,
    /// Requests of which one step did not do it all.
    pub works: works::Works,
    /// When the next NoOp record is due.
    pub noop_due: Instant,
    /// When sessions are looked at next: none ends before.
    pub fencing_due: Instant,
    /// Delegation tokens: their HMACs, and when the dead ones are swept out.
    pub tokens: tokens::Tokens,
    /// What is left of the quotas for changes of topics.
    pub mutations: mutation_quota::Buckets,
    /// Elections of preferred leaders.
    preferred: Round,
    /// Elections that may lose records.
    unclean: Round,
}

impl Soft {
    /// The state of a controller that becomes active at `now` on `image`; `seed` determines all
    /// its draws.
    #[must_use]
    pub fn new(settings: &Settings, image: &Image, now: Now, seed: u64) -> Self {
        Self {
            rng: SplitMix::new(seed),
            brokers: heartbeats::Heartbeats::fresh(image, now.instant),
            described: described::Described::default(),
            handovers: handover::Handovers::left_over(image),
            works: works::Works::default(),
            noop_due: periodic::noop_due(settings, now.instant),
            fencing_due: now.instant.plus_ms(settings.session_timeout_ms),
            tokens: tokens::Tokens::new(settings, now.instant),
            mutations: mutation_quota::Buckets::default(),
            preferred: Round::new(elections::Kind::Preferred, settings, now.instant),
            unclean: Round::new(elections::Kind::Unclean, settings, now.instant),
        }
    }
}

/// An outcome of a rule.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Records to append, in order.
    pub records: Vec<VersionedRecord>,
    /// What the caller gets once they are committed; means nothing while there is work left.
    pub reply: Reply,
    /// True: all records or none (one batch). False: the list may be cut into several batches.
    pub atomic: bool,
    /// A new kraft.version, which lives in the quorum and not in these records.
    pub kraft_version: Option<KraftUpgrade>,
    /// Work that is left: the records are those of a first step, and the answer comes later.
    pub unfinished: Option<works::Work>,
}

/// Asked of the quorum before anything of a decision is written. What it refuses, refuses the
/// decision: [`features::refused`] is the reply then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KraftUpgrade {
    /// The level wanted.
    pub level: u16,
    /// Whether it could be is all that is asked.
    pub validate_only: bool,
}

impl Decision {
    /// All records or none.
    #[must_use]
    pub const fn atomic(records: Vec<VersionedRecord>, reply: Reply) -> Self {
        Self {
            records,
            reply,
            atomic: true,
            kraft_version: None,
            unfinished: None,
        }
    }

    /// Records of which some may be written without the others.
    #[must_use]
    pub const fn loose(records: Vec<VersionedRecord>, reply: Reply) -> Self {
        Self {
            records,
            reply,
            atomic: false,
            kraft_version: None,
            unfinished: None,
        }
    }

    /// The records of a step that leaves work.
    #[must_use]
    fn unfinished(
        records: Vec<VersionedRecord>,
        reply: Reply,
        left: impl Into<works::Work>,
    ) -> Self {
        Self {
            unfinished: Some(left.into()),
            ..Self::loose(records, reply)
        }
    }

    /// Nothing to write.
    #[must_use]
    pub const fn only(reply: Reply) -> Self {
        Self {
            records: Vec::new(),
            reply,
            atomic: true,
            kraft_version: None,
            unfinished: None,
        }
    }
}

/// Most user-given items in one request, and most records of one atomic decision.
pub const RECORDS_PER_OPERATION_MAX: usize = 10_000;

/// Most items of a request of which each is looked at although it may need no record, and is told
/// of in the answer. So many take the core some tens of milliseconds.
pub const ITEMS_MAX: usize = 10 * RECORDS_PER_OPERATION_MAX;

macro_rules! requests {
    ($($variant:ident: $request:ty => $response:ty;)*) => {
        /// A request for the active controller, decoded.
        #[derive(Clone, Debug)]
        pub enum Request {
            $(#[doc = stringify!($variant)] $variant($request),)*
        }

        /// The reply to the [`Request`] of the same name.
        #[derive(Clone, Debug)]
        pub enum Reply {
            $(#[doc = stringify!($variant)] $variant($response),)*
        }
    };
}

requests! {
    AllocateProducerIds: km::AllocateProducerIdsRequest => km::AllocateProducerIdsResponse;
    AlterPartition: km::AlterPartitionRequest => km::AlterPartitionResponse;
    AlterPartitionReassignments:
        km::AlterPartitionReassignmentsRequest => km::AlterPartitionReassignmentsResponse;
    AssignReplicasToDirs: km::AssignReplicasToDirsRequest => km::AssignReplicasToDirsResponse;
    BrokerHeartbeat: BrokerHeartbeatRequest => km::BrokerHeartbeatResponse;
    BrokerRegistration: km::BrokerRegistrationRequest => km::BrokerRegistrationResponse;
    ControllerRegistration:
        km::ControllerRegistrationRequest => km::ControllerRegistrationResponse;
    AlterClientQuotas: quotas::AlterClientQuotas => km::AlterClientQuotasResponse;
    AlterConfigs: km::AlterConfigsRequest => km::AlterConfigsResponse;
    AlterUserScramCredentials:
        km::AlterUserScramCredentialsRequest => km::AlterUserScramCredentialsResponse;
    CreateDelegationToken:
        km::CreateDelegationTokenRequest => km::CreateDelegationTokenResponse;
    CreateAcls: km::CreateAclsRequest => km::CreateAclsResponse;
    CreatePartitions: km::CreatePartitionsRequest => km::CreatePartitionsResponse;
    CreateTopics: km::CreateTopicsRequest => km::CreateTopicsResponse;
    DeleteAcls: km::DeleteAclsRequest => km::DeleteAclsResponse;
    DeleteTopics: km::DeleteTopicsRequest => km::DeleteTopicsResponse;
    ElectLeaders: km::ElectLeadersRequest => km::ElectLeadersResponse;
    ExpireDelegationToken:
        km::ExpireDelegationTokenRequest => km::ExpireDelegationTokenResponse;
    IncrementalAlterConfigs:
        km::IncrementalAlterConfigsRequest => km::IncrementalAlterConfigsResponse;
    RenewDelegationToken: km::RenewDelegationTokenRequest => km::RenewDelegationTokenResponse;
    UnregisterBroker: km::UnregisterBrokerRequest => km::UnregisterBrokerResponse;
    UnregisterController: UnregisterControllerRequest => UnregisterControllerResponse;
    ListPartitionReassignments:
        km::ListPartitionReassignmentsRequest => km::ListPartitionReassignmentsResponse;
    UpdateFeatures: km::UpdateFeaturesRequest => km::UpdateFeaturesResponse;
}

impl Reply {
    /// How long the client is to wait before it asks again, in milliseconds (KIP-219, KIP-599).
    #[must_use]
    pub fn throttle_time_ms(&self) -> u32 {
        let told = match self {
            Self::CreatePartitions(reply) => reply.throttle_time_ms,
            Self::CreateTopics(reply) => reply.throttle_time_ms,
            Self::DeleteTopics(reply) => reply.throttle_time_ms,
            _ => 0,
        };
        u32::try_from(told).unwrap_or(0)
    }
}

/// Decides one request at the given request version. The caller has checked that this node leads.
/// An `Err` is a refusal of the whole request; `server` gives it the shape of the API's response.
///
/// # Errors
/// The code and sentence for the whole request.
pub fn decide(
    view: &View<'_>,
    soft: &mut Soft,
    version: i16,
    context: &Context,
    request: Request,
) -> Result<Decision, ApiError> {
    match request {
        Request::AllocateProducerIds(body) => producer_ids::decide(view, &body),
        Request::AlterPartition(body) => alter_partition::decide(view, version, body),
        Request::AlterPartitionReassignments(body) => reassign::decide(view, body),
        Request::AssignReplicasToDirs(body) => assign_dirs::decide(view, body),
        Request::BrokerHeartbeat(body) => heartbeat::decide(view, soft, body),
        Request::BrokerRegistration(body) => register_broker::decide(view, soft, version, body),
        Request::ControllerRegistration(body) => register_controller::decide(view, body),
        Request::AlterClientQuotas(body) => quotas::decide(view, &body),
        Request::AlterUserScramCredentials(body) => scram::decide(view, &body),
        Request::AlterConfigs(body) => configs::legacy::decide(view, context, &body),
        Request::CreateDelegationToken(body) => tokens::create(view, soft, version, context, &body),
        Request::CreateAcls(body) => acls::create(view, soft, &body),
        Request::CreatePartitions(body) => {
            create_partitions::decide(view, soft, version, context, body)
        }
        Request::CreateTopics(body) => create_topics::decide(view, soft, version, context, body),
        Request::DeleteAcls(body) => acls::delete(view, &body),
        Request::DeleteTopics(body) => delete_topics::decide(view, soft, context, version, &body),
        Request::ElectLeaders(body) => elect_leaders::decide(view, body),
        Request::ExpireDelegationToken(body) => Ok(tokens::expire(view, soft, context, &body)),
        Request::IncrementalAlterConfigs(body) => {
            configs::incremental::decide(view, context, &body)
        }
        Request::UnregisterBroker(body) => unregister::broker(view, soft, &body),
        Request::UnregisterController(body) => unregister::controller(view, &body),
        Request::ListPartitionReassignments(body) => reassign::list(view, &body),
        Request::RenewDelegationToken(body) => Ok(tokens::renew(view, soft, context, &body)),
        Request::UpdateFeatures(body) => features::decide(view, version, &body),
    }
}

/// Notes a request that is not decided because too much waits before it. A heartbeat still proves
/// that its broker lives: a slow controller must not fence brokers that are well.
pub fn note_undecided(view: &View<'_>, soft: &mut Soft, request: &Request) {
    if let Request::BrokerHeartbeat(body) = request {
        heartbeat::note_undecided(view, soft, body);
    }
}

/// Refuses the id of a node that registers when it is below 0: in partitions -1 stands for nobody.
///
/// # Errors
/// A sentence.
fn check_node_id(id: i32) -> Result<(), String> {
    if id < 0 {
        return Err(format!("A node cannot register as {id}: ids begin at 0."));
    }
    Ok(())
}

/// Refuses a request with more items than an operation may have records.
fn bounded_items(count: usize) -> Result<(), ApiError> {
    if count > RECORDS_PER_OPERATION_MAX {
        return Err(too_large());
    }
    Ok(())
}

/// Refuses a request with more items than one step looks at.
fn bounded_looks(count: usize) -> Result<(), ApiError> {
    if count > ITEMS_MAX {
        return Err(too_large());
    }
    Ok(())
}

/// Refuses an operation of more records than one atomic batch may have.
fn bounded(records: &[VersionedRecord]) -> Result<(), ApiError> {
    if records.len() > RECORDS_PER_OPERATION_MAX {
        return Err(too_large());
    }
    Ok(())
}

fn too_large() -> ApiError {
    let message = "Unable to perform excessively large batch operation.";
    ApiError::new(ErrorCode::PolicyViolation, message)
}
