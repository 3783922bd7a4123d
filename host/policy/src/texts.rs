//! Which texts a component read. It decides by columns of numbers; it sees a text only when it requests it, and those
//! requests are recorded.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeSeq};

/// The texts that a component read during a decision, with the number of characters of each. What it read twice counts
/// twice. Serialised as a list of `{"index", "chars"}`, sorted by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextsRead(BTreeMap<u32, u64>);

impl TextsRead {
    /// Notes that this part of a text was read.
    pub(crate) fn note(&mut self, index: u32, shown: &str) {
        if !shown.is_empty() {
            *self.0.entry(index).or_default() += shown.chars().count() as u64;
        }
    }

    /// Index and characters of each text: the index of a message in the transcript, or 0 for the text of a cap.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter().map(|(index, chars)| (*index, *chars))
    }

    /// How many texts were read.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no text was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The total number of characters.
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
