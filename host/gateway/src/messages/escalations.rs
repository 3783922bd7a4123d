//! Texts to and about the contacts of an escalation, and about atoms.

use pmk_core::{
    quoting::quotation,
    text::{collapse_whitespace, shortened},
};

use super::{Messages, code, mention, name, terminal};
use crate::{chat::MessageBody, directive::Kind, escalation::PriorAttempts};

/// The most characters shown of a question or an answer that is repeated.
const SHOWN_CHARS: usize = 300;

/// A question to the contacts.
#[derive(Clone, Debug)]
pub struct Escalation<'a> {
    /// The contacts that are asked.
    pub contacts: &'a [String],
    pub asker: &'a str,
    /// The model's words.
    pub question: &'a str,
    /// The model's words.
    pub reason: Option<&'a str>,
    /// What was searched before.
    pub tried: PriorAttempts,
    /// In a channel, the bot may see only a reply that mentions it.
    pub in_channel: bool,
}

impl Messages {
    /// To the asker: contacts are being asked, in the thread or separately.
    pub fn escalated(&self, apart: bool) -> String {
        self.text(if apart { "escalated-apart" } else { "escalated" }, [])
    }

    /// To the asker: a contact asks a question back.
    pub fn asked_back(&self, asker: Option<&str>, contact: &str, text: &str, in_channel: bool) -> MessageBody {
        let asked = [
            ("asker", asker.map(mention).unwrap_or_default().into()),
            ("contact", mention(contact).into()),
            ("text", quotation(text).into()),
        ];
        let how = self.text(if in_channel { "reply-or-mention" } else { "reply-to-this" }, []);
        let pings = asker.into_iter().chain([contact]).map(str::to_owned).collect();
        MessageBody { text: format!("{}\n{how}", self.text("asked-back", asked).trim_start()), pings }
    }

    /// To the contacts: the asker's reply.
    pub fn asker_replied(&self, contacts: &[String], asker: &str, text: &str, in_channel: bool) -> MessageBody {
        let named = contacts.iter().map(|id| mention(id)).collect::<Vec<_>>().join(" ");
        let said = [("contacts", named.into()), ("asker", mention(asker).into()), ("text", quotation(text).into())];
        let how = self.text(if in_channel { "reply-or-mention" } else { "reply-to-this" }, []);
        let pings = contacts.iter().cloned().chain([asker.to_owned()]).collect();
        MessageBody { text: format!("{}\n{how}", self.text("asker-replied", said).trim_start()), pings }
    }

    /// To a contact: asks whether their message is the answer.
    pub fn is_it_an_answer(&self, contact: &str, text: &str) -> MessageBody {
        let filled = [("contact", mention(contact).into()), ("text", quotation(&shortened(text, SHOWN_CHARS)).into())];
        MessageBody { text: self.text("is-it-an-answer", filled), pings: vec![contact.to_owned()] }
    }

    /// Replaces that question: the message is the answer.
    pub fn answer_taken(&self) -> String {
        self.text("answer-taken", [])
    }

    /// Replaces that question: the message is a contact's own, and the answer is still awaited.
    pub fn not_meant(&self) -> String {
        self.text("not-meant", [])
    }

    /// To a contact: the answer is still awaited.
    pub fn still_waiting(&self) -> String {
        self.text("still-waiting", [])
    }

    /// To a contact: their question was passed to the asker.
    pub fn passed_back(&self) -> String {
        self.text("passed-back", [])
    }

    /// To the asker: their reply was passed to the contacts.
    pub fn passed_on(&self) -> String {
        self.text("passed-on", [])
    }

    /// To the author of a message that was passed on: these files do not reach its readers, or not all of them.
    pub fn files_not_passed_on(&self, files: &[String], readers: &[String]) -> String {
        let files = self.listed(&files.iter().map(|file| code(file)).collect::<Vec<_>>());
        let readers = self.listed(&readers.iter().map(|reader| name(reader)).collect::<Vec<_>>());
        self.text("files-not-passed-on", [("files", files.into()), ("readers", readers.into())])
    }

    /// To the asker: a contact adds something to the answer that they have given.
    pub fn answer_added_to(&self, asker: &str, contact: &str, question: &str, text: &str) -> MessageBody {
        let filled = [
            ("asker", mention(asker).into()),
            ("contact", mention(contact).into()),
            ("question", quotation(&shortened(question, SHOWN_CHARS)).into()),
            ("text", quotation(text).into()),
        ];
        let pings = vec![asker.to_owned(), contact.to_owned()];
        MessageBody { text: self.text("answer-added-to", filled), pings }
    }

    /// To that contact.
    pub fn addition_passed_on(&self) -> String {
        self.text("addition-passed-on", [])
    }

    /// To a contact: somebody else has answered.
    pub fn answered_by(&self, contributor: &str, question: &str) -> String {
        let question = quotation(&shortened(question, SHOWN_CHARS));
        self.text("answered-by", [("contributor", name(contributor).into()), ("question", question.into())])
    }

    /// To a contact: somebody else has answered, and taken the answer back.
    pub fn answer_taken_back(&self, contributor: &str, question: &str) -> String {
        let question = quotation(&shortened(question, SHOWN_CHARS));
        self.text("answer-taken-back", [("contributor", name(contributor).into()), ("question", question.into())])
    }

    /// To a contact whose answer comes after another one, or when it is no longer needed.
    pub fn answered_already(&self) -> String {
        self.text("answered-already", [])
    }

    /// To the asker: the escalation was withdrawn.
    pub fn withdrawn(&self) -> String {
        self.text("withdrawn", [])
    }

    /// To a contact: the asker no longer needs an answer.
    pub fn not_needed(&self, asker: &str, question: &str) -> String {
        let question = quotation(&shortened(question, SHOWN_CHARS));
        self.text("not-needed", [("asker", name(asker).into()), ("question", question.into())])
    }

    /// Precedes an answer for which the hourly limit prevented a question to others.
    pub fn used_up(&self, kind: Kind, most: u32) -> String {
        let said = match most {
            0 => self.text("switched-off", [("kind", kind.tag().into())]),
            most => self.text("used-up", [("kind", kind.tag().into()), ("most", most.into())]),
        };
        said + "\n\n"
    }

    /// To the asker: a question is shown to them before it is sent.
    pub fn proposed(&self) -> String {
        self.text("proposed", [])
    }

    /// The line with the reason for a question, if there is one.
    fn reason(&self, reason: Option<&str>) -> String {
        match reason.map(collapse_whitespace).filter(|reason| !reason.is_empty()) {
            Some(reason) => format!("\n{}", self.text("escalation-reason", [("reason", reason.into())])),
            None => String::new(),
        }
    }

    /// To the asker: the question that awaits their confirmation, with everything that would be sent with it.
    pub fn proposal(&self, asker: &str, question: &str, reason: Option<&str>, by_words: bool) -> MessageBody {
        let question = quotation(question) + &self.reason(reason);
        let filled = [("asker", mention(asker).into()), ("question", question.into())];
        let how = self.text(if by_words { "proposal-type" } else { "proposal-react" }, []);
        MessageBody { text: format!("{}\n{how}", self.text("proposal", filled)), pings: vec![asker.to_owned()] }
    }

    /// Replaces that question once they have declined it.
    pub fn proposal_dropped(&self) -> String {
        self.text("proposal-dropped", [])
    }

    /// Replaces that question if their confirmation came too late.
    pub fn proposal_expired(&self) -> String {
        self.text("proposal-expired", [])
    }

    /// To the asker: the thread is still waiting for the answer to another question.
    pub fn already_asked(&self) -> String {
        self.text("already-asked", [])
    }

    /// The same if they have confirmed a question: they must confirm it again later.
    pub fn confirm_again(&self) -> String {
        self.text("confirm-again", [])
    }

    /// To the asker: a question should be put to contacts, but there are none.
    pub fn nobody_to_ask(&self) -> String {
        self.text("nobody-to-ask", [])
    }

    /// To the asker: the question could be sent to none of the contacts.
    pub fn nobody_reached(&self) -> String {
        self.text("nobody-reached", [])
    }

    /// The question to the contacts. Only they and the asker are pinged, whatever the model's text contains.
    pub fn escalation(&self, ask: &Escalation<'_>) -> MessageBody {
        let contacts = ask.contacts.iter().map(|id| mention(id)).collect::<Vec<_>>().join(" ");
        let mut text = self.text(
            "escalation",
            [
                ("contacts", contacts.into()),
                ("asker", mention(ask.asker).into()),
                ("question", quotation(ask.question).into()),
            ],
        );
        text += &self.reason(ask.reason);
        if !ask.tried.is_nothing() {
            let tried = [("atoms", ask.tried.atoms.into()), ("mra", ask.tried.mra.into())];
            text += &format!("\n{}", self.text("escalation-tried", tried));
        }
        let how = if ask.in_channel { "reply-or-mention" } else { "reply-here" };
        let pings = ask.contacts.iter().cloned().chain([ask.asker.to_owned()]).collect();
        MessageBody { text: format!("{text}\n{}", self.text(how, [])), pings }
    }

    /// To the asker: precedes the answer that a contact's reply made possible. Mentions both.
    pub fn answer_arrived(&self, asker: Option<&str>, contributor: &str) -> MessageBody {
        let filled =
            [("asker", asker.map(mention).unwrap_or_default().into()), ("contributor", mention(contributor).into())];
        let text = self.text("answer-arrived", filled).trim_start().to_owned();
        let pings = asker.into_iter().chain([contributor]).map(str::to_owned).collect();
        MessageBody { text: text + "\n\n", pings }
    }

    /// To the contributor: asks for a verdict on the atom.
    pub fn atom_pending(&self, contributor: &str, question: &str, id: &str, is_flagged: bool) -> MessageBody {
        let filled =
            [("contributor", mention(contributor).into()), ("question", quotation(question).into()), ("id", id.into())];
        let text = self.text(if is_flagged { "atom-flagged" } else { "atom-pending" }, filled);
        MessageBody { text, pings: vec![contributor.to_owned()] }
    }

    /// Replaces that notice once the atom is approved.
    pub fn atom_approved(&self, id: &str) -> String {
        self.text("atom-approved", [("id", id.into())])
    }

    /// Replaces that notice once the atom is rejected.
    pub fn atom_rejected(&self, id: &str) -> String {
        self.text("atom-rejected", [("id", id.into())])
    }

    /// To somebody whose verdict does not count yet, because the atom's file cannot be read.
    pub fn atom_unreadable(&self, why: &str) -> String {
        let why = terminal::translated(why, self.language).into_owned();
        self.text("atom-unreadable", [("why", why.into())])
    }

    /// To somebody whose verdict does not count yet, because the atom's file was copied.
    pub fn atom_copied(&self, why: &str) -> String {
        let why = terminal::translated(why, self.language).into_owned();
        self.text("atom-copied", [("why", why.into())])
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    let contacts = ["U2".to_owned()];
    let mut ask = Escalation {
        contacts: &contacts,
        asker: "U1",
        question: "q",
        reason: Some("r"),
        tried: PriorAttempts { atoms: 1, mra: 2 },
        in_channel: false,
    };
    let mut said = vec![
        messages.escalated(false),
        messages.escalated(true),
        messages.asked_back(Some("U1"), "U2", "which month?", true).text,
        messages.asked_back(None, "U2", "which month?", false).text,
        messages.asker_replied(&["U2".into()], "U1", "this one", false).text,
        messages.is_it_an_answer("U2", "ok").text,
        messages.answer_taken(),
        messages.not_meant(),
        messages.still_waiting(),
        messages.passed_back(),
        messages.passed_on(),
        messages.files_not_passed_on(&["a.png".into(), "b.pdf".into()], &["U1".into()]),
        messages.answered_by("U2", "q"),
        messages.answer_added_to("U1", "U2", "q", "a").text,
        messages.addition_passed_on(),
        messages.answer_taken_back("U2", "q"),
        messages.answered_already(),
        messages.withdrawn(),
        messages.not_needed("U1", "q"),
        messages.nobody_to_ask(),
        messages.nobody_reached(),
        messages.already_asked(),
        messages.confirm_again(),
        messages.used_up(Kind::Escalate, 20),
        messages.used_up(Kind::MraAsk, 120),
        messages.used_up(Kind::Escalate, 0),
        messages.used_up(Kind::MraAsk, 0),
        messages.proposed(),
        messages.proposal("U1", "who?", Some("not known"), false).text,
        messages.proposal("U1", "who?", None, true).text,
        messages.proposal_dropped(),
        messages.proposal_expired(),
        messages.escalation(&ask).text,
        messages.answer_arrived(Some("U1"), "U2").text,
        messages.answer_arrived(None, "U2").text,
        messages.atom_pending("U2", "q", "id", false).text,
        messages.atom_pending("U2", "q", "id", true).text,
        messages.atom_approved("id"),
        messages.atom_rejected("id"),
        messages.atom_unreadable("`knowledge/erp/id.md` is not an atom: it is not UTF-8 text"),
        messages.atom_copied("several files belong to this message: `knowledge/erp/0.md`, `knowledge/erp/id.md`"),
    ];
    ask.in_channel = true;
    said.push(messages.escalation(&ask).text);
    said
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;

    #[test]
    fn only_contacts_and_the_asker_are_pinged() {
        let contacts = ["U2".to_owned(), "U3".to_owned()];
        let ask = Escalation {
            contacts: &contacts,
            asker: "U1",
            question: "<!channel> ask\n<@U9>",
            reason: Some("not\nin code"),
            tried: PriorAttempts::default(),
            in_channel: true,
        };
        let speech = Messages::new(Language::English).escalation(&ask);
        assert_eq!(speech.pings, ["U2", "U3", "U1"]);
        assert_eq!(
            speech.text,
            "<@U2> <@U3> could you help with a question from <@U1>?\n> <!channel> ask\n> <@U9>\nWhy: not in code\n\
             Reply in this thread; I will pass it on. If I do not react to it, reply once more and mention me."
        );
    }
}
