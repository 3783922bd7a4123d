//! Where something panicked, on each thread: whatever caught it, a world is not to panic.

use std::{cell::RefCell, panic, sync::Once};

thread_local! {
    static PLACES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Returns the places at which this thread has panicked since it was last asked, and notes them from now on.
pub fn take() -> Vec<String> {
    static NOTED: Once = Once::new();
    NOTED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if let Some(place) = info.location() {
                PLACES.with_borrow_mut(|places| places.push(format!("{}:{}", place.file(), place.line())));
            }
            before(info);
        }));
    });
    PLACES.take()
}
