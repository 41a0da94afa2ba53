//! The scenarios of Kafka's own raft simulation, by name. Each is a script over the same world that
//! the storms use; the laws hold in them as everywhere.

use crate::world::World;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    ElectsAnInitialLeader,
    ElectsANewLeaderAfterTheLeaderFailed,
    ElectsANewLeaderAfterTheLeaderStopped,
    RecoversAfterAllNodesFailed,
    MakesProgressWithAMajority,
    ElectsANewLeaderAfterTheLeaderWasCutOff,
    LetsObserversJoin,
}

impl Scenario {
    pub(crate) const ALL: &[Self] = &[
        Self::ElectsAnInitialLeader,
        Self::ElectsANewLeaderAfterTheLeaderFailed,
        Self::ElectsANewLeaderAfterTheLeaderStopped,
        Self::RecoversAfterAllNodesFailed,
        Self::MakesProgressWithAMajority,
        Self::ElectsANewLeaderAfterTheLeaderWasCutOff,
        Self::LetsObserversJoin,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ElectsAnInitialLeader => "elects an initial leader",
            Self::ElectsANewLeaderAfterTheLeaderFailed => {
                "elects a new leader after the leader failed"
            }
            Self::ElectsANewLeaderAfterTheLeaderStopped => {
                "elects a new leader after the leader stopped, and again"
            }
            Self::RecoversAfterAllNodesFailed => "recovers after all nodes failed",
            Self::MakesProgressWithAMajority => "makes progress with a majority",
            Self::ElectsANewLeaderAfterTheLeaderWasCutOff => {
                "elects a new leader after the leader was cut off"
            }
            Self::LetsObserversJoin => "lets observers join",
        }
    }

    /// Fewer voters would not survive it.
    pub(crate) fn voters_min(self) -> usize {
        match self {
            Self::ElectsAnInitialLeader
            | Self::RecoversAfterAllNodesFailed
            | Self::LetsObserversJoin => 1,
            Self::ElectsANewLeaderAfterTheLeaderFailed
            | Self::MakesProgressWithAMajority
            | Self::ElectsANewLeaderAfterTheLeaderWasCutOff => 3,
            Self::ElectsANewLeaderAfterTheLeaderStopped => 4,
        }
    }

    /// Runs it; what must come true in time is a law.
    pub(crate) fn run(self, world: &mut World) {
        if self == Self::LetsObserversJoin {
            world.hold_observers();
        }
        world.until_leader("an initial leader", None);
        world.until_progress("with all nodes", 10);
        match self {
            Self::ElectsAnInitialLeader => {}
            Self::ElectsANewLeaderAfterTheLeaderFailed => {
                let leader = world.leader_now();
                world.kill(leader);
                world.until_leader("a leader after the first failed", Some(leader));
                world.until_progress("without the first leader", 10);
            }
            Self::ElectsANewLeaderAfterTheLeaderStopped => {
                let first = world.leader_now();
                world.stop(first);
                world.until_leader("a leader after the first stopped", Some(first));
                world.until_progress("without the first leader", 10);
                world.start_again(first);
                let second = world.leader_now();
                world.stop(second);
                world.until_leader("a leader after its successor stopped", Some(second));
                world.until_progress("without the second leader", 10);
            }
            Self::RecoversAfterAllNodesFailed => {
                world.kill_all();
                world.until_leader("a leader after all came back", None);
                world.until_progress("after all came back", 10);
            }
            Self::MakesProgressWithAMajority => {
                world.keep_a_majority();
                world.until_leader("a leader of the majority", None);
                world.until_progress("with a majority", 50);
            }
            Self::ElectsANewLeaderAfterTheLeaderWasCutOff => {
                let leader = world.leader_now();
                world.isolate(leader);
                world.until_leader("a leader beside the one that is cut off", Some(leader));
                world.until_progress("beside the one that is cut off", 10);
            }
            Self::LetsObserversJoin => {
                world.let_observers_in();
                world.until_progress("with observers", 10);
            }
        }
    }
}
