//! Catches panics, with their message and location.

use std::{any::Any, cell::RefCell, panic::AssertUnwindSafe, sync::Once};

use futures_util::FutureExt;

thread_local! {
    /// Where this thread panicked last.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes every panic record its location for [`caught`], in addition to the previous panic hook.
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

/// Runs a future to its end; if it panics, returns the location. State that the future shares must tolerate being left
/// as it was at the panic.
///
/// # Errors
/// The location of the panic.
pub async fn caught<T>(future: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(future)
        .catch_unwind()
        .await
        // The panic occurred in the poll just now, on this very thread.
        .map_err(|_| PLACE.with_borrow_mut(Option::take).unwrap_or_else(|| "an unknown location".to_owned()))
}

/// The message of a panic.
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
