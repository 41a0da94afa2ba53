//! Numbers that must not be mixed up, each with its own type.

use std::fmt;

use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// A broker's or controller's `node.id`. Valid ids are at least 0; -1 on the wire means none.
    NodeId(i32)
}
id! {
    /// A raft epoch (leader epoch of the metadata partition), starting at 0.
    Epoch(i32)
}
id! {
    /// An offset of the metadata log. As the end of a range it is exclusive.
    Offset(i64)
}
id! {
    /// The offset of the record that registered a broker (KIP-631); it fences older incarnations.
    BrokerEpoch(i64)
}
id! {
    /// The index of a partition inside its topic, from 0.
    PartitionId(i32)
}

impl NodeId {
    /// The wire's "no node" (-1).
    pub const NONE: Self = Self(-1);
}

impl Epoch {
    /// No election leads into an epoch from here on, no peer is believed that names one, and no
    /// file that has one is started with: there would be no room for the elections behind it.
    pub const END: Self = Self(i32::MAX - 1);

    /// The greatest epoch that a request of any peer may name, however far it is from what is
    /// known. The elections behind it are more than a quorum holds in years.
    pub const FAR: Self = Self(Self::END.0 - (1 << 24));

    /// How many epochs beyond its own a node goes with a peer's request when it is past
    /// [`Self::FAR`]: elections go on there, but nobody leaps to the end.
    const STEP: i32 = 256;

    /// Whether an election can follow this epoch.
    #[must_use]
    pub const fn has_next(self) -> bool {
        self.next().0 < Self::END.0
    }

    /// Whether a node in this epoch goes with a peer that asks it for something in `claimed`. Any
    /// peer can ask, so that the claim alone must not use up the epochs.
    #[must_use]
    pub const fn believes(self, claimed: Self) -> bool {
        let near = claimed.0 <= self.0.saturating_add(Self::STEP);
        claimed.0 <= Self::FAR.0 || (near && claimed.0 < Self::END.0)
    }

    /// The epoch after this one. Saturates, so that a peer's `i32::MAX` cannot overflow it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Offset {
    /// The start of every log.
    pub const ZERO: Self = Self(0);

    /// The offset after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The offset `count` records after this one.
    #[must_use]
    pub const fn plus(self, count: i64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// The offset before this one: the last offset inside a range that ends (exclusively) here.
    #[must_use]
    pub const fn prev(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

/// An end offset (exclusive) with the epoch of the record before it; also the id of a snapshot
/// (KIP-630): the snapshot holds every record below `offset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetAndEpoch {
    /// The end offset, exclusive.
    pub offset: Offset,
    /// The epoch of the last record below `offset`.
    pub epoch: Epoch,
}

impl OffsetAndEpoch {
    /// The id of the bootstrap snapshot, `00000000000000000000-0000000000.checkpoint`. It is read
    /// by its own node and never served to another (KIP-853).
    pub const BOOTSTRAP: Self = Self {
        offset: Offset(0),
        epoch: Epoch(0),
    };
}

/// A voter or observer of the metadata partition (KIP-853): its id and the id of the directory that
/// holds its log. A nil directory id means "unknown" and matches any (static quorums).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaKey {
    /// The node.
    pub id: NodeId,
    /// The directory's id, nil when not known.
    pub directory: Uuid,
}

impl ReplicaKey {
    /// Whether this key, as somebody recorded it, is that of `replica`: a key without a directory
    /// is that of every replica with its id.
    #[must_use]
    pub fn names(self, replica: Self) -> bool {
        self.id == replica.id && (self.directory.is_nil() || self.directory == replica.directory)
    }
}

/// The reserved topic id of `__cluster_metadata` (00000000-0000-0000-0000-000000000001), which is
/// also the directory id UNASSIGNED (KIP-858).
pub const METADATA_TOPIC_ID: Uuid = Uuid::from_u128(1);
/// The name of the metadata topic.
pub const METADATA_TOPIC: &str = "__cluster_metadata";

/// Directory id "not assigned yet" (KIP-858), 0x1.
pub const DIR_UNASSIGNED: Uuid = Uuid::from_u128(1);
/// Directory id "in a lost log directory" (KIP-858), 0x2.
pub const DIR_LOST: Uuid = Uuid::from_u128(2);
/// Directory id "migrating from a release without directory ids" (KIP-858), 0x0.
pub const DIR_MIGRATING: Uuid = Uuid::nil();

/// True for the first 100 uuids, which Kafka reserves and never gives to a topic or a directory.
#[must_use]
pub const fn is_reserved(id: Uuid) -> bool {
    id.as_u128() < 100
}

/// A uuid as Kafka writes it: 22 characters of URL-safe base64 without padding.
#[must_use]
pub fn base64url(id: Uuid) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(id.as_bytes())
}

/// Reads what [`base64url`] writes. `None` when `text` is not 16 bytes of URL-safe base64.
#[must_use]
pub fn parse_base64url(text: &str) -> Option<Uuid> {
    use base64::Engine as _;
    let engine = base64::engine::GeneralPurpose::new(
        &base64::alphabet::URL_SAFE,
        base64::engine::GeneralPurposeConfig::new()
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let bytes = engine.decode(text).ok()?;
    Uuid::from_slice(&bytes).ok()
}
