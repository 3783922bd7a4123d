//! The live window, the archive, and that conversations never mix.

use std::sync::Arc;

use pmk_core::{Origin, Role, SessionKey, tokens};

use super::*;

const KEY: &str = "slack:dm:U1";

fn key() -> SessionKey {
    KEY.parse().unwrap()
}

#[tokio::test]
async fn a_turn_finds_what_the_last_one_left() {
    let home = home();
    let store = open(&home);
    turn(&store, KEY, "Ev1").await;
    turn(&store, KEY, "Ev2").await;
    let inbox = accept(&store, KEY, "Ev3").await;
    let live = ask(&store, inbox).await.live;
    let texts: Vec<String> = live.entries.iter().map(|entry| entry.entry.message.plain_text()).collect();
    assert_eq!(texts, ["question Ev1", "answer Ev1", "question Ev2", "answer Ev2"]);
    assert!(live.entries.is_sorted_by_key(|entry| entry.position));
    assert_eq!((live.dropped_turns, live.marker_template), (0, None));
    for LiveEntry { entry, .. } in &live.entries {
        assert_eq!(entry.tokens, tokens::message(&entry.message));
        assert_eq!(entry.chars as usize, entry.message.plain_text().chars().count());
        assert!(entry.original.is_none());
    }
}

#[tokio::test]
async fn messages_come_back_as_they_were() {
    use pmk_core::Block;
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, KEY, "Ev1").await;
    let open = ask(&store, inbox).await;
    let call = Block::ToolUse { id: "t1".into(), name: "find".into(), input: json!({"q": "預算", "n": 1.5}) };
    let result = Block::ToolResult { tool_use_id: "t1".into(), content: "無\u{0}\u{1F600}".into(), is_error: true };
    let mut messages: Vec<Message> = Origin::ALL
        .into_iter()
        .zip([Role::User, Role::Assistant].into_iter().cycle())
        .map(|(origin, role)| Message::text(role, origin, "文字 \"quoted\"\n"))
        .collect();
    messages.push(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] });
    messages.push(Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] });
    let entries = messages.iter().map(|message| Entry::new(0, message.clone())).collect();
    store.record(open.turn, Recorded { messages: entries, ..recorded("", "") }, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let next = accept(&store, KEY, "Ev2").await;
    let live = ask(&store, next).await.live;
    let back: Vec<Message> = live.entries.iter().map(|entry| (*entry.entry.message).clone()).collect();
    assert_eq!(back, messages);
}

#[tokio::test]
async fn a_window_is_read_whole_however_long_it_is() {
    let home = home();
    let store = open(&home);
    let short = window::SHORT_ENTRIES;
    let large = "x".repeat(window::SHORT_BYTES);
    let windows = [vec!["word"; short], vec!["word"; short + 1], vec![&*large], vec!["word", &*large, "word"]];
    for (n, texts) in windows.into_iter().enumerate() {
        let key = format!("slack:dm:U{n}");
        let first = accept(&store, &key, &format!("Ev{n}")).await;
        let open = ask(&store, first).await;
        let messages = texts.iter().map(|text| Entry::new(0, Message::user(*text))).collect();
        store.record(open.turn, Recorded { messages, ..recorded("", "") }, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
        let next = accept(&store, &key, &format!("Ev{n}-next")).await;
        let OpenTurn { live, archived, .. } = ask(&store, next).await;
        let back: Vec<String> = live.entries.iter().map(|entry| entry.entry.message.plain_text()).collect();
        assert!(back == texts, "window {n}: {} of {} messages", back.len(), texts.len());
        assert_eq!(archived as usize, texts.len());
    }
}

#[tokio::test]
async fn a_turn_begins_while_others_read_for_long() {
    let home = home();
    let store = open(&home);
    turn(&store, KEY, "Ev1").await;
    let long_read = || {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (started, is_started) = tokio::sync::oneshot::channel();
        let store = store.clone();
        let reading = tokio::spawn(async move {
            store
                .read(move |_| {
                    started.send(()).unwrap();
                    held.recv().unwrap();
                    Ok(())
                })
                .await
        });
        (release, is_started, reading)
    };
    let (release, is_started, reading) = long_read();
    is_started.await.unwrap();
    let second = accept(&store, KEY, "Ev2").await;
    store.windows().forget_all();
    assert_eq!(ask(&store, second).await.live.entries.len(), 2, "over the connection that is left");
    let (release_other, is_started, reading_other) = long_read();
    is_started.await.unwrap();
    assert_eq!(ask(&store, second).await.live.entries.len(), 2, "from what is known of it");
    store.windows().forget_all();
    let begun = tokio::spawn({
        let store = store.clone();
        async move { ask(&store, second).await }
    });
    // Further commits: each has found both reader connections in use, and waits for one. On PostgreSQL the window
    // was read together with the question.
    for _ in 0..3 {
        store.commit_nothing().await.unwrap();
    }
    if home.database.is_none() {
        assert!(!begun.is_finished());
    }
    for (release, reading) in [(release, reading), (release_other, reading_other)] {
        release.send(()).unwrap();
        reading.await.unwrap().unwrap();
    }
    assert_eq!(begun.await.unwrap().live.entries.len(), 2);
}

#[tokio::test]
async fn what_is_known_of_a_window_holds_until_anybody_changes_it() {
    let home = home();
    let store = open(&home);
    let other = Store::open_existing(&home).unwrap();
    for round in 0..4 {
        turn(&store, KEY, &format!("Ev{round}-1")).await;
        let open = turn(&store, KEY, &format!("Ev{round}-2")).await;
        assert_eq!(open.live.entries.len(), 2, "round {round}");
        let edit = |edit: WindowEdit| store.edit_live(open.session, edit, vec![], NOW);
        match round {
            // As another process does it.
            0 => assert_eq!(other.reset(&key(), NOW).await.unwrap(), Some(4)),
            1 => assert_eq!(store.reset(&key(), NOW).await.unwrap(), Some(4)),
            2 => {
                let revision = open.live.revision;
                edit(WindowEdit { removed: (0..4).collect(), revision, ..WindowEdit::default() }).await.unwrap();
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_window_that_is_changed_while_it_is_read_is_not_remembered() {
    let home = home();
    let store = open(&home);
    let session = turn(&store, KEY, "Ev1").await.session;
    let windows = store.windows();
    windows.forget_all();
    let find = || {
        let windows = store.windows();
        store.write(move |conn| windows.find(conn, session, 0))
    };
    let Some(place) = find().await.unwrap().0 else { return assert!(home.database.is_some()) };
    windows.forget(session);
    let late = Arc::new(vec![]);
    windows.put(place, Arc::clone(&late));
    let (Some(place), None) = find().await.unwrap() else { panic!("a window is known that was forgotten") };
    let whole = store.read(move |conn| window::read(conn, session)).await.unwrap();
    windows.put(place, Arc::new(whole));
    let (None, Some(known)) = find().await.unwrap() else { panic!("what was read is not known") };
    assert_eq!(known.len(), 2);
}

#[tokio::test]
async fn a_prune_edits_the_window_and_nothing_else() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    for n in 0..4 {
        turn(&store, KEY, &format!("Ev{n}")).await;
    }
    let before: Vec<(i64, String)> = archive(&home);
    let inbox = accept(&store, KEY, "Ev4").await;
    let open = ask(&store, inbox).await;
    let positions: Vec<i64> = open.live.entries.iter().map(|entry| entry.position).collect();
    let short = Arc::new(Message::assistant("short"));
    let edit = WindowEdit {
        revision: open.live.revision,
        removed: positions[0..4].to_vec(),
        replaced: vec![Replacement { position: positions[5], message: Arc::clone(&short), tokens: 6, chars: 5 }],
        dropped_turns_total: 2,
        marker_template: Some("[{turns} gone]".into()),
    };
    store.edit_live(open.session, edit, vec![], NOW).await.unwrap();

    let live = ask(&store, inbox).await.live;
    assert_eq!((live.dropped_turns, live.marker_template.as_deref()), (2, Some("[{turns} gone]")));
    assert_eq!(live.entries.iter().map(|entry| entry.position).collect::<Vec<_>>(), positions[4..]);
    let reduced = &live.entries[1].entry;
    assert_eq!((&reduced.message, reduced.tokens, reduced.chars), (&short, 6, 5));
    assert_eq!(reduced.source().plain_text(), "answer Ev2");
    assert_eq!(archive(&home), before);

    let all = store.session_messages(&key(), true).await.unwrap();
    assert_eq!(all.iter().map(|stored| stored.live).collect::<Vec<_>>(), [[false; 4], [true; 4]].concat());
    assert_eq!(all[5].entry.message, short);
    assert_eq!(all[5].created_at_ms, NOW);
    let summary = store.session(&key()).await.unwrap();
    assert_eq!((summary.turns, summary.live_messages, summary.archived_messages), (4, 4, 4));
    assert_eq!(summary.live_tokens, live.entries.iter().map(|entry| u64::from(entry.entry.tokens)).sum::<u64>());
    assert_eq!((summary.dropped_turns, summary.active_at_ms), (2, NOW));
    assert_eq!(store.sessions().await.unwrap(), [summary]);
}

fn archive(home: &Home) -> Vec<(i64, String)> {
    asked(home, |conn| {
        let mut statement = conn.prepare_cached("SELECT id, blocks FROM message ORDER BY id").unwrap();
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    })
}

#[tokio::test]
async fn the_file_itself_refuses_to_rewrite_a_message() {
    let home = home();
    turn(&open(&home), KEY, "Ev1").await;
    let error = asked(&home, |conn| conn.execute("UPDATE message SET blocks = '[]'", []).unwrap_err().to_string());
    assert_eq!(error, "a stored message is never rewritten");
}

#[tokio::test]
async fn an_edit_that_is_half_wrong_is_not_made() {
    let home = home();
    let store = open(&home);
    let session = turn(&store, KEY, "Ev1").await.session;
    let replacement = Replacement { position: 99, message: Arc::new(Message::user("x")), tokens: 1, chars: 1 };
    let edit = WindowEdit { removed: vec![0], replaced: vec![replacement], ..WindowEdit::default() };
    assert_eq!(store.edit_live(session, edit, vec![], NOW).await, Err(StoreError::NoSuchPosition(99)));
    assert_eq!(live_texts(&store, KEY).await.len(), 2);
}

#[tokio::test]
async fn a_turn_that_was_given_up_is_archived_only() {
    let home = home();
    let store = open(&home);
    turn(&store, KEY, "Ev1").await;
    let inbox = accept(&store, KEY, "Ev2").await;
    let open = ask(&store, inbox).await;
    let honest = Recorded { keep_live: false, ..recorded("too long", "this was too long") };
    store.record(open.turn, honest, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(live_texts(&store, KEY).await, ["question Ev1", "answer Ev1"]);
    assert_eq!(store.session_messages(&key(), true).await.unwrap().len(), 4);
    // Nor does it count as an answered question, as no `/pmk` command does.
    assert_eq!(store.session(&key()).await.unwrap().turns, 1);
    // The next turn is still added at the end.
    turn(&store, KEY, "Ev3").await;
    assert_eq!(live_texts(&store, KEY).await[2..], ["question Ev3", "answer Ev3"]);
}

#[tokio::test]
async fn many_conversations_at_once_stay_apart() {
    let home = home();
    let store = open(&home);
    let keys: Vec<String> = (0..40)
        .flat_map(|n| [format!("slack:dm:U{n}"), format!("slack:dm:U{n}:1.{n}"), format!("slack:channel:C{n}")])
        .collect();
    let workers: Vec<_> = keys
        .iter()
        .cloned()
        .map(|key| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..5 {
                    let open = turn(&store, &key, &format!("{key}/{n}")).await;
                    assert_eq!(open.live.entries.len(), 2 * n);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    for key in &keys {
        let texts = live_texts(&store, key).await;
        let expected: Vec<String> =
            (0..5).flat_map(|n| [format!("question {key}/{n}"), format!("answer {key}/{n}")]).collect();
        assert_eq!(texts, expected);
    }
    assert_eq!(store.sessions().await.unwrap().len(), keys.len());
}

#[tokio::test]
async fn an_unknown_conversation_is_named() {
    let home = home();
    let error = open(&home).session_messages(&key(), true).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no conversation `slack:dm:U1`");
}
