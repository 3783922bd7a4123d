//! Streams an answer to the terminal: block by block, each in its final form.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use pmk_models::Listener;

use super::Screen;
use crate::front::{lines::at_margin, settled::settled};

/// The parts of unfinished answers that are already on the screen, by event.
#[derive(Default)]
pub(super) struct Shown(Mutex<HashMap<String, String>>);

impl Shown {
    /// Takes out what is shown of the answer to that event.
    pub(super) fn take(&self, event_id: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(event_id)
    }
}

/// Streams one answer.
pub(super) struct Aloud {
    pub event_id: String,
    pub screen: Arc<Screen>,
    pub shown: Arc<Shown>,
    /// Stops the notices that are shown while nothing is on the screen.
    pub begins: Box<dyn Fn() + Send + Sync>,
}

impl Listener for Aloud {
    fn hear(&self, text: &str) {
        let mut shown = self.shown.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shown.get(&self.event_id).map_or("", String::as_str);
        let settled = settled(text);
        // An answer that has started again is shown when it is delivered.
        let Some(more) = settled.strip_prefix(before).filter(|more| !more.trim().is_empty()) else { return };
        (self.begins)();
        let gap = if before.is_empty() { "" } else { "\n" };
        // If nobody reads it any more, the delivery reports that.
        let _ = self.screen.print(&format!("{gap}{}", self.screen.markdown(more)));
        shown.insert(self.event_id.clone(), settled.to_owned());
    }
}

/// Returns what remains to be shown of an answer of which `shown` is on the screen; all of it if it
/// is a different one. It is shown as a text of its own, although it may begin in the middle of a list.
pub(super) fn rest(answer: &str, shown: &str) -> String {
    match answer.split_once(shown.trim()) {
        Some((before, after)) if !shown.trim().is_empty() => {
            format!("{}\n\n{}", before.trim(), at_margin(after.trim_end()))
        }
        _ => answer.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::console::chat::markdown::render;

    #[test]
    fn what_was_said_beside_an_answer_is_shown_and_another_answer_whole() {
        assert_eq!(rest("A note.\n\nOne\n\nTwo", "One\n\n"), "A note.\n\nTwo");
        assert_eq!(rest("Another", "One\n\n"), "Another");
        assert_eq!(rest("Another", ""), "Another");
    }

    /// Regression: what came after a code block in a list was shown as code, to the end of the answer.
    #[test]
    fn the_rest_of_an_answer_was_code_after_a_code_block_in_a_list() {
        for answer in [
            "- Deploy:\n  - staging:\n    ```bash\n    make deploy\n    ```\n\nThen **check** it.",
            "1. ```sh\n   make deploy\n   ```\n\nThen **check** it.",
        ] {
            for (at, _) in answer.char_indices() {
                let shown = render(&rest(answer, settled(&answer[..at])), 80, false);
                assert!(shown.contains("make deploy") && !shown.contains("**"), "{at}: {shown}");
            }
        }
    }
}
