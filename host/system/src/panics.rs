//! Panics, caught, with what they said and where they happened.

use std::{any::Any, cell::RefCell, panic::AssertUnwindSafe, sync::Once};

use futures_util::FutureExt;

thread_local! {
    /// Where this thread panicked last.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has every panic leave its place for [`caught`] to find, beside what was done with panics before.
pub fn note_places() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
            PLACE.with_borrow_mut(|last| *last = place);
            before(info);
        }));
    });
}

/// Runs a future to its end; where it panics, says where that was. What the future shared with others must bear
/// being left as the panic found it.
///
/// # Errors
/// The place of the panic.
pub async fn caught<T>(future: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(future)
        .catch_unwind()
        .await
        // The panic was met by the poll just now, on this very thread.
        .map_err(|_| PLACE.with_borrow_mut(Option::take).unwrap_or_else(|| "an unknown location".to_owned()))
}

/// What a panic said.
pub fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it did not say why").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_told_with_its_place() {
        note_places();
        let place = caught(async {
            tokio::task::yield_now().await;
            panic!("on purpose");
        });
        let place: Result<(), String> = place.await;
        assert!(place.expect_err("it panicked").contains("panics.rs:"));
        assert_eq!(caught(async { 7 }).await, Ok(7));
    }
}
