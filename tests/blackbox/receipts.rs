//! Receipts: from what a turn leaves in the store, each of its requests can be made again, byte for byte.

use std::{fs, sync::Arc};

use pmk_core::{Message, Origin, Role, SessionKey, request::alternate};
use pmk_host::{
    directive,
    ids::TurnId,
    store::{Digest, Receipt, Reference, Store},
};
use pmk_models::{Request, Tool, repair};
use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
use serde_json::json;

use crate::support::{Home, component, finish, of_type, question};

const KEY: &str = "console:dm:U1";

/// An atom that is found for questions about the scope of sales performances.
const ATOM: &str = "---\nid: scope\ncreatedAt: 1777342416133\nscope: erp\nquestion: where is the scope of sales performances \
    defined?\ntags: [scope]\nsource:\n  threadKey: C1:1.1\n  contributorUserId: U0IT\nstatus: approved\n---\n\n# scope\n\n\
    ## Answer\n\nIn app/models/sales.rb.\n";

/// Puts the atom into a home.
pub fn plant(home: &Home) {
    fs::create_dir_all(home.path().join("knowledge/erp")).expect("a folder");
    home.write("knowledge/erp/scope.md", ATOM);
}

/// The store of a home, with all receipts of its one conversation.
struct Kept {
    store: Store,
    archive: Vec<(i64, Message)>,
    receipts: Vec<(TurnId, Receipt)>,
}

impl Kept {
    async fn of(home: &Home, key: &str) -> Kept {
        let store = Store::open_existing(home.path()).expect("a store");
        let key: SessionKey = key.parse().expect("a key");
        let dump = store.dump(&key).await.expect("a conversation");
        let messages = dump.messages.into_iter().map(|stored| (stored.id.expect("an id"), stored.message));
        let receipts = store.receipts_of_session(&key).await.expect("receipts");
        Kept { archive: messages.collect(), store, receipts }
    }

    async fn text(&self, digest: &Digest) -> String {
        self.store.text(digest).await.expect("a store").unwrap_or_else(|| panic!("no text {digest}"))
    }

    async fn message(&self, digest: &Digest) -> Message {
        serde_json::from_str(&self.text(digest).await).expect("a message")
    }

    /// The window before the decision.
    async fn before(&self, receipt: &Receipt) -> Vec<(bool, Message)> {
        let mut messages = Vec::new();
        for reference in &receipt.before.messages {
            messages.push(match reference {
                Reference::Whole(id) => {
                    let stored = self.archive.iter().find(|(other, _)| other == id);
                    (true, stored.expect("a message of the archive").1.clone())
                }
                Reference::Reduced(_, digest) => (true, self.message(digest).await),
                Reference::Text { text } => (false, self.message(text).await),
                other => panic!("nothing is stored so: {other:?}"),
            });
        }
        messages
    }

    /// The messages of the request: the window, with the plan carried out.
    async fn messages(&self, receipt: &Receipt) -> Vec<Message> {
        let before = self.before(receipt).await;
        let Some(plan) = &receipt.plan else { return before.into_iter().map(|(_, message)| message).collect() };
        // What is recalled goes before the new message: the last that a person has written.
        let new_message = before.iter().rposition(|(stored, message)| *stored && message.origin == Origin::User);
        let mut messages = Vec::new();
        let mut marker = plan.marker.clone();
        for (index, (_, message)) in (0u32..).zip(before) {
            if plan.removed.contains(&index) {
                continue;
            }
            if let Some((words, _)) = marker.take_if(|(_, at)| *at <= index) {
                messages.push(Message::text(Role::User, Origin::Marker, self.text(&words).await));
            }
            if new_message == Some(index as usize)
                && let Some(recall) = &plan.recall
            {
                messages.push(self.message(recall).await);
            }
            match plan.replaced.iter().find(|(at, _)| *at == index) {
                Some((_, digest)) => messages.push(self.message(digest).await),
                None => messages.push(message),
            }
        }
        messages
    }

    async fn request(&self, receipt: &Receipt) -> Request {
        let messages = self.messages(receipt).await.into_iter().map(Arc::new);
        let messages = if receipt.as_text { alternate(messages.map(directive::as_text)) } else { alternate(messages) };
        let tools: Vec<Tool> = serde_json::from_str(&self.text(&receipt.tools).await).expect("tools");
        let request = Request {
            system: self.text(&receipt.system).await,
            messages,
            max_answer_tokens: receipt.budget.answer,
            tools: tools.into(),
            ..Request::default()
        };
        if receipt.repaired { repair(&request).expect("what was repaired") } else { request }
    }
}

/// Every request of the home's conversation is made again; gives the receipts.
fn all_are_made_again(home: &Home) -> Vec<Receipt> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(all_of_a_conversation_are_made_again(home, KEY))
}

/// The same of a conversation of this key.
pub async fn all_of_a_conversation_are_made_again(home: &Home, key: &str) -> Vec<Receipt> {
    let kept = Kept::of(home, key).await;
    assert!(!kept.receipts.is_empty());
    for (turn, receipt) in &kept.receipts {
        let again = kept.request(receipt).await;
        assert_eq!(Digest::of_request(&again), receipt.request, "turn {turn}, call {}: {again:#?}", receipt.call);
    }
    kept.receipts.into_iter().map(|(_, receipt)| receipt).collect()
}

/// A turn of a few hundred tokens.
fn turn(n: usize) -> String {
    question(&format!("Ev{n}"), &format!("Fact {n}: service {n} is on {}. {}", 4_000 + n, "filler ".repeat(150)))
}

#[test]
fn requests_of_turns_that_were_pruned_are_made_again() {
    let home = Home::new();
    let input: Vec<String> = (0..60).map(turn).collect();
    let lines = home.run(&["run", "--model", "sim", "--window", "8000"], &input.join("\n")).ok().lines();
    let dropped = of_type(&lines, "turn").iter().filter(|turn| turn["turns_dropped"] != 0).count();
    let receipts = all_are_made_again(&home);
    assert_eq!(receipts.len(), 60);
    let plans = receipts.iter().filter_map(|receipt| receipt.plan.as_ref());
    let pruned = plans.filter(|plan| plan.turns_dropped > 0 && plan.decided_by.name == "standard");
    assert!(dropped > 0 && pruned.count() == dropped, "{dropped} of {receipts:#?}");
    assert!(receipts[0].before.messages.len() == 1 && receipts.iter().all(|receipt| receipt.usage.is_some()));
}

#[test]
fn requests_with_messages_that_were_recalled_are_made_again() {
    let home = Home::new();
    let recall = component("recall");
    let run = ["run", "--policy", &recall, "--model", "sim", "--window", "6000"];
    let lines = home.run(&run, &crate::recall::conversation()).ok().lines();
    let recalled = of_type(&lines, "turn").iter().filter(|turn| turn["recalled"].is_array()).count();
    let receipts = all_are_made_again(&home);
    let plans = receipts.iter().filter_map(|receipt| receipt.plan.as_ref());
    let with_recall = plans.filter(|plan| !plan.recalled.is_empty() && plan.recall.is_some()).count();
    assert!(recalled > 0 && with_recall == recalled, "{recalled}, {with_recall}");
}

#[test]
fn requests_with_what_was_found_and_with_what_mra_said_are_made_again() {
    let home = Home::new();
    let config = json!({"version": 1, "language": "en", "mra": {"command": ["echo"]}});
    home.write("gateway.json", config.to_string());
    plant(&home);
    let anthropic = Anthropic::start_blocking();
    let long = "which scope is it? ".repeat(60);
    for question in ["which scope?", &long] {
        anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": question}))]));
    }
    anthropic.push(Behaviour::answer("The sales scope."));
    let input = [question("Ev1", "Where is the scope of sales performances defined?"), question("Ev2", "Thanks.")];
    let strict = component("strict");
    let capped = ["--policy", &strict, "--set", "strict.mra-result-cap=400"];
    let lines = finish(home.asking(&anthropic, &capped), &input.join("\n")).ok().lines();
    assert_eq!(of_type(&lines, "turn")[0]["calls"], 3, "{lines:#?}");
    let receipts = all_are_made_again(&home);
    assert_eq!(receipts.len(), 4);
    let [atom] = &receipts[0].atoms[..] else { panic!("{:#?}", receipts[0]) };
    let file = pmk_knowledge::Atom::parse(ATOM).and_then(|atom| atom.render()).expect("an atom");
    assert_eq!((atom.id.as_str(), &atom.sha256), ("scope", &Digest::of(file)));
    assert!(matches!(receipts[0].before.messages[..], [Reference::Text { .. }, Reference::Whole(_)]));
    assert_eq!([0, 1, 2].map(|call| receipts[call].phase.as_str()), ["first", "synthesise", "synthesise"]);
    let is_reduced = |reference: &Reference| matches!(reference, Reference::Reduced(..));
    assert!(receipts[2].before.messages.iter().any(is_reduced), "the long result is shown in part");
}

#[test]
fn requests_of_a_recovery_are_made_again() {
    for (policy, rung) in [("standard", "trim"), ("rolling-summary", "compact")] {
        let home = Home::new();
        let anthropic = Anthropic::start_blocking();
        anthropic.set_window(6_000);
        let input: Vec<String> = (0..24).map(turn).collect();
        let lines = finish(home.asking(&anthropic, &["--policy", &component(policy)]), &input.join("\n")).ok().lines();
        let turns = of_type(&lines, "turn");
        assert!(turns.iter().any(|turn| turn["rungs"] == json!([rung])), "{policy}");
        let receipts = all_are_made_again(&home);
        assert!(receipts.iter().any(|receipt| receipt.usage.is_none()), "one was refused");
        let calls: u64 = turns.iter().filter_map(|turn| turn["calls"].as_u64()).sum();
        assert_eq!(receipts.len() as u64, calls);
    }
}

/// What a turn leaves does not grow with the conversation.
#[test]
fn a_receipt_of_a_long_conversation_is_small() {
    let home = Home::new();
    let input: Vec<String> = (0..60).map(turn).collect();
    home.run(&["run", "--model", "sim", "--window", "200000"], &input.join("\n")).ok();
    let receipts = all_are_made_again(&home);
    let last = receipts.last().expect("receipts");
    assert_eq!(last.before.messages.len(), 119);
    let size = serde_json::to_string(last).expect("JSON").len();
    assert!(size < 2_000, "{size}");
}
