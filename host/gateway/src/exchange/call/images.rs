//! Images that a model's server refuses, because it accepts none, or not these, or not as many bytes. The wording of
//! such a refusal is unknown, so a request that is refused for an unexplained reason, or as too large without a word
//! about its prompt, is sent again without its images. If that is answered, and a request that shows these images alone is
//! refused as well, they are left out from then on.

use pmk_core::{Block, Message, Origin, Role, message};
use pmk_models::{Action, ErrorClass, ModelError, Request};

use super::super::{Exchange, Ports, budget, trial, window::Hidden};
use crate::store::StoreError;

/// What one model call finds out about its images.
#[derive(Default)]
pub(super) struct Images {
    /// What is suspected, while the request is retried without its images.
    suspected: Option<Suspected>,
    was_suspected: bool,
}

/// A refused request that is retried without its images.
struct Suspected {
    hidden: Hidden,
    /// The images themselves.
    images: Vec<Block>,
}

impl Images {
    /// Handles a refused request. Returns whether to send it again without its images.
    pub async fn refused(
        &mut self,
        ports: &dyn Ports,
        exchange: &mut Exchange,
        request: &Request,
        error: &ModelError,
    ) -> Result<bool, StoreError> {
        if let Some(Suspected { hidden, .. }) = self.suspected.take() {
            // The images were not the cause, or not the only one.
            exchange.window.show_again(hidden);
            budget::budget(ports, exchange).await?;
            return Ok(false);
        }
        if !ports.shows_images() || !may_be_about_images(error) {
            return Ok(false);
        }
        let images = request.messages.iter().flat_map(|message| message.images());
        let images: Vec<Block> = images.cloned().map(Block::Image).collect();
        if images.is_empty() || std::mem::replace(&mut self.was_suspected, true) {
            return Ok(false);
        }
        tracing::info!(session = exchange.key, %error, "asking again without the images");
        self.suspected = Some(Suspected { hidden: exchange.window.hide_images(), images });
        budget::budget(ports, exchange).await?;
        Ok(true)
    }

    /// Handles an answered request.
    pub async fn answered(&mut self, ports: &dyn Ports, exchange: &mut Exchange) -> Result<(), StoreError> {
        let Some(Suspected { hidden, images }) = self.suspected.take() else { return Ok(()) };
        exchange.tally.images_refused = true;
        // The refusal may have been a passing fault; the images alone tell.
        let asked = [vec![Block::Text { text: "OK?".into() }], images].concat();
        let alone = Message { role: Role::User, origin: Origin::User, blocks: asked };
        // A server may accept images, but none beside a system prompt or tools.
        let alone = Request { messages: message::shared([alone]), ..exchange.request() };
        match super::try_out(ports, exchange, alone).await {
            Err(error) if may_be_about_images(&error) => {}
            outcome => {
                tracing::info!(session = exchange.key, ?outcome, "the images will be sent again with the next request");
                exchange.window.show_again(hidden);
                return Ok(());
            }
        }
        tracing::warn!(
            session = exchange.key,
            "the model's server refuses these images: they will not be sent again\n  hint: if it accepts no images at \
             all, set `slack.maxImageKiB` to 0"
        );
        let edit = exchange.window.hiding(&hidden);
        trial::edit_window(ports, exchange, edit, vec![]).await
    }
}

/// What is said of an image, in words of which one server or another uses some.
const OF_IMAGES: [&str; 8] = ["image", "picture", "vision", "multimodal", "multi-modal", "media", "圖", "图"];

/// Returns whether a refusal may be about images. A server may describe a problem with them in words known from
/// another error; what is too large may be their bytes, unless the prompt is said to be. An error that is known to be
/// another one, or that is our own, is about images only if it says so.
fn may_be_about_images(error: &ModelError) -> bool {
    match error.class {
        ErrorClass::Overflow { is_of_request, .. } => is_of_request,
        ErrorClass::Other => {
            let message = error.message.to_lowercase();
            OF_IMAGES.iter().any(|word| message.contains(word))
        }
        _ => matches!(error.action(), Action::Probe | Action::Repair),
    }
}
