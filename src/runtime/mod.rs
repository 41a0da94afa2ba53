//! Threads, channels, clock, signals and shutdown order: what ties the rooms together.
//!
//! One core thread runs the node, two disk threads belong to `storage`, two tokio workers own the
//! sockets, one thread writes to stderr. Start: signals, directories, listeners, snapshot, core,
//! then the listeners serve. Stop: the node gives up leadership and the disk is closed, then the
//! listeners; before the core runs, the process ends at once.

mod clock;
mod core;
mod leaderless;
mod parts;
mod peers;
mod place;
mod signals;
mod snapshot;
pub mod stderr;
mod thread;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tokio::signal::unix::Signal;

use self::clock::Clock;
use self::core::{Core, CoreClient, End, Message};
use self::leaderless::Watch;
use self::signals::Signals;
use self::snapshot::Loader;
use self::thread::CoreThread;
use crate::config::Config;
use crate::controller::Settings;
use crate::image::Image;
use crate::node::{Event, Node};
use crate::server::{self, Listening, OpenFiles};

pub use crate::server::LogLevels;
use crate::storage::RESTORE;
use crate::storage::directory::{self, DirectoryOptions, Opened, PARTITION_DIR};
use crate::types::Offset;

/// How long answers under way may take to leave when the process stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// How long the node may take to end after it was told to stop: a leader waits 5 s for the next
/// one, and then the disk ends its writes. A process that is cut off loses nothing.
const END_PATIENCE: Duration = Duration::from_secs(30);

/// Runs the controller until it is told to stop. `accept_lost_vote` starts it although its
/// `quorum-state` is gone.
///
/// # Errors
/// One sentence: why it cannot start, or why it had to stop.
pub fn run(
    config: &Config,
    file: &Path,
    accept_lost_vote: bool,
    levels: LogLevels,
) -> Result<(), String> {
    let clock = Clock::start();
    let files = raise_file_limit();
    let (sender, messages) = channel();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("the network threads cannot be started: {error}"))?;
    // Before anything that takes a moment: unheard, a signal would end the process.
    let signals = {
        let _context = runtime.enter();
        Signals::listen()?
    };
    let (thread, seat) = thread::seat();
    let start = Start {
        config,
        files,
        directories: directories(config, file, accept_lost_vote),
        channel: (sender, messages),
        thread,
        clock,
    };
    let serve = || runtime.block_on(serve(start, signals, levels));
    let ended = std::thread::scope(|scope| {
        let serving = std::thread::Builder::new()
            .name("kraftd-serve".to_owned())
            .spawn_scoped(scope, serve)
            .map_err(|error| format!("the serving thread cannot be started: {error}"))?;
        seat.run();
        let ended = serving.join();
        ended.unwrap_or_else(|_| Err("stopped: a thread panicked, which is a bug".to_owned()))
    });
    // A name that is being looked up where no server of names answers is not waited for.
    runtime.shutdown_background();
    ended
}

fn directories(config: &Config, file: &Path, accept_lost_vote: bool) -> DirectoryOptions {
    DirectoryOptions {
        node_id: config.node_id,
        log_dirs: config.log_dirs.clone(),
        metadata_log_dir: config.metadata_log_dir.clone(),
        config_file: Some(file.to_path_buf()),
        segment_bytes: u64::from(config.metadata_log.segment_bytes),
        segment_ms: config.metadata_log.segment_ms,
        snapshot_delete_delay_ms: u64::try_from(config.metadata_log.delete_delay_ms).unwrap_or(0),
        accept_lost_vote,
    }
}

/// What a start begins with.
struct Start<'a> {
    config: &'a Config,
    files: OpenFiles,
    directories: DirectoryOptions,
    channel: (Sender<Message>, Receiver<Message>),
    thread: CoreThread,
    clock: Clock,
}

/// A node that can begin, and the listeners that wait for it.
struct Ready {
    core: Core,
    client: CoreClient,
    settings: Arc<Settings>,
    listening: Listening,
}

impl Start<'_> {
    /// Opens the directories and the listeners and loads the image.
    async fn load(self) -> Result<(Ready, Sender<Message>, CoreThread), String> {
        let (config, thread, clock) = (self.config, self.thread, self.clock);
        let (sender, messages) = self.channel;
        let opened = open(self.directories, &sender, &thread).await?;
        let listening = server::bind(config.controller_listeners(), &config.sockets, self.files)
            .await
            .map_err(|error| error.to_string())?;
        let addresses = ports(&listening);
        let image = newest_image(config, &opened, &thread).await?;
        let built = parts::build(config, &opened, image, &addresses, clock)?;
        parts::log_start(config, &opened, &built);
        let settings = Arc::new(built.settings.clone());
        let requests_max = config.sockets.queued_requests_max as usize;
        let client = CoreClient::new(sender.clone(), requests_max, clock);
        let peers = peers::connect(config, &addresses, sender.clone());
        let core = Core {
            node: Node::new(built),
            messages,
            published: Arc::clone(client.cell()),
            clock,
            disk: opened.disk,
            loader: Loader {
                dir: config.metadata_log_dir.join(PARTITION_DIR),
                core: sender.clone(),
            },
            peers,
            watch: Watch::new(config.node_id),
            waiting: HashMap::new(),
        };
        let ready = Ready {
            core,
            client,
            settings,
            listening,
        };
        Ok((ready, sender, thread))
    }
}

/// Opens the directories on the thread that is to run the core.
async fn open(
    options: DirectoryOptions,
    sender: &Sender<Message>,
    thread: &CoreThread,
) -> Result<Opened, String> {
    tracing::info!("opening {}", options.metadata_log_dir.display());
    let completions = sender.clone();
    let tell = move |completion| {
        // The core may have ended; nobody waits for the disk then.
        let _ = completions.send(Message::Event(Event::Disk(completion)));
    };
    let opened = thread.run(move || directory::open(&options, tell));
    let opened = opened.await;
    let opened = opened.map_err(|_| "the directories' opening panicked, which is a bug")?;
    opened.map_err(|fault| fault.sentence)
}

async fn serve(start: Start<'_>, signals: Signals, levels: LogLevels) -> Result<(), String> {
    let Signals { mut stop, snapshot } = signals;
    let config = start.config;
    let partition = config.metadata_log_dir.join(PARTITION_DIR);
    let Some(loaded) = unless(stop.asked(), start.load()).await else {
        leave_a_start()
    };
    let (ready, sender, thread) = loaded?;
    tokio::spawn(pass_on_snapshot_signal(snapshot, sender.clone()));
    let core = ready.core;
    let mut ended = thread.run(move || core.run());
    let client = Arc::new(ready.client);
    let mut server = ready.listening.serve(client, ready.settings, levels);
    tracing::info!("kraftd started");
    let end = tokio::select! {
        end = &mut ended => end,
        () = stop.asked() => {
            tracing::info!("stopping as asked");
            // The core may just have ended by itself; `ended` tells why.
            let _ = sender.send(Message::Event(Event::Shutdown));
            in_time(ended, END_PATIENCE).await.unwrap_or_else(|| cut_off())
        }
        () = server.listener_ended() => {
            // A controller that nobody can reach must not look alive.
            let _ = sender.send(Message::Event(Event::Shutdown));
            let _ = in_time(ended, END_PATIENCE).await.unwrap_or_else(|| cut_off());
            return Err("stopped: a listener ended, which is a bug".to_owned());
        }
    };
    server.stop(STOP_PATIENCE).await;
    match end {
        Ok(End::Stopped) => {
            tracing::info!("kraftd stopped");
            Ok(())
        }
        Ok(End::Halted { reason, record }) => {
            let place = record.and_then(|offset| place::of(&partition, offset));
            let place = place.map_or_else(String::new, |place| format!(" ({place})"));
            let cure = record.map_or_else(String::new, |_| unreadable(config));
            Err(format!("stopped to do no harm: {reason}{place}{cure}"))
        }
        Err(_) => Err("stopped: the core thread panicked, which is a bug".to_owned()),
    }
}

/// What helps when a committed record cannot be replayed.
fn unreadable(config: &Config) -> String {
    format!(
        ". If a newer release wrote it, start that one; else the log in {} is damaged or of \
         another cluster. {RESTORE}",
        config.metadata_log_dir.display()
    )
}

/// The image of the newest snapshot and its end; without a snapshot, the empty one and 0.
///
/// # Errors
/// One sentence: the snapshot holds something that cannot be replayed.
async fn newest_image(
    config: &Config,
    opened: &Opened,
    thread: &CoreThread,
) -> Result<(Image, Offset), String> {
    let newest = opened.recovered.snapshots.last().copied();
    let dir = config.metadata_log_dir.join(PARTITION_DIR);
    let loaded = thread.run(move || match newest {
        Some(id) => snapshot::load(&dir, id).map(|image| (image, id.offset)),
        None => Ok((Image::empty(), Offset::ZERO)),
    });
    let loaded = loaded.await;
    loaded.map_err(|_| "a snapshot's load ended by a panic, which is a bug")?
}

/// What `work` brings, or nothing when `stop` comes first: then nobody waits for it any more.
async fn unless<T>(stop: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stop => None,
        done = work => Some(done),
    }
}

/// Ends the process in the middle of its start, as asked. The thread that reads the directories is
/// not waited for: reading may take minutes, and what a start writes is whole after a crash.
fn leave_a_start() -> ! {
    tracing::info!("stopping as asked, before the start was done");
    stderr::exit(0)
}

/// What `ended` brings, or nothing when it takes longer than `patience`.
async fn in_time<T>(ended: impl Future<Output = T>, patience: Duration) -> Option<T> {
    tokio::time::timeout(patience, ended).await.ok()
}

/// Ends the process without its threads: one of them hangs, in a disk that does not answer or by a
/// bug, and whoever stops a node must not wait for that without a bound.
fn cut_off() -> ! {
    tracing::error!(
        "stopped after {} s without the end of what was under way, as by a crash: look at the \
         disk; the next start goes on from what is on it",
        END_PATIENCE.as_secs()
    );
    stderr::exit(1)
}

/// Asks the core for a snapshot at every signal, until the core has ended.
async fn pass_on_snapshot_signal(mut asked: Signal, core: Sender<Message>) {
    while asked.recv().await.is_some() {
        tracing::info!("SIGUSR1: a snapshot is asked for");
        if core.send(Message::Event(Event::SnapshotAsked)).is_err() {
            return;
        }
    }
}

/// The ports that the listeners are bound to, by listener name.
fn ports(listening: &Listening) -> HashMap<String, u16> {
    let bound = listening.addresses();
    bound
        .map(|(name, address)| (name.to_owned(), address.port()))
        .collect()
}

/// Takes as many file descriptors as the system allows.
fn raise_file_limit() -> OpenFiles {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let before = limit.current;
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!("the limit of open files cannot be raised: {error}");
            limit.current = before;
        }
    }
    OpenFiles(limit.current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_node_that_does_not_end_is_not_waited_for_without_a_bound() {
        let patience = Duration::from_millis(20);
        assert_eq!(in_time(std::future::ready(1), patience).await, Some(1));
        let hangs = std::future::pending::<u8>();
        assert_eq!(in_time(hangs, patience).await, None);
    }

    #[tokio::test]
    async fn a_stop_that_is_asked_for_during_a_load_ends_it() {
        let never = std::future::pending::<()>;
        let now = std::future::ready::<()>;
        assert_eq!(unless(never(), std::future::ready(1)).await, Some(1));
        assert_eq!(unless(now(()), std::future::pending::<u8>()).await, None);
        assert_eq!(unless(now(()), std::future::ready(1)).await, None);
    }
}
