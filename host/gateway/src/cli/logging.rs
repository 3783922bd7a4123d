//! Where the host's log goes: standard error, so that standard output is data alone. It is for machines and for whoever searches
//! it, in English; at a terminal somebody reads it, so what needs attention is in the language of the gateway there.

use std::{
    fmt::{self, Debug},
    io::{self, IsTerminal},
};

use pmk_core::Language;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter,
    field::MakeExt,
    filter::filter_fn,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Writer, debug_fn},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

use crate::{messages::terminal, stderr};

/// The variable that chooses what is logged, in the syntax of `tracing`'s `EnvFilter`.
const VARIABLE: &str = "PMK_LOG";

/// Starts logging. `quiet` is for a chat, where only what needs attention may interrupt, as a line of the conversation, and for
/// a command, which tells it as it tells everything else.
pub(super) fn start(quiet: bool, json: bool, language: Language) {
    let ours = if quiet { "" } else { ",pmk_host=info,pmk_policy=info" };
    // An entry of the compile cache that cannot be used is compiled again: nothing for anybody to do.
    let default = format!("warn,wasmtime_internal_cache=error{ours}");
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(default));
    let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Beside).with_ansi(colour && !quiet);
    // A second subscriber in one process only happens in tests, which do not read the log.
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

/// Whatever the operator wants to see: at the level `trace` the WebSocket library writes out the ticket that opens a
/// connection, and every frame, which is what people write. And what reads the keys cannot be written about while it is asked to
/// write.
fn may_be_told(metadata: &Metadata<'_>) -> bool {
    let is_of = |library: &&str| metadata.target().starts_with(library);
    let of_sockets = ["tungstenite", "tokio_tungstenite"].iter().any(&is_of);
    (!of_sockets || *metadata.level() < Level::TRACE) && !is_of(&"rustyline")
}

/// Standard error, or whoever has the terminal: a line is written at once.
struct Beside;

impl io::Write for Beside {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        stderr::say(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What an event says, as far as it is known in this language.
fn fields(language: Language) -> impl for<'a> FormatFields<'a> + 'static {
    let field = move |writer: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
        let value = format!("{value:?}");
        let value = terminal::translated(&value, language);
        match field.name() {
            "message" => write!(writer, "{value}"),
            name => write!(writer, "{name}={value}"),
        }
    };
    debug_fn(field).delimited(" ")
}

/// A line as a command or a chat tells it.
struct Remark(Language);

/// What an event says, and what it says besides.
struct Said {
    language: Language,
    message: String,
    besides: String,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        let value = terminal::translated(&value, self.language);
        match field.name() {
            "message" => self.message = value.into_owned(),
            name => self.besides += &format!(" {name}={value}"),
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
        let mut said = Said { language: self.0, message: String::new(), besides: String::new() };
        event.record(&mut said);
        // A hint has the last word.
        let (line, hint) = said.message.split_at(said.message.find('\n').unwrap_or(said.message.len()));
        writeln!(writer, "{line}{}{hint}", said.besides)
    }
}
