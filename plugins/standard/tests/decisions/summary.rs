use pmk_policy_sdk::testing::{
    Conversation, Harness,
    core::{Message, tokens},
};
use standard::Standard;

fn session() -> Conversation {
    (0..9).fold(Conversation::new().seed("the workspace"), |conversation, at| {
        conversation
            .turn(&format!("question {at}\n{}", "問".repeat(400)), "let me look")
            .tool("grep", "found")
            .tool("read_file", "fn main")
            .tool("grep", "found again")
            .answer(&format!("answer {at} {}", "答".repeat(700)))
    })
}

#[test]
fn it_holds_the_latest_requests_answers_channel_and_tools() {
    let transcript = session().ask("the new message").channel("新頻道").transcript();
    let text = Harness::<Standard>::new().summarize(&transcript, 6_000);
    let lines: Vec<&str> = text.lines().collect();
    let requests: Vec<&&str> = lines.iter().filter(|line| line.starts_with("- question")).collect();
    assert_eq!(requests.len(), 5);
    assert!(requests[0].starts_with("- question 4 問") && requests[4].starts_with("- question 8 問"), "{text}");
    assert!(requests.iter().all(|line| line.chars().count() == 2 + 300 + 1 && line.ends_with('…')), "{text}");
    let answers: Vec<&&str> = lines.iter().filter(|line| line.starts_with("- answer")).collect();
    assert_eq!(answers.len(), 2, "{text}");
    assert!(answers.iter().all(|line| line.chars().count() == 2 + 500 + 1), "{text}");
    assert!(text.contains("Last active channel: 新頻道"), "{text}");
    assert!(text.contains("Tools used lately: grep ×10, read_file ×5"), "{text}");
    assert!(!text.contains("the new message"), "it is replayed anyhow");
}

#[test]
fn where_the_host_keeps_little_every_part_gets_shorter() {
    let transcript = session().transcript();
    let text = Harness::<Standard>::new().summarize(&transcript, 900);
    assert!(text.contains("- question 4") && text.contains("- answer 8"), "{text}");
    assert!(tokens::estimate(&text) <= 1_100, "{} tokens", tokens::estimate(&text));
}

#[test]
fn files_and_the_open_task_are_carried_over() {
    let transcript = Conversation::new()
        .turn("why does it fail?", "See `app/models/budget.rb` and (lib/tasks/close.rake).")
        .message(Message::user("fix src/main.rs, please; not https://example.com/x.html"))
        .tool("read_file", "fn main")
        .transcript();
    let text = Harness::<Standard>::new().summarize(&transcript, 6_000);
    assert!(
        text.contains("Files talked about lately: src/main.rs, app/models/budget.rb, lib/tasks/close.rake\n"),
        "{text}"
    );
    assert!(text.contains("The task that was open last: fix src/main.rs, please"), "{text}");
}

/// Regression: a request that had been answered was called open, and the fresh session answered it again.
#[test]
fn a_task_that_has_an_answer_is_not_called_open() {
    let transcript = Conversation::new().turn("fix src/main.rs, please", "Done: it builds again.").transcript();
    let text = Harness::<Standard>::new().summarize(&transcript, 6_000);
    assert!(!text.contains("open"), "{text}");
    assert!(text.contains("how far it got, the latest answer says: fix src/main.rs, please"), "{text}");
}

/// What comes with a question starts its turn, and the question was left out.
#[test]
fn a_question_that_something_came_with_is_a_request() {
    let conversation = Conversation::new().turn("which port?", "8080").attached("ERROR: lost");
    let transcript = conversation.message(Message::user("fix this log")).transcript();
    let text = Harness::<Standard>::new().summarize(&transcript, 6_000);
    assert!(text.contains("The task that was open last: fix this log") && text.contains("which port?"), "{text}");
}

#[test]
fn an_empty_session_has_a_frame_and_nothing_else() {
    let text = Harness::<Standard>::new().summarize(&Conversation::new().transcript(), 6_000);
    assert_eq!(text.lines().count(), 1);
}
