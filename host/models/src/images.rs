//! The bytes of images. Messages only refer to them, so that a conversation is cheap to copy, store and decide on; a
//! request carries them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use pmk_core::{Image, ImageId};

/// Images by id.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Images(BTreeMap<ImageId, Arc<[u8]>>);

impl Images {
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
