//! The record of an awaited answer.

use pmk_core::SessionKey;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{chat::ReplyTo, ids::TurnId};

/// A thread that waits for a contact's answer. Its JSON form is what pmk writes to
/// `escalations/CHANNEL__THREAD.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    pub channel_id: String,
    /// The `ts` of the thread's first message.
    pub thread_ts: String,
    /// The question, as the model phrased it.
    pub question: String,
    /// The repository it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when it is pending, in milliseconds since 1970.
    pub pending_since: u64,
    /// Who may answer.
    pub mentioned_user_ids: Vec<String>,
    /// Who gets the answer; older versions of pmk did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker_user_id: Option<String>,
    /// What was searched before anybody was asked. This field and the following ones do not exist
    /// in pmk.
    #[serde(default, skip_serializing_if = "PriorAttempts::is_nothing")]
    pub tried: PriorAttempts,
    /// The asker's conversation, if contacts cannot see it; then each of them is asked in a direct message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<PrivateConversation>,
    /// What asker and contacts have written to each other about it before there was an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchange: Vec<EscalationRemark>,
    /// The turn that has asked: several questions may be asked in one thread, one after the other. `None` for one that
    /// nobody was asked yet, and for those of pmk and of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<TurnId>,
    /// The contact whose answer was taken last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// What was asked in the thread before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierQuestion>,
}

/// A question of a thread that was asked another one since: whoever answers it late is told so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierQuestion {
    pub asked_by: TurnId,
    pub question: String,
    /// The contact whose answer was taken: they may still add to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
}

/// How many earlier questions of a thread are remembered.
const MOST_EARLIER: usize = 8;

/// What was searched without success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorAttempts {
    /// Atoms that the model was shown.
    pub atoms: u32,
    /// Questions to `mra`.
    pub mra: u32,
}

impl PriorAttempts {
    /// Returns whether nothing was searched.
    pub const fn is_nothing(&self) -> bool {
        self.atoms == 0 && self.mra == 0
    }
}

/// A conversation that contacts cannot see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrivateConversation {
    pub key: SessionKey,
    pub reply_to: ReplyTo,
}

/// A remark about a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscalationRemark {
    pub user_id: String,
    pub text: String,
    /// The turn of the message that said it; older versions did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The contact whom the asker has said it to, if not to all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Why a file is not a marker.
#[derive(Debug, Error)]
pub enum BadMarker {
    #[error("its name is not `CHANNEL__THREAD.json`")]
    Name,
    #[error("it is not a marker: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it names `{channel}` and `{thread}`, which does not match its file name")]
    OtherThread { channel: String, thread: String },
    #[error("it mentions nobody, so nobody can answer")]
    NobodyMentioned,
    #[error("its contacts cannot see this direct message: ask again")]
    Unseen,
}

impl Marker {
    /// Returns the name of its file, without a folder. Both parts are reduced to the characters of
    /// Slack's ids.
    pub fn file_name(&self) -> String {
        let plain = |text: &str| -> String {
            text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
        };
        format!("{}__{}.json", plain(&self.channel_id), plain(&self.thread_ts))
    }

    /// Reads a marker file of pmk.
    ///
    /// # Errors
    /// [`BadMarker`] says why it is not a marker.
    pub fn parse(file_name: &str, json: &[u8]) -> Result<Self, BadMarker> {
        let stem = file_name.strip_suffix(".json").ok_or(BadMarker::Name)?;
        stem.split_once("__")
            .filter(|(channel, thread)| !channel.is_empty() && !thread.is_empty())
            .ok_or(BadMarker::Name)?;
        let marker: Marker = serde_json::from_slice(json)?;
        if marker.file_name() != file_name {
            return Err(BadMarker::OtherThread { channel: marker.channel_id, thread: marker.thread_ts });
        }
        if marker.mentioned_user_ids.is_empty() {
            return Err(BadMarker::NobodyMentioned);
        }
        Ok(marker)
    }

    /// Returns whether a message of this person in the thread is the awaited answer. A message of
    /// anybody else is not, and the marker stays (specification 003 §8).
    pub fn absorbs(&self, sender: &str) -> bool {
        !sender.is_empty() && self.mentioned_user_ids.iter().any(|contact| contact == sender)
    }

    /// Returns whether it is this person's question.
    pub fn is_askers(&self, sender: &str) -> bool {
        !sender.is_empty() && self.asker_user_id.as_deref() == Some(sender)
    }

    /// Returns whether a message of this person in the thread is expected without a mention of the bot: of a contact, or
    /// of the asker if a contact has asked back. It may mention nobody but those who wait for it.
    pub fn expects(&self, sender: &str, names: &[String]) -> bool {
        let waits = |name: &String| match self.absorbs(sender) {
            true => self.is_askers(name),
            false => self.asking_back().any(|contact| contact == name),
        };
        let is_expected = self.absorbs(sender) || self.is_askers(sender) && self.asked_back_by().is_some();
        is_expected && names.iter().all(waits)
    }

    /// Returns whether a contact can see where it was asked. A direct message of pmk's is seen by its asker alone.
    pub fn is_seen_by_contacts(&self) -> bool {
        !self.channel_id.starts_with('D') || self.mentioned_user_ids.iter().any(|contact| self.is_askers(contact))
    }

    /// Returns it as the newest question of its thread, which this turn asks.
    pub fn asked(self, turn: TurnId, before: Option<Marker>) -> Marker {
        let mut earlier = Vec::new();
        if let Some(Marker { earlier: known, asked_by, question, answered_by, .. }) = before {
            earlier = known;
            earlier.extend(asked_by.map(|asked_by| EarlierQuestion { asked_by, question, answered_by }));
            earlier.drain(..earlier.len().saturating_sub(MOST_EARLIER));
        }
        Marker { asked_by: Some(turn), earlier, ..self }
    }

    /// Returns what is remembered of a question that is forgotten: in which thread it was asked.
    pub fn forgotten(channel_id: String, thread_ts: String) -> Marker {
        Marker {
            channel_id,
            thread_ts,
            question: String::new(),
            scope: None,
            reason: None,
            pending_since: 0,
            mentioned_user_ids: vec![],
            asker_user_id: None,
            tried: PriorAttempts::default(),
            apart: None,
            exchange: vec![],
            asked_by: None,
            answered_by: None,
            earlier: vec![],
        }
    }

    /// Returns the question that this turn has asked one of its contacts in the same thread. Nothing of a later one is
    /// in it: the contact was perhaps not to know that.
    pub fn as_asked_by(self, turn: TurnId, contact: &str) -> Option<Marker> {
        if self.is_of(turn) {
            return Some(self);
        }
        let EarlierQuestion { asked_by, question, answered_by } =
            self.earlier.into_iter().find(|it| it.asked_by == turn)?;
        Some(Marker {
            question,
            scope: None,
            reason: None,
            mentioned_user_ids: vec![contact.to_owned()],
            tried: PriorAttempts::default(),
            exchange: vec![],
            asked_by: Some(asked_by),
            answered_by,
            earlier: vec![],
            ..self
        })
    }

    /// Returns whether what is stored of a thread is this question of it. Who has asked may be missing: a host of an
    /// older version that notes a remark drops it.
    pub fn is(&self, question: &Marker) -> bool {
        self.asked_by.is_none() || self.asked_by == question.asked_by
    }

    /// Returns whether this turn has asked it.
    pub fn is_of(&self, turn: TurnId) -> bool {
        self.asked_by.is_none_or(|asked_by| asked_by == turn)
    }

    /// Returns the contact who has asked back and has had no reply; of several, the last one.
    pub fn asked_back_by(&self) -> Option<&str> {
        self.asking_back().next()
    }

    /// Returns the contact whom this reply of the asker is for: of those who have asked back, the one whom it mentions,
    /// or else the last one.
    pub fn reader_of(&self, reply: &str) -> Option<&str> {
        let is_mentioned = |contact: &&str| ['>', '|'].iter().any(|end| reply.contains(&format!("<@{contact}{end}")));
        self.asking_back().find(is_mentioned).or_else(|| self.asked_back_by())
    }

    /// Returns who has asked back and has had no reply, the last one first.
    fn asking_back(&self) -> impl Iterator<Item = &str> {
        let replies_to = move |said: &EscalationRemark, contact: &str| {
            self.is_askers(&said.user_id) && said.to.as_ref().is_none_or(|to| to == contact)
        };
        let is_open = move |(at, said): &(usize, &EscalationRemark)| {
            let mut since = self.exchange.iter().skip(at + 1);
            !self.is_askers(&said.user_id) && !since.any(|later| replies_to(later, &said.user_id))
        };
        self.exchange.iter().enumerate().rev().filter(is_open).map(|(_, said)| said.user_id.as_str())
    }

    /// Returns its name for operators.
    pub fn name(&self) -> String {
        format!("{}:{}", self.channel_id, self.thread_ts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAME: &str = "D0B0E9UV52M__1777342320.134509.json";
    const JSON: &str = r#"{
        "channelId": "D0B0E9UV52M", "threadTs": "1777342320.134509", "question": "本月廣告預算?", "scope": "erp",
        "reason": "live", "pendingSince": 1777342416133, "mentionedUserIds": ["U_IT1", "U_IT2"], "askerUserId": "U1"
    }"#;

    #[test]
    fn pmks_file_is_read_and_written_as_it_is() {
        let marker = Marker::parse(NAME, JSON.as_bytes()).expect("a marker");
        assert_eq!(marker.file_name(), NAME);
        let written = serde_json::to_value(&marker).expect("JSON");
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(JSON).expect("JSON"));
    }

    #[test]
    fn only_who_was_mentioned_answers() {
        let marker = Marker::parse(NAME, JSON.as_bytes()).expect("a marker");
        assert!(marker.absorbs("U_IT1") && marker.absorbs("U_IT2"));
        for sender in ["U1", "U9", "", "u_it1"] {
            assert!(!marker.absorbs(sender), "{sender}");
        }
    }

    #[test]
    fn optional_keys_may_be_missing_and_new_ones_there() {
        let json =
            r#"{"channelId":"C1","threadTs":"1.2","question":"q","pendingSince":1,"mentionedUserIds":["U2"],"x":1}"#;
        let marker = Marker::parse("C1__1.2.json", json.as_bytes()).expect("a marker");
        assert_eq!((marker.scope, marker.reason, marker.asker_user_id), (None, None, None));
    }

    #[test]
    fn a_question_back_is_open_until_the_asker_replies() {
        let mut marker = Marker::parse(NAME, JSON.as_bytes()).expect("a marker");
        assert_eq!(marker.asked_back_by(), None);
        let said = |user: &str| EscalationRemark {
            user_id: user.into(),
            text: "which month?".into(),
            turn: Some(TurnId::of(3)),
            to: None,
        };
        marker.exchange.push(said("U_IT1"));
        assert_eq!(marker.asked_back_by(), Some("U_IT1"));
        marker.exchange.push(said("U1"));
        assert_eq!(marker.asked_back_by(), None);
        let read: Marker = serde_json::from_value(serde_json::to_value(&marker).expect("JSON")).expect("a marker");
        assert_eq!(read, marker);
    }

    #[test]
    fn a_reply_to_one_contact_closed_the_question_back_of_another() {
        let mut marker = Marker::parse(NAME, JSON.as_bytes()).expect("a marker");
        let says = |marker: &mut Marker, user: &str, to: Option<&str>| {
            let to = to.map(str::to_owned);
            marker.exchange.push(EscalationRemark { user_id: user.into(), text: "so?".into(), turn: None, to });
        };
        let open = |marker: &Marker| marker.asking_back().map(str::to_owned).collect::<Vec<_>>();
        says(&mut marker, "U_IT1", None);
        says(&mut marker, "U_IT2", None);
        assert_eq!(open(&marker), ["U_IT2", "U_IT1"]);
        assert_eq!(marker.asked_back_by(), Some("U_IT2"));
        assert!(marker.expects("U1", &["U_IT1".into()]), "who has asked back first waits, too");
        assert_eq!(marker.reader_of("<@U_IT1> March"), Some("U_IT1"));
        assert_eq!(marker.reader_of("March, <@U_IT>"), Some("U_IT2"));
        says(&mut marker, "U1", Some("U_IT1"));
        assert_eq!(open(&marker), ["U_IT2"]);
        assert!(marker.expects("U1", &["U_IT2".into()]) && !marker.expects("U1", &["U_IT1".into()]));
        says(&mut marker, "U1", None);
        assert_eq!(marker.asked_back_by(), None, "it was said to all of them");
        let read: Marker = serde_json::from_value(serde_json::to_value(&marker).expect("JSON")).expect("a marker");
        assert_eq!(read, marker);
    }

    #[test]
    fn who_is_awaited_needs_no_mention_of_the_bot_and_may_name_whoever_waits() {
        let mut marker =
            Marker { asker_user_id: Some("U1".into()), ..Marker::parse(NAME, JSON.as_bytes()).expect("a marker") };
        let expects = |marker: &Marker, sender: &str, names: &[&str]| {
            marker.expects(sender, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        for (sender, names, expected) in [
            ("U_IT1", &[][..], true),
            ("U_IT1", &["U1", "U1"], true),
            ("U_IT1", &["U1", "U9"], false),
            ("U_IT1", &["!here"], false),
            ("U1", &[], false),
            ("U9", &[], false),
        ] {
            assert_eq!(expects(&marker, sender, names), expected, "{sender} to {names:?}");
        }
        marker.exchange.push(EscalationRemark {
            user_id: "U_IT1".into(),
            text: "which month?".into(),
            turn: None,
            to: None,
        });
        assert!(expects(&marker, "U1", &[]) && expects(&marker, "U1", &["U_IT1"]) && !expects(&marker, "U1", &["U9"]));
    }

    #[test]
    fn what_is_no_marker_says_why() {
        let why = |name: &str, json: &str| Marker::parse(name, json.as_bytes()).expect_err("no marker").to_string();
        assert_eq!(why("notes.txt", JSON), "its name is not `CHANNEL__THREAD.json`");
        assert_eq!(why("__1.2.json", JSON), "its name is not `CHANNEL__THREAD.json`");
        assert!(why(NAME, "{").starts_with("it is not a marker: "));
        assert!(why(NAME, r#"{"channelId":7}"#).starts_with("it is not a marker: "));
        assert!(why("C1__1.2.json", JSON).contains("does not match its file name"));
        assert_eq!(why(NAME, &JSON.replace(r#""U_IT1", "U_IT2""#, "")), "it mentions nobody, so nobody can answer");
    }

    proptest! {
        #[test]
        fn file_names_stay_in_their_folder(channel in "\\PC{0,10}", thread in "(\\PC|\\.|/){0,10}") {
            let mut marker = Marker::parse(NAME, JSON.as_bytes()).expect("a marker");
            marker.channel_id = channel;
            marker.thread_ts = thread;
            let name = marker.file_name();
            prop_assert!(!name.contains(['/', '\\', '\0']) && name != ".." && name.ends_with(".json"));
        }
    }
}
