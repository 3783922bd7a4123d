//! Bounds the memory for images: however many turns run, and whatever is attached to their questions, they hold only so
//! many bytes of them at a time. Whoever needs more waits for the others.

use tokio::sync::{Semaphore, SemaphorePermit};

/// For all turns together. Several requests with as many images as one may have.
const ROOM_KIB: u32 = 128 << 10;

/// The memory for images, in KiB.
#[derive(Debug)]
pub(crate) struct ImageRoom(Semaphore);

impl Default for ImageRoom {
    fn default() -> ImageRoom {
        ImageRoom(Semaphore::new(ROOM_KIB as usize))
    }
}

impl ImageRoom {
    /// Waits until there is room for so many bytes, or all of the room if they are more. It is taken until the permit is
    /// dropped; who has a permit must not wait for another one.
    pub(crate) async fn take(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(ROOM_KIB).min(ROOM_KIB);
        // It is never closed.
        self.0.acquire_many(kib).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    const ALL: u64 = (ROOM_KIB as u64) << 10;

    /// Regression: as many images as people attached were in memory at the same time.
    #[test]
    fn images_of_all_turns_together_had_no_bound() {
        let room = ImageRoom::default();
        let most = room.take(ALL - 1024).now_or_never().expect("room");
        let last = room.take(1).now_or_never().expect("room for one more");
        let mut more = pin!(room.take(1));
        assert!(more.as_mut().now_or_never().is_none(), "there is no more");
        drop(last);
        assert!(more.now_or_never().is_some(), "there is again");
        drop(most);
        assert!(
            room.take(10 * ALL).now_or_never().is_some(),
            "whoever needs more than all is not kept waiting for ever"
        );
    }
}
