//! The shapes against bytes: the known attacks, noise, and `kafka-protocol` as the second opinion.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::protocol::{Decodable, Encodable};
use proptest::prelude::*;

use super::*;
use crate::server::shapes;
use crate::types::SplitMix;

fn check(shape: &Shape, body: &[u8], version: i16) -> Result<usize, ShapeFault> {
    let size = shape.check(body, version);
    size.map(|size| size.elements)
        .map_err(|misfit| misfit.fault)
}

/// Bytes of a shape, drawn from a seed. Every value is legal and none is the default of its field
/// more often than chance has it.
pub(crate) struct Writer {
    draw: SplitMix,
    bytes: Vec<u8>,
    version: i16,
    flexible: bool,
    /// How many elements the first list of items says that it has.
    claims: Option<u32>,
}

impl Writer {
    pub(crate) fn body(shape: &Shape, version: i16, seed: u64) -> Vec<u8> {
        let mut writer = Self::new(shape, version, seed);
        writer.fields(shape.fields);
        writer.bytes
    }

    fn new(shape: &Shape, version: i16, seed: u64) -> Self {
        Self {
            draw: SplitMix::new(seed),
            bytes: Vec::new(),
            version,
            flexible: version >= shape.flexible_from,
            claims: None,
        }
    }

    /// A body whose first list of items has so many: one that is drawn, and bytes enough for the
    /// others. `None` where the message has no such list.
    pub(crate) fn of_items(shape: &Shape, version: i16, items: u32) -> Option<Vec<u8>> {
        let mut writer = Self::new(shape, version, 1);
        writer.claims = Some(items);
        writer.fields(shape.fields);
        writer.claims.is_none().then_some(writer.bytes)
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn fields(&mut self, fields: &[Field]) {
        for field in fields {
            if field.exists_in(self.version) && field.tag.is_none() {
                self.value(field.kind, field.nullable);
            }
        }
        if !self.flexible {
            return;
        }
        let mut tagged: Vec<(u32, Vec<u8>)> = Vec::new();
        for field in fields {
            if let Some(tag) = field.tag
                && field.exists_in(self.version)
                && self.draw.below(3) > 0
            {
                let outer = std::mem::take(&mut self.bytes);
                self.value(field.kind, field.nullable);
                tagged.push((tag, std::mem::replace(&mut self.bytes, outer)));
            }
        }
        if self.draw.below(4) == 0 {
            tagged.push((900, vec![7; self.draw.below(200) as usize]));
        }
        self.varint(tagged.len() as u32);
        for (tag, bytes) in tagged {
            self.varint(tag);
            self.varint(bytes.len() as u32);
            self.bytes.extend(bytes);
        }
    }

    fn value(&mut self, kind: Kind, nullable: bool) {
        let fixed = match kind {
            Kind::Bool => {
                self.bytes.push(self.draw.below(2) as u8);
                return;
            }
            Kind::Int8 => 1,
            Kind::Int16 | Kind::Uint16 => 2,
            Kind::Int32 | Kind::Partition => 4,
            Kind::Int64 => 8,
            Kind::Uuid => 16,
            Kind::Struct(fields) => return self.fields(fields),
            Kind::Str | Kind::Bytes | Kind::Array(_) => 0,
        };
        for _ in 0..fixed {
            self.bytes.push(self.draw.next_u64() as u8);
        }
        if fixed > 0 {
            return;
        }
        if let Kind::Array(element) = kind
            && !element.is_number()
            && let Some(items) = self.claims.take()
        {
            if self.flexible {
                self.varint(items + 1);
            } else {
                self.bytes.extend(items.to_be_bytes());
            }
            self.value(*element, false);
            // As many bytes as the least of each element take: the walk does not come to them.
            self.bytes.resize(self.bytes.len() + items as usize * 64, 0);
            return;
        }
        let null = nullable && self.draw.below(3) == 0;
        let count = if null { -1 } else { self.draw.below(4) as i32 };
        if self.flexible {
            self.varint((count + 1) as u32);
        } else if matches!(kind, Kind::Str) {
            self.bytes.extend((count as i16).to_be_bytes());
        } else {
            self.bytes.extend(count.to_be_bytes());
        }
        for _ in 0..count.max(0) {
            match kind {
                Kind::Array(element) => self.value(*element, false),
                _ => self.bytes.push(b'a' + self.draw.below(26) as u8),
            }
        }
    }
}

/// `kafka-protocol` reads all of the drawn bytes, what it writes back passes the check and reads
/// as the same value, and so does its default message.
fn agrees<M>(shape: &Shape, versions: std::ops::RangeInclusive<i16>, seed: u64)
where
    M: Decodable + Encodable + std::fmt::Debug + Default,
{
    for version in versions {
        let drawn = Bytes::from(Writer::body(shape, version, seed));
        assert!(shape.check(&drawn, version).is_ok(), "v{version} {drawn:?}");
        let mut rest = drawn.clone();
        let message = M::decode(&mut rest, version).unwrap();
        assert!(rest.is_empty(), "v{version}: {} bytes left", rest.len());

        let mut written = BytesMut::new();
        message.encode(&mut written, version).unwrap();
        assert!(shape.check(&written, version).is_ok(), "v{version}");
        let again = M::decode(&mut written, version).unwrap();
        // As text: a drawn quota can be NaN, which is not equal to itself.
        assert_eq!(format!("{again:?}"), format!("{message:?}"), "v{version}");

        let mut plain = BytesMut::new();
        M::default().encode(&mut plain, version).unwrap();
        assert!(
            shape.check(&plain, version).is_ok(),
            "default of v{version}"
        );
    }
}

/// Every message, its shape, and the versions that `kafka-protocol` knows.
macro_rules! every_message {
    ($then:ident($($argument:expr),*)) => {
        $then::<m::FetchRequest>(&shapes::FETCH, 4..=18, $($argument),*);
        $then::<m::ApiVersionsRequest>(&shapes::API_VERSIONS, 0..=4, $($argument),*);
        $then::<m::CreateTopicsRequest>(&shapes::CREATE_TOPICS, 2..=7, $($argument),*);
        $then::<m::DeleteTopicsRequest>(&shapes::DELETE_TOPICS, 1..=6, $($argument),*);
        $then::<m::DescribeAclsRequest>(&shapes::DESCRIBE_ACLS, 1..=3, $($argument),*);
        $then::<m::CreateAclsRequest>(&shapes::CREATE_ACLS, 1..=3, $($argument),*);
        $then::<m::DeleteAclsRequest>(&shapes::DELETE_ACLS, 1..=3, $($argument),*);
        $then::<m::DescribeConfigsRequest>(&shapes::DESCRIBE_CONFIGS, 1..=4, $($argument),*);
        $then::<m::AlterConfigsRequest>(&shapes::ALTER_CONFIGS, 0..=2, $($argument),*);
        $then::<m::CreatePartitionsRequest>(&shapes::CREATE_PARTITIONS, 0..=3, $($argument),*);
        $then::<m::IncrementalAlterConfigsRequest>(
            &shapes::INCREMENTAL_ALTER_CONFIGS, 0..=1, $($argument),*);
        $then::<m::AlterClientQuotasRequest>(
            &shapes::ALTER_CLIENT_QUOTAS, 0..=1, $($argument),*);
        $then::<m::DescribeUserScramCredentialsRequest>(
            &shapes::DESCRIBE_USER_SCRAM_CREDENTIALS, 0..=0, $($argument),*);
        $then::<m::AlterUserScramCredentialsRequest>(
            &shapes::ALTER_USER_SCRAM_CREDENTIALS, 0..=0, $($argument),*);
        $then::<m::VoteRequest>(&shapes::VOTE, 0..=2, $($argument),*);
        $then::<m::BeginQuorumEpochRequest>(&shapes::BEGIN_QUORUM_EPOCH, 0..=1, $($argument),*);
        $then::<m::EndQuorumEpochRequest>(&shapes::END_QUORUM_EPOCH, 0..=1, $($argument),*);
        $then::<m::DescribeQuorumRequest>(&shapes::DESCRIBE_QUORUM, 0..=2, $($argument),*);
        $then::<m::AlterPartitionRequest>(&shapes::ALTER_PARTITION, 2..=3, $($argument),*);
        $then::<m::UpdateFeaturesRequest>(&shapes::UPDATE_FEATURES, 0..=2, $($argument),*);
        $then::<m::EnvelopeRequest>(&shapes::ENVELOPE, 0..=0, $($argument),*);
        $then::<m::FetchSnapshotRequest>(&shapes::FETCH_SNAPSHOT, 0..=1, $($argument),*);
        $then::<m::DescribeClusterRequest>(&shapes::DESCRIBE_CLUSTER, 0..=2, $($argument),*);
        $then::<m::BrokerRegistrationRequest>(&shapes::BROKER_REGISTRATION, 0..=4, $($argument),*);
        $then::<m::BrokerHeartbeatRequest>(&shapes::BROKER_HEARTBEAT, 0..=1, $($argument),*);
        $then::<m::SaslHandshakeRequest>(&shapes::SASL_HANDSHAKE, 0..=1, $($argument),*);
        $then::<m::SaslAuthenticateRequest>(&shapes::SASL_AUTHENTICATE, 0..=2, $($argument),*);
        $then::<m::UnregisterBrokerRequest>(&shapes::UNREGISTER_BROKER, 0..=0, $($argument),*);
        $then::<m::AllocateProducerIdsRequest>(
            &shapes::ALLOCATE_PRODUCER_IDS, 0..=0, $($argument),*);
        $then::<m::ControllerRegistrationRequest>(
            &shapes::CONTROLLER_REGISTRATION, 0..=0, $($argument),*);
        $then::<m::AssignReplicasToDirsRequest>(
            &shapes::ASSIGN_REPLICAS_TO_DIRS, 0..=0, $($argument),*);
        $then::<m::AddRaftVoterRequest>(&shapes::ADD_RAFT_VOTER, 0..=0, $($argument),*);
        $then::<m::RemoveRaftVoterRequest>(&shapes::REMOVE_RAFT_VOTER, 0..=0, $($argument),*);
        $then::<m::UpdateRaftVoterRequest>(&shapes::UPDATE_RAFT_VOTER, 0..=0, $($argument),*);
        $then::<m::FetchResponse>(&shapes::FETCH_ANSWER, 4..=18, $($argument),*);
        $then::<m::FetchSnapshotResponse>(&shapes::FETCH_SNAPSHOT_ANSWER, 0..=1, $($argument),*);
        $then::<m::VoteResponse>(&shapes::VOTE_ANSWER, 0..=2, $($argument),*);
        $then::<m::BeginQuorumEpochResponse>(
            &shapes::QUORUM_EPOCH_ANSWER, 0..=1, $($argument),*);
        $then::<m::EndQuorumEpochResponse>(&shapes::QUORUM_EPOCH_ANSWER, 0..=1, $($argument),*);
        $then::<m::ApiVersionsResponse>(&shapes::API_VERSIONS_ANSWER, 0..=4, $($argument),*);
        $then::<m::AddRaftVoterResponse>(&shapes::CHANGE_VOTER_ANSWER, 0..=0, $($argument),*);
        $then::<m::RemoveRaftVoterResponse>(&shapes::CHANGE_VOTER_ANSWER, 0..=0, $($argument),*);
        $then::<m::ControllerRegistrationResponse>(
            &shapes::REGISTRATION_ANSWER, 0..=0, $($argument),*);
        $then::<m::UpdateRaftVoterResponse>(&shapes::UPDATE_VOTER_ANSWER, 0..=0, $($argument),*);
    };
}

/// Noise, and drawn bodies with one byte changed or the end cut: the check never panics, and what
/// it lets through never makes the decoder panic or ask for more than the bytes hold.
fn survives<M: Decodable>(
    shape: &Shape,
    versions: std::ops::RangeInclusive<i16>,
    noise: &[u8],
    seed: u64,
) {
    for version in versions {
        let mut bent = Writer::body(shape, version, seed);
        let at = SplitMix::new(seed).below(bent.len().max(1) as u64) as usize;
        if let Some(byte) = bent.get_mut(at) {
            *byte = noise.first().copied().unwrap_or(0xff);
        }
        let cut = bent[..at].to_vec();
        for body in [noise.to_vec(), bent, cut] {
            if shape.check(&body, version).is_ok() {
                let _ = M::decode(&mut Bytes::from(body), version);
            }
        }
    }
}

/// What is left of a drawn body is one of the same message, with one element in each array at most,
/// and with the first items of the body.
fn has_first_items<M>(shape: &Shape, versions: std::ops::RangeInclusive<i16>, seed: u64)
where
    M: Decodable + Encodable + std::fmt::Debug,
{
    for version in versions {
        let drawn = Writer::body(shape, version, seed);
        let first = shape.first_items(&drawn, version).unwrap();
        assert!(first.len() <= drawn.len(), "v{version}");
        let size = shape.check(&first, version).unwrap();
        // As many as there are arrays in the table, or fewer.
        assert!(size.elements <= 8, "v{version}: {size:?}");
        let mut rest = Bytes::from(first.clone());
        M::decode(&mut rest, version).unwrap();
        assert!(rest.is_empty(), "v{version}: {} bytes left", rest.len());
        assert_eq!(shape.first_items(&first, version), Ok(first), "v{version}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_first_items_of_a_body_are_a_body(seed: u64) {
        every_message!(has_first_items(seed));
    }

    #[test]
    fn kafka_protocol_reads_what_the_shapes_describe(seed: u64) {
        every_message!(agrees(seed));
    }

    #[test]
    fn noise_never_panics_and_never_reaches_the_decoder_with_a_false_count(
        noise in proptest::collection::vec(any::<u8>(), 0..64),
        seed: u64,
    ) {
        every_message!(survives(&noise, seed));
    }
}

#[test]
fn nine_bytes_of_create_topics_with_a_huge_count_are_refused() {
    // Topics: count 2^32 - 2 as a compact length, then four bytes that could be the time-out.
    let body = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0];
    assert_eq!(
        check(&shapes::CREATE_TOPICS, &body, 7),
        Err(ShapeFault::Truncated)
    );
}

#[test]
fn twenty_one_bytes_of_fetch_with_a_huge_count_are_refused() {
    let mut body = vec![0; 17];
    body.extend([0x7f, 0xff, 0xff, 0xff]);
    assert_eq!(check(&shapes::FETCH, &body, 4), Err(ShapeFault::Truncated));
}

#[test]
fn a_count_that_fits_the_bytes_but_not_the_elements_is_refused() {
    // DescribeConfigs v1: one resource, 100 keys announced, room for 50 (two bytes each).
    let mut body = vec![0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 100];
    body.extend([0; 101]);
    assert_eq!(
        check(&shapes::DESCRIBE_CONFIGS, &body, 1),
        Err(ShapeFault::Truncated)
    );
}

#[test]
fn more_elements_than_the_bound_are_refused_before_they_are_decoded() {
    // Five million empty names in five megabytes would become 160 MB of strings.
    let count: u32 = 5_000_000;
    let mut body = Vec::new();
    let mut left = count + 1;
    while left >= 0x80 {
        body.push(left as u8 | 0x80);
        left >>= 7;
    }
    body.push(left as u8);
    body.extend(vec![1; count as usize]);
    body.extend([0, 0, 0, 0, 0]);
    assert_eq!(
        check(&shapes::DELETE_TOPICS, &body, 5),
        Err(ShapeFault::TooManyElements)
    );
}

/// Of a list that is passed over, the end is not known: what follows it has its defaults, and what
/// precedes it is there.
#[test]
fn behind_the_first_of_many_items_nothing_is_read() {
    let topic = |name: &str, brokers: &[i32]| {
        let assignment = m::create_topics_request::CreatableReplicaAssignment::default()
            .with_broker_ids(brokers.iter().map(|id| m::BrokerId(*id)).collect());
        m::create_topics_request::CreatableTopic::default()
            .with_name(m::TopicName(name.to_owned().into()))
            .with_num_partitions(7)
            .with_assignments(vec![assignment; 1])
    };
    let bodies = [
        (vec![topic("a", &[1])], (vec![1], 77)),
        (vec![topic("a", &[1, 2])], (vec![1], 0)),
        (vec![topic("a", &[1]), topic("b", &[1])], (vec![1], 0)),
    ];
    for version in [4, 7] {
        for (topics, (brokers, timeout_ms)) in bodies.clone() {
            let request = m::CreateTopicsRequest::default()
                .with_timeout_ms(77)
                .with_topics(topics);
            let mut body = BytesMut::new();
            request.encode(&mut body, version).unwrap();
            let first = shapes::CREATE_TOPICS.first_items(&body, version).unwrap();
            let read = m::CreateTopicsRequest::decode(&mut Bytes::from(first), version).unwrap();
            assert_eq!(read.timeout_ms, timeout_ms);
            assert_eq!(read.topics.len(), 1);
            let topic = &read.topics[0];
            assert_eq!((&*topic.name.0, topic.num_partitions), ("a", 7));
            let ids: Vec<i32> = topic.assignments[0]
                .broker_ids
                .iter()
                .map(|id| id.0)
                .collect();
            assert_eq!(ids, brokers);
        }
    }
}

/// What is weighed is what the decoder takes: the table knows the decoder's own types.
#[test]
fn a_decoded_element_weighs_no_less_than_its_type_has() {
    fn element(shape: &Shape) -> usize {
        let lists = shape.fields.iter().filter_map(|field| match field.kind {
            Kind::Array(element) => Some(element.memory_bytes()),
            _ => None,
        });
        lists.max().unwrap()
    }
    use std::mem::size_of;
    for (shape, size) in [
        (
            &shapes::CREATE_TOPICS,
            size_of::<m::create_topics_request::CreatableTopic>(),
        ),
        (
            &shapes::DESCRIBE_CONFIGS,
            size_of::<m::describe_configs_request::DescribeConfigsResource>(),
        ),
        (
            &shapes::CREATE_ACLS,
            size_of::<m::create_acls_request::AclCreation>(),
        ),
        (
            &shapes::DELETE_ACLS,
            size_of::<m::delete_acls_request::DeleteAclsFilter>(),
        ),
        (
            &shapes::ALTER_PARTITION,
            size_of::<m::alter_partition_request::TopicData>(),
        ),
        (
            &shapes::ALTER_USER_SCRAM_CREDENTIALS,
            size_of::<m::alter_user_scram_credentials_request::ScramCredentialUpsertion>(),
        ),
        (
            &shapes::DELETE_TOPICS,
            size_of::<m::delete_topics_request::DeleteTopicState>(),
        ),
    ] {
        let weighed = element(shape);
        assert!(size <= weighed && weighed <= 2 * size, "{size} {weighed}");
    }
}

#[test]
fn bytes_after_the_last_field_are_refused() {
    assert_eq!(check(&shapes::DESCRIBE_CLUSTER, &[0, 0], 0), Ok(0));
    assert_eq!(
        check(&shapes::DESCRIBE_CLUSTER, &[0, 0, 0], 0),
        Err(ShapeFault::LeftOver)
    );
}

#[test]
fn a_known_tagged_field_must_fill_its_size() {
    let heartbeat = |size: u8| {
        let mut body = vec![0; 22];
        body.extend([1, 0, size, 1, 0]);
        check(&shapes::BROKER_HEARTBEAT, &body, 1)
    };
    // An empty OfflineLogDirs is one byte; with size 2 the byte behind it is not its own.
    assert_eq!(heartbeat(2), Err(ShapeFault::TagSize));
    let mut body = vec![0; 22];
    body.extend([1, 0, 1, 1]);
    assert_eq!(check(&shapes::BROKER_HEARTBEAT, &body, 1), Ok(1));
}

#[test]
fn null_is_refused_where_the_protocol_has_none() {
    // BrokerRegistration v0: the cluster id is not nullable.
    let mut body = vec![0; 4];
    body.push(0);
    body.extend([0; 32]);
    assert_eq!(
        check(&shapes::BROKER_REGISTRATION, &body, 0),
        Err(ShapeFault::BadLength)
    );
}

#[test]
fn a_number_of_six_bytes_or_of_33_bits_is_refused() {
    let topics = |body: &[u8]| check(&shapes::CREATE_TOPICS, body, 7);
    assert_eq!(
        topics(&[0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0]),
        Err(ShapeFault::Varint)
    );
    assert_eq!(
        topics(&[0xff, 0xff, 0xff, 0xff, 0x1f, 0, 0, 0]),
        Err(ShapeFault::Varint)
    );
}

#[test]
fn nesting_is_bounded_by_the_table() {
    fn depth(kind: Kind) -> usize {
        match kind {
            Kind::Array(element) => depth(*element),
            Kind::Struct(fields) => 1 + fields.iter().map(|f| depth(f.kind)).max().unwrap_or(0),
            _ => 0,
        }
    }
    fn shallow<M: Default>(shape: &Shape, _: std::ops::RangeInclusive<i16>) {
        drop(M::default());
        assert!(depth(Kind::Struct(shape.fields)) <= 4);
    }
    every_message!(shallow());
}

#[test]
fn the_misfit_names_the_field() {
    let misfit = shapes::CREATE_TOPICS.check(&[2, 3, b'a'], 7).unwrap_err();
    assert_eq!(
        misfit.to_string(),
        "a value reaches beyond the end of the request (at field 'Topics')"
    );
    let misfit = shapes::ENVELOPE.check(&[3, 1, 2, 0, 9, 1], 0).unwrap_err();
    assert_eq!(misfit.field, "ClientHostAddress");
}

/// A flexible string has room for gigabytes, and a topic's name or a principal's of such a size
/// would be kept, compared and told again.
#[test]
fn a_string_of_more_than_32_kib_is_refused_in_every_version() {
    static NAME: Shape = Shape {
        flexible_from: 1,
        fields: &[field("Name", Kind::Str)],
    };
    for (length, wanted) in [
        (STRING_BYTES_MAX, Ok(0)),
        (STRING_BYTES_MAX + 1, Err(ShapeFault::BadLength)),
    ] {
        let mut writer = Writer::new(&NAME, 1, 1);
        writer.varint(length as u32 + 1);
        writer.bytes.extend(vec![b'x'; length]);
        writer.bytes.push(0);
        assert_eq!(check(&NAME, &writer.bytes, 1), wanted);
    }
}
