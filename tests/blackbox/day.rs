//! A day of a team: an admin sets up, questions go to people and become knowledge, a case is worked on, the gateway goes
//! and is back. Once as it is, and once with `kill -9` after every single thing that anybody does.

use std::time::Duration;

use pmk_stand_ins::{
    anthropic::Behaviour,
    slack::{Message, Sent, dm_channel},
};

use serde_json::Value;

use crate::{
    contacts::verdict,
    knowledge::team::{ASKER, CHANNEL, CONTACT, ENGLISH, OTHER_CONTACT, Team, in_thread},
    presence::age,
    support::{PATIENCE, until_async},
    workspace::{Gateway, rules, rules_for_kills},
};

const BOSS: &str = "U0BOSS";
const NEXT: &str = "U0NEXT";
const OUTAGE: Duration = Duration::from_secs(7 * 60);

/// The team on that day.
struct Day {
    team: Team,
    gateway: Option<Gateway>,
    is_killed: bool,
}

impl Day {
    async fn begin(is_killed: bool) -> Day {
        let rules = if is_killed { rules_for_kills() } else { rules() };
        let team = Team::under(rules, &ENGLISH, "auto").await;
        team.home.run(&["admin", "add", BOSS], "").ok();
        let mut day = Day { team, gateway: None, is_killed };
        day.start().await;
        day
    }

    async fn start(&mut self) {
        self.gateway = Some(self.team.connect().await);
    }

    /// Something was just taken in, of which nobody has seen anything yet.
    async fn interrupt(&mut self) {
        if self.is_killed {
            self.gateway.take().expect("it runs").kill();
            self.start().await;
        }
    }

    async fn taken_in(&mut self, event: &str) {
        assert!(self.team.slack.await_ack(event, PATIENCE).await.is_some(), "{event} is not acknowledged");
        self.interrupt().await;
    }

    async fn mention(&mut self, user: &str, text: &str, thread: Option<&Sent>) -> Sent {
        let sent = self.team.slack.mention(CHANNEL, user, text, thread.map(|thread| thread.ts.as_str()));
        self.taken_in(&sent.event_id).await;
        sent
    }

    async fn dm(&mut self, user: &str, text: &str, thread: Option<&Message>) -> Sent {
        let sent = self.team.slack.dm_in_thread(user, text, thread.map(|thread| thread.ts.as_str()));
        self.taken_in(&sent.event_id).await;
        sent
    }

    /// Waits for a message of the bot's.
    async fn sees(&self, channel: &str, what: &str, wanted: impl Fn(&Message) -> bool) -> Message {
        let found = self.team.slack.await_message(channel, PATIENCE, |message| message.by_bot && wanted(message)).await;
        found.unwrap_or_else(|| panic!("no {what} in {:#?}", self.team.slack.messages(channel)))
    }

    async fn sets_up(&mut self) {
        let envelope =
            self.team.slack.slash(BOSS, &dm_channel(BOSS), &format!("admin audience set <@{NEXT}|next> tech"));
        self.taken_in(&envelope).await;
        self.sees(&dm_channel(BOSS), "confirmation", |message| message.text.contains(NEXT)).await;
    }

    /// The same question is put to people from a channel and from a direct message.
    async fn asks(&mut self) -> (Sent, Message) {
        let story = self.team.story;
        let in_channel = self.mention(ASKER, story.question, None).await;
        self.sees(CHANNEL, "question to the contacts", |message| {
            in_thread(message, &in_channel) && message.text.contains(story.please_reply)
        })
        .await;
        self.dm(ASKER, story.question, None).await;
        for contact in [CONTACT, OTHER_CONTACT] {
            self.sees(&dm_channel(contact), "question", |message| message.text.contains(story.forwarded)).await;
        }
        let asking = |message: &Message| message.text.contains(story.forwarded);
        let apart = self.sees(&dm_channel(CONTACT), "question", asking).await;
        (in_channel, apart)
    }

    async fn is_answered(&mut self, in_channel: &Sent, apart: &Message) -> [Message; 2] {
        let story = self.team.story;
        verdict(&self.team, "after lunch", "later");
        let later = self.mention(CONTACT, "I will look after lunch", Some(in_channel)).await;
        assert!(
            self.team.slack.await_reactions(&later, PATIENCE).await.is_some(),
            "nothing says that it goes on waiting"
        );
        assert_eq!(self.team.atoms(), []);
        self.mention(CONTACT, story.reply, Some(in_channel)).await;
        self.team.passed_on(in_channel).await;
        let first = self.team.notice(in_channel).await;
        self.dm(CONTACT, story.reply, Some(apart)).await;
        self.sees(&dm_channel(ASKER), "answer", |message| message.text.contains(story.has_answered)).await;
        let second =
            self.sees(&dm_channel(CONTACT), "notice", |message| message.text.starts_with(":inbox_tray:")).await;
        [first, second]
    }

    /// What was learnt is approved, and found by somebody else in other words.
    async fn is_known(&mut self, notices: [Message; 2]) {
        let story = self.team.story;
        for notice in notices {
            let event = self.team.slack.react(CONTACT, &notice, "white_check_mark");
            self.taken_in(&event).await;
        }
        let approved = || self.team.atoms().iter().filter(|(_, atom)| atom.contains("status: approved")).count();
        until_async("both atoms are approved", || (approved() == 2).then_some(())).await;
        let asked = self.dm(NEXT, story.similar, None).await;
        let reply = self.team.slack.await_reply(&asked, PATIENCE).await.expect("a reply");
        assert_eq!(reply.text, story.answer_to_similar);
        let requests = self.team.anthropic.requests();
        let asking = requests.iter().rfind(|request| request.said_now().ends_with(story.similar)).expect("a request");
        assert!(asking.said_now().contains(story.reply), "{}", asking.said_now());
    }

    async fn works_on_a_case(&mut self) {
        self.mention(ASKER, "/pmk open The report is empty", None).await;
        self.sees(CHANNEL, "case", |message| message.text.starts_with(":file_folder: Opened case 1.")).await;
        let fence = "```case-update\nhypothesis: the nightly job failed\n```";
        self.team.anthropic.when("Why is it empty?", Behaviour::answer(format!("Perhaps the job.\n\n{fence}")));
        let asked = self.mention(ASKER, "Why is it empty?", None).await;
        let reply = self.sees(CHANNEL, "answer", |message| message.text.contains("Perhaps the job.")).await;
        assert!(reply.ts > asked.ts && !reply.text.contains("case-update"), "{reply:?}");
        self.sees(CHANNEL, "tracked line", |message| message.text.contains("pmk auto-tracked (case 1)")).await;
        self.mention(ASKER, "/pmk close", None).await;
        self.sees(CHANNEL, "end of the case", |message| message.text.contains("Closed case 1")).await;
        let file = self.team.home.run(&["case", "export", "1"], "").ok().stdout;
        assert!(file.contains("the nightly job failed") && file.contains("Why is it empty?"), "{file}");
    }

    async fn goes_and_is_back(&mut self) {
        assert_eq!(self.team.home.run(&["stop"], "").ok().stdout, "stopped\n");
        self.gateway.take().expect("it ran");
        let dm = dm_channel(ASKER);
        self.sees(&dm, "farewell", |message| message.text.starts_with(":zzz:")).await;
        // What is shown is rounded to minutes: there is most of one for all this.
        let brief = Duration::from_secs(25);
        age(&self.team.home, OUTAGE - brief);
        self.team.anthropic.when("And next month?", Behaviour::answer("The same."));
        let missed =
            self.team.slack.talked(OUTAGE - brief - Duration::from_secs(60), &dm, ASKER, "And next month?", None);
        self.start().await;
        self.interrupt().await;
        self.sees(&dm, "greeting", |message| message.text.contains("about 7 minutes)")).await;
        let late = self.sees(&dm, "late answer", |message| message.text.ends_with("The same.")).await;
        assert!(late.text.starts_with(":alarm_clock: This answer is about 6 minutes late"), "{late:?}");
        assert!(late.ts > missed.ts);
    }

    /// Everything is where operators look for it, once.
    fn ends(mut self) {
        let once = |channel: &str, words: &str| {
            let messages = self.team.slack.messages(channel);
            messages.iter().filter(|message| message.by_bot && message.text.contains(words)).count()
        };
        let story = self.team.story;
        let told = once(CHANNEL, story.has_answered) + once(&dm_channel(ASKER), story.has_answered);
        // Whatever is in doubt after a kill can be looked for.
        assert_eq!((told, self.team.home.events("reply.repeated").len()), (2, 0));
        assert_eq!(once(CHANNEL, "pmk auto-tracked"), 1);
        assert_eq!(once(&dm_channel(ASKER), "The same."), 1);
        assert_eq!(self.team.atoms().len(), 2);
        if let Some(gateway) = self.gateway.take() {
            assert!(gateway.terminate().success());
        }
        let audit = self.team.home.run(&["--json", "audit"], "").ok().json();
        assert_eq!(audit["atoms"]["approved"], 2, "{audit:#}");
        let log = self.team.home.run(&["--json", "admin", "log"], "").ok().stdout;
        assert!(log.contains("admins.add") && log.contains("audience.set"), "{log}");
        self.is_in_the_ledger(&audit);
        self.team.behaved();
    }

    /// What the ledger tells is stored with what it tells of, so that no kill leaves it out.
    fn is_in_the_ledger(&self, audit: &Value) {
        assert_eq!(audit["escalate"]["triggered"], 2, "{audit:#}");
        assert_eq!(audit["escalate"]["absorbed"], 2, "{audit:#}");
        assert!(audit["conversations"]["turns"].as_u64().is_some_and(|turns| turns >= 6), "{audit:#}");
        for event in ["gateway.online", "gateway.offline", "case.opened", "case.updated", "case.closed"] {
            assert!(!self.team.home.events(event).is_empty(), "nothing tells of {event}");
        }
    }
}

async fn a_day(is_killed: bool) {
    let mut day = Day::begin(is_killed).await;
    day.sets_up().await;
    let (in_channel, apart) = day.asks().await;
    let notices = day.is_answered(&in_channel, &apart).await;
    day.is_known(notices).await;
    day.works_on_a_case().await;
    day.goes_and_is_back().await;
    day.ends();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_a_team() {
    a_day(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_day_with_a_kill_after_everything_that_anybody_does() {
    a_day(true).await;
}
