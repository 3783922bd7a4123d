//! Whole conversations, exported from one store and imported into another; and cuts back to an earlier turn.

use std::time::Duration;

use pmk_core::{Block, Image, ImageId, ImageType, Origin, Role, SessionKey};

use super::*;

const KEY: &str = "slack:dm:U1";

fn key() -> SessionKey {
    KEY.parse().unwrap()
}

/// A conversation with a seed, two turns, and a large message that is shortened in the window.
fn dump() -> SessionDump {
    let shortened = "…(已自動截斷，原長度 900，超過 user cap 20，完整內容仍在 host，id m7)";
    let messages = [
        (4, Message::text(Role::User, Origin::Seed, "seed")),
        (7, Message::user("q".repeat(900))),
        (8, Message::assistant("a1")),
        (9, Message::user("q2")),
    ];
    let messages: Vec<DumpedMessage> = messages
        .into_iter()
        .map(|(id, message)| DumpedMessage { id: Some(id), message, tokens: id as u32, created_at_ms: NOW + id })
        .collect();
    let live = |index, replacement, tokens| DumpedLive { index, replacement, tokens };
    SessionDump {
        key: key(),
        created_at_ms: NOW - 10,
        active_at_ms: NOW + 10,
        turns: 5,
        dropped_turns: 3,
        marker_template: Some("[{turns} older]".into()),
        verbosity: Some(Verbosity::Summary),
        messages,
        has_made_up_times: false,
        live: vec![live(0, None, 4), live(1, Some(Message::user(shortened)), 30), live(3, None, 9)],
        cases: vec![],
        images: vec![],
    }
}

#[tokio::test]
async fn what_comes_in_goes_out_as_it_was() {
    let home = home();
    let store = open(&home);
    let restored = store.restore(dump(), false, NOW).await.unwrap();
    assert_eq!(restored, Restored { messages: 4, renumbered: false, cases_closed: 0 });
    assert_eq!(store.dump(&key()).await.unwrap(), dump());
    assert_eq!(number(&home, "SELECT count(*) FROM session WHERE lease_owner IS NOT NULL"), 0);
    let inbox = accept(&store, KEY, "Ev1").await;
    let live = ask(&store, inbox).await.live;
    assert_eq!((live.entries.len(), live.dropped_turns), (3, 3));
}

/// Regression: what refers to them went out, and their bytes did not.
#[tokio::test]
async fn an_exported_conversation_had_lost_its_images() {
    let home = home();
    let store = open(&home);
    let image = StoredImage { sha256: ImageId::of(b"pixels"), bytes: b"pixels".as_slice().into() };
    let shown = Image { sha256: image.sha256.clone(), media_type: ImageType::Png, width: 1, height: 1 };
    let mut dump = dump();
    dump.messages[1].message.blocks.push(Block::Image(shown));
    dump.images = vec![image.clone()];
    store.restore(dump.clone(), false, NOW).await.unwrap();
    assert_eq!(store.dump(&key()).await.unwrap(), dump);
    store.restore(dump, true, NOW).await.unwrap();
    assert_eq!(number(&home, "SELECT count(*) FROM image"), 1, "it was there already");
    let erased = store.erase_conversation(&key(), Erasing::Anyway, Duration::ZERO, NOW).await.unwrap();
    assert_eq!((erased.messages, store.images(vec![image.sha256]).await.unwrap()), (4, vec![]));
}

#[tokio::test]
async fn a_conversation_that_is_there_is_not_mixed_with_another() {
    let home = home();
    let store = open(&home);
    turn(&store, KEY, "Ev1").await;
    let before = store.dump(&key()).await.unwrap();
    assert_eq!(store.restore(dump(), false, NOW).await, Err(StoreError::Exists(key())));
    assert_eq!(store.dump(&key()).await.unwrap(), before);

    let restored = store.restore(dump(), true, NOW).await.unwrap();
    assert_eq!(restored, Restored { messages: 4, renumbered: true, cases_closed: 0 });
    let after = store.dump(&key()).await.unwrap();
    assert_eq!((after.messages.len(), after.live.len(), after.turns, after.dropped_turns), (6, 3, 6, 3));
    assert_eq!(after.messages[..2], before.messages[..]);
    assert_eq!(after.live[0].index, 2);
}

/// Regression: after the import the archive contained everything twice, and the turns counted double.
#[tokio::test]
async fn a_conversation_that_comes_back_to_where_it_was_written_to_a_file_is_there_once() {
    let home = home();
    let store = open(&home);
    // Two equal messages remain two.
    let mut dump = dump();
    let again = dump.messages[3].clone();
    dump.messages.push(DumpedMessage { id: Some(10), ..again });
    store.restore(dump.clone(), false, NOW).await.unwrap();
    turn(&store, KEY, "Ev1").await;
    let gone_on = store.dump(&key()).await.unwrap();

    let restored = store.restore(dump.clone(), true, NOW).await.unwrap();
    assert_eq!(restored, Restored { messages: 5, renumbered: false, cases_closed: 0 });
    let after = store.dump(&key()).await.unwrap();
    assert_eq!((&after.messages, &after.live, after.turns), (&gone_on.messages, &dump.live, gone_on.turns));
    store.restore(gone_on.clone(), true, NOW).await.unwrap();
    let active_at_ms = gone_on.active_at_ms.max(dump.active_at_ms);
    assert_eq!(store.dump(&key()).await.unwrap(), SessionDump { active_at_ms, ..gone_on });
}

/// Regression: times that were made up from the end of a file told its messages apart, and all were stored again.
#[tokio::test]
async fn messages_with_made_up_times_were_stored_again_once_their_file_had_grown() {
    let home = home();
    let store = open(&home);
    let said = [Message::user("q1"), Message::assistant("a1"), Message::user("q2"), Message::assistant("a2")];
    let of = |said: &[Message], since: i64| {
        let stored = |(at, message): (i64, &Message)| DumpedMessage {
            id: None,
            message: message.clone(),
            tokens: 1,
            created_at_ms: at,
        };
        SessionDump {
            turns: said.len() as u64 / 2,
            messages: (since..).zip(said).map(stored).collect(),
            has_made_up_times: true,
            live: (0..said.len()).map(|index| DumpedLive { index, replacement: None, tokens: 1 }).collect(),
            ..dump()
        }
    };
    store.restore(of(&said[..2], NOW), false, NOW).await.unwrap();
    store.restore(of(&said, NOW + 99), true, NOW).await.unwrap();
    let after = store.dump(&key()).await.unwrap();
    let kept: Vec<Message> = after.messages.into_iter().map(|stored| stored.message).collect();
    assert_eq!((kept, after.live.len(), after.turns), (said.to_vec(), 4, 2));
}

/// Regression: pmk's files say nothing of it, and to import one took back what people had chosen.
#[tokio::test]
async fn an_import_that_says_nothing_of_tool_calls_set_back_what_is_shown_of_them() {
    let home = home();
    let store = open(&home);
    store.restore(dump(), false, NOW).await.unwrap();
    store.restore(SessionDump { verbosity: None, ..dump() }, true, NOW).await.unwrap();
    assert_eq!(store.dump(&key()).await.unwrap().verbosity, Some(Verbosity::Summary));
}

/// What was erased was counted still.
#[tokio::test]
async fn a_conversation_that_came_back_after_it_was_erased_counted_its_turns_twice() {
    let home = home();
    let store = open(&home);
    store.restore(dump(), false, NOW).await.unwrap();
    let gone_out = store.dump(&key()).await.unwrap();
    store.erase_conversation(&key(), Erasing::Anyway, Duration::ZERO, NOW).await.unwrap();
    assert_eq!(number(&home, "SELECT turns FROM session"), 0);
    store.restore(gone_out.clone(), false, NOW).await.unwrap();
    assert_eq!(store.dump(&key()).await.unwrap().turns, gone_out.turns);
}

#[tokio::test]
async fn a_notice_names_the_new_id_of_a_message_whose_old_one_was_taken() {
    let home = home();
    let store = open(&home);
    let other = SessionDump { key: "slack:dm:U2".parse().unwrap(), ..dump() };
    assert!(!store.restore(other, false, NOW).await.unwrap().renumbered);
    assert!(store.restore(dump(), false, NOW).await.unwrap().renumbered);
    let live = store.session_messages(&key(), false).await.unwrap();
    let shown = &live[1].entry;
    assert!(shown.id > 9 && shown.message.plain_text().ends_with(&format!("id {})", shown.shown_id())), "{shown:?}");
    assert_eq!(shown.source().plain_text().len(), 900);
}

/// Regression: every later message got a greater id still, and the conversation could not be imported any more.
#[tokio::test]
async fn an_id_too_great_to_go_on_from_was_kept() {
    let home = home();
    let store = open(&home);
    let mut great = dump();
    great.messages[3].id = Some(1 << 53);
    assert!(store.restore(great, false, NOW).await.unwrap().renumbered);
    let messages = store.dump(&key()).await.unwrap().messages;
    assert!(messages.iter().all(|message| message.id.is_some_and(|id| id < 100)), "{messages:?}");
}

#[tokio::test]
async fn a_question_that_nobody_has_answered_yet_is_no_conversation_to_protect() {
    let home = home();
    let store = open(&home);
    accept(&store, KEY, "Ev1").await;
    store.restore(dump(), false, NOW).await.unwrap();
    assert_eq!(store.session(&key()).await.unwrap().live_messages, 3);
}

#[tokio::test]
async fn an_import_waits_for_nobody_who_goes_on() {
    let home = home();
    let lock = HomeLock::take(home.path()).unwrap();
    let run = run(&home, &lock).await;
    let inbox = accept(&run, KEY, "Ev1").await;
    let turn = ask(&run, inbox).await.turn;
    let command = Store::open_existing(&home).unwrap();
    let waiting = tokio::spawn({
        let command = command.clone();
        async move { command.restore(dump(), true, NOW).await }
    });
    // Each commit comes after what the import had sent before it: one attempt to add, and one to hold the conversation.
    for _ in 0..6 {
        command.commit_nothing().await.unwrap();
    }
    assert!(!waiting.is_finished());
    run.record(turn, recorded("q", "a"), NOW).await.unwrap();
    run.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert!(waiting.await.unwrap().is_ok());
    assert_eq!(live_texts(&run, KEY).await.len(), 3);
}

#[tokio::test]
async fn a_dump_of_nonsense_leaves_nothing_behind() {
    let home = home();
    let store = open(&home);
    let mut nonsense = dump();
    nonsense.live[2].index = 9;
    assert_eq!(store.restore(nonsense, false, NOW).await, Err(StoreError::NoSuchPosition(2)));
    assert_eq!(store.sessions().await.unwrap(), []);
    assert_eq!(number(&home, "SELECT count(*) FROM message"), 0);
}

/// A new column of a conversation must be exported, or be one that has no meaning elsewhere.
#[tokio::test]
async fn no_column_of_a_conversation_is_forgotten() {
    let home = home();
    drop(open(&home));
    let columns = |table: &str| {
        asked(&home, |conn| -> Vec<String> {
            let columns = conn.either(
                "SELECT name FROM pragma_table_info(?1)",
                "SELECT CAST(attname AS TEXT) FROM pg_attribute WHERE attrelid = CAST(?1 AS regclass) AND attnum > 0
             ORDER BY attnum",
            );
            let mut statement = conn.prepare_cached(columns).unwrap();
            statement.query_map([table], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        })
    };
    let carried = ["key", "created_at", "active_at", "turns", "dropped_turns", "marker", "verbose"];
    // In another store a thread is followed only after the bot is mentioned in it.
    let followed = ["followed", "followed_from", "followed_until"];
    let here_alone =
        [&["id", "lease_owner", "lease_until", "channel", "read_from", "revision", "sizes", "is_group"][..], &followed]
            .concat();
    let mut session = columns("session");
    session.retain(|name| !carried.contains(&name.as_str()) && !here_alone.contains(&name.as_str()));
    assert_eq!(session, [""; 0]);
    let message =
        ["id", "session_id", "turn_id", "role", "origin", "blocks", "tokens", "chars", "created_at", "erased_at"];
    assert_eq!(columns("message"), message);
    assert_eq!(columns("live"), ["session_id", "position", "message_id", "replacement", "tokens", "chars"]);
}

fn tool_turns() -> Vec<Message> {
    let blocks = |role, origin, block| Message { role, origin, blocks: vec![block] };
    let call = || Block::ToolUse { id: "t".into(), name: "ls".into(), input: json!({}) };
    let result = || Block::ToolResult { tool_use_id: "t".into(), content: "x".into(), is_error: false };
    vec![
        Message::text(Role::User, Origin::Seed, "seed"),
        Message::text(Role::Assistant, Origin::SeedAck, "ok"),
        Message::user("q1"),
        blocks(Role::Assistant, Origin::Assistant, call()),
        blocks(Role::User, Origin::ToolResult, result()),
        Message::assistant("a1"),
        Message::user("q2"),
        blocks(Role::Assistant, Origin::Assistant, call()),
        Message::user("and quickly"),
        blocks(Role::User, Origin::ToolResult, result()),
        Message::assistant("a2"),
        Message::user("q4"),
        Message::assistant("a4"),
    ]
}

#[tokio::test]
async fn a_cut_back_keeps_the_seed_and_splits_no_tool_pair() {
    for (to, kept, removed, messages) in
        [(0, 0, 4, 11), (1, 1, 3, 7), (2, 3, 1, 2), (3, 3, 1, 2), (4, 4, 0, 0), (9, 4, 0, 0)]
    {
        let home = home();
        let store = open(&home);
        let stored: Vec<DumpedMessage> = tool_turns()
            .into_iter()
            .map(|message| DumpedMessage { id: None, message, tokens: 1, created_at_ms: NOW })
            .collect();
        let live = (0..stored.len()).map(|index| DumpedLive { index, replacement: None, tokens: 1 }).collect();
        store.restore(SessionDump { messages: stored, live, ..dump() }, false, NOW).await.unwrap();
        let cut = store.reset_to_turn(&key(), to, NOW).await.unwrap();
        assert_eq!(cut, Cut { turns_kept: kept, turns_removed: removed, messages_removed: messages }, "to turn {to}");
        let left = store.session_messages(&key(), false).await.unwrap();
        let left: Vec<Message> = left.iter().map(|stored| (*stored.entry.message).clone()).collect();
        assert_eq!(left, tool_turns()[..13 - messages], "to turn {to}");
        assert_eq!(pmk_core::structure::pair_tools(&left).orphans, []);
        let session = store.session(&key()).await.unwrap();
        assert_eq!((session.archived_messages, session.dropped_turns), (messages as u64, 3));
    }
}
