//! The levels of this process's loggers, and how requests change them. They are in memory only: a
//! restart begins with those of the command line and the environment again.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use kafka_protocol::messages::IncrementalAlterConfigsRequest;

use crate::controller::configs::loggers::{self, Altered};
use crate::types::loggers::{Change, Loggers};
use crate::types::{ApiError, NodeId};

/// What makes a new set of levels hold for all that is logged from then on.
type Show = Box<dyn Fn(&Loggers) + Send + Sync>;

/// The loggers of this process.
pub struct LogLevels {
    now: Mutex<Loggers>,
    show: Show,
}

impl fmt::Debug for LogLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.now().fmt(f)
    }
}

impl LogLevels {
    /// `now` holds already; `show` is called with each later set, by one thread at a time.
    #[must_use]
    pub fn new(now: Loggers, show: Show) -> Self {
        let now = Mutex::new(now);
        Self { now, show }
    }

    /// The levels that hold.
    #[must_use]
    pub fn now(&self) -> Loggers {
        self.lock().clone()
    }

    /// Nothing that could panic is done while it is held, so what a panic left is whole.
    fn lock(&self) -> MutexGuard<'_, Loggers> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the loggers out of a request and changes those that it may change. The answers are
    /// for the end of the request's answer.
    ///
    /// # Errors
    /// See [`loggers::take`]; nothing is changed then.
    pub(super) fn take(
        &self,
        own: NodeId,
        request: &mut IncrementalAlterConfigsRequest,
        allowed: impl Fn() -> bool,
    ) -> Result<Altered, ApiError> {
        let altered = loggers::take(&self.now(), own, request, allowed)?;
        self.change(&altered.changes);
        Ok(altered)
    }

    fn change(&self, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        // The last for each logger: a request that names one ten thousand times logs one line.
        let last: IndexMap<&str, &Change> = changes
            .iter()
            .map(|change| (change.logger.as_str(), change))
            .collect();
        // Before they hold: who reads the log is told why less follows.
        for change in last.values() {
            match change.level {
                Some(level) => {
                    tracing::warn!("the log level of {} is {} now", change.logger, level.name());
                }
                None => tracing::warn!("the log level of {} is taken away", change.logger),
            }
        }
        let mut now = self.lock();
        for change in last.values() {
            now.change(change);
        }
        (self.show)(&now);
    }
}
