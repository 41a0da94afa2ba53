//! Checks of sockets, files and timers, and advice that stops nothing.

use super::checks::{Review, VOTERS, exposed};
use super::finding::Severity;
use super::listeners::csv_map;
use super::model::{Role, SecurityProtocol};
use super::sense::SHUT;
use super::topic_defaults;
use super::voters::is_host;
use crate::types::quote;

const OVERRIDES: &str = "max.connections.per.ip.overrides";

impl Review<'_> {
    pub(crate) fn sockets(&mut self) {
        let values = self.values;
        let queued = values.number("queued.max.request.bytes");
        let frame = values.number("socket.request.max.bytes");
        if queued > 0 && queued < frame {
            self.error(
                "queued.max.request.bytes",
                &format!("must not be below socket.request.max.bytes, which is {frame}"),
                "raise it, or set it to -1 for no limit",
            );
        }
        match overrides(values.text(OVERRIDES).unwrap_or_default()) {
            Err(rule) => self.error(OVERRIDES, &rule, "write it as host:count,host:count"),
            Ok(hosts) if hosts.is_empty() && values.number("max.connections.per.ip") == 0 => {
                self.error(
                    "max.connections.per.ip",
                    "may be 0 only with max.connections.per.ip.overrides",
                    "set the overrides, or raise the limit",
                );
            }
            Ok(_) => {}
        }
        let idle = values.number("connections.max.idle.ms");
        let delay = values.number("connection.failed.authentication.delay.ms");
        if idle >= 0 && delay >= idle {
            self.error(
                "connection.failed.authentication.delay.ms",
                &format!("{delay} must be below connections.max.idle.ms, which is {idle}"),
                "lower the delay, or raise the idle time",
            );
        }
        for (key, least) in [
            ("socket.send.buffer.bytes", -1),
            ("socket.receive.buffer.bytes", -1),
        ] {
            if values.number(key) < least || values.number(key) == 0 {
                self.error(
                    key,
                    "must be above 0, or -1 for the system's default",
                    "correct it",
                );
            }
        }
    }

    pub(crate) fn logs(&mut self) {
        let values = self.values;
        let roll = topic_defaults::roll_ms(values);
        let jitter = topic_defaults::jitter_ms(values);
        let retention = topic_defaults::retention_ms(values);
        if roll < 1 {
            self.error("log.roll.ms", "must be at least 1", "correct it");
        }
        if jitter < 0 {
            self.error("log.roll.jitter.ms", "must not be negative", "correct it");
        }
        if retention == 0 {
            self.error(
                "log.retention.ms",
                "must be at least 1, or -1 for no limit; log.retention.minutes and \
                 log.retention.hours count as it",
                "correct the one that is set",
            );
        }
        for key in [
            "internal.metadata.log.segment.bytes",
            "internal.metadata.max.batch.size.in.bytes",
        ] {
            if values.number_of(key).is_some_and(|bytes| bytes < 1) {
                self.error(key, "must be at least 1", "correct or remove it");
            }
        }
        self.paths();
        if values.text("metadata.log.dir").is_some_and(str::is_empty) {
            self.error(
                "metadata.log.dir",
                "must not be empty",
                "name a directory or remove it",
            );
        }
    }

    /// No system opens a longer path, and every sentence about the directory would have it whole.
    fn paths(&mut self) {
        const BYTES_MAX: usize = 4095;
        let values = self.values;
        let list = |key| values.list(key).into_iter().flatten().map(String::as_str);
        let metadata = values.text("metadata.log.dir").into_iter();
        let own = metadata.map(|path| ("metadata.log.dir", path));
        let longest = ["log.dirs", "log.dir"]
            .into_iter()
            .flat_map(|key| list(key).map(move |path| (key, path)))
            .chain(own)
            .max_by_key(|(_, path)| path.len());
        if let Some((key, path)) = longest.filter(|(_, path)| path.len() > BYTES_MAX) {
            let bytes = path.len();
            let rule = format!("has a path of {bytes} bytes, and none has more than {BYTES_MAX}");
            self.error(key, &rule, "name a directory that exists");
        }
    }

    /// What Java refuses for the sake of the broker role, whatever the roles. It cannot harm a
    /// controller, and files are shared, so that it stops nothing here.
    pub(crate) fn brokers_own(&mut self) {
        let values = self.values;
        let wait = values.number("replica.fetch.wait.max.ms");
        if wait > values.number("replica.socket.timeout.ms")
            || wait > values.number("replica.lag.time.max.ms")
        {
            self.warn(
                "replica.fetch.wait.max.ms",
                "must not be above replica.socket.timeout.ms or replica.lag.time.max.ms, \
                 Java refuses it",
                "lower it",
            );
        }
        let threads = values.number("log.cleaner.threads");
        let buffer = values.number("log.cleaner.dedupe.buffer.size");
        if threads == 0 || buffer / threads <= 1 << 20 {
            self.warn(
                "log.cleaner.dedupe.buffer.size",
                "must be above 1 MiB for each of log.cleaner.threads, Java refuses it",
                "raise it, or lower the threads",
            );
        }
    }

    pub(crate) fn advice(&mut self) {
        let values = self.values;
        let heartbeat = values.number("broker.heartbeat.interval.ms");
        let session = values.number("broker.session.timeout.ms");
        if heartbeat * 2 > session {
            self.warn(
                "broker.session.timeout.ms",
                &format!(
                    "{session} is less than two broker.heartbeat.interval.ms of {heartbeat}, \
                     one late heartbeat fences a broker"
                ),
                "raise it",
            );
        }
        let voters = self.facts.voters.len();
        if voters > 0 && voters.is_multiple_of(2) {
            let tolerated = (voters - 1) / 2;
            self.warn(
                VOTERS,
                &format!(
                    "{voters} voters tolerate {tolerated} failures, as {} do",
                    voters - 1
                ),
                "use an odd number of voters",
            );
        }
        if !values.is_set("log.dirs") && !values.is_set("log.dir") {
            self.warn(
                "log.dirs",
                "is not set, so that data is in /tmp/kafka-logs, which systems empty",
                "set it to a directory that lasts",
            );
        }
        self.exposed_listener();
        self.unused_security();
        self.listener_prefixes();
    }

    fn exposed_listener(&mut self) {
        if !self.has_role(Role::Controller) {
            return;
        }
        let names = self.names();
        let controllers: Vec<_> = self
            .facts
            .listeners
            .iter()
            .filter(|endpoint| names.contains(&endpoint.name))
            .cloned()
            .collect();
        if let Some(endpoint) = exposed(&controllers) {
            let rule = format!(
                "{} is PLAINTEXT and not on a loopback address, whoever reaches it controls the \
                 cluster",
                quote(&endpoint.name)
            );
            self.warn(
                super::checks::LISTENERS,
                &rule,
                "keep the network of the controllers closed",
            );
        }
    }

    fn unused_security(&mut self) {
        use super::keys::{self, Use};
        let any = |wanted: &[SecurityProtocol]| {
            let mut all = self.facts.listeners.iter();
            all.any(|endpoint| wanted.contains(&endpoint.protocol))
        };
        let tls = any(&[SecurityProtocol::Ssl, SecurityProtocol::SaslSsl]);
        let sasl = any(&[SecurityProtocol::SaslPlaintext, SecurityProtocol::SaslSsl]);
        for key in keys::all().filter(|key| self.values.is_set(key.name)) {
            let what = match key.used {
                Use::Tls if !tls => "TLS",
                Use::Sasl if !sasl => "SASL",
                _ => continue,
            };
            let rule = format!("has no effect, no listener uses {what}");
            self.warn(key.name, &rule, "remove it");
        }
    }

    /// `listener.name.<name>.<key>`: limits of one listener, and security of listeners.
    fn listener_prefixes(&mut self) {
        const FIX: &str = "correct or remove it";
        let mut findings = Vec::new();
        for (key, listener, base) in self.values.prefixed() {
            let known = self
                .facts
                .listeners
                .iter()
                .any(|endpoint| endpoint.name.to_lowercase() == listener);
            let rule = match base {
                "max.connections" | "max.connection.creation.rate" if known => {
                    match self.values.limit(listener, base) {
                        Ok(Some(0)) => {
                            let (rule, fix) = SHUT;
                            let rule = rule.to_owned();
                            findings.push((Severity::Unsupported, key.to_owned(), rule, fix));
                        }
                        Ok(_) => {}
                        Err(rule) => findings.push((Severity::Error, key.to_owned(), rule, FIX)),
                    }
                    continue;
                }
                _ if known => "has no effect on a PLAINTEXT listener of kraftd".to_owned(),
                _ => format!(
                    "there is no listener \"{}\", and names are in small letters",
                    quote(listener)
                ),
            };
            findings.push((Severity::Warning, key.to_owned(), rule, FIX));
        }
        for (severity, key, rule, fix) in findings {
            self.find(severity, &key, &rule, fix);
        }
    }
}

/// The connection limits of single hosts.
pub(crate) fn overrides(text: &str) -> Result<Vec<(String, u32)>, String> {
    csv_map(text)?
        .into_iter()
        .map(|(host, count)| {
            if !is_host(&host) {
                return Err(format!("has \"{}\", which is no host", quote(&host)));
            }
            // Java takes a negative count, which then lets nobody in, as 0 does.
            let limit = count.parse::<i32>().map(|n| u32::try_from(n).unwrap_or(0));
            let no_count = |host: &str| {
                let (host, count) = (quote(host), quote(&count));
                format!("has \"{count}\" for {host}, which is no count")
            };
            limit
                .map_err(|_| no_count(&host))
                .map(|limit| (host, limit))
        })
        .collect()
}
