//! Button presses.

use pmk_knowledge::reaction::ReactionVerdict;

use super::*;
use crate::{
    chat::{Choice, Press},
    ledger::Event,
    store::{JudgedAtom, Pressed, Verdict, VerdictSource},
};

fn press(id: &str, choice: Choice) -> Press {
    Press {
        id: id.into(),
        user: "U1".into(),
        message: MessageRef::new("C1", "17.1"),
        thread_ts: Some("16.1".into()),
        choice,
    }
}

#[tokio::test]
async fn what_was_pressed_waits_in_order_until_it_is_done() {
    let home = home();
    let store = open(&home);
    let pressed = [press("1.a", Choice::Yes), press("0.b", Choice::Dislike), press("2.c", Choice::No)];
    for press in pressed.iter().chain(&pressed[..1]) {
        store.press(press).await.unwrap();
    }
    drop(store);

    let store = open(&home);
    let waiting = store.presses(0).await.unwrap();
    assert_eq!(waiting.iter().map(|waiting| &waiting.press).collect::<Vec<_>>(), pressed.iter().collect::<Vec<_>>());
    let [first, second, third] = &waiting[..] else { panic!("{waiting:?}") };
    store.press_shows(first.number, "yes").await.unwrap();
    store.press_done(second.number, &second.press.id).await.unwrap();
    let shown = Pressed { shows: Some("yes".into()), ..first.clone() };
    assert_eq!(store.presses(0).await.unwrap(), [shown, third.clone()]);
    assert_eq!(store.presses(first.number).await.unwrap(), std::slice::from_ref(third));
}

/// A verdict on an atom, by a button or by a reaction: what is to be carried out and shown survives a crash, and is
/// reported once.
#[tokio::test]
async fn a_verdict_that_is_not_carried_out_is_known_after_a_crash() {
    let home = home();
    let store = open(&home);
    let pressed = press("1.a", Choice::No);
    store.press(&pressed).await.unwrap();
    let number = store.presses(0).await.unwrap()[0].number;
    let atom = JudgedAtom { id: "a1".into(), path: "atoms/a1.md".into() };
    let no = Verdict::of_press(number, &pressed).unwrap();
    assert_eq!(store.judges_atom(&no, "gone", &atom).await, Ok(number));
    let no = Verdict { by: VerdictSource::Reaction, ..no };
    let yes = Verdict { says: ReactionVerdict::Approve, ..no.clone() };
    let other = store.judges_atom(&yes, "kept", &atom).await.unwrap();
    let later = store.judges_atom(&no, "gone", &atom).await.unwrap();
    assert!(number < other && other < later, "a later word is a press of its own");
    drop(store);

    let store = open(&home);
    let waiting = store.presses(0).await.unwrap();
    let told =
        waiting.iter().map(|press| (press.number, press.shows.as_deref(), press.press.choice, press.atom.clone()));
    let gone = |number| (number, Some("gone"), Choice::No, Some(atom.clone()));
    assert_eq!(told.collect::<Vec<_>>(), [gone(number), gone(later)]);
    for _ in 0..2 {
        let event = Event::AtomRejected { actor: "U1".into(), atom_id: "a1".into() };
        store.atom_judged(number, event, NOW).await.unwrap();
    }
    assert_eq!(store.presses(0).await.unwrap()[0].atom, None);
    let told = "SELECT count(*) FROM event WHERE line LIKE '%atom.rejected%'";
    assert_eq!(self::number(&home, told), 1);
}
