//! Images: what a message says of one. The bytes are kept by the host, and only a request holds them.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{language::Language, text};

/// The edge of a square that costs one token, in pixels, as Claude counts them (platform.claude.com, "Vision"). Others count
/// coarser squares.
const PATCH: u32 = 28;

/// The most tokens of an image: what is larger is made smaller before it is looked at (the same page, models of high resolution).
const MOST_TOKENS: u32 = 4_784;

/// The kinds of images that models take, all providers alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ImageType {
    /// PNG.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// GIF, of which models see the first picture.
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

/// The SHA-256 of an image's bytes, as hexadecimal digits: the name it is kept under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ImageId(String);

impl ImageId {
    /// The name of these bytes.
    pub fn of(bytes: &[u8]) -> ImageId {
        ImageId(text::hex(&Sha256::digest(bytes)))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An image, as a message names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Which bytes it has.
    pub sha256: ImageId,
    /// What kind of bytes.
    pub media_type: ImageType,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

impl Image {
    /// What it costs.
    pub fn tokens(&self) -> u32 {
        let patches = |edge: u32| edge.div_ceil(PATCH);
        patches(self.width).saturating_mul(patches(self.height)).clamp(1, MOST_TOKENS)
    }

    /// What stands for it where it cannot be shown.
    pub fn in_words(&self, language: Language) -> String {
        let Image { width, height, .. } = self;
        match language {
            Language::English => format!("[an image, {width}×{height}, which is not shown]"),
            Language::TraditionalChinese => format!("[圖片，{width}×{height}，未顯示]"),
        }
    }

    /// What stands for it once a model's server has refused it; `id` is where the host keeps it.
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

    /// What stands for it once a policy has taken it out; `id` is where the host keeps it.
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
