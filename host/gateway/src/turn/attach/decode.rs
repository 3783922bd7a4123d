//! Decodes the bytes of a file: a text, or an image for the model.

use pmk_core::{Image, ImageId, ImageType, text::plain};

use crate::chat::{Content, FileSkipReason};

/// In a text, at most one character in this many may be undecodable.
const READABLE: usize = 10;

/// Longer edges, in pixels, are refused if a request has many images (Anthropic's "Vision").
pub(super) const MOST_EDGE: u32 = 2_000;

/// Longer edges are refused in any request (the same page).
pub(super) const MOST_EDGE_EVER: u32 = 8_000;

/// Returns the bytes as an image; `None` if models do not accept the format.
pub(super) fn image(bytes: &[u8]) -> Option<Image> {
    let media_type = match imagesize::image_type(bytes).ok()? {
        imagesize::ImageType::Png => ImageType::Png,
        imagesize::ImageType::Jpeg => ImageType::Jpeg,
        imagesize::ImageType::Gif => ImageType::Gif,
        imagesize::ImageType::Webp => ImageType::Webp,
        _ => return None,
    };
    let size = imagesize::blob_size(bytes).ok()?;
    let (width, height) = (u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?);
    (width > 0 && height > 0).then(|| Image { sha256: ImageId::of(bytes), media_type, width, height })
}

/// Decodes the bytes as text.
pub(super) fn text(content: &[u8]) -> Content {
    let wide = |of_pair: fn([u8; 2]) -> u16, rest: &[u8]| {
        let units: Vec<u16> = rest.chunks_exact(2).map(|pair| of_pair([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    let text = match content {
        [0xff, 0xfe, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        all => String::from_utf8_lossy(all).into_owned(),
    };
    let lost = text.chars().filter(|&c| c == char::REPLACEMENT_CHARACTER).count();
    if text.contains('\0') || lost * READABLE > text.chars().count() {
        return Content::Unread(FileSkipReason::NoText);
    }
    Content::Text { text: plain(&text).into_owned(), is_lossy: lost > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the header of a PNG of that size.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let header = [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), &width.to_be_bytes(), &height.to_be_bytes()];
        [header.concat().as_slice(), b"\x08\x06\0\0\0\0\0\0\0"].concat()
    }

    #[test]
    fn images_are_told_by_their_bytes_whatever_their_name() {
        let seen = |bytes: &[u8]| image(bytes).map(|image| (image.media_type, image.width, image.height));
        assert_eq!(seen(&png(640, 480)), Some((ImageType::Png, 640, 480)));
        assert_eq!(seen(b"GIF89a\x20\x01\x10\0\0\0\0"), Some((ImageType::Gif, 288, 16)));
        for none in [&b""[..], b"\x89PNG", b"<svg xmlns=", b"II*\0\x08\0\0\0", b"%PDF-1.7", &png(0, 9)] {
            assert_eq!(seen(none), None, "{none:?}");
        }
    }

    #[test]
    fn texts_are_told_from_what_is_none() {
        let read = |text: &str, is_lossy| Content::Text { text: text.to_owned(), is_lossy };
        let utf16: Vec<u8> = "\u{feff}預算 1".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text("預算".as_bytes()), read("預算", false));
        assert_eq!(text(b"\xef\xbb\xbfa,b"), read("a,b", false));
        assert_eq!(text(&utf16), read("預算 1", false));
        assert_eq!(text(b"price in \xa3 and nothing else"), read("price in \u{fffd} and nothing else", true));
        assert_eq!(text(b""), read("", false));
        for none in [&b"\x7fELF\0\0\0"[..], b"\xb9w\xba\xe2\xa8\xf7\xb9w", b"\xff\xd8\xff\xe0\x00\x10JFIF"] {
            assert_eq!(text(none), Content::Unread(FileSkipReason::NoText), "{none:?}");
        }
    }
}
