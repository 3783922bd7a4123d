//! Asks what the files of a message are, where that is not known yet, and fetches them: texts, and images if the model accepts them.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use pmk_core::Image;
use tokio::sync::SemaphorePermit;

use super::decode::{self, MOST_EDGE, MOST_EDGE_EVER};
use crate::{
    chat::{Content, File, FileSkipReason},
    config::Config,
    front::{Fetched, Front, FrontError},
    services::Services,
    store::StoredImage,
};

/// Files of one message that are fetched concurrently.
const FILES_AT_ONCE: usize = 4;

/// Attempts to fetch a file.
const ATTEMPTS: u32 = 2;

/// The longest pause before another attempt.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Waits until there is memory for the images among these files that were not read yet.
pub(super) async fn room<'a>(services: &'a Services, files: &[File]) -> Option<SemaphorePermit<'a>> {
    let may_be_one = |file: &&File| match file.content {
        Content::AwaitedImage => true,
        // Whether it is an image is not known before it is described.
        Content::Awaited => file.id.is_some(),
        _ => false,
    };
    let images = files.iter().filter(may_be_one).count() as u64;
    let most = kib(services.config.slack_settings.max_image_kib).ok().filter(|_| services.model.has_images())?;
    if images > 0 { services.images_fetched.take(images * most).await } else { None }
}

/// Fetches the files that were not read yet. Returns whether there were any, and the images to
/// store.
pub(super) async fn read(services: &Services, files: &mut [File]) -> (bool, Vec<StoredImage>) {
    let is_awaited = |file: &&mut File| matches!(file.content, Content::Awaited | Content::AwaitedImage);
    let reads: Vec<_> = files.iter_mut().filter(is_awaited).map(|file| read_one(services, file)).collect();
    let has_read = !reads.is_empty();
    let images = stream::iter(reads).buffer_unordered(FILES_AT_ONCE).filter_map(std::future::ready).collect().await;
    (has_read, images)
}

async fn read_one(services: &Services, file: &mut File) -> Option<StoredImage> {
    if let Some(id) = file.id.take() {
        match ask(|| services.front.describe(&id)).await {
            Ok(described) => *file = described,
            Err(why) => file.content = Content::Unread(why),
        }
    }
    if matches!(file.content, Content::Unread(_)) {
        return None;
    }
    if file.content == Content::Awaited {
        file.content = text(&*services.front, &services.config, file).await.unwrap_or_else(Content::Unread);
        return None;
    }
    match image(services, file).await {
        Ok((image, bytes)) => {
            file.content = Content::Image(image.clone());
            Some(StoredImage { sha256: image.sha256, bytes: bytes.into() })
        }
        Err(why) => {
            file.content = Content::Unread(why);
            None
        }
    }
}

async fn text(front: &dyn Front, config: &Config, file: &File) -> Result<Content, FileSkipReason> {
    let most = kib(config.slack_settings.max_file_kib)?;
    if file.bytes.is_some_and(|bytes| bytes > most) {
        return Err(FileSkipReason::TooLarge);
    }
    let address = file.address.as_deref().ok_or(FileSkipReason::NotFetched)?;
    fetch(front, address, file.bytes, most).await.map(|bytes| decode::text(&bytes))
}

/// Fetches the image, or its smaller preview if it is too large to be sent.
async fn image(services: &Services, file: &File) -> Result<(Image, Vec<u8>), FileSkipReason> {
    if !services.model.has_images() {
        return Err(FileSkipReason::NoImages);
    }
    let most = kib(services.config.slack_settings.max_image_kib)?;
    let whole = match file.address.as_deref() {
        _ if file.bytes.is_some_and(|bytes| bytes > most) => Err(FileSkipReason::LargeImage),
        Some(address) => picture(&*services.front, address, file.bytes, most).await,
        None => Err(FileSkipReason::NotFetched),
    };
    let is_too_large = match &whole {
        Ok((image, _)) => image.width.max(image.height) > MOST_EDGE,
        Err(why) => *why == FileSkipReason::LargeImage,
    };
    if is_too_large && let Some(address) = file.preview.as_deref() {
        let preview = picture(&*services.front, address, None, most).await;
        // A whole image that is larger than need be is still one.
        if preview.is_ok() || whole.is_err() {
            return preview;
        }
    }
    match whole {
        Ok((image, _)) if image.width.max(image.height) > MOST_EDGE_EVER => Err(FileSkipReason::LargeImage),
        whole => whole,
    }
}

async fn picture(
    front: &dyn Front,
    address: &str,
    said_bytes: Option<u64>,
    most: u64,
) -> Result<(Image, Vec<u8>), FileSkipReason> {
    let bytes = fetch(front, address, said_bytes, most).await.map_err(|why| match why {
        FileSkipReason::TooLarge => FileSkipReason::LargeImage,
        why => why,
    })?;
    let image = decode::image(&bytes).ok_or(FileSkipReason::OddImage)?;
    Ok((image, bytes))
}

/// Returns the limit in bytes; a limit of 0 turns reading off.
fn kib(most: u32) -> Result<u64, FileSkipReason> {
    if most == 0 { Err(FileSkipReason::Off) } else { Ok(u64::from(most) * 1024) }
}

async fn fetch(front: &dyn Front, address: &str, said_bytes: Option<u64>, most: u64) -> Fetched {
    ask(|| front.fetch(address, said_bytes, most)).await
}

/// Asks the front, once more if that may help.
async fn ask<T, F>(asking: impl Fn() -> F) -> Result<T, FileSkipReason>
where
    F: Future<Output = Result<Result<T, FileSkipReason>, FrontError>>,
{
    for attempt in 1..=ATTEMPTS {
        match asking().await {
            Ok(answer) => return answer,
            Err(FrontError::Transient { what, retry_after, .. }) if attempt < ATTEMPTS => {
                tracing::debug!(what, "a file is fetched once more");
                tokio::time::sleep(retry_after.unwrap_or_default().min(LONGEST_WAIT)).await;
            }
            Err(error) => {
                tracing::debug!(%error, "a file was not fetched");
                break;
            }
        }
    }
    Err(FileSkipReason::NotFetched)
}
