//! Kills at any step of posting, streaming and pressing buttons: one whole answer each, nothing twice, and nothing that says
//! that an answer is being made once it is there.

use std::{collections::HashMap, time::Duration};

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    slack::{BOT_USER, Fault, Message, Sent, Slack, SlackRules},
};
use tokio::task::JoinSet;

use crate::{
    knowledge::team::{CONTACT, ENGLISH, Team},
    moments::Moments,
    posting::{ROOT, paragraphs},
    support::{Home, PATIENCE, until_async},
    workspace::{Gateway, is_of_presence, rules_for_kills},
};

/// So many rounds at the same time: most of each is waiting.
const AT_ONCE: usize = 8;

/// At which call a kill falls.
const CALLS: [&str; 8] = [
    "assistant.threads.setStatus",
    "chat.postMessage",
    "chat.update",
    "chat.startStream",
    "chat.appendStream",
    "chat.stopStream",
    "chat.delete",
    "conversations.replies",
];

/// Where a kill falls.
#[derive(Clone, Debug)]
struct Kill {
    method: &'static str,
    /// So many calls of it go well.
    spared: usize,
    /// Whether Slack carries out the one that it falls upon.
    is_carried_out: bool,
}

/// What it falls into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    ThreadMessage,
    /// Its stream cannot be closed and is taken away.
    StreamGoes,
    Direct,
    /// The question is edited while its answer is made.
    Edited,
    /// After an outage of the model the button is pressed that asks once more.
    Again,
    /// The buttons under an atom's notice.
    Yes,
    No,
}

const STORIES: [Story; 7] =
    [Story::ThreadMessage, Story::StreamGoes, Story::Direct, Story::Edited, Story::Again, Story::Yes, Story::No];

#[derive(Clone, Debug)]
struct Round {
    story: Story,
    kill: Kill,
    statuses: bool,
    /// Two in five have several parts.
    paragraphs: usize,
}

impl Round {
    fn drawn(moments: &mut Moments) -> Round {
        let story = STORIES[moments.below(STORIES.len())];
        let method = match story {
            Story::StreamGoes if moments.below(2) == 0 => "chat.delete",
            Story::Yes | Story::No => "chat.update",
            _ => CALLS[moments.below(CALLS.len())],
        };
        let kill = Kill { method, spared: moments.below(2), is_carried_out: moments.below(2) > 0 };
        let paragraphs = if moments.below(5) < 2 { 300 + moments.below(300) } else { 4 + moments.below(12) };
        Round { story, kill, statuses: story == Story::StreamGoes || moments.below(3) > 0, paragraphs }
    }
}

impl Kill {
    fn is_set_up(&self, slack: &Slack) -> usize {
        let fault = if self.is_carried_out { Fault::Lost } else { Fault::Stall };
        slack.fault_after(self.method, self.spared, 1, fault);
        slack.calls(self.method).len()
    }

    /// Whether it is time, where so many calls were made before.
    fn is_met(&self, slack: &Slack, before: usize) -> bool {
        match self.is_carried_out {
            true => slack.lost(self.method) > 0,
            false => slack.calls(self.method).len() > before + self.spared,
        }
    }
}

/// How many rounds; `PMK_KILLS=1000` for a night's worth.
fn kills() -> usize {
    std::env::var("PMK_KILLS").ok().map_or(16, |kills| kills.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_step_leaves_one_whole_answer_and_no_status() {
    let mut moments = Moments::new();
    let mut rounds = JoinSet::new();
    let mut stories: HashMap<String, usize> = HashMap::new();
    for number in 0..kills() {
        if rounds.len() >= AT_ONCE {
            rounds.join_next().await.expect("one of them").expect("a round");
        }
        let round = Round::drawn(&mut moments);
        *stories.entry(format!("{:?}", round.story)).or_default() += 1;
        let what = format!("round {number}: {round:?}");
        rounds.spawn(async move {
            match round.story {
                Story::Yes | Story::No => verdict(&round, &what).await,
                _ => answer(&round, &what).await,
            }
        });
    }
    while let Some(round) = rounds.join_next().await {
        round.expect("a round");
    }
    eprintln!("kills: {stories:?}");
}

/// A question, a kill, and what is there of an answer in the end.
async fn answer(round: &Round, what: &str) {
    let Round { story, kill, statuses, paragraphs: count } = round;
    let rules = SlackRules { statuses: *statuses, ..rules_for_kills() };
    let slack = Slack::start(rules.unlimited()).await;
    let (home, anthropic) = (Home::new(), Anthropic::start().await);
    home.write("gateway.json", r#"{"version":1,"language":"en"}"#);
    let answer = paragraphs(*count);
    let slow = || Behaviour::slow(answer.clone(), Duration::from_millis(900));
    let gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let turns = || home.events("turn.processed").len();
    let mut wanted = 1;
    let before;
    let asked = match story {
        Story::Again => {
            anthropic.when("tell me", Behaviour::error(401, "authentication_error", "invalid x-api-key"));
            let asked = slack.mention("C1", "U1", "tell me", Some(ROOT));
            until_async(what, || (turns() == 1).then_some(())).await;
            wanted = 2;
            anthropic.when("tell me", slow());
            let offers = |message: &Message| !message.buttons().is_empty();
            let failed = slack.await_message("C1", PATIENCE, offers).await.expect("it may be asked once more");
            before = kill.is_set_up(&slack);
            let click = slack.click("U1", &failed, "pmk_word_again", "again");
            assert!(slack.await_ack(&click, PATIENCE).await.is_some(), "{what}");
            asked
        }
        _ => {
            anthropic.when("tell me", slow());
            if *story == Story::StreamGoes {
                slack.fault("chat.stopStream", Fault::RateLimited(30));
            }
            before = kill.is_set_up(&slack);
            match story {
                Story::Direct => slack.dm("U1", "tell me"),
                _ => slack.mention("C1", "U1", "tell me", Some(ROOT)),
            }
        }
    };
    let is_over = || turns() >= wanted || kill.is_met(&slack, before);
    if *story == Story::Edited {
        let grows = || !slack.calls("chat.startStream").is_empty();
        until_async(what, || (grows() || is_over()).then_some(())).await;
        slack.edit(&asked, &format!("<@{BOT_USER}> tell me more"));
    }
    // It may not come so far: then it is killed after the answer.
    until_async(what, || is_over().then_some(())).await;
    gateway.kill();
    slack.heal(kill.method);
    slack.heal("chat.stopStream");
    let gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    gateway.await_ready().await;
    // The question does not come again, or wait for another answer.
    assert!(slack.await_ack(&asked.event_id, PATIENCE).await.is_some(), "{what}");
    until_async(what, || (turns() >= wanted && home.is_all_answered()).then_some(())).await;
    until_async(what, || is_clear(&slack, &asked.channel).then_some(())).await;
    ends(gateway, what).await;
    is_whole(&slack, &asked, &answer, wanted - 1, what);
    assert_eq!(slack.violations(), Vec::<String>::new(), "{what}");
}

/// Whatever the gateway has yet to say, a second answer as well, is there once it has ended.
async fn ends(mut gateway: Gateway, what: &str) {
    let what = what.to_owned();
    // The workspace runs on in the meantime.
    let end = tokio::task::spawn_blocking(move || {
        let ended = gateway.end();
        assert!(ended.success(), "{what}: {ended}");
    });
    end.await.expect("it ends well");
}

/// No thread says that an answer is being made: what the last of each was, whatever Slack forgets by itself.
fn is_clear(slack: &Slack, channel: &str) -> bool {
    let last: HashMap<String, String> =
        slack.statuses(channel).into_iter().map(|status| (status.thread_ts, status.status)).collect();
    last.values().all(String::is_empty)
}

/// The answer is there once, in as many messages as it takes, after so many that say something else; and no status is.
fn is_whole(slack: &Slack, asked: &Sent, answer: &str, others: usize, what: &str) {
    let at_its_place =
        |message: &&Message| message.by_bot && message.thread_ts == asked.thread_ts && !is_of_presence(message);
    let shown: Vec<String> = slack.messages(&asked.channel).iter().filter(at_its_place).map(Message::shown).collect();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let seen = shown.get(others..).unwrap_or_default().join("\n\n");
    assert_eq!(words(&seen), words(answer), "{what}: {shown:#?}");
    assert_eq!(shown.len() > others + 1, answer.chars().count() > 11_000, "{what}: {shown:#?}");
    assert!(is_clear(slack, &asked.channel), "{what}: {:#?}", slack.statuses(&asked.channel));
}

/// A verdict by a button, and a kill while Slack is told of it.
async fn verdict(Round { story, kill, .. }: &Round, what: &str) {
    let (value, event) = if *story == Story::Yes { ("yes", "atom.approved") } else { ("no", "atom.rejected") };
    let team = Team::under(rules_for_kills(), &ENGLISH, "auto").await;
    let says = if *story == Story::Yes { team.story.approved } else { team.story.rejected };
    let gateway = team.connect().await;
    let notice = team.learn().await;
    team.home.await_events("turn.processed", 2);
    let kill = Kill { spared: 0, ..kill.clone() };
    let before = kill.is_set_up(&team.slack);
    let click = team.slack.click(CONTACT, &notice, &format!("pmk_word_{value}"), value);
    assert!(team.slack.await_ack(&click, PATIENCE).await.is_some(), "{what}");
    until_async(what, || kill.is_met(&team.slack, before).then_some(())).await;
    gateway.kill();
    assert!(team.slack.await_sockets(0, PATIENCE).await);
    team.slack.heal(kill.method);
    let gateway = team.connect().await;
    let settled = |now: &Message| now.ts == notice.ts && now.text.contains(says) && now.buttons().is_empty();
    team.message(what, settled).await;
    until_async(what, || (!team.home.events(event).is_empty()).then_some(())).await;
    ends(gateway, what).await;
    assert_eq!(team.home.events(event).len(), 1, "{what}");
}
