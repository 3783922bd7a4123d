//! What the model is told about the results of its directives, and about an answer that it should pass on.

use super::Messages;
use crate::{
    directive::{AvailableDirectives, DirectiveError, Kind, tools::BadCall},
    escalation::{Marker, reading},
    mra::{BadQuestion, Failure, MAX_QUESTION_CHARS, Outcome},
};

impl Messages {
    /// The outcome of a question to `mra`, as a user message or a tool result. An imported history recognizes it by its
    /// first line. A success is still subject to the policy's cap.
    pub fn mra_outcome(&self, outcome: &Outcome) -> String {
        let call = outcome.question.shown();
        match &outcome.result {
            Ok(answer) => format!("{}\n\n{answer}", self.text("mra-found", [("call", call.into())])),
            Err(failure) => format!(
                "{}\n{}\n\n{}",
                self.text("mra-went-wrong", [("call", call.into())]),
                self.mra_failure(failure),
                self.text("mra-say-so", [])
            ),
        }
    }

    /// A question that was not put to `mra`. It begins like every failure of `mra`.
    pub fn mra_refused(&self, call: &str, why: &str) -> String {
        format!("{}\n{why}", self.text("mra-went-wrong", [("call", call.into())]))
    }

    fn mra_failure(&self, failure: &Failure) -> String {
        let (what, stderr, stdout) = match failure {
            Failure::NotStarted { message } => {
                return self.text("mra-not-started", [("message", self.error(message).into())]);
            }
            Failure::Cancelled => return self.text("mra-cancelled", []),
            Failure::Exited { code, stderr, stdout } => {
                (self.text("mra-exited", [("code", code.to_string().into())]), stderr, stdout.as_str())
            }
            Failure::Signalled { signal, stderr, stdout } => {
                (self.text("mra-signalled", [("signal", signal.to_string().into())]), stderr, stdout.as_str())
            }
            Failure::NoAnswer { stderr } => (self.text("mra-printed-nothing", []), stderr, ""),
            Failure::TimedOut { after, stderr, stdout } => {
                let seconds = after.as_secs_f64().to_string();
                (self.text("mra-timed-out", [("seconds", seconds.into())]), stderr, stdout.as_str())
            }
        };
        let said = match stderr.as_str() {
            "" => self.text("mra-without-a-word", [("what", what.into())]),
            stderr => format!("{what}\nstderr:\n{stderr}"),
        };
        if stdout.is_empty() { said } else { format!("{said}\nstdout:\n{stdout}") }
    }

    /// Why `mra` cannot be asked that.
    pub fn bad_question(&self, bad: &BadQuestion) -> String {
        match bad {
            BadQuestion::NoRepo => self.text("bad-no-repo", []),
            BadQuestion::BadRepo(repo) => self.text("bad-repo", [("repo", repo.as_str().into())]),
            BadQuestion::NoQuestion => self.text("bad-no-question", []),
            BadQuestion::TooLong { chars } => self.text(
                "bad-long-question",
                [("chars", chars.to_string().into()), ("most", MAX_QUESTION_CHARS.to_string().into())],
            ),
        }
    }

    /// Why a tool call cannot be carried out, given the offered directives.
    pub fn bad_call(&self, bad: &BadCall, offer: AvailableDirectives) -> String {
        match bad {
            BadCall::UnknownTool(tool) => {
                let tools: Vec<String> = offer.kinds().map(|kind| format!("`{}`", kind.tool())).collect();
                match tools.as_slice() {
                    [] => self.text("bad-tool-none", [("tool", tool.as_str().into())]),
                    tools => {
                        self.text("bad-tool", [("tool", tool.as_str().into()), ("tools", self.listed(tools).into())])
                    }
                }
            }
            BadCall::MissingInput { tool, key } => {
                self.text("bad-input", [("tool", (*tool).into()), ("key", (*key).into())])
            }
        }
    }

    /// What is wrong with fenced directives, and how to write one.
    pub fn flawed(&self, flaws: &[DirectiveError]) -> String {
        let flaws: Vec<String> = flaws.iter().map(|flaw| self.flaw(flaw)).collect();
        self.text("flawed", [("flaws", flaws.join(self.language.pick("; ", "；")).into())])
    }

    /// The same for directives beside one that is carried out.
    pub fn flawed_too(&self, flaws: &[DirectiveError]) -> String {
        self.text("flawed-too", [("flawed", self.flawed(flaws).into())])
    }

    fn flaw(&self, flaw: &DirectiveError) -> String {
        match flaw {
            DirectiveError::MissingKey { kind, key } => {
                self.text("flaw-key", [("tag", kind.tag().into()), ("key", (*key).into())])
            }
            DirectiveError::Unterminated { kind } => self.text("flaw-open", [("tag", kind.tag().into())]),
            DirectiveError::Extra { kind } => self.text("flaw-extra", [("tag", kind.tag().into())]),
        }
    }

    /// It requests more than is allowed.
    pub fn told_used_up(&self) -> String {
        self.text("told-used-up", [])
    }

    /// It repeats a directive that somebody else wrote.
    pub fn told_echo(&self) -> String {
        self.text("told-echo", [])
    }

    /// It writes a directive beside its tool calls.
    pub fn told_beside_calls(&self, kind: Kind) -> String {
        self.text("told-beside-calls", [("tool", kind.tool().into())])
    }

    /// There is no code for `mra` to search.
    pub fn told_no_code(&self) -> String {
        self.text("told-no-code", [])
    }

    /// The operator's list has no such repository.
    pub fn told_not_listed(&self, repo: &str, listed: &str) -> String {
        self.text("told-not-listed", [("repo", repo.into()), ("listed", listed.into())])
    }

    /// The hourly limit is reached; `of` is what the limit applies to.
    pub fn told_bounded(&self, most: u32, of: &'static str) -> String {
        match most {
            0 => self.text("told-switched-off", []),
            most => self.text("told-bounded", [("most", most.into()), ("of", of.into())]),
        }
    }

    /// A contact's answer is already there to be passed on.
    pub fn told_just_answered(&self) -> String {
        self.text("told-just-answered", [])
    }

    /// It wants to put a second question to people.
    pub fn told_already(&self) -> String {
        self.text("told-already", [])
    }

    /// Its question would take several messages: contacts get a question in full, or not at all.
    pub fn told_too_long(&self) -> String {
        self.text("told-too-long", [])
    }

    /// There are no contacts.
    pub fn told_nobody(&self) -> String {
        self.text("told-nobody", [])
    }

    /// The contacts can neither read a direct message of several people nor be added to it.
    pub fn told_in_group(&self) -> String {
        self.text("told-in-group", [])
    }

    /// Its question is shown to the asker first.
    pub fn told_proposed(&self) -> String {
        self.text("told-proposed", [])
    }

    /// Its question was put to the contacts, in the thread or separately.
    pub fn told_asked(&self, apart: bool) -> String {
        self.text(if apart { "told-asked-apart" } else { "told-asked" }, [])
    }

    /// The text in the conversation for a contact's reply: the question, and the answer verbatim.
    pub fn pass_on(&self, marker: &Marker, user: &str, reply: &str) -> String {
        let question = self.text("pass-on-question", [("question", marker.question.as_str().into())]);
        let mut text = format!("{}\n\n{question}\n", self.text("pass-on", []));
        if let Some(reason) = marker.reason.as_deref() {
            text.extend([&*self.text("pass-on-reason", [("reason", reason.into())]), "\n"]);
        }
        if !marker.exchange.is_empty() {
            let said: Vec<String> = marker.exchange.iter().map(reading::line).collect();
            text.extend([&*self.text("pass-on-exchange", []), "\n", &said.join("\n"), "\n"]);
        }
        text + &self.text("pass-on-reply", [("user", user.into())]) + "\n" + reply
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    let marker: Marker = serde_json::from_value(serde_json::json!({
        "channelId": "C1", "threadTs": "1.2", "question": "q", "reason": "r", "pendingSince": 1,
        "mentionedUserIds": ["U2"], "askerUserId": "U1", "exchange": [{"userId": "U2", "text": "t"}],
    }))
    .expect("a marker");
    let bad = [
        BadQuestion::NoRepo,
        BadQuestion::BadRepo("../x".into()),
        BadQuestion::NoQuestion,
        BadQuestion::TooLong { chars: 10_001 },
    ];
    let flaws = [
        DirectiveError::MissingKey { kind: Kind::MraAsk, key: "repo" },
        DirectiveError::Unterminated { kind: Kind::Escalate },
        DirectiveError::Extra { kind: Kind::Escalate },
    ];
    let mut said = vec![
        messages.mra_refused("mra ask erp q", "why"),
        messages.bad_call(&BadCall::UnknownTool("bash".into()), AvailableDirectives::ALL),
        messages.bad_call(&BadCall::UnknownTool("bash".into()), AvailableDirectives { mra: false, people: false }),
        messages.bad_call(&BadCall::MissingInput { tool: "mra_ask", key: "repo" }, AvailableDirectives::ALL),
        messages.flawed(&flaws),
        messages.flawed_too(&flaws),
        messages.told_used_up(),
        messages.told_echo(),
        messages.told_beside_calls(Kind::MraAsk),
        messages.told_no_code(),
        messages.told_not_listed("x", "`erp`"),
        messages.told_bounded(0, "person"),
        messages.told_bounded(2, "person"),
        messages.told_bounded(2, "conversation"),
        messages.told_just_answered(),
        messages.told_already(),
        messages.told_too_long(),
        messages.told_nobody(),
        messages.told_in_group(),
        messages.told_proposed(),
        messages.told_asked(false),
        messages.told_asked(true),
        messages.pass_on(&marker, "U2", "yes"),
    ];
    said.extend(bad.iter().map(|bad| messages.bad_question(bad)));
    said.extend(tests::outcomes().iter().map(|outcome| messages.mra_outcome(outcome)));
    said
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pmk_core::{History, Language, Origin};
    use serde_json::json;

    use super::*;
    use crate::mra::MraQuestion;

    fn outcome(result: Result<&str, Failure>) -> Outcome {
        Outcome {
            question: MraQuestion::new("erp", "where is `x`?\nand y?").expect("a good question"),
            result: result.map(str::to_owned),
            retried: true,
            duration: Duration::from_millis(1234),
        }
    }

    /// One of each kind.
    pub(super) fn outcomes() -> Vec<Outcome> {
        let (stderr, stdout) = ("fatal: 42\n  at line 3".to_owned(), "[ask] reading\nno such index".to_owned());
        vec![
            outcome(Ok("in app/models")),
            outcome(Err(Failure::NotStarted { message: "no such file".into() })),
            outcome(Err(Failure::Cancelled)),
            outcome(Err(Failure::Exited { code: 2, stderr: stderr.clone(), stdout })),
            outcome(Err(Failure::Signalled { signal: 9, stderr, stdout: String::new() })),
            outcome(Err(Failure::NoAnswer { stderr: String::new() })),
            outcome(Err(Failure::TimedOut {
                after: Duration::from_secs(300),
                stderr: String::new(),
                stdout: String::new(),
            })),
        ]
    }

    #[test]
    fn histories_recognise_every_outcome_in_either_language() {
        for messages in Language::ALL.map(Messages::new) {
            for outcome in outcomes() {
                let text = messages.mra_outcome(&outcome);
                let file = json!({"messages": [
                    {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
                    {"role": "user", "content": text},
                ]});
                let history = History::parse(&file.to_string()).expect("a history");
                assert_eq!(history.messages[2].origin, Origin::MraResult, "{text}");
            }
        }
    }

    /// Regression: half of it was English, and that it was not started was said twice.
    #[test]
    fn a_program_that_was_not_found_was_told_in_two_languages() {
        let messages = Messages::new(Language::TraditionalChinese);
        assert_eq!(
            messages.mra_failure(&Failure::NotStarted { message: "`mra` was not found".into() }),
            "找不到 `mra`"
        );
    }

    #[test]
    fn tools_were_named_with_the_commas_of_another_language() {
        let bad = BadCall::UnknownTool("bash".into());
        let told = Messages::new(Language::TraditionalChinese).bad_call(&bad, AvailableDirectives::ALL);
        assert!(told.contains("`、`") && !told.contains("`, `"), "{told}");
    }

    #[test]
    fn flaws_were_told_with_the_semicolons_of_another_language() {
        let flaws =
            [DirectiveError::Unterminated { kind: Kind::MraAsk }, DirectiveError::Extra { kind: Kind::Escalate }];
        let told = |language: Language| Messages::new(language).flawed(&flaws);
        let chinese = told(Language::TraditionalChinese);
        assert!(chinese.contains("沒有結尾；`") && !chinese.contains("; "), "{chinese}");
        let english = told(Language::English);
        assert!(english.contains("without an end; `"), "{english}");
    }

    #[test]
    fn a_failure_is_told_verbatim() {
        let told = |language: Language| Messages::new(language).mra_outcome(&outcomes()[3]);
        let says = "\nstderr:\nfatal: 42\n  at line 3\nstdout:\n[ask] reading\nno such index\n\n";
        let call = "`mra ask erp where is 'x'? and y?`";
        assert!(told(Language::English).starts_with(&format!("{call} failed:\nexit code 2{says}")));
        assert!(told(Language::TraditionalChinese).starts_with(&format!("{call} 失敗：\n結束代碼 2{says}")));
        let silent = Messages::new(Language::English).mra_outcome(&outcomes()[6]);
        assert!(silent.contains("\nno answer within 300 s, nothing on stderr\n"), "{silent}");
    }
}
