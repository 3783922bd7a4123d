//! Token counts as reported by servers. They are only bookkeeping: an invalid count is ignored, and never invalidates
//! the answer.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// No provider counts that far. More is some server's -1, or nonsense; below this, sums over any number of turns stay
/// within what a store can hold.
const MAX_COUNT: u64 = u32::MAX as u64;

/// A count reported by a server; `None` if it is not a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count(pub Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = match Value::deserialize(deserializer)? {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text,
            _ => return Ok(Count(None)),
        };
        let whole = written.trim().split('.').next().unwrap_or_default();
        Ok(Count(whole.parse().ok().filter(|&count| count <= MAX_COUNT)))
    }
}

/// Parses counts of any type; invalid ones are the default.
///
/// # Errors
/// If it is not JSON at all.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: Value) -> Option<u64> {
        serde_json::from_value::<Count>(value).expect("never an error").0
    }

    #[test]
    fn a_count_is_a_whole_number_however_it_is_written() {
        let most = u64::from(u32::MAX);
        assert_eq!([json!(12), json!(12.0), json!("12"), json!(" 12 "), json!(most)].map(of), {
            [Some(12), Some(12), Some(12), Some(12), Some(most)]
        });
        for no_count in
            [json!(-5), json!(null), json!("many"), json!([12]), json!({"n": 12}), json!(true), json!(1e300)]
        {
            assert_eq!(of(no_count.clone()), None, "{no_count}");
        }
    }

    /// Once, a server's -1 came as the largest number of its type, and no sum that it was in could be made any more.
    #[test]
    fn what_no_provider_counts_is_no_count() {
        for none in [json!(u64::MAX), json!("18446744073709551615"), json!(u64::from(u32::MAX) + 1), json!(i64::MAX)] {
            assert_eq!(of(none.clone()), None, "{none}");
        }
    }
}
