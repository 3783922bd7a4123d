//! What people are told of a message that they do not see: its text, and what came with it.

use pmk_core::{quoting::quotation, text};

use super::frame::{label_of_file, pieces, rest};
use crate::{
    chat::{Attachments, Inbound, QuoteKind},
    config::Config,
};

/// How many characters of what came with a message people are told.
const MOST_TOLD: usize = 4_000;

/// A message for people who do not see it.
pub(in crate::turn) struct Told {
    /// Its text, and what came with it, quoted.
    pub text: String,
    /// The files that are not in the text, or not whole.
    pub left_out: Vec<String>,
}

/// Returns what people are told of a message whose attachments were read. The preview of a link is left out: the link is
/// in the text.
pub(in crate::turn) fn told(config: &Config, message: &Inbound, attached: &Attachments) -> Told {
    let language = config.language;
    let mut attached = attached.clone();
    attached.quotes.retain(|quote| quote.kind == QuoteKind::Forwarded);
    let (mut said, mut left_out, mut room) = (vec![message.text.trim().to_owned()], vec![], MOST_TOLD);
    for piece in pieces(&attached, language) {
        let shown = text::head(&piece.text, room);
        room -= shown.chars().count();
        let is_cut = shown.len() < piece.text.len();
        let lines = piece.label.as_deref().into_iter().chain(Some(shown)).filter(|line| !line.is_empty());
        said.push(quotation(&lines.chain(is_cut.then_some(rest(language))).collect::<Vec<_>>().join("\n")));
        // Only files have names: of what was forwarded, the text itself says that there is more.
        if (is_cut || piece.image.is_some()) && !piece.name.is_empty() {
            left_out.push(piece.name);
        }
    }
    for (name, _) in attached.unread() {
        said.push(quotation(&label_of_file(name, language)));
        left_out.push(name.to_owned());
    }
    said.retain(|part| !part.is_empty());
    Told { text: said.join("\n\n"), left_out }
}
