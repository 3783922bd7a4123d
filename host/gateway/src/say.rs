//! What people read: every sentence the gateway itself says in a conversation, in the language of
//! `language` in gateway.json. The sentences are in `say/*.ftl`, one file a language.

mod cases;

use std::{fmt, str::FromStr};

use fluent_bundle::{FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle};
use pmk_core::{
    SessionKey,
    text::{self, quoted, single_spaced},
};
use serde::Deserialize;
use thiserror::Error;
use unic_langid::LanguageIdentifier;

use crate::{
    directive::Kind,
    escalation::Tried,
    experiment::guard_rail::{Verdict, Worse},
    front::Speech,
    model::ModelError,
    store::Verbosity,
};

mod commands;

/// A language that the gateway speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Language {
    /// Traditional Chinese, the language of the seeds.
    #[default]
    TraditionalChinese,
    English,
}

/// A text that names no language.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{0}` is no language; there are `zh-TW` and `en`")]
pub struct UnknownLanguage(String);

impl Language {
    const ALL: [Language; 2] = [Language::TraditionalChinese, Language::English];

    /// The tag (BCP 47).
    pub const fn tag(self) -> &'static str {
        match self {
            Language::TraditionalChinese => "zh-TW",
            Language::English => "en",
        }
    }

    const fn catalogue(self) -> &'static str {
        match self {
            Language::TraditionalChinese => {
                concat!(include_str!("say/zh-TW.ftl"), include_str!("say/commands/zh-TW.ftl"))
            }
            Language::English => concat!(include_str!("say/en.ftl"), include_str!("say/commands/en.ftl")),
        }
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Language::ALL.into_iter().find(|language| language.tag().eq_ignore_ascii_case(text.trim()));
        named.ok_or_else(|| UnknownLanguage(text.to_owned()))
    }
}

impl TryFrom<String> for Language {
    type Error = UnknownLanguage;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// A question to the people who may know.
#[derive(Clone, Debug)]
pub struct Escalation<'a> {
    /// Who is asked.
    pub contacts: &'a [String],
    pub asker: &'a str,
    /// The model's words.
    pub question: &'a str,
    /// The model's words, too.
    pub reason: Option<&'a str>,
    /// What was looked through before.
    pub tried: Tried,
    /// In a channel the bot only sees a reply that mentions it, as it does not read along there.
    pub must_mention_bot: bool,
}

/// Speaks one language.
pub struct Say {
    bundle: FluentBundle<FluentResource>,
}

impl fmt::Debug for Say {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Say").field("language", &self.bundle.locales).finish()
    }
}

impl Say {
    /// A speaker of that language.
    pub fn new(language: Language) -> Self {
        let tag: LanguageIdentifier = language.tag().parse().expect("our own tags are valid");
        let resource = FluentResource::try_new(language.catalogue().to_owned())
            .unwrap_or_else(|(_, errors)| panic!("the catalogue `{}` is tested: {errors:?}", language.tag()));
        let mut bundle = FluentBundle::new_concurrent(vec![tag]);
        // Marks around what is filled in would show as boxes in Slack.
        bundle.set_use_isolating(false);
        bundle.add_resource(resource).expect("no sentence is in a catalogue twice: tested");
        Say { bundle }
    }

    /// Shows that an answer is being made.
    pub fn thinking(&self) -> String {
        self.text("thinking", [])
    }

    /// To everybody: the gateway goes.
    pub fn away(&self) -> String {
        self.text("away", [])
    }

    /// To everybody: it is there again, after so many minutes where that is known.
    pub fn back(&self, minutes: Option<u64>) -> String {
        match minutes {
            Some(minutes) => self.text("back-after", [("minutes", minutes.into())]),
            None => self.text("back", []),
        }
    }

    /// Goes before an answer that comes so many minutes after its question.
    pub fn late(&self, minutes: u64) -> String {
        let (unit, count) = match minutes {
            0..120 => ("minutes", minutes),
            120..2_880 => ("hours", (minutes + 30) / 60),
            _ => ("days", (minutes + 720) / 1_440),
        };
        self.text("late", [("unit", unit.into()), ("count", count.into())]) + "\n\n"
    }

    /// Shows that `mra` is asked.
    pub fn asking_mra(&self, repo: &str) -> String {
        self.text("asking-mra", [("repo", repo.into())])
    }

    /// Shows how far `mra` is, by the lines that it has printed.
    pub fn mra_goes_on(&self, repo: &str, steps: u32) -> String {
        self.text("mra-goes-on", [("repo", repo.into()), ("steps", steps.into())])
    }

    /// Goes before an answer that was made with less of the conversation (seed 000 §2.2).
    pub fn trimmed(&self, turns: u32) -> String {
        self.text("trimmed", [("turns", turns.into())]) + "\n\n"
    }

    /// Goes before an answer that was made with a summary of the older turns.
    pub fn compacted(&self, turns: u32) -> String {
        self.text("compacted", [("turns", turns.into())]) + "\n\n"
    }

    /// Goes before an answer that was made in a fresh session.
    pub fn rotated(&self, turns: u32) -> String {
        self.text("rotated", [("turns", turns.into())]) + "\n\n"
    }

    /// To the admins: a conversation goes on in a fresh session.
    pub fn rotated_for_admins(&self, session: &str, entries: usize) -> String {
        self.text("rotated-for-admins", [("session", session.into()), ("entries", entries.into())])
    }

    /// To the admins: a message could not be answered.
    pub fn recovery_failed(&self, session: &str) -> String {
        self.text("recovery-failed", [("session", session.into())])
    }

    /// To the person: the message cannot be answered for now, and is kept. Whether an admin knows is said where it is so.
    pub fn parked(&self, admins_know: bool) -> String {
        let admins = if admins_know { "know" } else { "do-not" };
        self.text("parked", [("admins", admins.into())])
    }

    /// To the admins: a message is set aside.
    pub fn parked_for_admins(&self, session: &str, why: &str) -> String {
        self.text("parked-for-admins", [("session", session.into()), ("why", code(why).into())])
    }

    /// To the admins: a policy is not asked for a while.
    pub fn policy_suspended(&self, policy: &str, failures: u32, reason: &str) -> String {
        let reason = code(reason);
        self.text(
            "policy-suspended",
            [("policy", policy.into()), ("failures", failures.into()), ("reason", reason.into())],
        )
    }

    /// To the admins: other policies should have taken over, and those that served still do.
    pub fn policy_refused(&self, reason: &str) -> String {
        self.text("policy-refused", [("reason", code(reason).into())])
    }

    /// To the admins: nothing new can be connected, and what to do.
    pub fn front_refused(&self, what: &str, hint: &str) -> String {
        self.text("front-refused", [("what", code(what).into()), ("hint", single_spaced(hint).into())])
    }

    /// To the admins: that is over.
    pub fn front_accepted(&self) -> String {
        self.text("front-accepted", [])
    }

    /// To the admins: the guard rail has taken an arm out.
    pub fn arm_stopped(&self, experiment: &str, arm: &str, control: &str, verdict: &Verdict) -> String {
        let Verdict { worse, arm: share, control: of_control, .. } = verdict;
        let filled = [
            ("experiment", experiment.into()),
            ("arm", arm.into()),
            ("control", control.into()),
            ("bad", share.bad.into()),
            ("of", share.of.into()),
            ("control-bad", of_control.bad.into()),
            ("control-of", of_control.of.into()),
        ];
        match worse {
            Worse::Failures => self.text("arm-stopped-for-failures", filled),
            Worse::Overflows => self.text("arm-stopped-for-overflows", filled),
        }
    }

    /// To the admins: an experiment is not begun.
    pub fn experiment_refused(&self, experiment: &str, why: &str) -> String {
        self.text("experiment-refused", [("experiment", experiment.into()), ("why", why.into())])
    }

    /// Goes before the answer to a message that had files attached.
    pub fn files_not_read(&self, files: u32) -> String {
        self.text("files-not-read", [("files", files.into())]) + "\n\n"
    }

    /// Every way to make the prompt fit was tried (seed 000 §2.2).
    pub fn too_long(&self) -> String {
        self.text("too-long", [])
    }

    /// The new message alone is more than the model can take; what it can take is said where it is known.
    pub fn message_too_long(&self, tokens: u64, limit: Option<u64>) -> String {
        match limit {
            Some(limit) => self.text("message-too-long", [("tokens", tokens.into()), ("limit", limit.into())]),
            None => self.text("message-too-long-by-itself", [("tokens", tokens.into())]),
        }
    }

    /// What stands in the place of the parts that are too many.
    pub fn cut_short(&self, chars: usize, key: &SessionKey) -> String {
        self.text("cut-short", [("chars", chars.into()), ("key", key.to_string().into())])
    }

    /// Slack takes no answer at this place.
    pub fn undelivered(&self) -> String {
        self.text("undelivered", [])
    }

    /// A message without text.
    pub fn nothing_to_read(&self) -> String {
        self.text("nothing-to-read", [])
    }

    /// To somebody on the blocklist, on fronts that tell.
    pub fn blocked(&self) -> String {
        self.text("blocked", [])
    }

    /// What a conversation is shown of tool calls from now on.
    pub fn verbose(&self, verbosity: Verbosity) -> String {
        self.text("verbose", [("verbosity", verbosity.name().into())])
    }

    /// A call that people want to see.
    pub fn mra_asked(&self, repo: &str, ok: bool, seconds: &str) -> String {
        let outcome = if ok { "ok" } else { "failed" };
        self.text("mra-asked", [("repo", repo.into()), ("outcome", outcome.into()), ("seconds", seconds.into())])
    }

    /// To the admins: a model is asked without tools from now on.
    pub fn no_tools(&self, model: &str) -> String {
        self.text("no-tools", [("model", code(model).into())])
    }

    /// The model of that name gave no answer.
    pub fn no_answer(&self, error: &ModelError, model: &str) -> String {
        let id = match error {
            ModelError::UnknownModel { .. } => return self.text("model-unknown", [("model", code(model).into())]),
            ModelError::Overflow { .. } => "too-long",
            ModelError::RateLimited { .. } | ModelError::Overloaded { .. } => "model-busy",
            ModelError::Auth { .. } | ModelError::Billing { .. } => "model-account",
            ModelError::Refused { .. } => "model-refused",
            ModelError::Timeout { .. } => "model-timeout",
            ModelError::Transport { .. } => "model-unreachable",
            ModelError::MalformedHistory { .. }
            | ModelError::NoTools { .. }
            | ModelError::Unexplained { .. }
            | ModelError::Other { .. } => "model-failed",
        };
        self.text(id, [])
    }

    /// The model answered without a word that a person may read.
    pub fn silent(&self) -> String {
        self.text("model-silent", [])
    }

    /// To the asker: others are being asked, in the thread or each apart.
    pub fn escalated(&self, apart: bool) -> String {
        self.text(if apart { "escalated-apart" } else { "escalated" }, [])
    }

    /// To the asker: a contact has to know something first.
    pub fn asked_back(&self, asker: Option<&str>, contact: &str, text: &str, must_mention_bot: bool) -> Speech {
        let asked = [
            ("asker", asker.map(mention).unwrap_or_default().into()),
            ("contact", mention(contact).into()),
            ("text", quoted(text).into()),
        ];
        let how = self.text(if must_mention_bot { "reply-with-mention" } else { "reply-to-this" }, []);
        let pings = asker.into_iter().chain([contact]).map(str::to_owned).collect();
        Speech { text: format!("{}\n{how}", self.text("asked-back", asked).trim_start()), pings }
    }

    /// To contacts: what the asker says to them.
    pub fn asker_replied(&self, contacts: &[String], asker: &str, text: &str, must_mention_bot: bool) -> Speech {
        let named = contacts.iter().map(|id| mention(id)).collect::<Vec<_>>().join(" ");
        let said = [("contacts", named.into()), ("asker", mention(asker).into()), ("text", quoted(text).into())];
        let how = self.text(if must_mention_bot { "reply-with-mention" } else { "reply-to-this" }, []);
        let pings = contacts.iter().cloned().chain([asker.to_owned()]).collect();
        Speech { text: format!("{}\n{how}", self.text("asker-replied", said).trim_start()), pings }
    }

    /// To a contact: whether what they wrote is the answer.
    pub fn is_it_an_answer(&self, contact: &str, text: &str) -> Speech {
        let filled = [("contact", mention(contact).into()), ("text", quoted(text::head(text, 300)).into())];
        Speech { text: self.text("is-it-an-answer", filled), pings: vec![contact.to_owned()] }
    }

    /// Takes that question's place: it is one.
    pub fn answer_taken(&self) -> String {
        self.text("answer-taken", [])
    }

    /// To a contact: the answer is still awaited.
    pub fn still_waiting(&self) -> String {
        self.text("still-waiting", [])
    }

    /// To a contact: their question has gone to the asker.
    pub fn passed_back(&self) -> String {
        self.text("passed-back", [])
    }

    /// To the asker: their words have gone to the contacts.
    pub fn passed_on(&self) -> String {
        self.text("passed-on", [])
    }

    /// To a contact: somebody else has answered.
    pub fn answered_by(&self, contributor: &str, question: &str) -> String {
        let question = quoted(text::head(question, 300));
        self.text("answered-by", [("contributor", name(contributor).into()), ("question", question.into())])
    }

    /// To a contact whose answer comes after another, or when it is not needed any more.
    pub fn answered_already(&self) -> String {
        self.text("answered-already", [])
    }

    /// To the asker: nobody waits any more.
    pub fn withdrawn(&self) -> String {
        self.text("withdrawn", [])
    }

    /// To a contact: the asker does not need it any more.
    pub fn not_needed(&self, asker: &str, question: &str) -> String {
        let question = quoted(text::head(question, 300));
        self.text("not-needed", [("asker", name(asker).into()), ("question", question.into())])
    }

    /// Goes before an answer for which others were to be asked, and were not: so many questions an hour there may be.
    pub fn used_up(&self, kind: Kind, most: u32) -> String {
        let said = match most {
            0 => self.text("switched-off", [("kind", kind.tag().into())]),
            most => self.text("used-up", [("kind", kind.tag().into()), ("most", most.into())]),
        };
        said + "\n\n"
    }

    /// To the asker: they are shown a question before it goes out.
    pub fn proposed(&self) -> String {
        self.text("proposed", [])
    }

    /// A line with the reason for a question, where there is one.
    fn reason(&self, reason: Option<&str>) -> String {
        match reason.map(single_spaced).filter(|reason| !reason.is_empty()) {
            Some(reason) => format!("\n{}", self.text("escalation-reason", [("reason", reason.into())])),
            None => String::new(),
        }
    }

    /// To the asker: the question that waits for their word, with all that would be said with it.
    pub fn proposal(&self, asker: &str, question: &str, reason: Option<&str>, by_words: bool) -> Speech {
        let question = quoted(question) + &self.reason(reason);
        let filled = [("asker", mention(asker).into()), ("question", question.into())];
        let how = self.text(if by_words { "proposal-type" } else { "proposal-react" }, []);
        Speech { text: format!("{}\n{how}", self.text("proposal", filled)), pings: vec![asker.to_owned()] }
    }

    /// Takes the place of that question once they said no.
    pub fn proposal_dropped(&self) -> String {
        self.text("proposal-dropped", [])
    }

    /// The same where their word came too late.
    pub fn proposal_expired(&self) -> String {
        self.text("proposal-expired", [])
    }

    /// To the asker: the thread waits for the answer to another question first.
    pub fn already_asked(&self) -> String {
        self.text("already-asked", [])
    }

    /// The same where they have said yes to a question: they have to say so once more.
    pub fn confirm_again(&self) -> String {
        self.text("confirm-again", [])
    }

    /// To the asker: others should be asked, and there are none.
    pub fn nobody_to_ask(&self) -> String {
        self.text("nobody-to-ask", [])
    }

    /// To the contacts. Only they and the asker are pinged, whatever the model's words say.
    pub fn escalation(&self, ask: &Escalation<'_>) -> Speech {
        let contacts = ask.contacts.iter().map(|id| mention(id)).collect::<Vec<_>>().join(" ");
        let mut text = self.text(
            "escalation",
            [
                ("contacts", contacts.into()),
                ("asker", mention(ask.asker).into()),
                ("question", quoted(ask.question).into()),
            ],
        );
        text += &self.reason(ask.reason);
        if !ask.tried.is_nothing() {
            let tried = [("atoms", ask.tried.atoms.into()), ("mra", ask.tried.mra.into())];
            text += &format!("\n{}", self.text("escalation-tried", tried));
        }
        let how = if ask.must_mention_bot { "reply-with-mention" } else { "reply-here" };
        let pings = ask.contacts.iter().cloned().chain([ask.asker.to_owned()]).collect();
        Speech { text: format!("{text}\n{}", self.text(how, [])), pings }
    }

    /// To the asker: goes before the answer that a contact's reply made possible. Names both.
    pub fn answer_arrived(&self, asker: Option<&str>, contributor: &str) -> Speech {
        let filled =
            [("asker", asker.map(mention).unwrap_or_default().into()), ("contributor", mention(contributor).into())];
        let text = self.text("answer-arrived", filled).trim_start().to_owned();
        let pings = asker.into_iter().chain([contributor]).map(str::to_owned).collect();
        Speech { text: text + "\n\n", pings }
    }

    /// To the contributor: asks for a verdict on what was learnt.
    pub fn atom_pending(&self, contributor: &str, question: &str, id: &str, is_flagged: bool) -> Speech {
        let filled =
            [("contributor", mention(contributor).into()), ("question", quoted(question).into()), ("id", id.into())];
        let text = self.text(if is_flagged { "atom-flagged" } else { "atom-pending" }, filled);
        Speech { text, pings: vec![contributor.to_owned()] }
    }

    /// Takes the notice's place once it is approved.
    pub fn atom_approved(&self, id: &str) -> String {
        self.text("atom-approved", [("id", id.into())])
    }

    /// Takes the notice's place once it is rejected.
    pub fn atom_rejected(&self, id: &str) -> String {
        self.text("atom-rejected", [("id", id.into())])
    }

    fn text<const N: usize>(&self, id: &str, filled: [(&'static str, FluentValue<'_>); N]) -> String {
        self.fill(id, filled.into_iter().collect())
    }

    fn fill(&self, id: &str, filled: FluentArgs<'_>) -> String {
        let sentence = self.bundle.get_message(id).and_then(|message| message.value());
        let sentence = sentence.unwrap_or_else(|| panic!("every catalogue has `{id}`: tested"));
        let mut errors = vec![];
        let text = self.bundle.format_pattern(sentence, Some(&filled), &mut errors).into_owned();
        debug_assert!(errors.is_empty(), "`{id}`: {errors:?}");
        text
    }
}

/// How a person is named; live only where [`Speech::pings`] has them.
fn mention(user: &str) -> String {
    format!("<@{user}>")
}

/// A person who is named and not called.
fn name(user: &str) -> String {
    format!("`{user}`")
}

/// Foreign words as a line of code, which Slack shows as they are.
fn code(text: &str) -> String {
    format!("`{}`", text::head(&single_spaced(text), 300).replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::experiment::guard_rail::Share;

    /// Every sentence with what is filled into it.
    fn sentences(language: Language) -> BTreeSet<(String, Vec<String>)> {
        let mut sentences = BTreeSet::new();
        let mut current: Option<(String, BTreeSet<String>)> = None;
        for line in language.catalogue().lines().filter(|line| !line.starts_with('#')) {
            if let Some((id, _)) = line.split_once(" = ").filter(|(id, _)| !id.contains(' ')) {
                sentences.extend(current.take().map(|(id, filled)| (id, filled.into_iter().collect())));
                current = Some((id.to_owned(), BTreeSet::new()));
            }
            if let Some((_, filled)) = &mut current {
                let names = line.split('$').skip(1).filter_map(|rest| rest.split([' ', '}']).next());
                filled.extend(names.map(str::to_owned));
            }
        }
        sentences.extend(current.map(|(id, filled)| (id, filled.into_iter().collect())));
        sentences
    }

    fn verdict(worse: Worse) -> Verdict {
        let share = Share { bad: 7, of: 9 };
        Verdict { worse, arm: share, control: Share { bad: 0, of: 11 }, evidence: 44.0, bound: 40.0 }
    }

    /// Everything that can be said.
    fn everything(say: &Say) -> Vec<String> {
        let message = String::new;
        let errors = [
            ModelError::Overflow { observed_tokens: None, allowed_tokens: None, message: message() },
            ModelError::RateLimited { retry_after: None, message: message() },
            ModelError::Auth { message: message() },
            ModelError::UnknownModel { message: message() },
            ModelError::Refused { message: message() },
            ModelError::Timeout { message: message() },
            ModelError::Transport { message: message() },
            ModelError::Other { message: message() },
        ];
        let contacts = ["U2".to_owned()];
        let mut ask = Escalation {
            contacts: &contacts,
            asker: "U1",
            question: "q",
            reason: Some("r"),
            tried: Tried { atoms: 1, mra: 2 },
            must_mention_bot: false,
        };
        let mut said = vec![
            say.thinking(),
            say.away(),
            say.back(None),
            say.back(Some(1)),
            say.back(Some(7)),
            say.late(7),
            say.late(150),
            say.late(4_000),
            say.asking_mra("erp"),
            say.mra_goes_on("erp", 3),
            say.trimmed(1),
            say.trimmed(7),
            say.compacted(7),
            say.rotated(7),
            say.rotated_for_admins("slack:dm:U1", 15_276),
            say.recovery_failed("slack:dm:U1"),
            say.no_tools("llama3"),
            say.policy_suspended("strict 1.0.0", 5, "trapped: `unreachable`"),
            say.policy_refused("policy `a.wasm` is empty"),
            say.front_refused("Slack says `invalid_auth`", "make a new token"),
            say.front_accepted(),
            say.arm_stopped("less", "b", "a", &verdict(Worse::Failures)),
            say.arm_stopped("less", "b", "a", &verdict(Worse::Overflows)),
            say.experiment_refused("less", "arm `b`: no such file"),
            say.files_not_read(1),
            say.files_not_read(2),
            say.too_long(),
            say.message_too_long(9_000, Some(8_000)),
            say.message_too_long(9_000, None),
            say.undelivered(),
            say.cut_short(9_000, &"slack:dm:U1".parse().expect("a key")),
            say.nothing_to_read(),
            say.blocked(),
            say.verbose(Verbosity::Off),
            say.verbose(Verbosity::Progress),
            say.verbose(Verbosity::Summary),
            say.mra_asked("erp", true, "3.2"),
            say.mra_asked("erp", false, "3.2"),
            say.silent(),
            say.escalated(false),
            say.escalated(true),
            say.asked_back(Some("U1"), "U2", "which month?", true).text,
            say.asked_back(None, "U2", "which month?", false).text,
            say.asker_replied(&["U2".into()], "U1", "this one", false).text,
            say.is_it_an_answer("U2", "ok").text,
            say.answer_taken(),
            say.still_waiting(),
            say.passed_back(),
            say.passed_on(),
            say.answered_by("U2", "q"),
            say.answered_already(),
            say.withdrawn(),
            say.not_needed("U1", "q"),
            say.nobody_to_ask(),
            say.already_asked(),
            say.confirm_again(),
            say.used_up(Kind::Escalate, 20),
            say.used_up(Kind::MraAsk, 120),
            say.used_up(Kind::Escalate, 0),
            say.used_up(Kind::MraAsk, 0),
            say.proposed(),
            say.proposal("U1", "who?", Some("nobody wrote it down"), false).text,
            say.proposal("U1", "who?", None, true).text,
            say.proposal_dropped(),
            say.proposal_expired(),
            say.escalation(&ask).text,
            say.answer_arrived(Some("U1"), "U2").text,
            say.answer_arrived(None, "U2").text,
            say.atom_pending("U2", "q", "id", false).text,
            say.atom_pending("U2", "q", "id", true).text,
            say.atom_approved("id"),
            say.atom_rejected("id"),
        ];
        ask.must_mention_bot = true;
        said.push(say.escalation(&ask).text);
        said.extend(errors.iter().map(|error| say.no_answer(error, "llama3")));
        said.extend(cases::everything(say));
        said
    }

    #[test]
    fn both_catalogues_have_every_sentence() {
        let chinese = sentences(Language::TraditionalChinese);
        assert!(chinese.len() > 20, "{chinese:?}");
        assert_eq!(chinese, sentences(Language::English));
    }

    #[test]
    fn everything_can_be_said_in_every_language() {
        for language in Language::ALL {
            for text in everything(&Say::new(language)) {
                assert!(!text.trim().is_empty() && !text.contains(['{', '$']), "{text}");
            }
        }
    }

    #[test]
    fn the_words_of_seed_000() {
        let say = Say::new(Language::default());
        assert_eq!(say.trimmed(6), ":scissors: 對話過長，已自動裁掉 6 輪舊訊息\n\n");
        assert_eq!(say.too_long(), ":x: 對話太長，請開新 thread 重新提問");
        assert_eq!(
            say.message_too_long(120_000, Some(8_000)),
            ":x: 這則訊息太長：約 120000 tokens，上限 8000，請縮短或分成幾則"
        );
    }

    #[test]
    fn the_words_of_seed_003() {
        let say = Say::new(Language::default());
        assert_eq!(say.away(), ":zzz: pmk gateway 暫離");
        assert_eq!(say.back(Some(7)), ":wave: pmk gateway 重新上線（離線約 7 分鐘）");
        assert_eq!(say.back(None), ":wave: pmk gateway 重新上線");
    }

    #[test]
    fn how_late_an_answer_is_is_said_in_the_unit_that_people_would_use() {
        let say = Say::new(Language::English);
        for (minutes, wanted) in [(7, "about 7 minutes"), (119, "119 minutes"), (130, "2 hours"), (2_880, "2 days")] {
            assert!(say.late(minutes).contains(wanted), "{}", say.late(minutes));
        }
    }

    #[test]
    fn only_contacts_and_the_asker_are_pinged() {
        let contacts = ["U2".to_owned(), "U3".to_owned()];
        let ask = Escalation {
            contacts: &contacts,
            asker: "U1",
            question: "<!channel> ask\n<@U9>",
            reason: Some("not\nin code"),
            tried: Tried::default(),
            must_mention_bot: true,
        };
        let speech = Say::new(Language::English).escalation(&ask);
        assert_eq!(speech.pings, ["U2", "U3", "U1"]);
        assert_eq!(
            speech.text,
            "<@U2> <@U3> could you help with a question from <@U1>?\n> <!channel> ask\n> <@U9>\nWhy: not in code\n\
             Reply in this thread and mention me; I will pass it on."
        );
    }

    #[test]
    fn languages_are_named_by_their_tags() {
        assert_eq!("EN".parse(), Ok(Language::English));
        assert_eq!("zh-tw".parse(), Ok(Language::TraditionalChinese));
        assert_eq!("fr".parse::<Language>(), Err(UnknownLanguage("fr".into())));
    }
}
