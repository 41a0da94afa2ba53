//! Log lines as operators of Kafka grep them: `[2026-01-31 12:00:00,123] INFO message (room)`.

use std::fmt;

use jiff::Zoned;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use super::LogArgs;
use crate::runtime::{LogLevels, stderr};
use crate::types::OneLine;
use crate::types::loggers::{Level, Loggers};

/// Starts logging to stderr for the rest of the process. What it gives changes the levels.
///
/// # Errors
/// A sentence about the level, the filter or the format that is not understood, or about a thread
/// that the system does not give.
pub(super) fn start(args: &LogArgs) -> Result<LogLevels, String> {
    let environment = std::env::var("RUST_LOG").ok();
    let loggers = loggers(args.log_level.as_deref(), environment.as_deref())?;
    let format = args
        .log_format
        .clone()
        .or_else(|| std::env::var("KRAFTD_LOG_FORMAT").ok());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| stderr::LogLine)
        .with_ansi(false)
        .log_internal_errors(false);
    let lines = match format.as_deref() {
        None | Some("text") => lines.event_format(KafkaLike).boxed(),
        Some("json") => lines.json().boxed(),
        Some(other) => {
            return Err(format!(
                "the log format {other} is unknown; use text or json"
            ));
        }
    };
    stderr::start().map_err(|error| format!("the log's thread cannot be started: {error}"))?;
    let (filter, handle) = reload::Layer::new(filter(&loggers));
    tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .init();
    let show = move |loggers: &Loggers| {
        if let Err(error) = handle.reload(self::filter(loggers)) {
            tracing::error!("the log levels stay as they are: {error}");
        }
    };
    Ok(LogLevels::new(loggers, Box::new(show)))
}

/// The levels that the command line, or else the environment, asks for.
fn loggers(level: Option<&str>, environment: Option<&str>) -> Result<Loggers, String> {
    let (level, text) = match (level, environment) {
        (Some(level), _) => {
            return match level.parse::<LevelFilter>() {
                Ok(level) => Ok(Loggers::new(from_filter(level), [])),
                Err(_) => Err(format!(
                    "--log-level {level} is no level; use off, error, warn, info, debug or trace"
                )),
            };
        }
        (None, Some(text)) => (Level::Error, text),
        (None, None) => return Ok(Loggers::default()),
    };
    let directives: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|directive| !directive.is_empty())
        .collect();
    if directives.is_empty() {
        return Ok(Loggers::new(level, []));
    }
    if directives.iter().any(|directive| directive.contains('[')) {
        return Err(format!(
            "RUST_LOG={text} is no filter: kraftd has no spans and filters no fields; use a level \
             and TARGET=LEVEL, with commas between them"
        ));
    }
    let targets: Targets = directives
        .join(",")
        .parse()
        .map_err(|error| format!("RUST_LOG={text} is no filter: {error}"))?;
    let root = targets.default_level().unwrap_or(LevelFilter::OFF);
    let named = targets.iter();
    let named = named.map(|(target, level)| (target.to_owned(), from_filter(level)));
    Ok(Loggers::new(from_filter(root), named))
}

fn from_filter(level: LevelFilter) -> Level {
    match level.into_level() {
        None => Level::Off,
        Some(tracing::Level::ERROR) => Level::Error,
        Some(tracing::Level::WARN) => Level::Warn,
        Some(tracing::Level::INFO) => Level::Info,
        Some(tracing::Level::DEBUG) => Level::Debug,
        Some(tracing::Level::TRACE) => Level::Trace,
    }
}

const fn to_filter(level: Level) -> LevelFilter {
    match level {
        Level::Off | Level::Fatal => LevelFilter::OFF,
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}

fn filter(loggers: &Loggers) -> Targets {
    let targets = loggers.targets();
    Targets::new()
        .with_default(to_filter(loggers.root()))
        .with_targets(targets.map(|(target, level)| (target, to_filter(level))))
}

struct KafkaLike;

impl<S, N> FormatEvent<S, N> for KafkaLike
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let now = Zoned::now();
        let (time, millis) = (now.strftime("%Y-%m-%d %H:%M:%S"), now.millisecond());
        let metadata = event.metadata();
        write!(writer, "[{time},{millis:03}] {} ", metadata.level())?;
        // One event is one line, whatever names from outside are in it.
        let mut text = String::new();
        let fields = context.field_format();
        fields.format_fields(Writer::new(&mut text), event)?;
        writeln!(writer, "{} ({})", OneLine(&text), room(metadata.target()))
    }
}

/// `kraftd::server::listener` is the room `server`.
fn room(target: &str) -> &str {
    let mut parts = target.split("::");
    match (parts.next(), parts.next()) {
        (Some("kraftd"), Some(room)) => room,
        (first, _) => first.unwrap_or(target),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing::Level as At;

    use super::*;

    #[test]
    fn what_was_asked_for_at_the_start_are_levels_of_loggers() {
        let told = |level, environment| {
            let levels = loggers(level, environment).unwrap().levels();
            [
                "root",
                "kraftd.raft",
                "org.apache.kafka.raft",
                "kafka.authorizer.logger",
            ]
            .map(|name| levels[name].name())
            .join(" ")
        };
        assert_eq!(told(None, None), "INFO INFO INFO INFO");
        assert_eq!(told(Some("warn"), Some("debug")), "WARN WARN WARN WARN");
        assert_eq!(told(None, Some("")), "ERROR ERROR ERROR ERROR");
        assert_eq!(told(None, Some("kraftd=debug")), "OFF DEBUG DEBUG OFF");
        let several = "warn, kraftd::raft=trace,kafka.authorizer.logger=off";
        assert_eq!(told(None, Some(several)), "WARN TRACE TRACE OFF");
        for (level, environment) in [
            (Some("loud"), None),
            (None, Some("kraftd=loud")),
            (None, Some("a=b=c")),
            (None, Some("kraftd[span]=info")),
        ] {
            assert!(loggers(level, environment).is_err(), "{environment:?}");
        }
    }

    #[test]
    fn the_filter_follows_the_loggers() {
        let mut levels = loggers(None, Some("info,kraftd::raft::dial=trace")).unwrap();
        let is_on =
            |levels: &Loggers, target: &str, level: At| filter(levels).would_enable(target, &level);
        assert!(is_on(&levels, "kraftd::raft::dial", At::TRACE));
        assert!(!is_on(&levels, "kraftd::raft::fetch", At::DEBUG));
        for (logger, level) in [
            ("org.apache.kafka.raft", Level::Debug),
            ("root", Level::Fatal),
        ] {
            let logger = logger.to_owned();
            levels.change(&crate::types::loggers::Change {
                logger,
                level: Some(level),
            });
        }
        assert!(is_on(&levels, "kraftd::raft::fetch", At::DEBUG));
        assert!(is_on(&levels, "kraftd::raft::dial", At::TRACE));
        assert!(!is_on(&levels, "kraftd::server", At::ERROR));
        assert!(!is_on(&levels, "tokio::net", At::ERROR));
    }

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_event_is_one_line_whatever_names_from_outside_are_in_it() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .event_format(KafkaLike)
            .finish();
        let name = "x\r\n[2026-01-31 12:00:00,123] INFO forged\u{2028}\u{1b}[2K";
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("topic {name} is refused");
            tracing::warn!(name, other = ?name, "a voter is not added");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.split_terminator('\n').collect();
        assert_eq!(lines.len(), 2, "{text:?}");
        assert!(lines[0].contains("topic x\\r\\n[2026-01-31 12:00:00,123] INFO forged"));
        for line in lines {
            assert!(line.contains("INFO forged\\u{2028}\\"), "{line:?}");
            let breaks = |letter: char| letter.is_control() || letter == '\u{2028}';
            assert!(!line.contains(breaks), "{line:?}");
        }
    }

    #[test]
    fn the_room_is_the_first_module_of_this_crate() {
        assert_eq!(room("kraftd::server::listener"), "server");
        assert_eq!(room("kraftd"), "kraftd");
        assert_eq!(room("tokio::net"), "tokio");
    }
}
