//! Getting one part of a reply to its reader, in another form where Slack will not have this one.

use std::collections::VecDeque;

use reqwest::Url;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use slack_morphism::prelude::SlackMessageMetadata;

use super::{
    blocks,
    failure::CallFailure,
    history, markdown, mrkdwn,
    split::{self, MAX_PART_BYTES},
    web::Web,
};
use crate::{
    front::{Delivery, FrontError, Kind},
    talk::{Button, ReplyTo},
};

/// How often a part that is too long for Slack is halved. After that the pieces go as plain text.
const MAX_HALVINGS: u32 = 2;

/// Posts or updates a part, and returns the first message it has become.
///
/// Only the last message carries the tag by which the part is found again, so a crash between two halves
/// repeats the first.
pub(super) async fn message(web: &Web, part: &Delivery<'_>) -> Result<String, CallFailure> {
    let tag = tag(part);
    let mut replaces = part.replaces;
    let mut first = None;
    let mut pieces = VecDeque::from([(part.speech.text.clone(), 0)]);
    while let Some((text, halvings)) = pieces.pop_front() {
        let plain = halvings > MAX_HALVINGS;
        let rendered = if plain { mrkdwn::escape(&text) } else { markdown::render(&text, &part.speech.pings) };
        let tag = pieces.is_empty().then(|| tag.clone());
        // What goes in halves is no message that anybody could be asked about.
        let buttons = if halvings == 0 { web.refused.allowed(part.buttons) } else { &[] };
        match put(web, part.reply_to, replaces, &rendered, buttons, tag).await {
            Ok(ts) => {
                replaces = None;
                first.get_or_insert(ts);
            }
            Err(failure) if failure.is_about_content() && !plain => {
                tracing::warn!(%failure, halvings, "Slack does not take a part of a reply; it goes in smaller ones");
                let halves = match halvings {
                    MAX_HALVINGS => vec![text],
                    _ => split::split(&text, MAX_PART_BYTES >> (halvings + 1)),
                };
                halves.into_iter().rev().for_each(|half| pieces.push_front((half, halvings + 1)));
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(first.unwrap_or_default())
}

/// By which the last message of a part is found again.
pub(super) fn tag(part: &Delivery<'_>) -> SlackMessageMetadata {
    match part.kind {
        Kind::Placeholder => history::tag(part.event_id, part.kind.name()),
        _ => history::tag(part.event_id, &part.number.to_string()),
    }
}

async fn put(
    web: &Web,
    place: &ReplyTo,
    replaces: Option<&str>,
    rendered: &str,
    buttons: &[Button],
    tag: Option<SlackMessageMetadata>,
) -> Result<String, CallFailure> {
    let put = async |blocks| match replaces {
        Some(ts) => web.update(&place.channel, ts, rendered.to_owned(), blocks).await,
        None => web.post(place, rendered.to_owned(), blocks, tag.clone()).await,
    };
    match put(blocks::blocks(rendered, buttons)).await {
        Err(failure) if failure.is_about_blocks() && !buttons.is_empty() => {
            web.refused.learn(buttons, &failure);
            put(vec![]).await
        }
        done => done,
    }
}

/// The name of the file that a long answer goes in; by it the file is found again.
pub(super) fn file_name(part: &Delivery<'_>) -> String {
    let id: String = part.event_id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    format!("answer-{id}-{}.md", part.number)
}

#[derive(Deserialize)]
struct Place {
    upload_url: Url,
    file_id: String,
}

/// What is read of the answer to sharing.
#[derive(Deserialize)]
struct Shared {
    #[serde(rename = "files")]
    _files: IgnoredAny,
}

/// Posts the text as a file, in Slack's three steps.
pub(super) async fn document(web: &Web, part: &Delivery<'_>) -> Result<(), FrontError> {
    let name = file_name(part);
    let content = part.speech.text.as_bytes();
    // Its three steps are one call.
    let all = json!({"channel": part.reply_to.channel, "text": part.speech.text, "filename": name});
    if let Some(answer) = web.instead_of::<_, Shared>("files.upload", &all) {
        return answer.map(drop).map_err(CallFailure::while_running);
    }
    // Until it is shared nothing has happened, so that every failure is one to go another way for.
    let uploaded = upload(web, &name, content).await;
    let file_id = uploaded.map_err(|failure| FrontError::Refused { what: failure.to_string() })?;
    let ReplyTo { channel, thread_ts } = part.reply_to;
    let mut request = json!({"files": [{"id": file_id, "title": name}], "channel_id": channel});
    if let Some(thread_ts) = thread_ts {
        request["thread_ts"] = json!(thread_ts);
    }
    match web.write::<_, Shared>(("files.completeUploadExternal", None), &request).await {
        Ok(_) => Ok(()),
        Err(failure) if failure.is_final() => Err(FrontError::Refused { what: failure.to_string() }),
        Err(failure) => Err(failure.while_running()),
    }
}

/// The first two: the id of a file that nobody sees yet.
async fn upload(web: &Web, name: &str, content: &[u8]) -> Result<String, CallFailure> {
    let length = content.len().to_string();
    let parameters = [("filename", Some(name)), ("length", Some(length.as_str()))];
    let Place { upload_url, file_id } = web.read("files.getUploadURLExternal", &parameters).await?;
    web.send_file(upload_url, content).await?;
    Ok(file_id)
}
