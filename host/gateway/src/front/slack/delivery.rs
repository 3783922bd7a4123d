//! Delivers one part of a reply, in another form if Slack refuses the first one.

use std::{borrow::Cow, collections::VecDeque, time::Duration};

use reqwest::Url;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use slack_morphism::prelude::SlackMessageMetadata;

use super::{
    content::Content,
    failure::CallFailure,
    history::{self, Piece},
    limiter::Priority,
    markdown, mrkdwn,
    split::{self, MAX_PART_BYTES, PartLimit},
    web::{Slot, Web},
};
use crate::{
    chat::{Button, MessageBody, MessageRef, ReplyTo},
    front::{Delivery, FrontError, Kind},
};

/// How often a part that is too long for Slack is halved. After that, the pieces are sent as plain
/// text.
const MAX_HALVINGS: u32 = 2;

/// The pauses after which a file is uploaded again: without it, people get only the beginning of an answer.
const UPLOADED_AGAIN_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// The form in which a piece of a part is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As a `markdown` block.
    Block,
    /// As `mrkdwn`, after this many halvings.
    Text {
        halvings: u32,
    },
    Plain,
}

impl Form {
    /// Answers are sent as blocks, in which nobody is pinged.
    fn first(part: &Delivery<'_>) -> Form {
        if is_block(part) { Form::Block } else { Form::Text { halvings: 0 } }
    }

    /// Returns the pieces in which a text is first sent: a part is measured as a block, which may be longer than a text.
    /// One with buttons is tried whole, because pieces have none.
    fn pieces(self, part: &Delivery<'_>) -> Vec<String> {
        let MessageBody { text, pings } = part.speech;
        match self {
            Form::Text { .. }
                if part.buttons.is_empty() && mrkdwn::counted_len(&markdown::render(text, pings)) > MAX_PART_BYTES =>
            {
                split::split(text, PartLimit::Rendered(MAX_PART_BYTES))
            }
            _ => vec![text.clone()],
        }
    }

    /// Returns the next form to try, and the pieces to send in it.
    fn after(self, text: String) -> Option<(Form, Vec<String>)> {
        let smaller = |halvings: u32| {
            let pieces = split::split(&text, PartLimit::Rendered(MAX_PART_BYTES >> halvings));
            (Form::Text { halvings }, pieces)
        };
        match self {
            Form::Block => Some(smaller(0)),
            Form::Text { halvings: MAX_HALVINGS } => Some((Form::Plain, vec![text])),
            Form::Text { halvings } => Some(smaller(halvings + 1)),
            Form::Plain => None,
        }
    }

    /// Returns `None` if the text cannot be sent in this form.
    fn content(self, text: &str, pings: &[String]) -> Option<Content> {
        match self {
            Form::Block => Content::markdown(text),
            Form::Text { .. } => Some(Content::text(markdown::render(text, pings))),
            Form::Plain => Some(Content::text(mrkdwn::escape(text))),
        }
    }
}

/// Posts or updates a part, and returns the id of the first of its messages.
///
/// Only the last message has the tag by which the part is found again. The messages before it have tags of their own;
/// `there` lists those of them that exist, in order, for a new attempt after a failure or a crash between two of them.
pub(super) async fn message(web: &Web, part: &Delivery<'_>, there: &mut Vec<Piece>) -> Result<String, CallFailure> {
    let tag = tag(part);
    let mut replaces = part.replaces;
    let mut first = None;
    let mut gone = 0;
    let form = Form::first(part);
    let mut pieces: VecDeque<_> = form.pieces(part).into_iter().map(|piece| (piece, form)).collect();
    while let Some((text, form)) = pieces.pop_front() {
        let is_last = pieces.is_empty();
        if let Some(piece) = there.get(gone) {
            let is_it = !is_last && piece.print == history::print(gone, &text);
            if is_it {
                (replaces, gone) = (None, gone + 1);
                first.get_or_insert_with(|| piece.ts.clone());
                continue;
            }
            // Slack did not accept the piece in this form.
            if let Some((next, smaller)) = form.after(text.clone()) {
                smaller.into_iter().rev().for_each(|piece| pieces.push_front((piece, next)));
                continue;
            }
        }
        let tag = if is_last { Cow::Borrowed(&tag) } else { Cow::Owned(history::piece_tag(&tag, gone, &text)) };
        // A part that is split into pieces has no buttons.
        let is_whole = is_last && first.is_none() && matches!(form, Form::Block | Form::Text { halvings: 0 });
        let buttons = if is_whole { web.refused.allowed(part.buttons) } else { &[] };
        let refused = match form.content(&text, &part.speech.pings) {
            None => None,
            Some(content) => match put(web, part, replaces, &content, buttons, &tag).await {
                Ok(ts) => {
                    if !is_last {
                        there.truncate(gone);
                        there.push(Piece { print: history::print(gone, &text), ts: ts.clone() });
                    }
                    (replaces, gone) = (None, gone + 1);
                    first.get_or_insert(ts);
                    continue;
                }
                Err(failure) if failure.is_about_content() => Some(failure),
                // The pieces already sent must not be sent again.
                Err(failure) if failure.was_put_off() && first.is_some() && !web.limiter.is_closed() => {
                    tokio::time::sleep(failure.wait()).await;
                    pieces.push_front((text, form));
                    continue;
                }
                Err(failure) => return Err(failure),
            },
        };
        let Some((next, smaller)) = form.after(text) else {
            return refused.map_or_else(|| Ok(first.unwrap_or_default()), Err);
        };
        if let Some(failure) = refused {
            tracing::warn!(%failure, ?form, "Slack does not accept a part of a reply; sending it in another form");
        }
        smaller.into_iter().rev().for_each(|piece| pieces.push_front((piece, next)));
    }
    Ok(first.unwrap_or_default())
}

/// Returns whether the first attempt is a `markdown` block.
pub(super) fn is_block(part: &Delivery<'_>) -> bool {
    part.kind == Kind::Reply && part.speech.pings.is_empty()
}

/// Returns the tag by which the last message of a part is found again.
pub(super) fn tag(part: &Delivery<'_>) -> SlackMessageMetadata {
    history::tag(part.event_id, &name(part), part.answers)
}

/// Returns a name that distinguishes the part from the others of its event.
fn name(part: &Delivery<'_>) -> String {
    match part.kind {
        Kind::Placeholder => part.kind.name().to_owned(),
        Kind::Notice => match part.parked_at_ms {
            Some(at_ms) => format!("parked-{at_ms}"),
            // During a turn, it has the same number as the answer's first message.
            None => format!("{}-{}", part.kind.name(), part.number),
        },
        _ => part.number.to_string(),
    }
}

/// Which part pieces belong to, and in which channel: an answer that its channel refuses goes elsewhere whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PiecesOf {
    pub(super) event_id: String,
    channel: String,
    name: String,
}

impl PiecesOf {
    pub(super) fn part(part: &Delivery<'_>) -> PiecesOf {
        let (event_id, channel) = (part.event_id.to_owned(), part.reply_to.channel.clone());
        PiecesOf { event_id, channel, name: name(part) }
    }
}

/// Returns the priority of a part.
fn urgency(part: &Delivery<'_>) -> Priority {
    match part.kind {
        // A message that belongs to no question is not urgent.
        _ if part.event_id.is_empty() => Priority::Courtesy,
        Kind::Reply | Kind::Document => Priority::Answer,
        Kind::Escalation | Kind::Notice => Priority::Notice,
        Kind::Placeholder => Priority::Progress,
    }
}

async fn put(
    web: &Web,
    part: &Delivery<'_>,
    replaces: Option<&str>,
    content: &Content,
    buttons: &[Button],
    tag: &SlackMessageMetadata,
) -> Result<String, CallFailure> {
    let urgency = urgency(part);
    let put = async |content: &Content| match replaces {
        Some(ts) => web.update(&MessageRef::new(&part.reply_to.channel, ts), content, Some(tag), urgency).await,
        None => web.post(part.reply_to, content, Some(tag), urgency).await,
    };
    match put(&content.with_buttons(buttons)).await {
        Err(failure) if failure.is_about_blocks() && !buttons.is_empty() => {
            let without = put(content).await;
            if without.is_ok() {
                web.refused.learn(buttons, &failure);
            }
            without
        }
        done => done,
    }
}

/// Returns the name of the file of a long answer, by which the file is found again.
pub(super) fn file_name(part: &Delivery<'_>) -> String {
    let id: String = part.event_id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    format!("answer-{id}-{}.md", part.number)
}

#[derive(Deserialize)]
struct Place {
    upload_url: Url,
    file_id: String,
}

/// What is read of the response to sharing.
#[derive(Deserialize)]
struct Shared {
    #[serde(rename = "files")]
    _files: IgnoredAny,
}

/// Posts the text as a file, in Slack's three steps.
pub(super) async fn document(web: &Web, part: &Delivery<'_>) -> Result<(), FrontError> {
    let name = file_name(part);
    let content = part.speech.text.as_bytes();
    // In a dry run, the three steps count as one call.
    let all = json!({"channel": part.reply_to.channel, "text": part.speech.text, "filename": name});
    if let Some(answer) = web.instead_of::<_, Shared>("files.upload", &all) {
        return answer.map(drop).map_err(CallFailure::while_running);
    }
    // Until it is shared nothing has happened, so it may be repeated, and any failure may be handled in another way.
    let mut pauses = UPLOADED_AGAIN_AFTER.into_iter();
    let uploaded = loop {
        match upload(web, &name, content).await {
            Err(failure) if failure.may_pass() && !failure.was_put_off() => match pauses.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => break Err(failure),
            },
            uploaded => break uploaded,
        }
    };
    let file_id = uploaded.map_err(|failure| match failure.was_put_off() {
        true => failure.while_running(),
        false => FrontError::Refused { what: failure.to_string(), may_pass: false },
    })?;
    let ReplyTo { channel, thread_ts } = part.reply_to;
    let mut request = json!({"files": [{"id": file_id, "title": name}], "channel_id": channel});
    if let Some(thread_ts) = thread_ts {
        request["thread_ts"] = json!(thread_ts);
    }
    match web.write::<_, Shared>(&Slot::answer("files.completeUploadExternal"), &request).await {
        Ok(_) => Ok(()),
        Err(failure) if failure.is_final() => Err(FrontError::Refused { what: failure.to_string(), may_pass: false }),
        Err(failure) => Err(failure.while_running()),
    }
}

/// Does the first two steps, and returns the id of the file, which nobody sees yet.
async fn upload(web: &Web, name: &str, content: &[u8]) -> Result<String, CallFailure> {
    let length = content.len().to_string();
    let parameters = [("filename", Some(name)), ("length", Some(length.as_str()))];
    let Place { upload_url, file_id } = web.read(&Slot::answer("files.getUploadURLExternal"), &parameters).await?;
    web.send_file(upload_url, content).await?;
    Ok(file_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: everything related to a question waited among the answers, and ahead of them.
    /// What `mra` was asked while the turn ran, and an earlier time that the message was parked, were found for it.
    #[test]
    fn another_notice_was_taken_for_the_one_that_a_message_is_parked() {
        let (place, speech) = (ReplyTo { channel: "C1".into(), thread_ts: None }, MessageBody::default());
        let said = Delivery::notice("Ev1", &place, &speech);
        let parked = |at_ms| Delivery { parked_at_ms: Some(at_ms), ..said.clone() };
        assert_ne!(name(&parked(1_000)), name(&said));
        assert_ne!(name(&parked(1_000)), name(&parked(2_000)));
        assert_eq!(name(&parked(1_000)), name(&parked(1_000)));
    }

    #[test]
    fn only_answers_go_as_answers() {
        let (place, speech) = (ReplyTo { channel: "C1".into(), thread_ts: None }, MessageBody::default());
        let of = |event_id, kind| urgency(&Delivery { kind, ..Delivery::notice(event_id, &place, &speech) });
        for (kind, expected) in [
            (Kind::Reply, Priority::Answer),
            (Kind::Document, Priority::Answer),
            (Kind::Notice, Priority::Notice),
            (Kind::Escalation, Priority::Notice),
            (Kind::Placeholder, Priority::Progress),
        ] {
            assert_eq!((of("Ev1", kind), of("", kind)), (expected, Priority::Courtesy), "{kind:?}");
        }
    }
}
