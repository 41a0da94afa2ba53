//! The process's limit of open files: every connection is one, and so is every file of the log.

use std::io;

use rustix::io::Errno;

/// Descriptors that are kept for the disk: peers that take all the others must not make a write of
/// the log fail, which stops the process.
const RESERVED: u64 = 512;
/// How an operator raises the limit.
const RAISE: &str = "raise that limit (ulimit -n, or LimitNOFILE= of the service)";

/// How many files the process may have open (`RLIMIT_NOFILE`); `None` is without a limit.
#[derive(Clone, Copy, Debug)]
pub struct OpenFiles(pub Option<u64>);

impl OpenFiles {
    /// How many connections there is room for.
    pub(crate) fn connections(self) -> u32 {
        let room = |files: u64| files.saturating_sub(RESERVED).max(files / 2).max(1);
        let room = self.0.map(room);
        room.and_then(|room| u32::try_from(room).ok())
            .unwrap_or(u32::MAX)
    }

    /// Why no more than [`Self::connections`] are open, and what to do.
    pub(crate) fn is_full(self) -> String {
        let files = self.0.unwrap_or(u64::MAX);
        format!("as many as the limit of {files} open files leaves room for: {RAISE}")
    }

    /// What to do about a connection that the system refused.
    pub(crate) fn help(self, error: &io::Error) -> String {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE) => {
                let files = self.0.unwrap_or(u64::MAX);
                format!("; this process may have {files} files open: {RAISE}")
            }
            Some(Errno::NFILE) => {
                "; all processes of this machine have too many open: raise fs.file-max".to_owned()
            }
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_disk() {
        let connections = |files| OpenFiles(files).connections();
        assert_eq!(connections(None), u32::MAX);
        assert_eq!(connections(Some(u64::MAX)), u32::MAX);
        assert_eq!(connections(Some(1_048_576)), 1_048_064);
        assert_eq!(connections(Some(1_024)), 512);
        assert_eq!(connections(Some(256)), 128);
        assert_eq!(connections(Some(0)), 1);
    }

    #[test]
    fn a_connection_that_the_system_refuses_for_its_files_tells_which_limit_to_raise() {
        for (errno, words) in [
            (Errno::MFILE, "may have 64 files open: raise that limit"),
            (Errno::NFILE, "raise fs.file-max"),
            (Errno::CONNABORTED, ""),
        ] {
            let help = OpenFiles(Some(64)).help(&errno.into());
            assert!(help.contains(words), "{errno:?}: {help}");
            assert_eq!(help.is_empty(), words.is_empty(), "{errno:?}");
        }
    }
}
