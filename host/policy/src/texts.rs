//! Which texts a component was shown. It decides by columns of numbers; a text it only sees when it asks for it, and
//! that is remembered of the decision.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeSeq};

/// The texts a component was shown during a decision: how many characters of which. What it asked for twice counts
/// twice. Written as a list of `{"index", "chars"}`, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextsRead(BTreeMap<u32, u64>);

impl TextsRead {
    /// Notes that so much was shown of a text.
    pub(crate) fn note(&mut self, index: u32, shown: &str) {
        if !shown.is_empty() {
            *self.0.entry(index).or_default() += shown.chars().count() as u64;
        }
    }

    /// Index and characters of each; the index of a message in the transcript, 0 for the text of a cap.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter().map(|(index, chars)| (*index, *chars))
    }

    /// How many texts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it was shown none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The characters of all together.
    pub fn chars(&self) -> u64 {
        self.0.values().sum()
    }
}

impl Serialize for TextsRead {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            index: u32,
            chars: u64,
        }
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for (index, chars) in self.iter() {
            list.serialize_element(&Shown { index, chars })?;
        }
        list.end()
    }
}
