//! What stands on buttons, and what somebody is told whose click has no effect.

use super::Messages;
use crate::chat::{Button, Choice};

impl Messages {
    /// Under an answer: what people think of it.
    pub fn opinion_buttons(&self) -> Vec<Button> {
        self.buttons([(Choice::Like, "button-like"), (Choice::Dislike, "button-dislike")])
    }

    /// Under a notice: whether an atom is to be used.
    pub fn verdict_buttons(&self) -> Vec<Button> {
        self.buttons([(Choice::Yes, "button-approve"), (Choice::No, "button-reject")])
    }

    /// Under a question to one person.
    pub fn yes_and_no_buttons(&self) -> Vec<Button> {
        self.buttons([(Choice::Yes, "button-yes"), (Choice::No, "button-no")])
    }

    /// Under what is said where the model could not be reached.
    pub fn again_button(&self) -> Vec<Button> {
        self.buttons([(Choice::Again, "button-again")])
    }

    /// To somebody who has pressed what is for another person.
    pub fn not_theirs(&self) -> String {
        self.text("not-theirs", [])
    }

    /// The same, where a question is to be asked once more.
    pub fn not_theirs_again(&self) -> String {
        self.text("not-theirs-again", [])
    }

    /// To somebody who has pressed what nobody waits for any more.
    pub fn not_awaited(&self) -> String {
        self.text("not-awaited", [])
    }

    /// In the place of what was said where the model could not be reached, from when the question is asked once more.
    pub fn asked_once_more(&self) -> String {
        self.text("asked-once-more", [])
    }

    /// To somebody who wants a question asked once more that is gone, or waits already.
    pub fn nothing_again(&self) -> String {
        self.text("nothing-again", [])
    }

    fn buttons<const MANY: usize>(&self, buttons: [(Choice, &str); MANY]) -> Vec<Button> {
        buttons.map(|(choice, id)| Button { choice, label: self.text(id, []) }).into()
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    let buttons = [
        messages.opinion_buttons(),
        messages.verdict_buttons(),
        messages.yes_and_no_buttons(),
        messages.again_button(),
    ];
    let labels = buttons.into_iter().flatten().map(|button| button.label);
    let told = [
        messages.not_theirs(),
        messages.not_theirs_again(),
        messages.not_awaited(),
        messages.asked_once_more(),
        messages.nothing_again(),
    ];
    labels.chain(told).collect()
}
