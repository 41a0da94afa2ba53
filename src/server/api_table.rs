//! One row per API that the listeners serve. ApiVersions, dispatch and forwarding derive from it;
//! what is not built has no row, so nobody is told of it.
//!
//! Versions are those of a Java 4.4.0 controller.

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::protocol::Decodable;

use super::dispatch::{Call, Ctx, Local};
use super::shape::{Checked, ELEMENTS_MAX, Misfit, Shape, ShapeFault};
use super::{acls, hosts, refusals, sasl, shapes, wire};
use crate::controller::{self, quotas::AlterClientQuotas};
use crate::records::rpc::{self, Message};
use crate::types::ApiError;

/// The key of ApiVersions, which is special in many ways.
pub(crate) const API_VERSIONS_KEY: i16 = 18;

/// The key of Envelope.
const ENVELOPE_KEY: i16 = 58;

/// Reads a body.
type Decode = fn(Checked, &Ctx<'_>) -> anyhow::Result<Call>;
/// Reads a body again and builds the answer that refuses all of it.
type Refuse = fn(Checked, i16, &ApiError) -> anyhow::Result<bytes::BytesMut>;

/// One API.
#[derive(Debug)]
pub(crate) struct Api {
    /// The number.
    pub(crate) key: i16,
    /// The name, for logs.
    pub(crate) name: &'static str,
    /// Lowest version served.
    pub(crate) min: i16,
    /// Highest version served.
    pub(crate) max: i16,
    /// Brokers may send it inside an Envelope.
    pub(crate) forwardable: bool,
    /// Its answer may be large: nothing is read ahead past it.
    pub(crate) alone: bool,
    /// The listener works out itself what may be a large part of the metadata.
    pub(crate) describes: bool,
    /// What its body looks like.
    pub(crate) shape: &'static Shape,
    /// Of a body with more items than these, only the first of each list is read and refused.
    pub(crate) items_max: usize,
    /// See [`Decode`].
    pub(crate) decode: Decode,
    /// See [`Refuse`].
    pub(crate) refuse: Refuse,
}

/// Items that are read of any request: twice what any rule looks at, so that whoever asks for
/// little too much is told so item by item. What a request takes in memory follows from it.
const ITEMS_READ_MAX: usize = 2 * controller::ITEMS_MAX;

/// The same where a rule takes so many topics or resources as one operation may have records. Each
/// may have a partition and a configuration key with it, and then something is left for the rule to
/// refuse.
const RECORDS_READ_MAX: usize = 5 * controller::RECORDS_PER_OPERATION_MAX;

impl Api {
    /// A body that may be decoded, or `None` when it says that it has too many items to be read: of
    /// what is behind the counts nothing is known then.
    ///
    /// # Errors
    /// The bytes are not a body of this API at `version`.
    pub(crate) fn checked(&self, body: &Bytes, version: i16) -> Result<Option<Checked>, Misfit> {
        match self.shape.checked(body, version, self.items_max) {
            Ok(checked) => Ok(Some(checked)),
            Err(misfit) if misfit.fault == ShapeFault::TooManyElements => Ok(None),
            Err(misfit) => Err(misfit),
        }
    }

    /// Whether `version` is served.
    pub(crate) const fn serves(&self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// Whether `version` has compact lengths and tagged fields, in its request header too.
    pub(crate) const fn flexible(&self, version: i16) -> bool {
        version >= self.shape.flexible_from
    }

    /// Whether it carries another request.
    pub(crate) const fn forwards(&self) -> bool {
        self.key == ENVELOPE_KEY
    }

    /// Whether the response's header has tagged fields. ApiVersions is read by clients that do not
    /// know its version yet.
    pub(crate) const fn flexible_response(&self, version: i16) -> bool {
        self.flexible(version) && self.key != API_VERSIONS_KEY
    }
}

/// The row of an API, `None` when it is not served.
pub(crate) fn find(key: i16) -> Option<&'static Api> {
    let at = TABLE.binary_search_by_key(&key, |api| api.key).ok()?;
    TABLE.get(at)
}

fn read<M: Decodable>(body: Checked, version: i16) -> anyhow::Result<M> {
    M::decode(&mut body.into_bytes(), version)
}

/// A request that `kafka-protocol` decodes.
macro_rules! api {
    ($key:literal $name:ident $min:literal-$max:literal $shape:ident, $forwardable:literal,
     $request:ty, |$message:ident, $ctx:ident| $call:expr) => {
        Api {
            key: $key,
            name: stringify!($name),
            min: $min,
            max: $max,
            forwardable: $forwardable,
            alone: false,
            describes: false,
            shape: &shapes::$shape,
            items_max: ITEMS_READ_MAX,
            decode: |body, $ctx| {
                let $message = read::<$request>(body, $ctx.version)?;
                $call
            },
            refuse: |body, version, error| {
                refusals::refuse(read::<$request>(body, version)?, version, error)
            },
        }
    };
}

/// A raft request: for the core, or answered at once.
macro_rules! raft {
    ($key:literal $name:ident $min:literal-$max:literal $shape:ident,
     |$message:ident: $request:ident, $ctx:ident| $parse:expr) => {
        api!($key $name $min-$max $shape, false, m::$request, |$message, $ctx| {
            Call::raft($parse, $ctx)
        })
    };
}

/// A request for the active controller.
macro_rules! controller {
    ($key:literal $name:ident $min:literal-$max:literal $shape:ident, $forwardable:literal,
     $request:ty) => {
        api!($key $name $min-$max $shape, $forwardable, $request, |request, ctx| {
            Ok(Call::controller(controller::Request::$name(request), ctx))
        })
    };
}

/// A request that the listener answers itself.
macro_rules! local {
    ($key:literal $name:ident $min:literal-$max:literal $shape:ident, $request:ty) => {
        api!($key $name $min-$max $shape, false, $request, |request, _ctx| {
            Ok(Call::Local(Local::$name(request)))
        })
    };
}

/// All APIs, by key.
pub(crate) static TABLE: &[Api] = &[
    Api {
        alone: true,
        ..raft!(1 Fetch 4-18 FETCH, |request: FetchRequest, ctx| {
            wire::fetch_request(request, ctx.version, ctx.cluster_id)
        })
    },
    api!(17 SaslHandshake 0-1 SASL_HANDSHAKE, false, m::SaslHandshakeRequest,
        |_request, ctx| Call::answered(&sasl::handshake(), ctx.version)),
    Api {
        key: API_VERSIONS_KEY,
        name: "ApiVersions",
        min: 0,
        max: 5,
        forwardable: false,
        alone: false,
        describes: false,
        shape: &shapes::API_VERSIONS,
        items_max: ITEMS_READ_MAX,
        decode: |body, ctx| {
            let request = rpc::ApiVersionsRequest::decode(&body.into_bytes(), ctx.version)?;
            Ok(Call::Local(Local::ApiVersions(request)))
        },
        refuse: |_, version, error| refusals::refuse_api_versions(version, error),
    },
    Api {
        items_max: RECORDS_READ_MAX,
        ..controller!(19 CreateTopics 2-7 CREATE_TOPICS, true, m::CreateTopicsRequest)
    },
    Api {
        items_max: RECORDS_READ_MAX,
        ..controller!(20 DeleteTopics 1-6 DELETE_TOPICS, true, m::DeleteTopicsRequest)
    },
    Api {
        // There may be any number of entries.
        alone: true,
        describes: true,
        ..api!(29 DescribeAcls 1-3 DESCRIBE_ACLS, false, m::DescribeAclsRequest, |request, _ctx| {
            acls::check_described(&request)?;
            Ok(Call::Local(Local::DescribeAcls(request)))
        })
    },
    api!(30 CreateAcls 1-3 CREATE_ACLS, true, m::CreateAclsRequest, |request, ctx| {
        acls::check_created(&request)?;
        Ok(Call::controller(controller::Request::CreateAcls(request), ctx))
    }),
    Api {
        alone: true,
        ..api!(31 DeleteAcls 1-3 DELETE_ACLS, true, m::DeleteAclsRequest, |request, ctx| {
            acls::check_deleted(&request)?;
            Ok(Call::controller(controller::Request::DeleteAcls(request), ctx))
        })
    },
    Api {
        // Ten thousand resources may be asked for, each with all of its keys.
        alone: true,
        describes: true,
        items_max: RECORDS_READ_MAX,
        ..local!(32 DescribeConfigs 1-4 DESCRIBE_CONFIGS, m::DescribeConfigsRequest)
    },
    controller!(33 AlterConfigs 0-2 ALTER_CONFIGS, true, m::AlterConfigsRequest),
    api!(36 SaslAuthenticate 0-2 SASL_AUTHENTICATE, false, m::SaslAuthenticateRequest,
        |_request, ctx| Call::answered(&sasl::authenticate(), ctx.version)),
    Api {
        items_max: RECORDS_READ_MAX,
        ..controller!(37 CreatePartitions 0-3 CREATE_PARTITIONS, true, m::CreatePartitionsRequest)
    },
    Api {
        key: 38,
        name: "CreateDelegationToken",
        min: 1,
        max: 3,
        forwardable: true,
        alone: false,
        describes: false,
        shape: &shapes::CREATE_DELEGATION_TOKEN,
        items_max: ITEMS_READ_MAX,
        decode: |body, ctx| {
            let request = read::<m::CreateDelegationTokenRequest>(body, ctx.version)?;
            Ok(Call::controller(
                controller::Request::CreateDelegationToken(request),
                ctx,
            ))
        },
        refuse: |_, version, error| refusals::refuse_create_token(version, error),
    },
    controller!(39 RenewDelegationToken 1-2 CHANGE_DELEGATION_TOKEN, true,
        m::RenewDelegationTokenRequest),
    controller!(40 ExpireDelegationToken 1-2 CHANGE_DELEGATION_TOKEN, true,
        m::ExpireDelegationTokenRequest),
    Api {
        // As many tokens as there are.
        alone: true,
        describes: true,
        ..local!(41 DescribeDelegationToken 1-3 DESCRIBE_DELEGATION_TOKEN,
            m::DescribeDelegationTokenRequest)
    },
    Api {
        // All topics may be asked for, and each is named in the answer.
        alone: true,
        refuse: |body, version, error| {
            refusals::refuse_elect_leaders(read(body, version)?, version, error)
        },
        ..controller!(43 ElectLeaders 0-2 ELECT_LEADERS, true, m::ElectLeadersRequest)
    },
    controller!(44 IncrementalAlterConfigs 0-1 INCREMENTAL_ALTER_CONFIGS, true,
        m::IncrementalAlterConfigsRequest),
    controller!(45 AlterPartitionReassignments 0-1 ALTER_PARTITION_REASSIGNMENTS, true,
        m::AlterPartitionReassignmentsRequest),
    Api {
        // All moves may be asked for.
        alone: true,
        ..controller!(46 ListPartitionReassignments 0-0 LIST_PARTITION_REASSIGNMENTS, true,
            m::ListPartitionReassignmentsRequest)
    },
    api!(49 AlterClientQuotas 0-1 ALTER_CLIENT_QUOTAS, true, m::AlterClientQuotasRequest,
    |body, ctx| {
        let unknown_hosts = hosts::no_addresses(&body);
        let request = AlterClientQuotas { body, unknown_hosts };
        Ok(Call::controller(controller::Request::AlterClientQuotas(request), ctx))
    }),
    Api {
        // There may be many users.
        alone: true,
        describes: true,
        ..local!(50 DescribeUserScramCredentials 0-0 DESCRIBE_USER_SCRAM_CREDENTIALS,
            m::DescribeUserScramCredentialsRequest)
    },
    Api {
        items_max: RECORDS_READ_MAX,
        ..controller!(51 AlterUserScramCredentials 0-0 ALTER_USER_SCRAM_CREDENTIALS, true,
            m::AlterUserScramCredentialsRequest)
    },
    raft!(52 Vote 0-2 VOTE, |request: VoteRequest, ctx| {
        wire::vote_request(request, ctx.cluster_id)
    }),
    raft!(53 BeginQuorumEpoch 0-1 BEGIN_QUORUM_EPOCH, |request: BeginQuorumEpochRequest, ctx| {
        wire::begin_quorum_epoch_request(request, ctx.cluster_id)
    }),
    raft!(54 EndQuorumEpoch 0-1 END_QUORUM_EPOCH, |request: EndQuorumEpochRequest, ctx| {
        wire::end_quorum_epoch_request(request, ctx.version, ctx.cluster_id)
    }),
    Api {
        forwardable: true,
        ..raft!(55 DescribeQuorum 0-2 DESCRIBE_QUORUM, |request: DescribeQuorumRequest, ctx| {
            wire::describe_quorum_request(request)
        })
    },
    Api {
        // A leader that is refused asks for the same again, for ever.
        items_max: ELEMENTS_MAX,
        ..controller!(56 AlterPartition 2-3 ALTER_PARTITION, false, m::AlterPartitionRequest)
    },
    controller!(57 UpdateFeatures 0-2 UPDATE_FEATURES, true, m::UpdateFeaturesRequest),
    Api {
        // The answer is an inner answer: its own weight is not known before it is opened.
        alone: true,
        ..local!(58 Envelope 0-0 ENVELOPE, m::EnvelopeRequest)
    },
    Api {
        alone: true,
        ..raft!(59 FetchSnapshot 0-1 FETCH_SNAPSHOT, |request: FetchSnapshotRequest, ctx| {
            wire::fetch_snapshot_request(request, ctx.cluster_id)
        })
    },
    local!(60 DescribeCluster 0-2 DESCRIBE_CLUSTER, m::DescribeClusterRequest),
    controller!(62 BrokerRegistration 0-4 BROKER_REGISTRATION, false,
        m::BrokerRegistrationRequest),
    Api {
        key: 63,
        name: "BrokerHeartbeat",
        min: 0,
        max: 2,
        forwardable: false,
        alone: false,
        describes: false,
        shape: &shapes::BROKER_HEARTBEAT,
        items_max: ITEMS_READ_MAX,
        decode: |body, ctx| {
            let request = rpc::BrokerHeartbeatRequest::decode(&body.into_bytes(), ctx.version)?;
            Ok(Call::controller(
                controller::Request::BrokerHeartbeat(request),
                ctx,
            ))
        },
        refuse: |_, version, error| refusals::refuse_broker_heartbeat(version, error),
    },
    controller!(64 UnregisterBroker 0-0 UNREGISTER_BROKER, true, m::UnregisterBrokerRequest),
    controller!(67 AllocateProducerIds 0-0 ALLOCATE_PRODUCER_IDS, false,
        m::AllocateProducerIdsRequest),
    controller!(70 ControllerRegistration 0-0 CONTROLLER_REGISTRATION, false,
        m::ControllerRegistrationRequest),
    controller!(73 AssignReplicasToDirs 0-0 ASSIGN_REPLICAS_TO_DIRS, false,
        m::AssignReplicasToDirsRequest),
    Api {
        key: 80,
        name: "AddRaftVoter",
        min: 0,
        max: 1,
        forwardable: true,
        alone: false,
        describes: false,
        shape: &shapes::ADD_RAFT_VOTER,
        items_max: ITEMS_READ_MAX,
        decode: |body, ctx| {
            let request = rpc::AddRaftVoterRequest::decode(&body.into_bytes(), ctx.version)?;
            Ok(Call::for_quorum(wire::add_voter_request(request), ctx))
        },
        refuse: |_, _, error| refusals::refuse_add_raft_voter(error),
    },
    api!(81 RemoveRaftVoter 0-0 REMOVE_RAFT_VOTER, true, m::RemoveRaftVoterRequest,
        |request, ctx| Ok(Call::for_quorum(wire::remove_voter_request(request), ctx))),
    api!(82 UpdateRaftVoter 0-0 UPDATE_RAFT_VOTER, false, m::UpdateRaftVoterRequest,
        |request, ctx| Ok(Call::for_quorum(wire::update_voter_request(request), ctx))),
    Api {
        key: 94,
        name: "UnregisterController",
        min: 0,
        max: 0,
        forwardable: true,
        alone: false,
        describes: false,
        shape: &shapes::UNREGISTER_CONTROLLER,
        items_max: ITEMS_READ_MAX,
        decode: |body, ctx| {
            let body = body.into_bytes();
            let request = rpc::UnregisterControllerRequest::decode(&body, ctx.version)?;
            Ok(Call::controller(
                controller::Request::UnregisterController(request),
                ctx,
            ))
        },
        refuse: |_, version, error| refusals::refuse_unregister_controller(version, error),
    },
];

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::*;

    /// What `kafka-protocol` 0.18 lacks: ApiVersions v5, BrokerHeartbeat v2 and AddRaftVoter v1 are
    /// read by our own code.
    const OWN_MAX: [(i16, i16); 3] = [(18, 5), (63, 2), (80, 1)];

    #[test]
    fn rows_are_in_order_and_served_by_kafka_protocol() {
        assert!(TABLE.is_sorted_by(|a, b| a.key < b.key));
        // Of UnregisterController it knows nothing.
        for api in TABLE.iter().filter(|api| api.key != 94) {
            let key = ApiKey::try_from(api.key).unwrap();
            assert_eq!(format!("{key:?}"), api.name);
            let known = key.valid_versions();
            let own = OWN_MAX.iter().find(|(key, _)| *key == api.key);
            let max = own.map_or(known.max, |(_, max)| *max);
            assert_eq!((api.min, api.max), (known.min, max), "{}", api.name);
            for version in known.min..=known.max {
                let flexible = key.request_header_version(version) == 2;
                assert_eq!(api.flexible(version), flexible, "{} v{version}", api.name);
                let flexible = key.response_header_version(version) == 1;
                assert_eq!(api.flexible_response(version), flexible, "{}", api.name);
            }
        }
    }

    #[test]
    fn what_is_advertised_is_what_is_built() {
        let keys: Vec<_> = TABLE.iter().map(|api| api.key).collect();
        let built = [
            1, 17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 50,
            51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 62, 63, 64, 67, 70, 73, 80, 81, 82, 94,
        ];
        assert_eq!(keys, built);
    }

    #[test]
    fn only_what_brokers_forward_is_forwardable() {
        let forwardable = [
            19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81, 94,
        ];
        for api in TABLE {
            assert_eq!(
                api.forwardable,
                forwardable.contains(&api.key),
                "{}",
                api.name
            );
        }
    }

    #[test]
    fn an_api_without_a_row_is_not_found() {
        assert!(find(3).is_none());
        assert!(find(-1).is_none());
        assert_eq!(find(18).map(|api| api.name), Some("ApiVersions"));
    }
}
