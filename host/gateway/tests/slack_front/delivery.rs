//! Parts of replies that Slack does not take as they are, that may have been posted, or that are a file.

use pmk_host::front::{Lookup, slack::Sharers};

use super::*;

fn numbered<'a>(number: u32, reply_to: &'a ReplyTo, speech: &'a MessageBody) -> Delivery<'a> {
    Delivery { number, ..part(reply_to, None, speech) }
}

fn texts(rig: &Rig, channel: &str) -> Vec<String> {
    rig.slack.replies(channel).into_iter().map(|reply| reply.text).collect()
}

/// A text of so many words, which is too long for one message if there are many.
fn words(count: usize) -> String {
    (0..count).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_part_that_slack_finds_too_long_goes_in_smaller_ones() {
    let rig = Rig::with(SlackRules::quick().unlimited().without_statuses()).await;
    let place = place("D1", None);
    let placeholder =
        rig.front.placeholder(&question(&place), ":hourglass: …").await.expect("posted").expect("Slack has ids");
    let answer = "**某個**段落。\n\n".repeat(400);
    for code in ["msg_too_long", "msg_blocks_too_long", "invalid_blocks"] {
        let before = rig.slack.replies("D1").len();
        rig.slack.fault_times("chat.update", 1, Fault::Error(code));
        let id = rig.front.deliver(part(&place, Some(&placeholder), &speech(&answer))).await.expect("delivered");
        assert_eq!(id.as_deref(), Some(placeholder.as_str()), "the first piece takes the placeholder's place");
        assert!(rig.slack.replies("D1").len() > before, "{code}: the rest is posted after it");
    }
    // Longer than any part that is ever made.
    let id =
        rig.front.deliver(part(&place, Some(&placeholder), &speech(&"x".repeat(13_001)))).await.expect("delivered");
    assert_eq!(id.as_deref(), Some(placeholder.as_str()));
    rig.finish().await;
}

/// An answer that pings somebody went out as one text of up to 11,000 characters.
#[tokio::test]
async fn an_answer_that_pings_somebody_goes_in_texts_that_slack_lets_be_edited() {
    let rig = Rig::with(SlackRules::quick().unlimited()).await;
    let place = place("D1", None);
    let said = MessageBody { pings: vec!["U2".to_owned()], ..speech(&words(1_200)) };
    let id = rig.front.deliver(part(&place, None, &said)).await.expect("delivered");
    let (sent, texts) = (rig.slack.replies("D1"), texts(&rig, "D1"));
    assert_eq!(id.as_deref(), Some(sent[0].ts.as_str()));
    assert!(texts.len() > 1 && texts.iter().all(|text| text.len() <= 3_900), "{texts:?}");
    assert_eq!(texts.join(" ").split_whitespace().collect::<Vec<_>>().join(" "), said.text, "all of it is there, once");
    let short = MessageBody { text: "short".to_owned(), ..said };
    rig.front.deliver(numbered(1, &place, &short)).await.expect("delivered");
    assert_eq!(rig.slack.replies("D1").len(), texts.len() + 1);
    rig.finish().await;
}

#[tokio::test]
async fn what_slack_will_not_have_in_any_form_goes_as_plain_text_or_is_refused() {
    let rig = Rig::start().await;
    let place = place("D1", None);
    rig.slack.fault_times("chat.postMessage", 4, Fault::Error("invalid_blocks"));
    rig.front.deliver(part(&place, None, &speech("**bold** <@U1>"))).await.expect("delivered");
    assert_eq!(texts(&rig, "D1"), ["**bold** &lt;@U1&gt;"]);
    rig.slack.fault("chat.postMessage", Fault::Error("invalid_blocks"));
    let refused = rig.front.deliver(part(&place, None, &speech("**bold**"))).await;
    assert!(
        matches!(&refused, Err(FrontError::Refused { what, .. }) if what.contains("invalid_blocks")),
        "{refused:?}"
    );
    rig.finish().await;
}

/// The answer was lost, and nobody was told.
#[tokio::test]
async fn an_error_that_nobody_has_listed_costs_no_answer() {
    let rig = Rig::start().await;
    let place = place("D1", None);
    rig.slack.fault_times("chat.postMessage", 1, Fault::Error("flux_capacitor_empty"));
    rig.front.deliver(part(&place, None, &speech("**bold**"))).await.expect("delivered");
    assert_eq!(texts(&rig, "D1").len(), 1, "{:?}", texts(&rig, "D1"));
    rig.finish().await;
}

/// A header of 20 digits ended the gateway, one of 13 kept it silent for 30,000 years.
#[tokio::test]
async fn an_absurd_wait_is_not_waited_for() {
    for seconds in [1_000_000_000_000, u64::MAX] {
        let rig = Rig::start().await;
        let place = place("D1", None);
        rig.slack.fault_times("chat.postMessage", 1, Fault::RateLimited(seconds));
        let put_off = rig.front.deliver(part(&place, None, &speech("**bold**"))).await;
        let Err(FrontError::Transient { retry_after: Some(wait), .. }) = put_off else { panic!("{put_off:?}") };
        assert!(wait <= Duration::from_secs(300), "{wait:?}");
        rig.finish().await;
    }
}

#[tokio::test]
async fn what_was_posted_and_never_confirmed_is_found_again() {
    let rig = Rig::with(SlackRules::quick().unlimited()).await;
    for place in [place("D1", None), place("C1", Some("1700000000.000100"))] {
        let question = rig.slack.dm_in_thread("U1", "a question", place.thread_ts.as_deref());
        let said = speech("the answer");
        rig.slack.fault_times("chat.postMessage", 1, Fault::Lost);
        let lost = rig.front.deliver(numbered(3, &place, &said)).await;
        assert!(matches!(lost, Err(FrontError::Transient { .. })), "{lost:?}");
        let posted = rig.slack.replies(&place.channel)[0].ts.clone();
        // More than a page of other things is said before anybody looks.
        for n in 0..250 {
            rig.front.deliver(numbered(100 + n, &place, &said)).await.expect("delivered");
        }
        let find = |number| {
            let (rig, place, said, ts) = (&rig, &place, &said, question.ts.clone());
            async move { rig.front.find(&numbered(number, place, said), &ts, false).await.expect("it can look") }
        };
        assert_eq!(find(3).await, Lookup::Yes(Some(posted.clone())));
        assert_eq!(find(4).await, Lookup::No);
        let other = Delivery { event_id: "Ev2", ..numbered(3, &place, &said) };
        assert_eq!(rig.front.find(&other, &question.ts, false).await.expect("it can look"), Lookup::No);
        let later = rig.front.find(&numbered(3, &place, &said), &posted, false).await.expect("it can look");
        assert_eq!(later, Lookup::No, "only what was said after the question matters");
    }
    rig.finish().await;
}

#[tokio::test]
async fn a_history_that_cannot_be_read_is_said_to_be_unknown() {
    let rig = Rig::start().await;
    let (place, said) = (place("D1", None), speech("the answer"));
    for code in ["missing_scope", "not_in_channel", "channel_not_found"] {
        rig.slack.fault("conversations.history", Fault::Error(code));
        let found = rig.front.find(&numbered(1, &place, &said), "1700000000.000100", false).await;
        assert_eq!(found.expect("that is an answer"), Lookup::Unknown, "{code}");
    }
    for fault in [Fault::Status(500), Fault::Garbage, Fault::Error("internal_error"), Fault::RateLimited(1)] {
        rig.slack.fault("conversations.history", fault.clone());
        let found = rig.front.find(&numbered(1, &place, &said), "1700000000.000100", false).await;
        assert!(matches!(found, Err(FrontError::Transient { .. })), "{fault:?}: {found:?}");
    }
    rig.finish().await;
}

#[tokio::test]
async fn a_document_is_announced_sent_and_shared() {
    let rig = Rig::start().await;
    let place = place("C1", Some("1700000000.000100"));
    let said = speech("# 完整的回答\n\n| a |\n|---|\n");
    let file = Delivery { kind: Kind::Document, ..numbered(1, &place, &said) };
    rig.front.deliver(file.clone()).await.expect("delivered");
    let shared = rig.slack.replies("C1").pop().expect("a message with the file");
    assert_eq!(shared.thread_ts, place.thread_ts);
    let content = rig.slack.file(&shared.ts).expect("a file").content;
    assert_eq!(content.as_deref(), Some(said.text.as_bytes()));
    let found = rig.front.find(&file, "1700000000.000100", false).await.expect("it can look");
    assert_eq!(found, Lookup::Yes(Some(shared.ts)));
    rig.finish().await;
}

#[tokio::test]
async fn a_document_that_cannot_be_posted_is_refused_and_nothing_of_it_shows() {
    let rig = Rig::start().await;
    let (place, said) = (place("D1", None), speech("the whole answer"));
    let file = Delivery { kind: Kind::Document, ..numbered(1, &place, &said) };
    for (step, times, fault) in [
        ("files.getUploadURLExternal", 1, Fault::Error("missing_scope")),
        ("files.getUploadURLExternal", 3, Fault::Status(500)),
        ("upload", 3, Fault::Status(500)),
        ("files.completeUploadExternal", 1, Fault::Error("not_in_channel")),
    ] {
        rig.slack.fault_times(step, times, fault.clone());
        let refused = rig.front.deliver(file.clone()).await;
        assert!(matches!(refused, Err(FrontError::Refused { .. })), "{step} {fault:?}: {refused:?}");
        assert!(rig.slack.messages("D1").is_empty());
    }
    rig.slack.fault_times("files.completeUploadExternal", 1, Fault::Lost);
    let unknown = rig.front.deliver(file.clone()).await;
    assert!(matches!(unknown, Err(FrontError::Transient { .. })), "it may be there: {unknown:?}");
    rig.finish().await;
}

#[tokio::test]
async fn a_placeholder_is_taken_back() {
    let rig = Rig::with(SlackRules::quick().without_statuses()).await;
    let place = place("D1", None);
    let placeholder =
        rig.front.placeholder(&question(&place), ":hourglass: …").await.expect("posted").expect("Slack has ids");
    rig.front.withdraw(&place, &placeholder).await.expect("withdrawn");
    assert!(rig.slack.messages("D1").is_empty());
    assert!(rig.front.withdraw(&place, &placeholder).await.is_err(), "it is gone");
    rig.finish().await;
}

/// Once, a part that went in pieces began anew after a crash between two of them, and nothing told of the repeats.
#[tokio::test]
async fn of_a_part_that_went_in_pieces_only_those_are_posted_again_that_are_not_there() {
    let rig = Rig::with(SlackRules::quick().unlimited()).await;
    let (place, question) = (place("D1", None), rig.slack.dm("U1", "a question"));
    let said = speech(&words(2_000));
    rig.slack.fault_after("chat.postMessage", 2, 1, Fault::Lost);
    let lost = rig.front.deliver(part(&place, None, &said)).await;
    assert!(matches!(lost, Err(FrontError::Transient { .. })), "{lost:?}");
    assert_eq!(rig.slack.replies("D1").len(), 3, "of more");
    let found = rig.front.find(&part(&place, None, &said), &question.ts, false).await.expect("it can look");
    assert_eq!(found, Lookup::No);
    rig.front.deliver(part(&place, None, &said)).await.expect("delivered");
    assert_eq!(texts(&rig, "D1").join(" "), words(2_000));
    rig.finish().await;
}

/// Once, what had taken a placeholder's place began anew with each attempt: what is there was known of what is looked for
/// alone.
#[tokio::test]
async fn pieces_that_were_posted_were_posted_again_where_the_first_had_taken_a_placeholders_place() {
    let rig = Rig::with(SlackRules::quick().unlimited().without_statuses()).await;
    let place = place("D1", None);
    let placeholder =
        rig.front.placeholder(&question(&place), ":hourglass: …").await.expect("posted").expect("Slack has ids");
    let said = speech(&words(2_000));
    rig.slack.fault_after("chat.postMessage", 1, 1, Fault::Status(500));
    let failed = rig.front.deliver(part(&place, Some(&placeholder), &said)).await;
    assert!(matches!(failed, Err(FrontError::Transient { .. })), "{failed:?}");
    assert_eq!(rig.slack.replies("D1").len(), 2, "of more");
    let id = rig.front.deliver(part(&place, Some(&placeholder), &said)).await.expect("delivered");
    assert_eq!(id.as_deref(), Some(placeholder.as_str()));
    assert_eq!(texts(&rig, "D1").join(" "), words(2_000));
    rig.finish().await;
}

/// Once, pieces in a channel that took no more of them counted for the direct message to which the answer went instead.
#[tokio::test]
async fn pieces_in_one_place_were_taken_for_those_of_another() {
    let rig = Rig::with(SlackRules::quick().unlimited()).await;
    let (channel, person) = (place("C1", None), place("D1", None));
    let (question, said) = (rig.slack.mention("C1", "U1", "a question", None), speech(&words(2_000)));
    rig.slack.fault_after("chat.postMessage", 2, 1, Fault::Status(500));
    let failed = rig.front.deliver(part(&channel, None, &said)).await;
    assert!(matches!(failed, Err(FrontError::Transient { .. })), "{failed:?}");
    let found = rig.front.find(&part(&channel, None, &said), &question.ts, false).await.expect("it can look");
    assert_eq!(found, Lookup::No);
    rig.front.deliver(part(&person, None, &said)).await.expect("delivered");
    assert_eq!(texts(&rig, "D1").join(" "), words(2_000));
    rig.finish().await;
}

/// It was asked for in a form that Slack does not take, so the person's own id always stood for the direct message.
#[tokio::test]
async fn no_direct_message_was_ever_opened() {
    let rig = Rig::start().await;
    assert_eq!(rig.front.direct("U7").await.expect("opened"), "D7");
    assert_eq!(rig.slack.calls("conversations.open")[0].body["users"], "U7");
    rig.finish().await;
}

/// Regression: a stream that Slack had refused to begin was looked for in the history, with each answer anew.
#[tokio::test]
async fn a_stream_that_was_refused_was_looked_for() {
    let rig = Rig::with(SlackRules::quick().unlimited()).await;
    let place = place("D1", Some("1700000000.000100"));
    let asked = question(&place);
    rig.slack.fault("chat.startStream", Fault::Error("unknown_method"));
    assert!(rig.front.show(&asked, "Thinking…").await);
    let listener = rig.front.listener(&asked, Box::new(|_: &str| {})).expect("it is streamed");
    listener.hear("The first paragraph.\n\nThe second one.");
    until("a refusal", || rig.slack.call_count("chat.startStream") == 1).await;
    drop(listener);
    let answer = speech("The first paragraph.\n\nThe second one.");
    assert!(rig.front.deliver(part(&place, None, &answer)).await.is_ok());
    rig.front.clear("Ev1").await.expect("nothing is left");
    rig.front.over("Ev1").await;
    assert_eq!(rig.slack.call_count("conversations.replies"), 0, "nothing was begun");
    assert!(rig.front.listener(&asked, Box::new(|_: &str| {})).is_none(), "a Slack without streams is not asked again");
    rig.finish().await;
}

/// Regression: each of several hosts let as many answers grow as all of them together can close in a minute.
#[tokio::test]
async fn hosts_let_more_answers_grow_than_they_could_close() {
    let three = |config: SlackConfig| SlackConfig { sharers: Sharers::of(|| 3), ..config };
    let rig = Rig::changed(SlackRules::quick().unlimited(), three).await;
    let mut growing = vec![];
    for number in 0..6 {
        let place = place("D1", Some(&format!("170000000{number}.000100")));
        let asked = Inbound { event_id: format!("Ev{number}"), ..question(&place) };
        assert!(rig.front.show(&asked, "Thinking…").await);
        let listener = rig.front.listener(&asked, Box::new(|_: &str| {})).expect("it is streamed");
        listener.hear("The first paragraph.\n\nThe second one.");
        growing.push(listener);
    }
    until("streams", || rig.slack.call_count("chat.startStream") == 5).await;
    // By then the first piece of the last one is due.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(rig.slack.call_count("chat.startStream"), 5);
    rig.finish().await;
}
