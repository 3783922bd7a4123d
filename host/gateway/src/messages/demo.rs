//! Texts of `pmk-host demo`.

use super::Messages;

impl Messages {
    /// What is shown, and the window.
    pub fn demo_title(&self, turns: usize, lanes: usize, window: &str) -> String {
        self.text("demo-title", [("turns", turns.into()), ("lanes", lanes.into()), ("window", window.into())])
    }

    /// The name of a lane: its policy's, if it has one.
    pub fn demo_lane(&self, policy: Option<&str>) -> String {
        policy.map_or_else(|| self.text("demo-none", []), str::to_owned)
    }

    /// The description of a lane.
    pub fn demo_about(&self, policy: Option<&str>) -> String {
        self.text(if policy.is_some() { "demo-policy-about" } else { "demo-none-about" }, [])
    }

    /// The current question, counted from 1.
    pub fn demo_question(&self, turn: usize, turns: usize, asked: &str) -> String {
        self.text("demo-question", [("turn", turn.into()), ("turns", turns.into()), ("asked", asked.into())])
    }

    /// How often the model has refused.
    pub fn demo_refused(&self, refused: u64) -> String {
        self.text("demo-refused", [("refused", refused.into())])
    }

    /// The model refuses a request of this many tokens.
    pub fn demo_refuses(&self, tokens: &str) -> String {
        self.text("demo-refuses", [("tokens", tokens.into())])
    }

    /// The rungs by which a conversation was recovered.
    pub fn demo_recovered(&self, rungs: &str) -> String {
        self.text("demo-recovered", [("rungs", rungs.into())])
    }

    /// A rung by its name.
    pub fn demo_rung(&self, rung: &str) -> String {
        self.text("demo-rung", [("rung", rung.into())])
    }

    /// The model's answer in a lane.
    pub fn demo_says(&self, lane: &str, answer: &str) -> String {
        self.text("demo-says", [("lane", lane.into()), ("answer", answer.into())])
    }

    /// How many turns the model does not see.
    pub fn demo_left_out(&self, turns: u32) -> String {
        self.text("demo-left-out", [("turns", turns.into())])
    }

    /// The last question, which follows the thread.
    pub fn demo_asked(&self, turn: usize) -> String {
        self.text("demo-asked", [("turn", turn.into())])
    }

    /// Takes the place of an answer.
    pub fn demo_no_answer(&self) -> String {
        self.text("demo-no-answer", [])
    }

    /// How many messages the model was shown again.
    pub fn demo_recalled(&self, messages: usize) -> String {
        self.text("demo-recalled", [("messages", messages.into())])
    }

    /// The columns: policy, largest request, refusals, rungs, turns left out, messages recalled, answer.
    pub fn demo_headings(&self) -> [String; 7] {
        ["policy", "largest", "refused", "recovery", "left-out", "recalled", "found"]
            .map(|column| self.text(&format!("demo-heading-{column}"), []))
    }

    /// Whether the last answer is right.
    pub fn demo_verdict(&self, found: bool) -> String {
        self.text(if found { "demo-right" } else { "demo-wrong" }, [])
    }

    /// What to try next: the heading, and what running and comparing offer.
    pub fn demo_next(&self) -> [String; 3] {
        ["demo-next", "demo-next-run", "demo-next-compare"].map(|id| self.text(id, []))
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    let mut said = vec![
        messages.demo_title(20, 3, "8,000"),
        messages.demo_lane(None),
        messages.demo_about(None),
        messages.demo_about(Some("strict")),
        messages.demo_question(1, 20, "why?"),
        messages.demo_refuses("8,001"),
        messages.demo_recovered(&messages.demo_rung("trim")),
        messages.demo_says("strict", "8"),
        messages.demo_asked(2),
        messages.demo_no_answer(),
        messages.demo_verdict(true),
        messages.demo_verdict(false),
    ];
    said.extend([0, 1, 2].map(|refused| messages.demo_refused(refused)));
    said.extend([1, 2].map(|turns| messages.demo_left_out(turns)));
    said.extend([1, 2].map(|found| messages.demo_recalled(found)));
    said.extend(["trim", "compact", "rotate", "give-up"].map(|rung| messages.demo_rung(rung)));
    said.extend(messages.demo_headings());
    said.extend(messages.demo_next());
    said
}
