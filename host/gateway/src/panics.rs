//! What is known of a panic that was caught.

use std::any::Any;

/// What it said. Where it was, the panic hook has printed.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it did not say why").to_owned()
}
