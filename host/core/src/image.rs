//! Images as messages refer to them. The host stores the bytes; only a request contains them.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{language::Language, text};

/// The edge in pixels of the square that costs one token, as Claude counts (platform.claude.com, "Vision"). Other
/// providers use larger squares.
const PATCH: u32 = 28;

/// The most tokens of an image; a larger one is scaled down by the provider first (the same page, high-resolution
/// models).
const MOST_TOKENS: u32 = 4_784;

/// The image types that all providers accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ImageType {
    /// PNG.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// GIF, of which models see only the first frame.
    #[serde(rename = "image/gif")]
    Gif,
    /// WebP.
    #[serde(rename = "image/webp")]
    Webp,
}

impl ImageType {
    /// The media type.
    pub const fn name(self) -> &'static str {
        match self {
            ImageType::Png => "image/png",
            ImageType::Jpeg => "image/jpeg",
            ImageType::Gif => "image/gif",
            ImageType::Webp => "image/webp",
        }
    }
}

/// The SHA-256 of an image's bytes in hexadecimal, which is the key it is stored under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ImageId(String);

impl ImageId {
    /// The id of these bytes.
    pub fn of(bytes: &[u8]) -> ImageId {
        ImageId(text::hex(&Sha256::digest(bytes)))
    }

    /// The hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message's reference to an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Identifies the bytes.
    pub sha256: ImageId,
    /// The type of the bytes.
    pub media_type: ImageType,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

impl Image {
    /// The token estimate.
    pub fn tokens(&self) -> u32 {
        let patches = |edge: u32| edge.div_ceil(PATCH);
        patches(self.width).saturating_mul(patches(self.height)).clamp(1, MOST_TOKENS)
    }

    /// The text that replaces it where it cannot be shown.
    pub fn in_words(&self, language: Language) -> String {
        let Image { width, height, .. } = self;
        match language {
            Language::English => format!("[an image, {width}×{height}, which is not shown]"),
            Language::TraditionalChinese => format!("[圖片，{width}×{height}，未顯示]"),
        }
    }

    /// The text that replaces it after a model's server has refused it; `id` is where the host stores it.
    pub fn refused(&self, id: &str, language: Language) -> String {
        let Image { width, height, .. } = self;
        match language {
            Language::English => {
                format!("…(an image that the model's server refused, {width}×{height}; the host has it, id {id})")
            }
            Language::TraditionalChinese => {
                format!("…(模型的伺服器拒收這張圖片，{width}×{height}，完整內容仍在 host，id {id})")
            }
        }
    }

    /// The text that replaces it after a policy has digested it; `id` is where the host stores it.
    pub fn digest(&self, id: &str, language: Language) -> String {
        let Image { sha256, width, height, .. } = self;
        match language {
            Language::English => {
                format!("…(an image taken out, {width}×{height}, sha256 {sha256}; the host has it, id {id})")
            }
            Language::TraditionalChinese => {
                format!("…(圖片已移出，{width}×{height}，sha256 {sha256}，完整內容仍在 host，id {id})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: u32, height: u32) -> Image {
        Image { sha256: ImageId::of(b""), media_type: ImageType::Png, width, height }
    }

    #[test]
    fn an_image_costs_by_its_size_and_never_nothing() {
        let costs = [(1, 1), (28, 28), (29, 28), (1_000, 1_000), (1_920, 1_080), (8_000, 8_000), (0, 0)];
        let costs = costs.map(|(width, height)| image(width, height).tokens());
        assert_eq!(costs, [1, 1, 2, 1_296, 2_691, 4_784, 1]);
        assert_eq!(image(u32::MAX, u32::MAX).tokens(), MOST_TOKENS);
    }
}
