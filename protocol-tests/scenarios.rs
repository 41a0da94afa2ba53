//! Scripted runs of the consensus core with everything that it says (`scenarios/*.txt`).
//!
//! A line that begins with `>` is a command; the lines under it are what the core answered, and
//! one line with its state. `GOLDEN=1 cargo test scenario` rewrites the answers: commit a changed
//! trace only if you can say why it changed.
//!
//! ```text
//! > start voters=1,2 kraft=1 disk=epoch:3,leader:1,voted:1 log=0..30 epochs=1@0,3@20 commit=3@30
//! > wake | advance | +500            the time comes; the next wake-up's time comes; time passes
//! > disk [N]                         all writes (the oldest N) become durable
//! > propose N | snapshot E@O | clean E@O | load E@O | shutdown
//! > fetch | fetch-snapshot | vote | begin | end | describe    with key=value arguments
//! > answer N KIND                    another node answers question cN: see `scenario_answers.rs`
//! > found N [old] | lost N           a connection to N is open (it knows no pre-vote); is gone
//! > kept E@O BYTES | failed E@O      a piece of a snapshot is on disk; the snapshot is no good
//! > resign                           the state machine cannot go on leading
//! > add | remove | update            changes of the voters: see `scenario_voters.rs`
//! > kraft N                          kraft.version is to be N
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use kraftd::raft::{
    BeginQuorumEpochRequest, Boot, ControlRecord, DescribeQuorumRequest, EndQuorumEpochRequest,
    FetchRequest, FetchSnapshotRequest, Input, LoadedSnapshot, Output, Proposal, QuorumState, Raft,
    RaftConfig, Request, VoteRequest, VoterNode,
};
use kraftd::types::{
    CallId, Epoch, Instant, NodeId, Now, Offset, OffsetAndEpoch, ReplicaKey, Ticket, Timestamp,
    Token, Uuid,
};

use crate::{scenario_answers, scenario_voters, trace};

const LISTENER: &str = "CONTROLLER";

/// The arguments of one command, by name and as they stand.
pub(crate) struct Args(BTreeMap<String, String>, Vec<String>);

impl Args {
    fn parse(words: &[&str]) -> Self {
        Self(
            words
                .iter()
                .map(|word| word.split_once('=').unwrap_or((word, "")))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            words.iter().map(|word| (*word).to_owned()).collect(),
        )
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.1.iter().map(String::as_str)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        self.text(name).map_or(default, |text| number(text))
    }

    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        self.text(name)
            .map(|text| text.split(',').collect())
            .unwrap_or_default()
    }
}

pub(crate) fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// `ID` or `ID.dHEX`.
pub(crate) fn key(text: &str) -> ReplicaKey {
    let (id, directory) = text.split_once(".d").unwrap_or((text, "0"));
    ReplicaKey {
        id: NodeId(number(id)),
        directory: Uuid::from_u128(u128::from_str_radix(directory, 16).expect("hex directory")),
    }
}

/// `EPOCH@OFFSET`.
pub(crate) fn end(text: &str) -> OffsetAndEpoch {
    let (epoch, offset) = text.split_once('@').expect("EPOCH@OFFSET");
    OffsetAndEpoch {
        offset: Offset(number(offset)),
        epoch: Epoch(number(epoch)),
    }
}

pub(crate) fn endpoints(id: NodeId) -> Vec<(String, String, u16)> {
    vec![(
        LISTENER.to_owned(),
        format!("host{id}"),
        9_000 + u16::try_from(id.0).unwrap_or(999),
    )]
}

pub(crate) fn voter(key: ReplicaKey) -> VoterNode {
    VoterNode {
        key,
        endpoints: endpoints(key.id),
        kraft_versions: (0, 1),
    }
}

/// `epoch:3,leader:1,voted:1.d11`.
fn quorum_state(text: &str, kraft_version: u16, voters: &[VoterNode]) -> QuorumState {
    let fields: BTreeMap<&str, &str> = text
        .split(',')
        .map(|field| field.split_once(':').expect("field:value"))
        .collect();
    QuorumState {
        epoch: Epoch(number(fields["epoch"])),
        leader: fields.get("leader").map(|id| NodeId(number(id))),
        voted: fields.get("voted").map(|voted| key(voted)),
        voters: match kraft_version {
            0 => voters.iter().map(|node| node.key.id).collect(),
            _ => Vec::new(),
        },
        kraft_version,
    }
}

fn boot(args: &Args) -> (RaftConfig, Boot) {
    let node = key(args.text("node").unwrap_or("1.d11"));
    let kraft_version: u16 = args.number("kraft", 0);
    let voters: Vec<VoterNode> = args
        .list("voters")
        .into_iter()
        .map(|text| voter(key(text)))
        .collect();
    let (start, log_end) = args
        .text("log")
        .map_or(("0", "0"), |log| log.split_once("..").expect("START..END"));
    // At kraft.version 1 the voters are on disk: in the bootstrap snapshot unless `at` says more.
    let at = Offset(args.number("at", -1));
    let control = match kraft_version {
        0 => Vec::new(),
        version => vec![
            (at, ControlRecord::KraftVersion(version)),
            (at, ControlRecord::Voters(voters.clone())),
        ],
    };
    let boot = Boot {
        quorum_state: args
            .text("disk")
            .map(|text| quorum_state(text, kraft_version, &voters)),
        log_start: Offset(number(start)),
        log_end: Offset(number(log_end)),
        epochs: args
            .list("epochs")
            .into_iter()
            .map(|text| (end(text).epoch, end(text).offset))
            .collect(),
        snapshots: args.list("snapshots").into_iter().map(end).collect(),
        control,
        commit: args.text("commit").map(end),
    };
    let config = RaftConfig {
        node,
        cluster_id: "cluster".to_owned(),
        endpoints: endpoints(node.id),
        election_timeout_ms: 1_000,
        fetch_timeout_ms: 2_000,
        election_backoff_ms_max: 1_000,
        static_voters: match kraft_version {
            0 => voters,
            _ => Vec::new(),
        },
        bootstrap: args
            .list("bootstrap")
            .into_iter()
            .map(|id| (format!("host{id}"), 9_000 + number::<u16>(id)))
            .collect(),
        request_timeout_ms: 2_000,
        retry_backoff_ms: 20,
        fetch_bytes_max: 1 << 20,
        snapshot_bytes_max: 1 << 20,
        auto_join: args.text("join").is_some(),
        kraft_versions: (0, 1),
        seed: 1,
    };
    (config, boot)
}

pub(crate) fn cluster(args: &Args) -> Option<String> {
    args.text("cluster").map(str::to_owned)
}

fn replica(args: &Args, name: &str) -> ReplicaKey {
    key(args.text(name).unwrap_or("2.d22"))
}

fn request(command: &str, args: &Args) -> Option<Request> {
    Some(match command {
        "fetch" => Request::Fetch(FetchRequest {
            cluster_id: cluster(args),
            replica: replica(args, "from"),
            current_leader_epoch: args.number("epoch", 1),
            fetch_offset: args.number("offset", 0),
            last_fetched_epoch: args.number("last", 0),
            high_watermark: args.number("hwm", i64::MAX),
            max_wait_ms: args.number("wait", 500),
            max_bytes: args.number("max", 1_048_576),
        }),
        "fetch-snapshot" => Request::FetchSnapshot(FetchSnapshotRequest {
            cluster_id: cluster(args),
            replica: replica(args, "from"),
            current_leader_epoch: args.number("epoch", 1),
            id: end(args.text("id").expect("id=EPOCH@OFFSET")),
            position: args.number("position", 0),
            max_bytes: args.number("max", 1_048_576),
        }),
        "vote" => {
            let log = end(args.text("log").unwrap_or("0@0"));
            Request::Vote(VoteRequest {
                cluster_id: cluster(args),
                voter: args.text("voter").map(key),
                candidate: replica(args, "candidate"),
                epoch: Epoch(args.number("epoch", 1)),
                last_epoch: log.epoch,
                last_offset: log.offset,
                pre_vote: args.text("pre").is_some(),
            })
        }
        "begin" => {
            let leader_id = NodeId(args.number("leader", 2));
            Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
                cluster_id: cluster(args),
                voter: args.text("voter").map(key),
                leader_id,
                epoch: Epoch(args.number("epoch", 1)),
                endpoints: match args.text("nowhere") {
                    Some(_) => Vec::new(),
                    None => endpoints(leader_id),
                },
            })
        }
        "end" => Request::EndQuorumEpoch(EndQuorumEpochRequest {
            cluster_id: cluster(args),
            leader_id: NodeId(args.number("leader", 2)),
            epoch: Epoch(args.number("epoch", 1)),
            preferred: args.list("preferred").into_iter().map(key).collect(),
        }),
        "describe" => Request::DescribeQuorum(DescribeQuorumRequest),
        _ => return None,
    })
}

/// What other nodes, connections and the disk of snapshots bring.
fn other_input(command: &str, args: &Args) -> Option<Input> {
    let words: Vec<&str> = args.1.iter().map(String::as_str).collect();
    let node = || NodeId(number(words[0]));
    Some(match command {
        "answer" => Input::Answered {
            call: CallId(number(words[0])),
            outcome: scenario_answers::outcome(words[1], args),
        },
        "found" => Input::PeerFound {
            peer: node(),
            pre_vote: args.text("old").is_none(),
        },
        "lost" => Input::PeerLost { peer: node() },
        "kept" => Input::PieceKept {
            id: end(words[0]),
            end: number(words[1]),
        },
        "failed" => Input::SnapshotFailed(end(words[0])),
        "without-room" => Input::SnapshotWithoutRoom(end(words[0])),
        "resign" => Input::Resign,
        _ => return None,
    })
}

/// One scripted node.
struct Stage {
    raft: Raft,
    now: u64,
    tickets: u64,
    /// Writes on their way, with what they carry.
    disk: VecDeque<(Token, Vec<Output>)>,
}

impl Stage {
    fn start(args: &Args) -> Self {
        let (config, boot) = boot(args);
        Self {
            raft: Raft::new(config, boot, Instant(0)),
            now: 0,
            tickets: 0,
            disk: VecDeque::new(),
        }
    }

    fn handle(&mut self, input: Input, trace: &mut Vec<String>) {
        let now = Now {
            instant: Instant(self.now),
            wall: Timestamp(1_000_000 + i64::try_from(self.now).expect("short runs")),
        };
        let mut outputs = Vec::new();
        self.raft.handle(now, input, &mut outputs);
        for output in outputs {
            trace.extend(trace::output(&output));
            if let Output::Write { token, then, .. } = output {
                self.disk.push_back((token, then));
            }
        }
    }

    fn run(&mut self, command: &str, args: &Args, trace: &mut Vec<String>) {
        if let Some(passed) = command.strip_prefix('+') {
            self.now += number::<u64>(passed);
            return;
        }
        let request = request(command, args);
        if let Some(request) = request.or_else(|| scenario_voters::request(command, args)) {
            self.tickets += 1;
            let input = Input::Request {
                ticket: Ticket(self.tickets),
                listener: LISTENER.into(),
                request,
            };
            trace.push(trace::input(&input));
            return self.handle(input, trace);
        }
        if let Some(input) = other_input(command, args) {
            trace.push(trace::input(&input));
            return self.handle(input, trace);
        }
        match command {
            "wake" => self.handle(Input::WakeUp, trace),
            "advance" => {
                let wakeup = self.raft.next_wakeup();
                assert_ne!(wakeup, Instant::NEVER, "there is nothing to wait for");
                self.now = self.now.max(wakeup.0);
                trace.push(format!("time {}", self.now));
                self.handle(Input::WakeUp, trace);
            }
            "disk" => self.write(args, trace),
            "kraft" => {
                let level = number(args.words().next().expect("a level"));
                match self.raft.check_kraft_version(level) {
                    Ok(()) => self.handle(Input::UpgradeKraftVersion(level), trace),
                    Err(reason) => trace.push(reason),
                }
            }
            "propose" => {
                let first = self.raft.log_end();
                let count = args.0.keys().next().map_or(1, |text| number(text));
                let proposal = Proposal {
                    epoch: self.raft.epoch(),
                    first,
                    end: first.plus(count),
                    batches: bytes::Bytes::new(),
                };
                self.handle(Input::Propose(proposal), trace);
            }
            "snapshot" => {
                let id = args.0.keys().next().expect("EPOCH@OFFSET");
                self.handle(Input::SnapshotWritten(end(id)), trace);
            }
            "load" => {
                let id = end(args.0.keys().next().expect("EPOCH@OFFSET"));
                let control = Vec::new();
                let loaded = LoadedSnapshot { id, control };
                self.handle(Input::SnapshotLoaded(loaded), trace);
            }
            "clean" => {
                let id = args.0.keys().next().expect("EPOCH@OFFSET");
                self.handle(Input::Clean(end(id)), trace);
            }
            "shutdown" => self.handle(Input::Shutdown, trace),
            unknown => panic!("unknown command {unknown}"),
        }
    }

    fn write(&mut self, args: &Args, trace: &mut Vec<String>) {
        let count = args.words().next().map_or(usize::MAX, number);
        for _ in 0..count {
            let Some((token, then)) = self.disk.pop_front() else {
                break;
            };
            trace.push(format!("written #{}", token.0));
            self.handle(Input::Written(token), trace);
            for output in then {
                trace.extend(trace::output(&output));
            }
        }
    }

    fn state(&self) -> String {
        let raft = &self.raft;
        let hwm = raft
            .high_watermark()
            .map_or_else(|| "-".to_owned(), |hwm| hwm.to_string());
        let wake = match raft.next_wakeup() {
            Instant::NEVER => "never".to_owned(),
            Instant(at) if at <= self.now => "now".to_owned(),
            Instant(at) => format!("+{}", at - self.now),
        };
        format!(
            "= {} epoch={} hwm={hwm} log={}..{} wake={wake}",
            raft.role_name(),
            raft.epoch(),
            raft.log_start(),
            raft.log_end()
        )
    }
}

/// Runs a script: its commands and comments with fresh answers.
fn replay(script: &str) -> String {
    let mut stage: Option<Stage> = None;
    let mut out = String::new();
    let mut before = '\n';
    for line in script.lines() {
        match line.chars().next() {
            Some('#') => {
                if before != '#' {
                    out += if out.is_empty() { "" } else { "\n" };
                }
                out += &format!("{line}\n");
                before = '#';
            }
            Some('>') => {
                let words: Vec<&str> = line[1..].split_whitespace().collect();
                let args = Args::parse(&words[1..]);
                let mut trace = Vec::new();
                match words[0] {
                    "start" => stage = Some(Stage::start(&args)),
                    command => {
                        let stage = stage.as_mut().expect("a script begins with start");
                        stage.run(command, &args, &mut trace);
                    }
                }
                trace.extend(stage.as_ref().map(Stage::state));
                out += &format!("{line}\n{}\n", trace.join("\n"));
                before = '>';
            }
            Some(_) | None => {}
        }
    }
    out
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol-tests/scenarios");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the scenarios are part of the tree")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "txt"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn scenario_traces_are_unchanged() {
    let rewrite = std::env::var_os("GOLDEN").is_some();
    let paths = scripts();
    assert!(!paths.is_empty());
    let mut changed = Vec::new();
    for path in paths {
        let script = std::fs::read_to_string(&path).expect("a readable scenario");
        let fresh = replay(&script);
        if fresh == script {
            continue;
        }
        if rewrite {
            std::fs::write(&path, fresh).expect("a writable scenario");
            continue;
        }
        let name = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let differs = script
            .lines()
            .zip(fresh.lines())
            .enumerate()
            .find(|(_, (old, new))| old != new);
        changed.push(match differs {
            Some((at, (old, new))) => format!("{name}:{}\n  - {old}\n  + {new}", at + 1),
            None => format!("{name}: the lengths differ"),
        });
    }
    assert!(
        changed.is_empty(),
        "traces changed (GOLDEN=1 rewrites them):\n{}",
        changed.join("\n")
    );
}
