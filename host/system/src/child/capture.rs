//! A bounded part of a stream.

use std::borrow::Cow;

/// Which part is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keep {
    Start,
    End,
}

/// Reads a stream and keeps at most twice the limit in memory.
#[derive(Debug)]
pub(super) struct Capture {
    keep: Keep,
    limit: usize,
    bytes: Vec<u8>,
    total_bytes: u64,
}

impl Capture {
    pub fn new(keep: Keep, limit: usize) -> Self {
        Capture { keep, limit, bytes: Vec::new(), total_bytes: 0 }
    }

    pub fn push(&mut self, more: &[u8]) {
        self.total_bytes += more.len() as u64;
        match self.keep {
            Keep::Start => {
                let room = self.limit - self.bytes.len();
                self.bytes.extend_from_slice(&more[..more.len().min(room)]);
            }
            Keep::End => {
                self.bytes.extend_from_slice(&more[more.len().saturating_sub(self.limit)..]);
                // Shifting only at twice the limit keeps the cost per byte constant.
                if self.bytes.len() > self.limit.saturating_mul(2) {
                    self.shorten();
                }
            }
        }
    }

    pub fn finish(mut self) -> Captured {
        if matches!(self.keep, Keep::End) {
            self.shorten();
        }
        Captured { bytes: self.bytes, total_bytes: self.total_bytes }
    }

    fn shorten(&mut self) {
        self.bytes.drain(..self.bytes.len().saturating_sub(self.limit));
    }
}

/// The part of a stream that was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// At most as many as the limit.
    pub bytes: Vec<u8>,
    /// The length of the whole stream.
    pub total_bytes: u64,
}

impl Captured {
    /// As text, with replacement characters where it is not UTF-8.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Whether part of the stream was dropped.
    pub fn is_cut(&self) -> bool {
        self.total_bytes > self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_asked_part_is_kept(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8), limit in 0usize..60) {
            let all = chunks.concat();
            let captured = |keep| {
                let mut capture = Capture::new(keep, limit);
                chunks.iter().for_each(|chunk| capture.push(chunk));
                capture.finish()
            };
            let kept = all.len().min(limit);
            prop_assert_eq!(&captured(Keep::Start).bytes[..], &all[..kept]);
            let end = captured(Keep::End);
            prop_assert_eq!(&end.bytes[..], &all[all.len() - kept..]);
            prop_assert_eq!(end.is_cut(), all.len() > limit);
        }
    }
}
