//! Requests and responses in versions that the wire library lacks: BrokerHeartbeat 2 (KIP-1066),
//! AddRaftVoter 1 (KIP-1186), UnregisterController (KIP-1312), and ApiVersions 5 (cluster id and
//! node id of the server that the client means to reach).
//!
//! Only bodies; headers belong to the server.

use uuid::Uuid;

use super::fault::RecordFault;
use super::schema::message;
use super::wire::{Format, Reader, Wire};

/// A request's or response's body.
pub trait Message: Wire {
    /// The API's number.
    const API_KEY: i16;
    /// The name, for faults.
    const NAME: &'static str;
    /// The highest version; the lowest is 0.
    const VERSION_MAX: i16;
    /// The first flexible version (KIP-482).
    const FLEXIBLE_SINCE: i16;

    /// Reads a whole body.
    ///
    /// # Errors
    /// When the version does not exist or `body` is not exactly one message.
    fn decode(body: &[u8], version: i16) -> Result<Self, RecordFault> {
        let mut input = Reader::new(body);
        let message = Self::take(&mut input, format::<Self>(version)?)?;
        input.finish()?;
        Ok(message)
    }

    /// Appends the body to `out`.
    ///
    /// # Errors
    /// When the version does not exist or cannot hold a field's value.
    fn encode(&self, out: &mut Vec<u8>, version: i16) -> Result<(), RecordFault> {
        self.put(out, format::<Self>(version)?)
    }
}

fn format<M: Message>(version: i16) -> Result<Format, RecordFault> {
    if !(0..=M::VERSION_MAX).contains(&version) {
        return Err(RecordFault::UnknownVersion {
            structure: M::NAME,
            version: version as u32,
        });
    }
    Ok(Format {
        version,
        flexible: version >= M::FLEXIBLE_SINCE,
    })
}

macro_rules! bodies {
    ($( $name:ident = $key:literal, versions 0-$max:literal, flexible $flexible:literal+; )*) => {$(
        impl Message for $name {
            const API_KEY: i16 = $key;
            const NAME: &'static str = stringify!($name);
            const VERSION_MAX: i16 = $max;
            const FLEXIBLE_SINCE: i16 = $flexible;
        }
    )*};
}

bodies! {
    ApiVersionsRequest = 18, versions 0-5, flexible 3+;
    ApiVersionsResponse = 18, versions 0-5, flexible 3+;
    BrokerHeartbeatRequest = 63, versions 0-2, flexible 0+;
    BrokerHeartbeatResponse = 63, versions 0-2, flexible 0+;
    AddRaftVoterRequest = 80, versions 0-1, flexible 0+;
    UnregisterControllerRequest = 94, versions 0-0, flexible 0+;
    UnregisterControllerResponse = 94, versions 0-0, flexible 0+;
}

message! {
    /// A client asks what the server can do.
    pub struct ApiVersionsRequest {
        /// The client library.
        client_software_name: String, 3+, ignorable true;
        /// Its version.
        client_software_version: String, 3+, ignorable true;
        /// The cluster that the client means to reach; null when it does not know.
        cluster_id: Option<String>, 5+, ignorable true;
        /// The node that the client means to reach, -1 when it does not know.
        node_id: i32, 5+, default -1, ignorable true;
    }

    /// What the server can do.
    pub struct ApiVersionsResponse {
        /// The error.
        error_code: i16, 0+;
        /// The APIs.
        api_keys: Vec<ApiVersion>, 0+;
        /// How long the client was made to wait, ms.
        throttle_time_ms: i32, 1+, ignorable true;
        /// The features that the node supports. A feature whose lowest level is 0 must not be told
        /// below version 4: older clients refuse it.
        supported_features: Vec<SupportedFeatureKey>, 3+, tag 0, ignorable true;
        /// The offset of the metadata that the finalized features are of, -1 when not known.
        finalized_features_epoch: i64, 3+, tag 1, default -1, ignorable true;
        /// The features in force in the cluster.
        finalized_features: Vec<FinalizedFeatureKey>, 3+, tag 2, ignorable true;
        /// True when the node is ready to migrate from ZooKeeper.
        zk_migration_ready: bool, 3+, tag 3, ignorable true;
    }

    /// The versions of one API, inclusive.
    pub struct ApiVersion {
        /// The API's number.
        api_key: i16, 0+;
        /// The lowest version.
        min_version: i16, 0+;
        /// The highest version.
        max_version: i16, 0+;
    }

    /// The levels of one feature that the node supports, inclusive.
    pub struct SupportedFeatureKey {
        /// The feature.
        name: String, 3+;
        /// The lowest level.
        min_version: i16, 3+;
        /// The highest level.
        max_version: i16, 3+;
    }

    /// The level of one feature that is in force. Both fields are that level.
    pub struct FinalizedFeatureKey {
        /// The feature.
        name: String, 3+;
        /// The level.
        max_version_level: i16, 3+;
        /// The level.
        min_version_level: i16, 3+;
    }

    /// A broker is alive, and says what it wants.
    pub struct BrokerHeartbeatRequest {
        /// The broker.
        broker_id: i32, 0+;
        /// Its epoch.
        broker_epoch: i64, 0+, default -1;
        /// The highest metadata offset that it has read.
        current_metadata_offset: i64, 0+;
        /// It wants to stay or become fenced.
        want_fence: bool, 0+;
        /// It wants to shut down, once its leaderships have moved.
        want_shut_down: bool, 0+;
        /// Log directories that failed.
        offline_log_dirs: Vec<Uuid>, 1+, tag 0;
        /// Log directories that take no new partitions; null when there is no change to tell.
        cordoned_log_dirs: Option<Vec<Uuid>>, 2+, tag 1;
    }

    /// A controller is to become a voter.
    pub struct AddRaftVoterRequest {
        /// The cluster that the sender means; null when it does not know.
        cluster_id: Option<String>, 0+;
        /// How long the sender waits, ms.
        timeout_ms: i32, 0+;
        /// The controller.
        voter_id: i32, 0+;
        /// The id of its metadata directory.
        voter_directory_id: Uuid, 0+;
        /// Where it listens.
        listeners: Vec<RaftVoterListener>, 0+;
        /// The answer waits until the new set of voters is committed.
        ack_when_committed: bool, 1+, default true;
    }

    /// A listener of a voter.
    pub struct RaftVoterListener {
        /// The listener's name.
        name: String, 0+;
        /// The host.
        host: String, 0+;
        /// The port.
        port: u16, 0+;
    }

    /// The controller's answer to a heartbeat.
    pub struct BrokerHeartbeatResponse {
        /// How long the broker was made to wait, ms.
        throttle_time_ms: i32, 0+;
        /// The error.
        error_code: i16, 0+;
        /// It has read up to its own registration.
        is_caught_up: bool, 0+;
        /// It is fenced.
        is_fenced: bool, 0+, default true;
        /// It may stop now.
        should_shut_down: bool, 0+;
    }

    /// A controller that does not come back is to be forgotten.
    pub struct UnregisterControllerRequest {
        /// The controller.
        controller_id: i32, 0+;
    }

    /// Whether it was.
    pub struct UnregisterControllerResponse {
        /// How long the client was made to wait, ms.
        throttle_time_ms: i32, 0+;
        /// The error.
        error_code: i16, 0+;
        /// The sentence.
        error_message: Option<String>, 0+;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::SplitMix;

    /// Writes, reads, and compares; fields below the first version of theirs are defaults.
    fn round_trips<M: Message + PartialEq + std::fmt::Debug>(rng: &mut SplitMix) {
        for version in 0..=M::VERSION_MAX {
            let message = M::arbitrary(rng, format::<M>(version).unwrap());
            let mut out = Vec::new();
            message.encode(&mut out, version).unwrap();
            assert_eq!(M::decode(&out, version).unwrap(), message);
            for end in 0..out.len() {
                assert!(M::decode(&out[..end], version).is_err());
            }
        }
        let unknown = |version: i16| {
            Err(RecordFault::UnknownVersion {
                structure: M::NAME,
                version: version as u32,
            })
        };
        assert_eq!(M::decode(&[], -1), unknown(-1));
        let next = M::VERSION_MAX + 1;
        assert_eq!(M::decode(&[], next), unknown(next));
    }

    proptest! {
        #[test]
        fn every_message_at_every_version_comes_back_as_it_was(seed: u64) {
            let mut rng = SplitMix::new(seed);
            round_trips::<ApiVersionsRequest>(&mut rng);
            round_trips::<ApiVersionsResponse>(&mut rng);
            round_trips::<BrokerHeartbeatRequest>(&mut rng);
            round_trips::<BrokerHeartbeatResponse>(&mut rng);
            round_trips::<AddRaftVoterRequest>(&mut rng);
            round_trips::<UnregisterControllerRequest>(&mut rng);
            round_trips::<UnregisterControllerResponse>(&mut rng);
        }

        #[test]
        fn arbitrary_bodies_are_a_message_or_a_fault(body: Vec<u8>, version in 0_i16..7) {
            let _ = ApiVersionsRequest::decode(&body, version);
            let _ = ApiVersionsResponse::decode(&body, version);
            let _ = BrokerHeartbeatRequest::decode(&body, version);
            let _ = BrokerHeartbeatResponse::decode(&body, version);
            let _ = AddRaftVoterRequest::decode(&body, version);
            let _ = UnregisterControllerRequest::decode(&body, version);
            let _ = UnregisterControllerResponse::decode(&body, version);
        }
    }

    #[test]
    fn old_versions_use_fixed_lengths_and_drop_what_they_do_not_have() {
        let response = ApiVersionsResponse {
            error_code: 35,
            api_keys: vec![ApiVersion {
                api_key: 18,
                max_version: 5,
                ..Default::default()
            }],
            throttle_time_ms: 7,
            finalized_features_epoch: 11,
            ..Default::default()
        };
        let encode = |version| {
            let mut out = Vec::new();
            response.encode(&mut out, version).unwrap();
            out
        };
        let v0 = [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5];
        assert_eq!(encode(0), v0);
        assert_eq!(encode(2)[12..], [0, 0, 0, 7]);
        let v3 = [
            0, 35, 2, 0, 18, 0, 0, 0, 5, 0, 0, 0, 0, 7, 1, 1, 8, 0, 0, 0, 0, 0, 0, 0, 11,
        ];
        assert_eq!(encode(3), v3);
    }
}
