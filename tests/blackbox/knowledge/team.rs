//! A team that asks, knows and learns: a workspace, a model that plays a story, and the gateway's home.

use std::path::PathBuf;

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour, Recorded},
    slack::{Message, Sent, Slack, SlackRules},
};
use serde_json::{Value, json};

use crate::{
    support::{Home, PATIENCE, until},
    workspace::{Gateway, rules},
};

pub const CHANNEL: &str = "C1";
pub const ASKER: &str = "U0ASK";
pub const CONTACT: &str = "U0IT";
pub const OTHER_CONTACT: &str = "U0ITB";

/// What only the curator is told, in any language.
pub const CURATOR: &str = "asked_as";
/// What the model is told when a contact's word has come in, in each language.
pub const ARRIVED: [&str; 2] = ["The question that was passed on has been answered", "先前轉問的問題有回覆了"];
/// What the model is told once it has called `escalate`.
pub const FORWARDED: [&str; 2] = ["put to the people who know", "負責的人轉問，答案稍後才到"];

/// One story, in one language.
pub struct Story {
    pub language: &'static str,
    pub question: &'static str,
    /// As the model puts it to the contacts.
    pub forwarded: &'static str,
    pub reason: &'static str,
    /// The contact's own words.
    pub reply: &'static str,
    pub summary: &'static str,
    pub tags: [&'static str; 3],
    /// As the model puts it to the asker.
    pub answer: &'static str,
    /// Somebody else's question, in other words, before and after approval.
    pub similar: &'static str,
    pub answer_to_similar: &'static str,
    /// What the gateway says.
    pub forwarded_notice: &'static str,
    pub please_reply: &'static str,
    pub has_answered: &'static str,
    pub approved: &'static str,
    pub rejected: &'static str,
}

pub const CHINESE: Story = Story {
    language: "zh-TW",
    question: "本月各部門的廣告預算是怎麼分的？",
    forwarded: "如何查詢本月各部門廣告預算分配比例？",
    reason: "知識庫和程式碼都沒有線上的數字",
    reply: "看 sales_performances 報表的「部門分配」頁籤，比例每月一號由財務更新。",
    summary: "比例在 sales_performances 報表的部門分配頁籤，財務每月一號更新。",
    tags: ["廣告預算", "部門分配", "sales_performances"],
    answer: "請看報表的「部門分配」頁籤，財務每月一號更新。",
    similar: "想知道每個部門拿到多少廣告預算，要去哪裡看？",
    answer_to_similar: "同事說過：看 sales_performances 報表的「部門分配」頁籤。",
    forwarded_notice: "已經在討論串轉問",
    please_reply: "請在這個討論串回覆",
    has_answered: "回覆了：",
    approved: "已採用",
    rejected: "已刪除",
};

pub const ENGLISH: Story = Story {
    language: "en",
    question: "How did we split the advertising money this month?",
    forwarded: "Where does one see how this month's advertising budget is divided among the departments?",
    reason: "the live numbers are neither in the knowledge base nor in the code",
    reply: "See the tab 'Departments' of the sales_performances report; finance updates the shares on the first.",
    summary: "The shares are in the tab Departments of the sales_performances report, updated on the first.",
    tags: ["advertising budget", "departments", "sales_performances"],
    answer: "It is in the report's tab 'Departments', which finance updates on the first of each month.",
    similar: "Which department has what share of the budget for advertisements?",
    answer_to_similar: "A colleague said: the tab 'Departments' of the sales_performances report.",
    forwarded_notice: "I have asked in the thread",
    please_reply: "Reply in this thread",
    has_answered: "has answered your question:",
    approved: "In use",
    rejected: "Deleted",
};

/// Everybody who takes part.
pub struct Team {
    pub story: &'static Story,
    pub slack: Slack,
    pub anthropic: Anthropic,
    pub home: Home,
}

impl Team {
    /// A team whose model plays the story. `tools` is the setting of gateway.json.
    pub async fn new(story: &'static Story, tools: &str) -> Team {
        Team::under(rules(), story, tools).await
    }

    /// The same where Slack has these rules. Who asks and who knows may be mentioned, and nobody else.
    pub async fn under(rules: SlackRules, story: &'static Story, tools: &str) -> Team {
        let mentioned = [ASKER, CONTACT, OTHER_CONTACT].map(mentions);
        let slack = Slack::start(rules.unlimited().expecting(mentioned)).await;
        let home = Home::new();
        let config = json!({
            "version": 1, "language": story.language, "tools": tools, "audience": {"users": {ASKER: "pm"}},
            // Whoever waits for a call that stalls waits for ever, and is found out.
            "limits": {"slackCallSeconds": 3_600},
            "escalation": {"default": ["U0NOT"], "repos": {"erp": [CONTACT, ASKER, OTHER_CONTACT]}},
        });
        home.write("gateway.json", config.to_string());
        let team = Team { story, slack, anthropic: Anthropic::start().await, home };
        let Story { question, forwarded, reason, .. } = story;
        let directive = format!("```escalate\nrepo: erp\nquestion: {forwarded}\nreason: {reason}\n```");
        team.anthropic.when(
            *question,
            match tools {
                "fenced" => Behaviour::answer(directive),
                _ => Behaviour::calls([("escalate", json!({"repo": "erp", "question": forwarded, "reason": reason}))]),
            },
        );
        team.anthropic.when(FORWARDED, Behaviour::answer(story.forwarded_notice));
        team.anthropic.when(ARRIVED, Behaviour::answer(story.answer));
        let extraction = json!({"kind": "answer", "question": forwarded, "summary": story.summary, "tags": story.tags});
        team.anthropic.when(CURATOR, Behaviour::answer(extraction.to_string()));
        team.anthropic.when(story.similar, Behaviour::answer(story.answer_to_similar));
        team
    }

    /// Changes gateway.json.
    pub fn configure(&self, change: impl FnOnce(&mut Value)) {
        let config = std::fs::read_to_string(self.home.path().join("gateway.json")).expect("the settings");
        let mut config: Value = serde_json::from_str(&config).expect("JSON");
        change(&mut config);
        self.home.write("gateway.json", config.to_string());
    }

    pub async fn connect(&self) -> Gateway {
        let gateway = Gateway::asking(&self.home, &self.slack, &self.anthropic, &[]);
        assert!(self.slack.await_connected(PATIENCE).await);
        gateway
    }

    pub async fn message(&self, what: &str, wanted: impl Fn(&Message) -> bool) -> Message {
        let found = self.slack.await_message(CHANNEL, PATIENCE, wanted).await;
        found.unwrap_or_else(|| panic!("no {what} in {:#?}", self.slack.messages(CHANNEL)))
    }

    /// Asks, and waits until the question is put to the contacts.
    pub async fn escalate(&self) -> (Sent, Message) {
        let asked = self.slack.mention(CHANNEL, ASKER, self.story.question, None);
        let put = self
            .message("question to the contacts", |message| {
                message.by_bot && in_thread(message, &asked) && message.text.contains(self.story.please_reply)
            })
            .await;
        (asked, put)
    }

    /// A contact answers in the thread.
    pub fn reply(&self, contact: &str, asked: &Sent) -> Sent {
        self.slack.mention(CHANNEL, contact, self.story.reply, Some(&asked.ts))
    }

    /// What tells the asker.
    pub async fn passed_on(&self, asked: &Sent) -> Message {
        let wanted = |message: &Message| in_thread(message, asked) && message.text.contains(self.story.has_answered);
        self.message("answer to the asker", wanted).await
    }

    /// What asks the contributor for a verdict.
    pub async fn notice(&self, asked: &Sent) -> Message {
        let wanted = |message: &Message| in_thread(message, asked) && message.text.starts_with(":inbox_tray:");
        self.message("notice", wanted).await
    }

    /// Escalates, answers, and waits for the notice.
    pub async fn learn(&self) -> Message {
        let (asked, _) = self.escalate().await;
        self.reply(CONTACT, &asked);
        self.notice(&asked).await
    }

    /// Reacts, and waits until that was taken in.
    pub async fn react(&self, user: &str, notice: &Message, reaction: &str) {
        let event = self.slack.react(user, notice, reaction);
        assert!(self.slack.await_ack(&event, PATIENCE).await.is_some(), "{reaction} of {user}");
    }

    /// Somebody asks something similar elsewhere; the request that was made of it, and the reply.
    pub async fn ask_similar(&self, user: &str) -> (Recorded, String) {
        let before = self.anthropic.requests().len();
        let asked = self.slack.dm(user, self.story.similar);
        let reply = self.slack.await_reply(&asked, PATIENCE).await.expect("a reply");
        (self.anthropic.requests().swap_remove(before), reply.text)
    }

    /// The files of the knowledge base.
    pub fn atoms(&self) -> Vec<(PathBuf, String)> {
        let Ok(scopes) = std::fs::read_dir(self.home.path().join("knowledge")) else { return vec![] };
        let folders = scopes.map(|scope| scope.expect("readable").path()).filter(|path| path.is_dir());
        let files = folders.flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
        let paths = files.map(|file| file.expect("readable").path());
        paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .map(|path| (path.clone(), std::fs::read_to_string(path).expect("an atom")))
            .collect()
    }

    /// The one atom there is, once it is there: people may have its answer a moment sooner.
    pub fn atom(&self) -> String {
        let atoms = until("an atom", || Some(self.atoms()).filter(|atoms| !atoms.is_empty()));
        let [(_, atom)] = atoms.try_into().expect("one atom");
        atom
    }

    /// No rule was broken, and nobody was kept waiting for an acknowledgement or refused.
    pub fn behaved(&self) {
        assert_eq!(self.slack.violations(), [] as [&str; 0]);
        assert_eq!(self.slack.given_up(), [] as [&str; 0]);
        let refused: Vec<String> = self.anthropic.requests().into_iter().filter_map(|asked| asked.refused).collect();
        assert_eq!(refused, [] as [&str; 0]);
    }
}

/// The violation of mentioning this person.
pub fn mentions(person: &str) -> String {
    format!("the bot mentioned <@{person}>")
}

pub fn in_thread(message: &Message, asked: &Sent) -> bool {
    message.thread_ts.as_ref() == Some(&asked.ts)
}
