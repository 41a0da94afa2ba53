//! Changes of the voters in the scripted runs of `scenarios.rs`.
//!
//! ```text
//! > add 4.d44 [now]                  AddRaftVoter; the answer waits for no commit
//! > remove 4.d44 | update 4.d44      RemoveRaftVoter, UpdateRaftVoter
//! > answer 3 added [error=TIMED_OUT] | removed | updated        to question c3
//! ```

use kraftd::raft::{
    AddVoterRequest, ChangeVoterResponse, LeaderHint, RaftError, RemoveVoterRequest, Request,
    Response, Told, UpdateVoterRequest, UpdateVoterResponse,
};
use kraftd::types::ErrorCode;

use crate::scenarios::{Args, cluster, endpoints, key};

/// The request that `command` names, if it is one of these.
pub(crate) fn request(command: &str, args: &Args) -> Option<Request> {
    let voter = || key(args.words().next().expect("ID.dHEX"));
    Some(match command {
        "add" => Request::AddVoter(AddVoterRequest {
            cluster_id: cluster(args),
            timeout_ms: 1_000,
            voter: voter(),
            endpoints: endpoints(voter().id),
            ack_when_committed: args.text("now").is_none(),
        }),
        "remove" => Request::RemoveVoter(RemoveVoterRequest {
            cluster_id: cluster(args),
            voter: voter(),
        }),
        "update" => Request::UpdateVoter(UpdateVoterRequest {
            cluster_id: cluster(args),
            current_leader_epoch: args.number("epoch", 1),
            voter: voter(),
            endpoints: endpoints(voter().id),
            kraft_versions: (0, args.number("max", 1)),
        }),
        _ => return None,
    })
}

/// What a leader answers to one of the requests, as `kind` names it.
pub(crate) fn outcome(kind: &str, error: RaftError, hint: LeaderHint) -> Option<Told> {
    let error = match error {
        RaftError::None => ErrorCode::None,
        RaftError::Top(code) | RaftError::Partition(code) => code,
    };
    let changed = ChangeVoterResponse {
        error,
        message: None,
    };
    Some(Told::Response(match kind {
        "added" => Response::AddVoter(changed),
        "removed" => Response::RemoveVoter(changed),
        "updated" => Response::UpdateVoter(UpdateVoterResponse { error, hint }),
        _ => return None,
    }))
}
