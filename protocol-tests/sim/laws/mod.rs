//! What must hold after every event, one file a law. A broken law ends the run with a panic that
//! names it.

pub(crate) mod acknowledged_never_lost;
pub(crate) mod answered_once;
pub(crate) mod commit_monotonic;
pub(crate) mod committed_never_lost;
pub(crate) mod committed_on_a_majority;
pub(crate) mod epoch_stable;
pub(crate) mod images_equal;
pub(crate) mod liveness;
pub(crate) mod log_matching;
pub(crate) mod one_leader_an_epoch;
pub(crate) mod replies_after_commit;
pub(crate) mod votes_durable;

/// Ends the run.
#[macro_export]
macro_rules! law {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            panic!("law broken: {}: {}", module_path!(), format_args!($($text)+));
        }
    };
}

/// All laws with what they remember.
#[derive(Debug, Default)]
pub(crate) struct Laws {
    pub acknowledged: acknowledged_never_lost::Law,
    pub answered: answered_once::Law,
    pub commit: commit_monotonic::Law,
    pub committed: committed_never_lost::Law,
    pub images: images_equal::Law,
    pub leaders: one_leader_an_epoch::Law,
    pub logs: log_matching::Law,
    pub replies: replies_after_commit::Law,
    pub stable: epoch_stable::Law,
    pub votes: votes_durable::Law,
}
