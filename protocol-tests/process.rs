//! kraftd as a process, seen from outside.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

/// A command that runs `program`, whose log is as nobody asked for it.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env_remove("RUST_LOG")
        .env_remove("KRAFTD_LOG_FORMAT");
    command
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).expect("it runs");
}

/// Where the controller of this configuration listens.
pub(crate) fn address(config: &Path) -> String {
    let text = fs::read_to_string(config).unwrap();
    let lines = &mut text.lines();
    let listener = lines.find_map(|line| line.strip_prefix("listeners=CONTROLLER://"));
    listener.unwrap().to_owned()
}
