//! What the contacts read.

use super::pool::is_user_id;

/// The language of what people read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// Traditional Chinese.
    #[default]
    ZhHant,
    English,
}

/// A question to contacts. It is taken apart because only the contacts and the asker are pinged: the question
/// and the reason are the model's words, and no mention in them may ping anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention<'a> {
    /// The user ids to ping.
    pub contacts: &'a [String],
    /// Who asked.
    pub asker: &'a str,
    pub question: &'a str,
    pub reason: Option<&'a str>,
    /// In a channel the bot only sees a reply that mentions it, as it does not read along there.
    pub must_mention_bot: bool,
}

impl Mention<'_> {
    /// The message in Slack's markup: contacts and asker as mentions, everything else escaped.
    pub fn slack(&self, language: Language) -> String {
        let pings = self.contacts.iter().filter_map(|id| ping(id)).collect::<Vec<_>>().join(" ");
        let asker = ping(self.asker).unwrap_or_default();
        let question = quoted(self.question);
        let reason = self.reason.map(one_line).filter(|reason| !reason.is_empty());
        let (mut text, how) = match language {
            Language::ZhHant => (
                format!("{pings} 想請您協助回答 {asker} 的問題：\n{question}"),
                if self.must_mention_bot {
                    "請在此討論串回覆並提及我，我會整理後轉達。"
                } else {
                    "請直接在此討論串回覆，我會整理後轉達。"
                },
            ),
            Language::English => (
                format!("{pings} could you help with a question from {asker}?\n{question}"),
                if self.must_mention_bot {
                    "Reply in this thread and mention me; I will pass it on."
                } else {
                    "Reply in this thread; I will pass it on."
                },
            ),
        };
        if let Some(reason) = reason {
            let label = match language {
                Language::ZhHant => "原因：",
                Language::English => "Why: ",
            };
            text.push_str(&format!("\n{label}{}", escape(&reason)));
        }
        format!("{text}\n{how}")
    }
}

fn ping(id: &str) -> Option<String> {
    is_user_id(id).then(|| format!("<@{id}>"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A quotation of one line each, so that nothing in it looks like our own words.
fn quoted(text: &str) -> String {
    text.trim().lines().map(|line| format!("> {}", escape(line))).collect::<Vec<_>>().join("\n")
}

/// Slack's own escaping: without angle brackets there is no mention, link or command.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mention<'a>(contacts: &'a [String], question: &'a str, reason: Option<&'a str>) -> Mention<'a> {
        Mention { contacts, asker: "U1", question, reason, must_mention_bot: false }
    }

    #[test]
    fn both_languages() {
        let contacts = ["U2".to_owned(), "U3".to_owned()];
        let mut asked = mention(&contacts, "本月預算?\n各部門", Some("不在\n程式裡"));
        assert_eq!(
            asked.slack(Language::ZhHant),
            "<@U2> <@U3> 想請您協助回答 <@U1> 的問題：\n> 本月預算?\n> 各部門\n原因：不在 程式裡\n請直接在此討論串回覆，我會整理後轉達。"
        );
        asked.must_mention_bot = true;
        asked.reason = None;
        assert_eq!(
            asked.slack(Language::English),
            "<@U2> <@U3> could you help with a question from <@U1>?\n> 本月預算?\n> 各部門\nReply in this thread and mention me; I will pass it on."
        );
    }

    #[test]
    fn only_contacts_and_the_asker_are_pinged() {
        let contacts = ["U2".to_owned(), "!channel".to_owned(), "U3> <!here".to_owned()];
        let text = mention(&contacts, "<!channel> <@U9> &lt;!here&gt;", Some("<!everyone>")).slack(Language::English);
        assert_eq!(text.matches('<').count(), 2, "{text}");
        assert!(text.contains("<@U2>") && text.contains("<@U1>"));
    }
}
