//! What has the name of a file of the log and is none: a start that opened it would wait for a
//! writer that never comes, or read a device without end.

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::storage::testing::fixture;

/// What to put there, and what it is called.
type Make = (&'static str, fn(&Path));

const NO_FILES: [Make; 4] = [
    ("is a pipe", |path| {
        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    }),
    ("is a device", |path| {
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    }),
    ("is a directory", |path| fs::create_dir(path).unwrap()),
    ("is a link to nothing; put /nowhere back", |path| {
        std::os::unix::fs::symlink("/nowhere", path).unwrap();
    }),
];

#[test]
fn what_is_no_file_of_the_log_is_refused_and_not_waited_for() {
    for name in [
        "00000000000000000000.log",
        "00000000000000009999.log",
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "00000000000000009999.index",
        "00000000000000000000.snapshot",
        "00000000000000000000-0000000000.checkpoint",
        "00000000000000000261-0000000002.checkpoint",
    ] {
        for (words, make) in NO_FILES {
            let root = fixture("4.4.0/lived/dynamic-stopped");
            let options = options(root.path());
            let path = options.dir.join(name);
            drop(fs::remove_file(&path));
            make(&path);
            let fault = examine(&options).expect_err(name);
            assert_eq!(fault.kind, FaultKind::Damaged, "{fault}");
            let expected = format!("{name} {words}");
            assert!(fault.sentence.contains(&expected), "{expected}: {fault}");
        }
    }
}
