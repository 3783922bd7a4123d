//! Buttons that were pressed.

use super::*;
use crate::{
    store::Pressed,
    talk::{Choice, Press},
};

fn press(id: &str, choice: Choice) -> Press {
    Press {
        id: id.into(),
        user: "U1".into(),
        channel: "C1".into(),
        thread_ts: Some("16.1".into()),
        ts: "17.1".into(),
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
    store.press_done(second.number).await.unwrap();
    let shown = Pressed { shows: Some("yes".into()), ..first.clone() };
    assert_eq!(store.presses(0).await.unwrap(), [shown, third.clone()]);
    assert_eq!(store.presses(first.number).await.unwrap(), std::slice::from_ref(third));
}
