//! Texts before and in place of an answer, and about the gateway going away and coming back.

use pmk_core::{SessionKey, quoting::quotation, text::shortened};
use pmk_models::{ErrorClass, ModelError};

use super::{Messages, code};
use crate::{chat::FileSkipReason, store::Verbosity};

/// How many characters of a question are quoted when its answer is sent elsewhere.
const QUOTED_CHARS: usize = 300;

impl Messages {
    /// The placeholder of an answer.
    pub fn thinking(&self) -> String {
        self.text("thinking", [])
    }

    /// The status shown after the bot's name while it works.
    pub fn at_work(&self) -> String {
        self.text("at-work", [])
    }

    /// To everybody: the gateway goes away.
    pub fn away(&self) -> String {
        self.text("away", [])
    }

    /// To everybody: the gateway is back, after this many minutes if known.
    pub fn back(&self, minutes: Option<u64>) -> String {
        match minutes {
            Some(minutes) => self.text("back-after", [("minutes", minutes.into())]),
            None => self.text("back", []),
        }
    }

    /// Precedes an answer that comes this many minutes after its question.
    pub fn late(&self, minutes: u64) -> String {
        let (unit, count) = match minutes {
            0..120 => ("minutes", minutes),
            120..2_880 => ("hours", (minutes + 30) / 60),
            _ => ("days", (minutes + 720) / 1_440),
        };
        self.text("late", [("unit", unit.into()), ("count", count.into())]) + "\n\n"
    }

    /// Progress: `mra` is being asked.
    pub fn asking_mra(&self, repo: &str) -> String {
        self.text("asking-mra", [("repo", repo.into())])
    }

    /// Progress of `mra`, by the number of lines that it has printed.
    pub fn mra_goes_on(&self, repo: &str, steps: u32) -> String {
        self.text("mra-goes-on", [("repo", repo.into()), ("steps", steps.into())])
    }

    /// Precedes an answer for which turns were trimmed (specification 000 §2.2).
    pub fn trimmed(&self, turns: u32) -> String {
        self.text("trimmed", [("turns", turns.into())]) + "\n\n"
    }

    /// Precedes an answer for which older turns were summarized.
    pub fn compacted(&self, turns: u32) -> String {
        self.text("compacted", [("turns", turns.into())]) + "\n\n"
    }

    /// Precedes an answer that was made in a fresh session.
    pub fn rotated(&self, turns: u32) -> String {
        self.text("rotated", [("turns", turns.into())]) + "\n\n"
    }

    /// To the person: the message cannot be answered for now, and is kept. Also says whether the admins know.
    pub fn parked(&self, admins_know: bool) -> String {
        let admins = if admins_know { "know" } else { "do-not" };
        self.text("parked", [("admins", admins.into())])
    }

    /// Precedes the answer to a message with files that were not read. `left_out` counts the files beyond the limit on
    /// their number; `most_kib` has the size limits for a text and for an image.
    pub fn not_read<'a>(
        &self,
        files: impl Iterator<Item = (&'a str, FileSkipReason)>,
        left_out: usize,
        most_kib: (u32, u32),
    ) -> String {
        let one = |(name, why): (&str, FileSkipReason)| {
            let most = if why == FileSkipReason::LargeImage { most_kib.1 } else { most_kib.0 };
            let filled = [("name", code(name).into()), ("why", why.name().into()), ("most", most.into())];
            self.text("file-not-read", filled)
        };
        let more = (left_out > 0).then(|| self.text("more-files", [("count", left_out.into())]));
        let files: Vec<String> = files.map(one).chain(more).collect();
        self.text("files-not-read", [("files", self.listed(&files).into())]) + "\n\n"
    }

    /// Precedes an answer that was made without the images, because the model's server refused them.
    pub fn images_refused(&self) -> String {
        self.text("images-refused", []) + "\n\n"
    }

    /// To the model: the message has no text of its own, only quoted or attached content.
    pub fn told_no_words(&self) -> String {
        self.text("told-no-words", [])
    }

    /// Every way to make the prompt fit was tried (specification 000 §2.2).
    pub fn too_long(&self) -> String {
        self.text("too-long", [])
    }

    /// The new message alone exceeds what the model accepts; says the limit if it is known.
    pub fn message_too_long(&self, tokens: u64, limit: Option<u64>) -> String {
        match limit {
            Some(limit) => self.text("message-too-long", [("tokens", tokens.into()), ("limit", limit.into())]),
            None => self.text("message-too-long-by-itself", [("tokens", tokens.into())]),
        }
    }

    /// Takes the place of the parts beyond the limit on their number.
    pub fn cut_short(&self, chars: usize, key: &SessionKey) -> String {
        self.text("cut-short", [("chars", chars.into()), ("key", key.to_string().into())])
    }

    /// Precedes an answer that could not be posted in its channel and is sent as a direct message; quotes the beginning
    /// of the question.
    pub fn in_person(&self, question: &str) -> String {
        self.about("in-person", question)
    }

    /// As [`in_person`](Messages::in_person), for a notice that there is no answer yet.
    pub fn in_person_notice(&self, question: &str) -> String {
        self.about("in-person-notice", question)
    }

    fn about(&self, key: &str, question: &str) -> String {
        let quoted = quotation(&shortened(question.trim(), QUOTED_CHARS));
        format!("{}\n{quoted}\n\n", self.text(key, []))
    }

    /// The reply to a message without text.
    pub fn nothing_to_read(&self) -> String {
        self.text("nothing-to-read", [])
    }

    /// The reply to somebody on the blocklist, on fronts that reply to them.
    pub fn blocked(&self) -> String {
        self.text("blocked", [])
    }

    /// What a conversation is shown of tool calls from now on.
    pub fn verbose(&self, verbosity: Verbosity) -> String {
        self.text("verbose", [("verbosity", verbosity.name().into())])
    }

    /// A tool call, shown in verbose conversations.
    pub fn mra_asked(&self, repo: &str, ok: bool, seconds: &str) -> String {
        let outcome = if ok { "ok" } else { "failed" };
        self.text("mra-asked", [("repo", repo.into()), ("outcome", outcome.into()), ("seconds", seconds.into())])
    }

    /// The model of that name gave no answer.
    pub fn no_answer(&self, error: &ModelError, model: &str) -> String {
        let id = match error.class {
            ErrorClass::UnknownModel => return self.text("model-unknown", [("model", code(model).into())]),
            ErrorClass::Overflow { .. } => "too-long",
            ErrorClass::RateLimited { .. } | ErrorClass::Overloaded { .. } => "model-busy",
            ErrorClass::Auth | ErrorClass::Billing => "model-account",
            ErrorClass::Refused => "model-refused",
            ErrorClass::Timeout => "model-timeout",
            ErrorClass::Transport => "model-unreachable",
            ErrorClass::MalformedHistory | ErrorClass::NoTools | ErrorClass::Unexplained | ErrorClass::Other => {
                "model-failed"
            }
        };
        self.text(id, [])
    }

    /// An answer was stopped on request.
    pub fn stopped(&self) -> String {
        self.text("stopped", [])
    }

    /// Take the place of a deleted question, and of its answer.
    pub fn erased(&self) -> [String; 2] {
        [self.text("erased-question", []), self.text("erased-answer", [])]
    }

    /// The model's answer contains no text for people.
    pub fn silent(&self) -> String {
        self.text("model-silent", [])
    }

    /// The model's answer reached its limit before there was any text for people.
    pub fn out_of_words(&self) -> String {
        self.text("model-out-of-words", [])
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    let errors = [
        ErrorClass::Overflow { observed_tokens: None, allowed_tokens: None, is_of_request: false },
        ErrorClass::RateLimited { retry_after: None },
        ErrorClass::Auth,
        ErrorClass::UnknownModel,
        ErrorClass::Refused,
        ErrorClass::Timeout,
        ErrorClass::Transport,
        ErrorClass::Other,
    ]
    .map(|class| ModelError::new(class, ""));
    let mut said = vec![
        messages.thinking(),
        messages.at_work(),
        messages.away(),
        messages.back(None),
        messages.back(Some(1)),
        messages.back(Some(7)),
        messages.late(7),
        messages.late(150),
        messages.late(4_000),
        messages.asking_mra("erp"),
        messages.mra_goes_on("erp", 3),
        messages.trimmed(0),
        messages.trimmed(1),
        messages.trimmed(7),
        messages.compacted(0),
        messages.compacted(7),
        messages.rotated(0),
        messages.rotated(7),
        messages.not_read(FileSkipReason::ALL.into_iter().map(|why| ("plan.pdf", why)), 7, (256, 3_600)),
        messages.told_no_words(),
        messages.too_long(),
        messages.message_too_long(9_000, Some(8_000)),
        messages.message_too_long(9_000, None),
        messages.in_person("7 + 7 = ?"),
        messages.in_person_notice("7 + 7 = ?"),
        messages.cut_short(9_000, &"slack:dm:U1".parse().expect("a key")),
        messages.nothing_to_read(),
        messages.blocked(),
        messages.verbose(Verbosity::Off),
        messages.verbose(Verbosity::Progress),
        messages.verbose(Verbosity::Summary),
        messages.mra_asked("erp", true, "3.2"),
        messages.mra_asked("erp", false, "3.2"),
        messages.silent(),
        messages.out_of_words(),
        messages.stopped(),
    ];
    said.extend(messages.erased());
    said.extend(errors.iter().map(|error| messages.no_answer(error, "llama3")));
    said
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;

    #[test]
    fn the_words_of_seed_000() {
        let messages = Messages::new(Language::TraditionalChinese);
        assert_eq!(messages.trimmed(6), ":scissors: 對話過長，已自動裁掉 6 輪舊訊息\n\n");
        assert_eq!(messages.too_long(), ":x: 對話太長，請開新 thread 重新提問");
        assert_eq!(
            messages.message_too_long(120_000, Some(8_000)),
            ":x: 這則訊息太長：約 120000 token，上限 8000，請縮短或分成幾則"
        );
    }

    /// A new session holds a summary and no turn yet; what is cut then is that summary.
    #[test]
    fn no_turns_were_said_to_be_cut() {
        for language in [Language::English, Language::TraditionalChinese] {
            let messages = Messages::new(language);
            let said = [messages.trimmed(0), messages.compacted(0), messages.rotated(0)];
            assert!(said.iter().all(|words| words.starts_with(":scissors: ") && !words.contains('0')), "{said:?}");
        }
    }

    #[test]
    fn the_words_of_seed_003() {
        let messages = Messages::new(Language::TraditionalChinese);
        assert_eq!(messages.away(), ":zzz: pmk gateway 暫離");
        assert_eq!(messages.back(Some(7)), ":wave: pmk gateway 重新上線（離線約 7 分鐘）");
        assert_eq!(messages.back(None), ":wave: pmk gateway 重新上線");
    }

    #[test]
    fn how_late_an_answer_is_is_said_in_the_unit_that_people_would_use() {
        let messages = Messages::new(Language::English);
        for (minutes, wanted) in [(7, "about 7 minutes"), (119, "119 minutes"), (130, "2 hours"), (2_880, "2 days")] {
            assert!(messages.late(minutes).contains(wanted), "{}", messages.late(minutes));
        }
    }
}
