//! The signals that this process hears.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Heard from before the start on.
pub(super) struct Signals {
    pub(super) stop: StopSignals,
    /// SIGUSR1.
    pub(super) snapshot: Signal,
}

/// SIGINT, SIGTERM and SIGHUP.
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// Not under `nohup`.
    hangup: Option<Signal>,
}

impl Signals {
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// A sentence: the system refuses.
    pub(super) fn listen() -> Result<Self, String> {
        let listen =
            |kind| signal(kind).map_err(|error| format!("signals cannot be received: {error}"));
        let hangup = SignalKind::hangup();
        // Listening would undo what `nohup` did; a JVM leaves it too.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = match is_ignored(&status, hangup) {
            true => None,
            false => Some(listen(hangup)?),
        };
        Ok(Self {
            stop: StopSignals {
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
                hangup,
            },
            snapshot: listen(SignalKind::user_defined1())?,
        })
    }
}

impl StopSignals {
    /// Ends when the process is asked to stop.
    pub(super) async fn asked(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Whether whoever started the process has it ignore a signal: `status` is of proc(5), where
/// `SigIgn` is a mask in base 16 whose lowest bit is signal 1.
fn is_ignored(status: &str, kind: SignalKind) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_of_ignored_signals_is_read_bit_by_bit() {
        let ignored = |mask: &str, kind| is_ignored(&format!("Name:\tkraftd\n{mask}\n"), kind);
        assert!(ignored("SigIgn:\t0000000000001001", SignalKind::hangup()));
        assert!(!ignored("SigIgn:\t0000000000001000", SignalKind::hangup()));
        assert!(ignored(
            "SigIgn:\t0000000000000002",
            SignalKind::interrupt()
        ));
        assert!(!ignored("SigCgt:\t0000000000000001", SignalKind::hangup()));
    }
}
