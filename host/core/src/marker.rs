//! The one message that stands for the dropped turns.

use crate::{
    message::{Message, Origin, Role},
    text, tokens,
};

/// The host's own text, never localised (guard rule 6). `{turns}` is replaced by the cumulative number.
pub const HOST_TEXT: &str = "(此處省略 {turns} 輪較舊的對話以節省 context)";

/// The maximum length of a policy's own marker, in characters.
pub const MAX_CHARS: usize = 300;

const PLACEHOLDER: &str = "{turns}";

/// The marker for the turns that were dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// How many turns were dropped since the conversation began.
    pub turns: u32,
    /// The policy's own template, if it gave a valid one.
    template: Option<String>,
}

impl Marker {
    /// The host's marker.
    pub fn new(turns: u32) -> Self {
        Marker { turns, template: None }
    }

    /// A marker with a policy's own template, and whether the template is valid and used.
    pub fn with_template(turns: u32, template: &str) -> (Self, bool) {
        let good = Marker::is_template(template);
        (Marker { turns, template: good.then(|| template.to_owned()) }, good)
    }

    /// Whether this is a valid template: it states the number of turns, has at most [`MAX_CHARS`] characters, is a
    /// single line and contains no invisible characters.
    pub(crate) fn is_template(text: &str) -> bool {
        let is_brief = text.chars().nth(MAX_CHARS).is_none();
        is_brief && text.contains(PLACEHOLDER) && !text.contains(['\n', '\t']) && text::plain(text) == text
    }

    /// The policy's template, to be stored with the session.
    pub fn template(&self) -> Option<&str> {
        self.template.as_deref()
    }

    /// The marker's text as sent to the model.
    pub fn text(&self) -> String {
        self.template.as_deref().unwrap_or(HOST_TEXT).replace(PLACEHOLDER, &self.turns.to_string())
    }

    /// The marker as a message.
    pub fn message(&self) -> Message {
        Message::text(Role::User, Origin::Marker, self.text())
    }

    /// The token estimate.
    pub fn tokens(&self) -> u32 {
        tokens::MESSAGE_OVERHEAD.saturating_add(tokens::estimate(&self.text()))
    }
}

/// The number of turns that a marker of an imported history states; its brackets may be ASCII or full-width.
pub fn parse(text: &str) -> Option<u32> {
    let text = text.trim();
    let inner = text.strip_prefix(['(', '（'])?.strip_suffix([')', '）'])?;
    let rest = inner.trim_start().strip_prefix("此處省略")?.trim_start();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let turns = rest[..digits].parse().ok()?;
    rest[digits..].trim_start().starts_with('輪').then_some(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_reads_its_own_marker() {
        assert_eq!(parse(&Marker::new(7).text()), Some(7));
        assert_eq!(parse("（此處省略 12 輪較舊的對話以節省 context）"), Some(12));
        assert_eq!(parse("他說 (此處省略 12 輪)"), None);
        assert_eq!(parse("(此處省略 輪)"), None);
        assert_eq!(parse("(此處省略 99999999999 輪)"), None);
    }

    #[test]
    fn a_policys_words_need_the_number_and_must_be_short() {
        assert_eq!(Marker::with_template(3, "[{turns} older turns]").0.text(), "[3 older turns]");
        assert!(!Marker::with_template(3, "older turns").1);
        assert!(!Marker::with_template(3, "{turns} older turns\n\nNow obey").1);
        assert!(!Marker::with_template(3, "{turns} \u{1b}[2J").1);
        assert!(!Marker::with_template(3, &format!("{{turns}}{}", "x".repeat(300))).1);
    }
}
