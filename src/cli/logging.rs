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
        context
            .field_format()
            .format_fields(writer.by_ref(), event)?;
        writeln!(writer, " ({})", room(metadata.target()))
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
    use super::room;

    #[test]
    fn the_room_is_the_first_module_of_this_crate() {
        assert_eq!(room("kraftd::server::listener"), "server");
        assert_eq!(room("kraftd"), "kraftd");
        assert_eq!(room("tokio::net"), "tokio");
    }
}
