//! The labels of buttons, and the replies to clicks that have no effect.

use super::Messages;
use crate::chat::{Button, Choice};

impl Messages {
    /// The buttons under an answer: thumbs up and down.
    pub fn opinion_buttons(&self) -> Vec<Button> {
        self.buttons([(Choice::Like, "button-like"), (Choice::Dislike, "button-dislike")])
    }

    /// The buttons under a notice about an atom: approve or reject.
    pub fn verdict_buttons(&self) -> Vec<Button> {
        self.buttons([(Choice::Yes, "button-approve"), (Choice::No, "button-reject")])
    }

    /// The buttons under a question to one person.
    pub fn yes_and_no_buttons(&self) -> Vec<Button> {
        self.buttons([(Choice::Yes, "button-yes"), (Choice::No, "button-no")])
    }

    /// The button under a notice that the model could not be reached.
    pub fn again_button(&self) -> Vec<Button> {
        self.buttons([(Choice::Again, "button-again")])
    }

    /// To somebody who pressed a button meant for another person.
    pub fn not_theirs(&self) -> String {
        self.text("not-theirs", [])
    }

    /// The same, for the button that asks a question again.
    pub fn not_theirs_again(&self) -> String {
        self.text("not-theirs-again", [])
    }

    /// To somebody who pressed a button whose question is settled.
    pub fn not_awaited(&self) -> String {
        self.text("not-awaited", [])
    }

    /// Replaces the notice that the model could not be reached, once the question is asked again.
    pub fn asked_once_more(&self) -> String {
        self.text("asked-once-more", [])
    }

    /// To somebody who wants to have a question asked again that is gone, or that is waiting already.
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
