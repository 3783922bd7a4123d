//! The rules of model servers for images, and an image for tests.

use base64::{Engine, prelude::BASE64_STANDARD};

/// The maximum size of an image's base64, in bytes (Anthropic's "Vision").
const MOST_BASE64: usize = 5 << 20;
/// The maximum edge of an image, in pixels; and the maximum if a request has more than `MANY` images.
const MOST_EDGE: usize = 8_000;
const MANY: usize = 20;
const MOST_EDGE_OF_MANY: usize = 2_000;

/// The header of a PNG of this size, which is as much as is examined here.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    let header = [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), &width.to_be_bytes(), &height.to_be_bytes()].concat();
    [header.as_slice(), b"\x08\x06\0\0\0\0\0\0\0\0\0\0\0IEND\xaeB`\x82"].concat()
}

/// Checks an image in a request: returns its width and height, or why it is refused.
pub(crate) fn look_at(media_type: &str, data: &str, of: usize) -> Result<(usize, usize), String> {
    if data.len() > MOST_BASE64 {
        return Err(format!("image exceeds 5 MB maximum: {} bytes > {MOST_BASE64} bytes", data.len()));
    }
    let bytes = BASE64_STANDARD.decode(data).map_err(|_| "invalid base64 data".to_owned())?;
    let is = match imagesize::image_type(&bytes) {
        Ok(imagesize::ImageType::Png) => "image/png",
        Ok(imagesize::ImageType::Jpeg) => "image/jpeg",
        Ok(imagesize::ImageType::Gif) => "image/gif",
        Ok(imagesize::ImageType::Webp) => "image/webp",
        _ => return Err("Could not process image".to_owned()),
    };
    if is != media_type {
        return Err(format!("Image does not match the provided media type {media_type}"));
    }
    let size = imagesize::blob_size(&bytes).map_err(|_| "Could not process image".to_owned())?;
    let most = if of > MANY { MOST_EDGE_OF_MANY } else { MOST_EDGE };
    if size.width.max(size.height) > most {
        return Err(format!("At least one of the image dimensions exceed max allowed size: {most} pixels"));
    }
    Ok((size.width, size.height))
}
