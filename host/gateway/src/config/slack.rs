//! The `slack` section of gateway.json, except for the tokens.

use serde::Deserialize;
use serde_json::json;

use super::{
    sections::Feedback,
    shape::{Key, Shape, plainly},
};
use crate::front::slack::{MOST_PROMPTS, Places, Prompt, ReplyIn, Stream};

/// The highest limit for files, in KiB.
const MOST_FILE_KIB: u64 = 16 * 1024;

/// In base64 this is the limit of five megabytes that Anthropic has for an image.
const MAX_IMAGE_KIB: u32 = 3_600;

/// How the bot behaves in Slack.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlackSettings {
    /// Where a mention outside a thread is answered.
    pub reply_in: ReplyIn,
    /// Whether a person who mentioned the bot in a thread needs no further mention there until somebody else writes.
    pub follow_threads: bool,
    /// Whether answers are shown while they are generated.
    pub stream: Stream,
    /// Whether messages that are deleted in Slack are erased here, too.
    pub follow_deletes: bool,
    /// Which answers have thumbs up and down buttons.
    pub feedback: Feedback,
    /// The largest text file that is read; 0 reads none.
    #[serde(rename = "maxFileKiB")]
    pub max_file_kib: u32,
    /// The largest image that is sent to the model; 0 sends none.
    #[serde(rename = "maxImageKiB")]
    pub max_image_kib: u32,
    /// Whether a thread is read when the bot is first mentioned in it.
    pub read_threads: bool,
    /// Suggestions for people who open their direct message with the bot.
    pub suggested_prompts: Vec<Prompt>,
}

impl Default for SlackSettings {
    fn default() -> Self {
        let Places { reply_in, follow_threads } = Places::default();
        SlackSettings {
            reply_in,
            follow_threads,
            stream: Stream::default(),
            follow_deletes: true,
            feedback: Feedback::default(),
            max_file_kib: 256,
            max_image_kib: MAX_IMAGE_KIB,
            read_threads: true,
            suggested_prompts: vec![],
        }
    }
}

impl SlackSettings {
    /// Returns where questions are recognized and where they are answered.
    pub fn places(&self) -> Places {
        Places { reply_in: self.reply_in, follow_threads: self.follow_threads }
    }
}

/// The keys of the section.
pub(super) fn keys() -> Vec<Key> {
    let SlackSettings {
        reply_in,
        follow_threads,
        stream,
        follow_deletes,
        max_file_kib,
        max_image_kib,
        read_threads,
        ..
    } = SlackSettings::default();
    let words = Shape::Word { words: ReplyIn::ALL.map(ReplyIn::name).to_vec(), any_case: false };
    let prompts = Shape::List {
        of: Box::new(Shape::object(vec![
            Key::new("title", some_text(), "What the person sees.").needed(),
            Key::new("message", some_text(), "The message that is sent when they choose it.").needed(),
        ])),
        least: 0,
        most: Some(MOST_PROMPTS),
        noun: "a list of prompts",
    };
    vec![
        Key::new("appToken", Shape::Secret, "The app-level token, xapp-….").after("PMK_SLACK_APP_TOKEN").or_null(),
        Key::new("botToken", Shape::Secret, "The bot token, xoxb-….").after("PMK_SLACK_BOT_TOKEN").or_null(),
        Key::new(
            "replyIn",
            words,
            "Where a mention outside a thread is answered: in the channel, or in a thread that starts with it.",
        )
        .or(reply_in.name()),
        Key::new(
            "followThreads",
            Shape::Flag,
            "Whether a person who mentioned the bot in a thread needs no further mention there until somebody else writes.",
        )
        .or(follow_threads),
        Key::new(
            "stream",
            Shape::Word { words: Stream::ALL.map(Stream::name).to_vec(), any_case: false },
            "Whether answers in threads are shown while they are generated: where possible, or never.",
        )
        .or(stream.name()),
        Key::new("followDeletes", Shape::Flag, "Whether messages that are deleted in Slack are erased here, too.")
            .or(follow_deletes),
        Key::new(
            "suggestedPrompts",
            prompts,
            "Suggestions for people who open their direct message with the bot.",
        )
        .or(json!([])),
        Key::new(
            "feedback",
            Shape::Word { words: vec!["auto", "on", "off"], any_case: false },
            "Which answers have thumbs up and down buttons: those of an experiment, all, or none.",
        )
        .or("auto"),
        Key::new(
            "maxFileKiB",
            Shape::Whole(0..=MOST_FILE_KIB),
            "The largest attached text file that is read; 0 reads none.",
        )
        .or(max_file_kib),
        Key::new(
            "maxImageKiB",
            Shape::Whole(0..=MOST_FILE_KIB),
            "The largest attached image that the model is shown; 0 shows none.",
        )
        .or(max_image_kib),
        Key::new(
            "readThreads",
            Shape::Flag,
            "Whether a thread is read when the bot is first mentioned in it.",
        )
        .or(read_threads),
        Key::new("botUserId", Shape::Kept, "pmk's; kept, not used."),
        Key::new("workspaceName", Shape::Kept, "pmk's; kept, not used."),
    ]
}

fn some_text() -> Shape {
    Shape::Like {
        is_it: |text| !text.trim().is_empty(),
        pattern: r"\S".to_owned(),
        noun: "a non-empty string".to_owned(),
        shown: plainly,
    }
}
