//! The summaries of facts-summary, run natively.

use facts_summary::FactsSummary;
use pmk_policy_sdk::testing::{
    Conversation, Harness,
    core::{Message, tokens},
};

fn talk() -> Conversation {
    Conversation::new()
        .seed("the workspace")
        .turn("Let us plan the launch.", "The launch is on Friday. Who signs?")
        .turn("We agreed on PostgreSQL for sales_performances.", "Noted, Priya will migrate 40,000 rows.")
        .turn("Actually, the launch is on Monday.", "Understood.")
        .turn("預算由王副理簽核，決定用方案 B。", "好的。請問要通知誰？")
}

fn summary(max_tokens: u32) -> String {
    Harness::<FactsSummary>::new().summarize(&talk().channel("上線").transcript(), max_tokens)
}

#[test]
fn what_was_settled_is_carried_over_in_its_latest_version() {
    let text = summary(4_000);
    for expected in [
        "Last active channel: 上線",
        "Corrections, which hold:\n- Actually, the launch is on Monday.\n",
        "- We agreed on PostgreSQL for sales_performances.\n- Noted, Priya will migrate 40,000 rows.\n- 預算由王副理簽核，決定用方案 B。\n",
        "Open questions:\n- 請問要通知誰？\n",
        "Identifiers: PostgreSQL, sales_performances",
    ] {
        assert!(text.contains(expected), "`{expected}` is not in\n{text}");
    }
    assert!(text.contains("王副理") && text.contains("Priya"), "{text}");
    assert!(!text.contains("on Friday") && !text.contains("Who signs"), "{text}");
}

/// Regression: only a statement of the model closed a question.
#[test]
fn a_question_that_a_person_had_answered_was_listed_as_open() {
    let talk = Conversation::new().turn("Move the tables.", "Which database?").turn("Use PostgreSQL.", "And when?");
    let text = Harness::<FactsSummary>::new().summarize(&talk.transcript(), 4_000);
    assert!(text.contains("Open questions:\n- And when?\n") && !text.contains("Which database?"), "{text}");
}

/// Regression: any statement closed it, also one about the model's own question.
#[test]
fn a_question_of_a_person_that_nobody_had_answered_was_left_out() {
    let talk = Conversation::new().turn("Who signs the contract?", "Which contract?");
    let talk = talk.message(Message::user("The one with Acme."));
    let text = Harness::<FactsSummary>::new().summarize(&talk.clone().transcript(), 4_000);
    assert!(text.contains("Open questions:\n- Who signs the contract?\n"), "{text}");
    assert!(!text.contains("Which contract?"), "{text}");
    let text = Harness::<FactsSummary>::new().summarize(&talk.answer("Ms Lin signs it.").transcript(), 4_000);
    assert!(!text.contains("Open questions"), "{text}");
}

/// Regression: the newer of two releases replaced the older one.
#[test]
fn a_fact_about_another_release_was_dropped_as_outdated() {
    let talk = Conversation::new()
        .turn("Release 2.3 ships on Friday.", "Noted.")
        .turn("Release 2.4 ships on Monday.", "Noted.")
        .turn("Release 2.4 ships on Tuesday.", "Noted.");
    let text = Harness::<FactsSummary>::new().summarize(&talk.transcript(), 4_000);
    assert!(text.contains("- Release 2.3 ships on Friday.\n- Release 2.4 ships on Tuesday.\n"), "{text}");
    assert!(!text.contains("on Monday"), "{text}");
}

#[test]
fn it_stays_within_what_the_host_keeps() {
    for max_tokens in [20, 100, 150, 300, 4_000] {
        let text = summary(max_tokens);
        assert!(tokens::estimate(&text) <= max_tokens, "{} of {max_tokens}", tokens::estimate(&text));
    }
}

#[test]
fn an_empty_session_has_a_frame_and_nothing_else() {
    let text = Harness::<FactsSummary>::new().summarize(&Conversation::new().transcript(), 4_000);
    assert_eq!(text.lines().count(), 1);
}
