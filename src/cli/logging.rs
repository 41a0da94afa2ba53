//! Log lines as operators of Kafka grep them: `[2026-01-31 12:00:00,123] INFO message (room)`.

use std::fmt;

use jiff::Zoned;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::LogArgs;
use crate::types::OneLine;

/// Starts logging to stderr for the rest of the process.
///
/// # Errors
/// A sentence about the level, the filter or the format that is not understood.
pub(super) fn start(args: &LogArgs) -> Result<(), String> {
    let filter = match (&args.log_level, std::env::var("RUST_LOG")) {
        (Some(level), _) => match level.parse::<LevelFilter>() {
            Ok(level) => EnvFilter::new(level.to_string()),
            Err(_) => {
                return Err(format!(
                    "--log-level {level} is no level; use off, error, warn, info, debug or trace"
                ));
            }
        },
        (None, Ok(text)) => EnvFilter::try_new(&text)
            .map_err(|error| format!("RUST_LOG={text} is no filter: {error}"))?,
        (None, Err(_)) => EnvFilter::new("info"),
    };
    let format = args
        .log_format
        .clone()
        .or_else(|| std::env::var("KRAFTD_LOG_FORMAT").ok());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // What cannot be logged is lost: a full disk under the log, or a reader that is gone, must
        // not end a controller (the other way is to panic).
        .log_internal_errors(false);
    match format.as_deref() {
        None | Some("text") => builder.event_format(KafkaLike).init(),
        Some("json") => builder.json().init(),
        Some(other) => {
            return Err(format!(
                "the log format {other} is unknown; use text or json"
            ));
        }
    }
    Ok(())
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

    use super::{KafkaLike, room};

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
