//! Images that a model's server refuses, because it accepts none, or not these, or not as many bytes. The wording of
//! such a refusal is unknown, so a request that is refused for an unexplained reason, or as too large without a word
//! about its prompt, is sent again without its images. If that is answered, they are left out from then on.

use pmk_models::{Action, ModelError, Request};

use super::super::{Exchange, Ports, budget, window::Hidden};
use crate::store::StoreError;

/// What one model call finds out about its images.
#[derive(Default)]
pub(super) struct Images {
    /// The hidden images, while the request is retried without them.
    suspected: Option<Hidden>,
    was_suspected: bool,
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
        if let Some(hidden) = self.suspected.take() {
            // The images were not the cause, or not the only one.
            exchange.window.show_again(hidden);
            budget::budget(ports, exchange).await?;
            return Ok(false);
        }
        let has_images = request.messages.iter().any(|message| message.images().next().is_some());
        if !has_images || !may_be_about_images(error) || std::mem::replace(&mut self.was_suspected, true) {
            return Ok(false);
        }
        tracing::info!(session = exchange.key, %error, "asking again without the images");
        self.suspected = Some(exchange.window.hide_images());
        budget::budget(ports, exchange).await?;
        Ok(true)
    }

    /// Handles an answered request.
    pub async fn answered(&mut self, ports: &dyn Ports, exchange: &mut Exchange) -> Result<(), StoreError> {
        let Some(hidden) = self.suspected.take() else { return Ok(()) };
        tracing::warn!(
            session = exchange.key,
            "the model's server refuses these images: they will not be sent again\n  hint: if it accepts no images at \
             all, set `slack.maxImageKiB` to 0"
        );
        exchange.tally.images_refused = true;
        let edit = exchange.window.hiding(&hidden);
        match &mut exchange.trial {
            Some(trial) => trial.edits.push((edit, vec![])),
            None => ports.edit_window(exchange.session, edit, vec![]).await?,
        }
        Ok(())
    }
}

/// Returns whether a refusal may be about images. A server may describe a problem with them in words known from
/// another error; what is too large may be their bytes, unless the prompt is said to be.
fn may_be_about_images(error: &ModelError) -> bool {
    matches!(error, ModelError::Overflow { is_of_request: true, .. })
        || matches!(error.action(), Action::Probe | Action::Fail | Action::Repair)
}
