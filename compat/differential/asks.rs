//! Every request that the run sends: its number, its versions, its bytes, and how its answer is
//! read.

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::{self as m, ApiKey};
use kafka_protocol::protocol::{Decodable, Encodable};
use kraftd::records::rpc;
use serde_json::Value;

use super::tree;

/// Messages of the wire library.
mod library {
    use super::*;

    pub(super) fn encode<M: Encodable>(
        message: &M,
        out: &mut BytesMut,
        version: i16,
    ) -> Result<(), String> {
        message.encode(out, version).map_err(|e| e.to_string())
    }

    pub(super) fn decode<M: Decodable + std::fmt::Debug>(
        mut body: Bytes,
        version: i16,
    ) -> Result<Value, String> {
        let message = M::decode(&mut body, version).map_err(|e| e.to_string())?;
        if body.has_remaining() {
            return Err(format!("{} bytes left over", body.remaining()));
        }
        tree::of(&message)
    }
}

/// Messages that the wire library lacks.
mod own {
    use super::*;

    pub(super) fn encode<M: rpc::Message>(
        message: &M,
        out: &mut BytesMut,
        version: i16,
    ) -> Result<(), String> {
        let mut bytes = Vec::new();
        message
            .encode(&mut bytes, version)
            .map_err(|e| e.to_string())?;
        out.extend_from_slice(&bytes);
        Ok(())
    }

    pub(super) fn decode<M: rpc::Message + std::fmt::Debug>(
        body: Bytes,
        version: i16,
    ) -> Result<Value, String> {
        let message = M::decode(&body, version).map_err(|e| e.to_string())?;
        tree::of(&message)
    }
}

/// Requests that the wire library lacks in their last version; its answers have not changed.
mod mixed {
    use super::*;

    pub(super) use super::own::encode;

    pub(super) fn decode<M: Decodable + std::fmt::Debug>(
        body: Bytes,
        _version: i16,
    ) -> Result<Value, String> {
        library::decode::<M>(body, 0)
    }
}

macro_rules! asks {
    ($( $key:literal $name:ident $min:literal-$max:literal $from:ident
        $request:ty => $response:ty; )*) => {
        /// One request.
        #[derive(Debug, Clone)]
        pub(crate) enum Ask {
            $( $name($request), )*
        }

        impl Ask {
            /// The API's number.
            pub(crate) const fn key(&self) -> i16 {
                match self {
                    $( Self::$name(_) => $key, )*
                }
            }

            /// The API's name.
            pub(crate) const fn name(&self) -> &'static str {
                match self {
                    $( Self::$name(_) => stringify!($name), )*
                }
            }

            /// The lowest and the highest version.
            pub(crate) const fn versions(&self) -> (i16, i16) {
                match self {
                    $( Self::$name(_) => ($min, $max), )*
                }
            }

            /// Appends the body; an error when the version cannot say it.
            pub(crate) fn encode(&self, out: &mut BytesMut, version: i16) -> Result<(), String> {
                match self {
                    $( Self::$name(request) => $from::encode(request, out, version), )*
                }
            }

            /// Reads the body of an answer to this request.
            pub(crate) fn read_answer(&self, body: Bytes, version: i16) -> Result<Value, String> {
                match self {
                    $( Self::$name(_) => $from::decode::<$response>(body, version), )*
                }
            }
        }

        $(
            impl From<$request> for Ask {
                fn from(request: $request) -> Self {
                    Self::$name(request)
                }
            }
        )*
    };
}

asks! {
    19 CreateTopics 2-7 library m::CreateTopicsRequest => m::CreateTopicsResponse;
    20 DeleteTopics 1-6 library m::DeleteTopicsRequest => m::DeleteTopicsResponse;
    29 DescribeAcls 1-3 library m::DescribeAclsRequest => m::DescribeAclsResponse;
    30 CreateAcls 1-3 library m::CreateAclsRequest => m::CreateAclsResponse;
    31 DeleteAcls 1-3 library m::DeleteAclsRequest => m::DeleteAclsResponse;
    32 DescribeConfigs 1-4 library m::DescribeConfigsRequest => m::DescribeConfigsResponse;
    33 AlterConfigs 0-2 library m::AlterConfigsRequest => m::AlterConfigsResponse;
    37 CreatePartitions 0-3 library m::CreatePartitionsRequest => m::CreatePartitionsResponse;
    38 CreateDelegationToken 1-3 library
        m::CreateDelegationTokenRequest => m::CreateDelegationTokenResponse;
    39 RenewDelegationToken 1-2 library
        m::RenewDelegationTokenRequest => m::RenewDelegationTokenResponse;
    40 ExpireDelegationToken 1-2 library
        m::ExpireDelegationTokenRequest => m::ExpireDelegationTokenResponse;
    41 DescribeDelegationToken 1-3 library
        m::DescribeDelegationTokenRequest => m::DescribeDelegationTokenResponse;
    43 ElectLeaders 0-2 library m::ElectLeadersRequest => m::ElectLeadersResponse;
    44 IncrementalAlterConfigs 0-1 library
        m::IncrementalAlterConfigsRequest => m::IncrementalAlterConfigsResponse;
    45 AlterPartitionReassignments 0-1 library
        m::AlterPartitionReassignmentsRequest => m::AlterPartitionReassignmentsResponse;
    46 ListPartitionReassignments 0-0 library
        m::ListPartitionReassignmentsRequest => m::ListPartitionReassignmentsResponse;
    49 AlterClientQuotas 0-1 library m::AlterClientQuotasRequest => m::AlterClientQuotasResponse;
    50 DescribeUserScramCredentials 0-0 library
        m::DescribeUserScramCredentialsRequest => m::DescribeUserScramCredentialsResponse;
    51 AlterUserScramCredentials 0-0 library
        m::AlterUserScramCredentialsRequest => m::AlterUserScramCredentialsResponse;
    55 DescribeQuorum 0-2 library m::DescribeQuorumRequest => m::DescribeQuorumResponse;
    56 AlterPartition 2-3 library m::AlterPartitionRequest => m::AlterPartitionResponse;
    57 UpdateFeatures 0-2 library m::UpdateFeaturesRequest => m::UpdateFeaturesResponse;
    58 Envelope 0-0 library m::EnvelopeRequest => m::EnvelopeResponse;
    60 DescribeCluster 0-2 library m::DescribeClusterRequest => m::DescribeClusterResponse;
    62 BrokerRegistration 0-4 library
        m::BrokerRegistrationRequest => m::BrokerRegistrationResponse;
    63 BrokerHeartbeat 0-2 own rpc::BrokerHeartbeatRequest => rpc::BrokerHeartbeatResponse;
    64 UnregisterBroker 0-0 library m::UnregisterBrokerRequest => m::UnregisterBrokerResponse;
    67 AllocateProducerIds 0-0 library
        m::AllocateProducerIdsRequest => m::AllocateProducerIdsResponse;
    70 ControllerRegistration 0-0 library
        m::ControllerRegistrationRequest => m::ControllerRegistrationResponse;
    73 AssignReplicasToDirs 0-0 library
        m::AssignReplicasToDirsRequest => m::AssignReplicasToDirsResponse;
    80 AddRaftVoter 0-1 mixed rpc::AddRaftVoterRequest => m::AddRaftVoterResponse;
    81 RemoveRaftVoter 0-0 library m::RemoveRaftVoterRequest => m::RemoveRaftVoterResponse;
    82 UpdateRaftVoter 0-0 library m::UpdateRaftVoterRequest => m::UpdateRaftVoterResponse;
    94 UnregisterController 0-0 own
        rpc::UnregisterControllerRequest => rpc::UnregisterControllerResponse;
}

/// The versions of the headers of a request and of its answer.
pub(crate) fn headers(key: i16, version: i16) -> (i16, i16) {
    match ApiKey::try_from(key) {
        Ok(api) => (
            api.request_header_version(version),
            api.response_header_version(version),
        ),
        // UnregisterController, which the wire library lacks.
        Err(()) => (2, 1),
    }
}
