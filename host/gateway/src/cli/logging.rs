//! The host's log goes to standard error, so that standard output contains only data. The log is English, for machines
//! and for searching; at a terminal, warnings and errors are shown in the gateway's language.

use std::{
    fmt::{self, Debug},
    io::{self, IsTerminal},
};

use pmk_core::{
    Language,
    text::{printable, printable_json},
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter,
    field::MakeExt,
    filter::{LevelFilter, filter_fn},
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Writer, debug_fn},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

use super::arguments::variable;
use crate::{messages::terminal, stderr};

/// The variable that filters the log, in the syntax of `tracing`'s `EnvFilter`.
const VARIABLE: &str = "PMK_LOG";

/// Starts logging. `quiet` is for a chat, where only warnings and errors appear, as lines of the conversation, and for
/// commands, which format them like their other output.
pub(super) fn start(quiet: bool, json: bool, language: Language) {
    let ours = if quiet { "" } else { ",pmk_host=info,pmk_policy=info" };
    // An unusable entry of the compile cache is compiled again: no action is needed.
    let default = format!("warn,wasmtime_internal_cache=error{ours}");
    let asked = variable(VARIABLE);
    let usable = asked.as_deref().filter(|asked| is_meant(asked)).and_then(|asked| EnvFilter::try_new(asked).ok());
    let is_ignored = asked.is_some() && usable.is_none();
    let filter = usable.unwrap_or_else(|| EnvFilter::new(default));
    begin(filter, quiet, json, language);
    if let Some(asked) = asked.filter(|_| is_ignored) {
        let hint =
            "use a level, such as `debug`, or a level for a part, such as `pmk_host=debug`; put commas between several";
        tracing::warn!(hint, "`{VARIABLE}` is ignored: `{asked}` does not say what to log");
    }
}

/// Starts logging for a command, which tells its problems itself, except for an upgrade of the store: whichever command
/// opens it first makes that.
pub(super) fn start_for_command(json: bool, language: Language) {
    begin(EnvFilter::new("off,pmk_host::store::upgrade=warn"), true, json, language);
}

fn begin(filter: EnvFilter, quiet: bool, json: bool, language: Language) {
    let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Beside { is_json: json })
        .with_ansi(colour && !quiet);
    // A second subscriber in one process only occurs in tests, which do not read the log.
    let _ = if json {
        log.json().finish().with(filter_fn(may_be_told)).try_init()
    } else if quiet {
        let log = log.event_format(Remark(language));
        log.finish().with(filter_fn(may_be_told)).try_init()
    } else if io::stderr().is_terminal() {
        let log = log.with_target(false).fmt_fields(fields(language));
        log.finish().with(filter_fn(may_be_told)).try_init()
    } else {
        log.with_target(false).finish().with(filter_fn(may_be_told)).try_init()
    };
}

/// Whether a filter is not a mistyped level: for `EnvFilter`, any other word is the name of a part, which alone is
/// logged then.
fn is_meant(filter: &str) -> bool {
    let is_word = !filter.contains(['=', ',', '[', ':']);
    !is_word || filter.trim().parse::<LevelFilter>().is_ok() || filter.trim().starts_with("pmk_")
}

/// Excludes events regardless of the filter: at the level `trace` the WebSocket library logs the ticket that opens a
/// connection, and every frame, which contains what people write. And the line editor must not log, since logging while
/// it holds the terminal would write to the line editor itself.
fn may_be_told(metadata: &Metadata<'_>) -> bool {
    let is_of = |library: &&str| metadata.target().starts_with(library);
    let of_sockets = ["tungstenite", "tokio_tungstenite"].iter().any(&is_of);
    (!of_sockets || *metadata.level() < Level::TRACE) && !is_of(&"rustyline")
}

/// Writes each line at once to standard error, or to whatever has taken the terminal.
struct Beside {
    /// The lines are JSON, whose writer escapes only some of what controls a terminal.
    is_json: bool,
}

impl io::Write for Beside {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let shown = String::from_utf8_lossy(line);
        if self.is_json {
            stderr::say(&printable_json(&shown));
        } else {
            stderr::say(&shown);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Formats the fields of an event, translated as far as they are known in this language. They may contain what the model
/// or strangers wrote, which must not control the terminal.
fn fields(language: Language) -> impl for<'a> FormatFields<'a> + 'static {
    let field = move |writer: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
        let value = format!("{value:?}");
        let value = printable(&value);
        let value = terminal::translated(&value, language);
        match field.name() {
            "message" => write!(writer, "{value}"),
            name => write!(writer, "{name}={value}"),
        }
    };
    debug_fn(field).delimited(" ")
}

/// Formats an event as a line of a command or a chat.
struct Remark(Language);

/// The message of an event, and its other fields.
struct Said {
    language: Language,
    /// In English.
    message: String,
    hint: String,
    besides: String,
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "hint" => self.hint = printable(value).into_owned(),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = printable(&format!("{value:?}")).into_owned();
        match field.name() {
            "message" => self.message = value,
            name => self.besides += &format!(" {name}={}", terminal::translated(&value, self.language)),
        }
    }
}

impl<S, N> FormatEvent<S, N> for Remark
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writer.write_str(match *event.metadata().level() {
            Level::ERROR => self.0.pick("error: ", "錯誤："),
            Level::WARN => self.0.pick("warning: ", "警告："),
            _ => "",
        })?;
        let mut said = Said { language: self.0, message: String::new(), hint: String::new(), besides: String::new() };
        event.record(&mut said);
        let Said { message, hint, besides, .. } = &said;
        let message = terminal::translated(message, self.0);
        // The error in it may have a hint, too.
        let (line, below) = message.split_at(message.find('\n').unwrap_or(message.len()));
        writeln!(writer, "{line}{besides}{below}")?;
        match hint.as_str() {
            "" => Ok(()),
            hint => writeln!(writer, "  {}", terminal::translated(&format!("hint: {hint}"), self.0)),
        }
    }
}
