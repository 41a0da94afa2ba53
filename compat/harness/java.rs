//! The jars of real releases, brought by Maven once, and commands that run their main classes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::process::{Ended, run};

fn compat() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compat")
}

/// Where the jars of a release are, after Maven brought them.
pub(crate) fn jars(release: &str) -> PathBuf {
    static BROUGHT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut brought = BROUGHT
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if brought.insert(release.to_owned()) {
        script("jars.sh", &[release]);
    }
    compat().join("java/jars").join(release)
}

/// Our own helper classes, compiled.
pub(crate) fn classes() -> PathBuf {
    static COMPILED: Mutex<bool> = Mutex::new(false);
    let mut compiled = COMPILED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if !*compiled {
        script("classes.sh", &[]);
        *compiled = true;
    }
    compat().join("java/target/classes")
}

fn script(name: &str, args: &[&str]) {
    let ended = run(Command::new(compat().join(name)).args(args));
    assert_eq!(
        ended.code,
        Some(0),
        "compat/{name} failed:\n{}{}",
        ended.out,
        ended.err
    );
}

/// A JVM of a release.
pub(crate) struct Java<'a> {
    pub(crate) release: &'a str,
    pub(crate) heap_mb: u32,
    /// Which logging configuration: `server` or `tools`.
    pub(crate) logging: &'a str,
}

impl Java<'_> {
    pub(crate) fn command(&self, main: &str, args: &[&str]) -> Command {
        let conf = compat().join("java/conf");
        let log4j2 = conf.join(format!("log4j2-{}.properties", self.logging));
        let log4j = conf.join(format!("log4j-{}.properties", self.logging));
        let path = format!("{}:{}/*", classes().display(), jars(self.release).display());
        let mut command = Command::new("java");
        command
            .arg(format!("-Xmx{}m", self.heap_mb))
            .args(["-Xss512k", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
            .arg(format!("-Dlog4j2.configurationFile={}", log4j2.display()))
            .arg(format!("-Dlog4j.configuration=file:{}", log4j.display()))
            .args(["-cp", &path, main])
            .args(args)
            .env("COLUMNS", "80");
        command
    }
}

/// Runs a command line tool of a release in a JVM of its own.
pub(crate) fn run_java(release: &str, main: &str, args: &[&str]) -> Ended {
    run(&mut Java {
        release,
        heap_mb: 128,
        logging: "tools",
    }
    .command(main, args))
}
