//! Images that a model's server refuses, because it accepts none, or not these. The wording of such a refusal is
//! unknown, so a request that is refused for an unexplained reason is sent again without its images. If that is
//! answered, they are left out from then on.

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
        // A server may describe a problem with an image in words known from another error.
        let may_be_they = matches!(error.action(), Action::Probe | Action::Fail | Action::Repair);
        if !has_images || !may_be_they || std::mem::replace(&mut self.was_suspected, true) {
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
