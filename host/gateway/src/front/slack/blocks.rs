//! Buttons under a message, as Slack's blocks, and the meaning of a click on one.
//!
//! Slack shows the blocks of a message instead of its text, so the text is one of them. If Slack refuses the buttons,
//! the message is sent without them: for every button there is a reaction with the same meaning.

use std::sync::atomic::{AtomicBool, Ordering};

use slack_morphism::prelude::*;

use super::{
    failure::CallFailure,
    split::{self, PartLimit},
};
use crate::chat::{Button, Choice};

/// The id of the pair of thumbs, and the prefix of the ids of other buttons. Each id occurs once in a message.
const OPINION: &str = "pmk_opinion";
const WORD: &str = "pmk_word_";

/// The most characters of the text of a section.
const MAX_SECTION: usize = 3_000;

/// Returns blocks for a rendered text with these buttons; empty if there are no buttons, since the text alone suffices
/// then.
pub(super) fn blocks(rendered: &str, buttons: &[Button]) -> Vec<SlackBlock> {
    if buttons.is_empty() {
        return vec![];
    }
    let pieces = match rendered.chars().nth(MAX_SECTION) {
        None => vec![rendered.to_owned()],
        Some(_) => split::split(rendered, PartLimit::Rendered(MAX_SECTION)),
    };
    pieces.into_iter().map(section).chain([row(buttons)]).collect()
}

fn section(text: String) -> SlackBlock {
    // As everywhere, Slack makes no links and mentions of its own in it.
    let text = SlackBlockText::MarkDown(SlackBlockMarkDownText::new(text).with_verbatim(true));
    // Without this, Slack folds a long section.
    SlackSectionBlock::new().with_text(text).with_expand(true).into()
}

/// The two thumbs have an element of their own; all other buttons form a row.
pub(super) fn row(buttons: &[Button]) -> SlackBlock {
    if let Some((like, dislike)) = thumbs(buttons) {
        let thumbs = SlackBlockFeedbackButtonsElement::new(thumb(like), thumb(dislike)).with_action_id(OPINION.into());
        return SlackContextActionsBlock::new(vec![SlackContextActionBlockElement::FeedbackButtons(thumbs)]).into();
    }
    let buttons = buttons.iter().map(|button| {
        let label = SlackBlockPlainTextOnly::from(button.label.as_str());
        let name = button.choice.name();
        let shown = SlackBlockButtonElement::new(label)
            .with_action_id(format!("{WORD}{name}").into())
            .with_value(name.to_owned());
        SlackActionBlockElement::Button(shown)
    });
    SlackActionsBlock::new(buttons.collect()).into()
}

fn thumbs(buttons: &[Button]) -> Option<(&Button, &Button)> {
    let of = |choice| buttons.iter().find(|button| button.choice == choice);
    Some((of(Choice::Like)?, of(Choice::Dislike)?))
}

fn thumb(button: &Button) -> SlackFeedbackButtonItem {
    SlackFeedbackButtonItem::new(button.label.as_str().into(), button.choice.name().to_owned())
}

/// Returns the meaning of a click; `None` if it is not on a button of this module.
pub(super) fn choice(action_id: &str, value: &str) -> Option<Choice> {
    let choice = Choice::from_name(value)?;
    let is_ours = match choice {
        Choice::Like | Choice::Dislike => action_id == OPINION,
        Choice::Yes | Choice::No | Choice::Again => action_id.strip_prefix(WORD) == Some(value),
    };
    is_ours.then_some(choice)
}

/// The buttons that Slack refuses: they are not offered again before the next start.
#[derive(Debug, Default)]
pub(super) struct Refused {
    thumbs: AtomicBool,
    words: AtomicBool,
}

impl Refused {
    /// Returns those of these buttons that may be shown: all or none.
    pub(super) fn allowed<'a>(&self, buttons: &'a [Button]) -> &'a [Button] {
        if self.of(buttons).load(Ordering::Relaxed) { &[] } else { buttons }
    }

    /// Notes why a message with these buttons was refused.
    pub(super) fn learn(&self, buttons: &[Button], failure: &CallFailure) {
        tracing::warn!(%failure, "Slack does not accept the buttons of a message; sending it without them");
        if failure.is_about_form() {
            self.of(buttons).store(true, Ordering::Relaxed);
        }
    }

    fn of(&self, buttons: &[Button]) -> &AtomicBool {
        if thumbs(buttons).is_some() { &self.thumbs } else { &self.words }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn button(choice: Choice, label: &str) -> Button {
        Button { choice, label: label.to_owned() }
    }

    fn shown(text: &str, buttons: &[Button]) -> Value {
        serde_json::to_value(blocks(text, buttons)).expect("blocks")
    }

    /// Regression: in the text above buttons, Slack made links and mentions of its own.
    #[test]
    fn the_text_is_among_the_blocks_and_every_button_says_what_it_is() {
        let words = [button(Choice::Yes, "Approve"), button(Choice::No, "Reject")];
        let shown = shown("*Is it so?*", &words);
        let text = json!({"type": "mrkdwn", "text": "*Is it so?*", "verbatim": true});
        assert_eq!(shown[0], json!({"type": "section", "text": text, "expand": true}));
        let button = |name: &str, label: &str| {
            json!({"type": "button", "action_id": format!("pmk_word_{name}"), "value": name,
                   "text": {"type": "plain_text", "text": label}})
        };
        assert_eq!(
            shown[1],
            json!({"type": "actions", "elements": [button("yes", "Approve"), button("no", "Reject")]})
        );
        assert_eq!((choice("pmk_word_yes", "yes"), choice("pmk_word_no", "no")), (Some(Choice::Yes), Some(Choice::No)));
    }

    #[test]
    fn thumbs_are_one_element() {
        let shown = shown("An answer.", &[button(Choice::Like, "Good"), button(Choice::Dislike, "Bad")]);
        let thumb = |label: &str, value: &str| json!({"text": {"type": "plain_text", "text": label}, "value": value});
        let element = json!({"type": "feedback_buttons", "action_id": "pmk_opinion",
            "positive_button": thumb("Good", "like"), "negative_button": thumb("Bad", "dislike")});
        assert_eq!(shown[1], json!({"type": "context_actions", "elements": [element]}));
        assert_eq!(choice("pmk_opinion", "like"), Some(Choice::Like));
    }

    #[test]
    fn without_buttons_the_text_alone_will_do_and_a_long_one_takes_several_sections() {
        assert_eq!(shown("An answer.", &[]), json!([]));
        let long = "A line of some length.\n".repeat(160);
        let blocks = shown(&long, &[button(Choice::Yes, "Yes")]);
        let sections = &blocks.as_array().expect("a list")[..2];
        let texts: Vec<&str> = sections.iter().filter_map(|block| block["text"]["text"].as_str()).collect();
        assert!(texts.iter().all(|text| text.chars().count() <= MAX_SECTION), "{texts:?}");
        assert_eq!(texts.concat(), long);
    }

    #[test]
    fn what_is_not_ours_says_nothing() {
        for (action_id, value) in
            [("approve", "yes"), ("pmk_word_yes", "no"), ("pmk_opinion", "yes"), ("pmk_word_like", "like"), ("", "")]
        {
            assert_eq!(choice(action_id, value), None, "{action_id} {value}");
        }
    }
}
