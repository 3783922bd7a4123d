//! The bytes of images. Messages only refer to them, so that a conversation is cheap to copy, store and decide on; a
//! request carries them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use pmk_core::{Image, ImageId, Message};

/// The maximum size of all images of a request, in bytes. Base64 makes them a third larger, and Anthropic accepts
/// requests of 32 MB.
const MAX_BYTES: u64 = 20 << 20;

/// Images by id.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Images(BTreeMap<ImageId, Arc<[u8]>>);

impl Images {
    /// The images that a request with these messages has room for, by their sizes in bytes: the newest. Without their
    /// bytes, because a conversation may name any number of images.
    #[must_use]
    pub fn newest(messages: &[Arc<Message>], sizes: &BTreeMap<ImageId, u64>) -> Vec<ImageId> {
        let shown = || messages.iter().rev().flat_map(|message| message.images().collect::<Vec<_>>().into_iter().rev());
        // It is sent as often as it is shown.
        let mut times = BTreeMap::<&ImageId, u64>::new();
        shown().for_each(|image| *times.entry(&image.sha256).or_default() += 1);
        let mut newest = Vec::new();
        let mut room = MAX_BYTES;
        for image in shown() {
            let Some(times) = times.remove(&image.sha256) else { continue };
            let Some(size) = sizes.get(&image.sha256) else { continue };
            let Some(left) = room.checked_sub(size.saturating_mul(times)) else { break };
            room = left;
            newest.push(image.sha256.clone());
        }
        newest
    }

    /// Whether the bytes of an image are present.
    #[must_use]
    pub fn contains(&self, id: &ImageId) -> bool {
        self.0.contains_key(id)
    }

    /// The bytes of an image as base64, if present.
    pub(crate) fn base64(&self, image: &Image) -> Option<String> {
        self.0.get(&image.sha256).map(|bytes| BASE64_STANDARD.encode(bytes))
    }
}

impl FromIterator<(ImageId, Arc<[u8]>)> for Images {
    fn from_iter<T: IntoIterator<Item = (ImageId, Arc<[u8]>)>>(images: T) -> Images {
        Images(images.into_iter().collect())
    }
}

impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use pmk_core::{Block, ImageType, Origin, Role, message};

    use super::*;

    #[test]
    fn the_newest_images_are_kept_as_far_as_there_is_room_for_them_wherever_they_are_shown() {
        let id = |n: u8| ImageId::of(&[n]);
        let image = |n| Block::Image(Image { sha256: id(n), media_type: ImageType::Png, width: 1, height: 1 });
        let message = |shown: &[u8]| {
            let blocks = shown.iter().map(|&n| image(n)).collect();
            Message { role: Role::User, origin: Origin::Attachment, blocks }
        };
        let sizes = (0..5).map(|n| (id(n), MAX_BYTES / 3)).collect();
        let kept = |shown: &[&[u8]]| {
            let messages = message::shared(shown.iter().map(|shown| message(shown)));
            let kept = Images::newest(&messages, &sizes);
            let is_kept = |n: &u8| kept.iter().filter(|kept| **kept == id(*n)).count() == 1;
            (0..5).filter(is_kept).collect::<Vec<u8>>()
        };
        assert_eq!(kept(&[&[0, 1], &[2], &[3, 4]]), [2, 3, 4]);
        assert_eq!(kept(&[&[0, 4], &[1], &[2, 4]]), [2, 4], "one is sent twice");
        assert_eq!(kept(&[&[3]]), [3]);
    }
}
