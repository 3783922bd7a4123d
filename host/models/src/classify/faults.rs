//! Errors in a request, or in the choice of server or model, other than its size.

use super::{ErrorClass, Origin, Report, codes, words};

impl Report<'_> {
    pub(super) fn malformed_history(&self) -> Option<ErrorClass> {
        (self.may_name_a_fault() && words::MALFORMED_HISTORY.is_match(&self.words))
            .then_some(ErrorClass::MalformedHistory)
    }

    pub(super) fn without_tools(&self) -> Option<ErrorClass> {
        (self.may_name_a_fault() && words::NO_TOOLS.is_match(&self.words)).then_some(ErrorClass::NoTools)
    }

    /// Whatever the status, it is neither the load nor the model's name.
    pub(super) fn without_images(&self) -> Option<ErrorClass> {
        (self.may_name_a_fault() && words::NO_IMAGES.is_match(&self.words)).then_some(ErrorClass::Other)
    }

    /// Only from a server that is up: one that is down may say anything.
    pub(super) fn unknown_model(&self) -> Option<ErrorClass> {
        let is_up = self.failed.status.is_none_or(|status| status < 500);
        let is_said =
            words::UNKNOWN_MODEL.is_match(&self.words) || self.said.codes.iter().any(|code| code == "model_not_found");
        (is_up && is_said && self.may_name_a_fault()).then_some(ErrorClass::UnknownModel)
    }

    /// Whether words about an error in the request can be taken literally.
    fn may_name_a_fault(&self) -> bool {
        self.origin != Origin::Prose && !matches!(self.status, Some(401..=403 | 429))
    }

    /// The model does not exist, or there is nothing at that address: unless it is images that nothing is there for.
    pub(super) fn not_found(&self) -> Option<ErrorClass> {
        let is_of_images = self.may_name_a_fault() && words::IMAGES.is_match(&self.words);
        (self.status == Some(404) && !is_of_images).then_some(ErrorClass::UnknownModel)
    }

    /// The request itself was refused, and no code or text says why.
    pub(super) fn unexplained(&self) -> Option<ErrorClass> {
        let is_refused = match self.status {
            Some(status) => matches!(status, 400 | 413 | 422),
            None => self.origin == Origin::Error,
        };
        let is_explained = words::NO_OVERFLOW.is_match(&self.codes_and_words())
            || words::names_a_fault(&self.words)
            || self.said.codes.iter().any(|code| codes::names_a_fault(code));
        (is_refused && self.may_overflow() && !is_explained).then_some(ErrorClass::Unexplained)
    }
}
