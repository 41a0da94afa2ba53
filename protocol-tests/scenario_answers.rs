//! What other nodes answer in the scripted runs of `scenarios.rs`.
//!
//! ```text
//! > answer 3 vote granted | answer 3 begin | answer 3 end        to question c3
//! > answer 3 fetch hwm=31 batches=30..31@3,31..33@4 voters=32:1+2+4.d44
//! > answer 3 fetch diverging=3@25 | answer 3 fetch snapshot=4@100
//! > answer 3 piece id=4@100 size=250 position=0 bytes=100
//! > answer 3 versions | answer 3 closed | silent | unsupported | garbage
//! ```
//!
//! Who leads stands in `leader=2 epoch=5` (`leader=-` if nobody), an error in `error=FENCED` or
//! `top=CLUSTER`.

use bytes::Bytes;
use kraftd::raft::{
    CallFault, ControlRecord, FetchResponse, FetchSnapshotResponse, FetchedBatch, LeaderHint,
    RaftError, Response, SimpleResponse, Told, VoteResponse,
};
use kraftd::types::{Epoch, ErrorCode, NodeId, Offset};

use crate::scenario_voters;
use crate::scenarios::{Args, end, endpoints, key, number, voter};

/// The outcome of a question, as the words behind its number tell it.
pub(crate) fn outcome(kind: &str, args: &Args) -> Result<Told, CallFault> {
    Ok(match kind {
        "vote" => Told::Response(Response::Vote(VoteResponse {
            error: error(args),
            hint: hint(args),
            granted: args.text("granted").is_some(),
        })),
        "begin" => Told::Response(Response::BeginQuorumEpoch(simple(args))),
        "end" => Told::Response(Response::EndQuorumEpoch(simple(args))),
        "fetch" => Told::Fetch {
            response: FetchResponse {
                error: error(args),
                hint: hint(args),
                high_watermark: args.number("hwm", -1),
                log_start: Offset(args.number("start", 0)),
                diverging: args.text("diverging").map(end),
                snapshot: args.text("snapshot").map(end),
            },
            batches: batches(args),
        },
        "piece" => Told::Snapshot {
            response: FetchSnapshotResponse {
                error: error(args),
                hint: hint(args),
                id: end(args.text("id").expect("id=EPOCH@OFFSET")),
            },
            size: args.number("size", 0),
            position: args.number("position", 0),
            bytes: Bytes::from(vec![0; args.number("bytes", 0)]),
        },
        "versions" => Told::Versions {
            kraft_versions: Some((0, 1)),
        },
        "closed" => return Err(CallFault::Closed),
        "silent" => return Err(CallFault::Silent),
        "unsupported" => return Err(CallFault::Unsupported),
        "garbage" => return Err(CallFault::Garbage),
        other => scenario_voters::outcome(other, error(args), hint(args))
            .unwrap_or_else(|| panic!("unknown answer {other}")),
    })
}

fn simple(args: &Args) -> SimpleResponse {
    SimpleResponse {
        error: error(args),
        hint: hint(args),
    }
}

fn error(args: &Args) -> RaftError {
    match (args.text("error"), args.text("top")) {
        (Some(name), _) => RaftError::Partition(code(name)),
        (None, Some(name)) => RaftError::Top(code(name)),
        (None, None) => RaftError::None,
    }
}

fn code(name: &str) -> ErrorCode {
    match name {
        "NOT_LEADER" => ErrorCode::NotLeaderOrFollower,
        "FENCED" => ErrorCode::FencedLeaderEpoch,
        "UNKNOWN_EPOCH" => ErrorCode::UnknownLeaderEpoch,
        "VOTER_KEY" => ErrorCode::InvalidVoterKey,
        "NO_SNAPSHOT" => ErrorCode::SnapshotNotFound,
        "CLUSTER" => ErrorCode::InconsistentClusterId,
        "BUSY" => ErrorCode::BrokerNotAvailable,
        "TIMED_OUT" => ErrorCode::RequestTimedOut,
        unknown => panic!("unknown error {unknown}"),
    }
}

fn hint(args: &Args) -> LeaderHint {
    let leader = match args.text("leader").unwrap_or("2") {
        "-" => None,
        id => Some(NodeId(number(id))),
    };
    LeaderHint {
        leader,
        epoch: Epoch(args.number("epoch", 1)),
        endpoint: leader.and_then(|id| {
            let (_, host, port) = endpoints(id).pop()?;
            Some((host, port))
        }),
    }
}

/// `FIRST..END@EPOCH`, and `OFFSET:ID+ID` for a voter set in one of them.
fn batches(args: &Args) -> Vec<FetchedBatch> {
    let set = args.text("voters").map(|text| {
        let (offset, ids) = text.split_once(':').expect("OFFSET:ID+ID");
        let nodes = ids.split('+').map(|id| voter(key(id))).collect();
        (Offset(number(offset)), ControlRecord::Voters(nodes))
    });
    let texts = args.list("batches").into_iter();
    texts
        .map(|text| {
            let (range, epoch) = text.split_once('@').expect("FIRST..END@EPOCH");
            let (first, end) = range.split_once("..").expect("FIRST..END");
            let (first, end) = (Offset(number(first)), Offset(number(end)));
            let here = set.iter().filter(|(at, _)| (first..end).contains(at));
            FetchedBatch {
                first,
                end,
                epoch: Epoch(number(epoch)),
                control: here.cloned().collect(),
                bytes: Bytes::from_static(b"records"),
            }
        })
        .collect()
}
