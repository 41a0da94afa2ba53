//! The core's inputs and outputs as text, for scenario traces and the simulator's log.

use kraftd::raft::{
    Ask, ChangeVoterResponse, ControlRecord, DescribeQuorumResponse, FetchResponse, Input,
    LeaderHint, Output, Peer, PeerName, QuorumState, RaftError, ReplicaState, Request, Response,
    Told, VoterNode, Write,
};
use kraftd::types::{NodeId, OffsetAndEpoch, ReplicaKey};

/// `3@20` is epoch 3 up to offset 20, as a snapshot id or the end of an epoch.
pub(crate) fn end(id: OffsetAndEpoch) -> String {
    format!("{}@{}", id.epoch, id.offset)
}

/// An id with its directory's number, `1.d11`, or alone if the directory is not known.
pub(crate) fn key(key: ReplicaKey) -> String {
    if key.directory.is_nil() {
        key.id.to_string()
    } else {
        format!("{}.d{:x}", key.id, key.directory.as_u128())
    }
}

fn node(id: Option<NodeId>) -> String {
    id.map_or_else(|| "-".to_owned(), |id| id.to_string())
}

fn ids(ids: &[NodeId]) -> String {
    let ids: Vec<String> = ids.iter().map(NodeId::to_string).collect();
    format!("[{}]", ids.join(" "))
}

fn error(error: RaftError) -> String {
    match error {
        RaftError::None => "ok".to_owned(),
        RaftError::Top(code) => format!("top {code}"),
        RaftError::Partition(code) => code.to_string(),
    }
}

fn hint(hint: &LeaderHint) -> String {
    let at = match &hint.endpoint {
        Some((host, port)) => format!(" at {host}:{port}"),
        None => String::new(),
    };
    format!("leader={} epoch={}{at}", node(hint.leader), hint.epoch)
}

/// Election state as `quorum-state` holds it.
pub(crate) fn quorum_state(state: &QuorumState) -> String {
    format!(
        "v{} epoch={} leader={} voted={} voters={}",
        state.kraft_version,
        state.epoch,
        node(state.leader),
        state.voted.map_or_else(|| "-".to_owned(), key),
        ids(&state.voters)
    )
}

fn voter(node: &VoterNode) -> String {
    let (low, high) = node.kraft_versions;
    let at: Vec<String> = node
        .endpoints
        .iter()
        .map(|(name, host, port)| format!("{name}={host}:{port}"))
        .collect();
    format!("{} {} {low}..{high}", key(node.key), at.join(","))
}

fn voters(nodes: &[VoterNode]) -> String {
    let nodes: Vec<String> = nodes.iter().map(voter).collect();
    nodes.join(" | ")
}

fn control(record: &ControlRecord) -> String {
    match record {
        ControlRecord::LeaderChange {
            leader,
            voters,
            granting,
        } => format!(
            "leader-change leader={leader} voters={} granting={}",
            ids(voters),
            ids(granting)
        ),
        ControlRecord::KraftVersion(version) => format!("kraft-version {version}"),
        ControlRecord::Voters(nodes) => format!("voters {}", voters(nodes)),
    }
}

fn fetched(response: &FetchResponse) -> String {
    let mut text = format!(
        "{} {} hwm={} start={}",
        error(response.error),
        hint(&response.hint),
        response.high_watermark,
        response.log_start
    );
    if let Some(id) = response.diverging {
        text += &format!(" diverging={}", end(id));
    }
    if let Some(id) = response.snapshot {
        text += &format!(" snapshot={}", end(id));
    }
    text
}

fn replicas(name: &str, states: &[ReplicaState]) -> String {
    let states: Vec<String> = states
        .iter()
        .map(|state| {
            format!(
                "{} end={} fetch={} caught-up={}",
                key(state.key),
                state.log_end,
                state.last_fetch,
                state.last_caught_up
            )
        })
        .collect();
    format!("{name}=[{}]", states.join(", "))
}

fn described(response: &DescribeQuorumResponse) -> String {
    format!(
        "{} {} hwm={} {} {} nodes=[{}]",
        error(response.error),
        hint(&response.hint),
        response.high_watermark,
        replicas("voters", &response.voters),
        replicas("observers", &response.observers),
        voters(&response.nodes)
    )
}

fn changed(response: &ChangeVoterResponse) -> String {
    match &response.message {
        Some(message) => format!("{} \"{message}\"", response.error),
        None => response.error.to_string(),
    }
}

fn response(response: &Response) -> String {
    match response {
        Response::Vote(vote) => format!(
            "vote {} {} granted={}",
            error(vote.error),
            hint(&vote.hint),
            vote.granted
        ),
        Response::BeginQuorumEpoch(told) => {
            format!("begin {} {}", error(told.error), hint(&told.hint))
        }
        Response::EndQuorumEpoch(told) => {
            format!("end {} {}", error(told.error), hint(&told.hint))
        }
        Response::Fetch(fetch) => format!("fetch {}", fetched(fetch)),
        Response::FetchSnapshot(fetch) => format!(
            "fetch-snapshot {} {} id={}",
            error(fetch.error),
            hint(&fetch.hint),
            end(fetch.id)
        ),
        Response::DescribeQuorum(quorum) => format!("describe {}", described(quorum)),
        Response::AddVoter(told) => format!("add-voter {}", changed(told)),
        Response::RemoveVoter(told) => format!("remove-voter {}", changed(told)),
        Response::UpdateVoter(told) => {
            format!("update-voter {} {}", told.error, hint(&told.hint))
        }
    }
}

fn peer_name(name: PeerName) -> String {
    match name {
        PeerName::Node(id) => format!("node {id}"),
        PeerName::Bootstrap(at) => format!("bootstrap {at}"),
    }
}

fn peer(peer: &Peer) -> String {
    format!("{} at {}:{}", peer_name(peer.name), peer.host, peer.port)
}

fn ask(ask: &Ask) -> String {
    match ask {
        Ask::Raft(what) => request(what),
        Ask::Versions => "versions".to_owned(),
    }
}

fn told(told: &Told) -> String {
    match told {
        Told::Response(what) => response(what),
        Told::Fetch { response, batches } => {
            let batches: Vec<String> = batches
                .iter()
                .map(|batch| format!("{}..{}@{}", batch.first, batch.end, batch.epoch))
                .collect();
            format!("fetch {} [{}]", fetched(response), batches.join(" "))
        }
        Told::Snapshot {
            response,
            size,
            position,
            bytes,
        } => format!(
            "fetch-snapshot {} id={} bytes {position}+{} of {size}",
            error(response.error),
            end(response.id),
            bytes.len()
        ),
        Told::Versions { kraft_versions } => format!("versions {kraft_versions:?}"),
    }
}

/// What is written, in one line.
pub(crate) fn write(write: &Write) -> String {
    match write {
        Write::Append {
            first, end, epoch, ..
        } => format!("append {first}..{end} epoch={epoch}"),
        Write::AppendControl {
            first,
            epoch,
            timestamp,
            records,
        } => {
            let records: Vec<String> = records.iter().map(control).collect();
            format!(
                "control {first}.. epoch={epoch} time={} [{}]",
                timestamp.0,
                records.join("; ")
            )
        }
        Write::Truncate { end } => format!("truncate to {end}"),
        Write::MoveStart { to } => format!("move start to {}", end(*to)),
        Write::Restart { at } => format!("restart at {}", end(*at)),
        Write::QuorumState(state) => format!("quorum-state {}", quorum_state(state)),
    }
}

/// An output, one line and an indented one for each thing that it carries.
pub(crate) fn output(output: &Output) -> Vec<String> {
    let Output::Write {
        token,
        write: what,
        then,
    } = output
    else {
        return vec![plain(output)];
    };
    let mut lines = vec![format!("write #{} {}", token.0, write(what))];
    for carried in then {
        let carried = self::output(carried);
        lines.extend(carried.iter().map(|line| format!("  then {line}")));
    }
    lines
}

/// An output that carries nothing.
fn plain(output: &Output) -> String {
    match output {
        Output::Write { .. } => unreachable!("it may carry something"),
        Output::Reply {
            ticket,
            response: what,
        } => format!("reply t{} {}", ticket.0, response(what)),
        Output::ServeFetch {
            ticket,
            response,
            from,
            until,
            max_bytes,
        } => format!(
            "serve t{} records {from}..{until} max={max_bytes} {}",
            ticket.0,
            fetched(response)
        ),
        Output::ServeSnapshot {
            ticket,
            response,
            position,
            max_bytes,
        } => format!(
            "serve t{} snapshot {} from={position} max={max_bytes} {}",
            ticket.0,
            end(response.id),
            hint(&response.hint)
        ),
        Output::Send { call, to, ask } => {
            format!("send c{} to {}: {}", call.0, peer(to), self::ask(ask))
        }
        Output::Hangup(name) => format!("hang up on {}", peer_name(*name)),
        Output::KeepOpen(peers) => {
            let peers: Vec<String> = peers.iter().map(peer).collect();
            format!("keep open [{}]", peers.join(", "))
        }
        Output::KeepPiece {
            id,
            position,
            bytes,
            size,
        } => format!(
            "keep {} bytes {position}+{} of {size}",
            end(*id),
            bytes.len()
        ),
        Output::QuorumChanged => "quorum changed".to_owned(),
        Output::Committed(offset) => format!("committed {offset}"),
        Output::BecameLeader { epoch } => format!("became leader epoch={epoch}"),
        Output::LostLeadership { epoch, leader } => {
            format!("lost leadership epoch={epoch} leader={}", node(*leader))
        }
        Output::MayStop => "may stop".to_owned(),
    }
}

/// An input in one line.
pub(crate) fn input(input: &Input) -> String {
    match input {
        Input::Request {
            ticket, request, ..
        } => format!("t{} {}", ticket.0, self::request(request)),
        Input::WakeUp => "wake-up".to_owned(),
        Input::Written(token) => format!("written #{}", token.0),
        Input::Propose(proposal) => format!(
            "propose {}..{} epoch={}",
            proposal.first, proposal.end, proposal.epoch
        ),
        Input::SnapshotWritten(id) => format!("snapshot written {}", end(*id)),
        Input::SnapshotLoaded(loaded) => format!("snapshot loaded {}", end(loaded.id)),
        Input::Clean(id) => format!("clean up to {}", end(*id)),
        Input::Answered { call, outcome } => match outcome {
            Ok(what) => format!("c{} answered: {}", call.0, told(what)),
            Err(fault) => format!("c{} not answered: {fault:?}", call.0),
        },
        Input::PeerFound { peer, pre_vote } => format!("found {peer} pre-vote={pre_vote}"),
        Input::PeerLost { peer } => format!("lost {peer}"),
        Input::PieceKept { id, end: kept } => format!("kept {} up to {kept}", end(*id)),
        Input::SnapshotFailed(id) => format!("snapshot {} failed", end(*id)),
        Input::SnapshotWithoutRoom(id) => format!("snapshot {} without room", end(*id)),
        Input::UpgradeKraftVersion(level) => format!("kraft.version {level}"),
        Input::Resign => "resign".to_owned(),
        Input::Shutdown => "shutdown".to_owned(),
    }
}

fn request(request: &Request) -> String {
    match request {
        Request::Vote(vote) => format!(
            "vote candidate={} epoch={} log={}@{} pre={}",
            key(vote.candidate),
            vote.epoch,
            vote.last_epoch,
            vote.last_offset,
            vote.pre_vote
        ),
        Request::BeginQuorumEpoch(begin) => {
            format!("begin leader={} epoch={}", begin.leader_id, begin.epoch)
        }
        Request::EndQuorumEpoch(end) => {
            format!("end leader={} epoch={}", end.leader_id, end.epoch)
        }
        Request::Fetch(fetch) => format!(
            "fetch from={} epoch={} offset={} last={} hwm={} wait={} max={}",
            key(fetch.replica),
            fetch.current_leader_epoch,
            fetch.fetch_offset,
            fetch.last_fetched_epoch,
            fetch.high_watermark,
            fetch.max_wait_ms,
            fetch.max_bytes
        ),
        Request::FetchSnapshot(fetch) => format!(
            "fetch-snapshot from={} epoch={} id={} position={} max={}",
            key(fetch.replica),
            fetch.current_leader_epoch,
            end(fetch.id),
            fetch.position,
            fetch.max_bytes
        ),
        Request::DescribeQuorum(_) => "describe".to_owned(),
        Request::AddVoter(add) => format!("add-voter {}", key(add.voter)),
        Request::RemoveVoter(remove) => format!("remove-voter {}", key(remove.voter)),
        Request::UpdateVoter(update) => format!(
            "update-voter {} epoch={}",
            key(update.voter),
            update.current_leader_epoch
        ),
    }
}
