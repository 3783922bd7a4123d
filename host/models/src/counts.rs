//! Token counts as reported by servers. They are only bookkeeping: an invalid count is ignored, and never invalidates
//! the answer.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

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
        Ok(Count(whole.parse().ok()))
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

    #[test]
    fn a_count_is_a_whole_number_however_it_is_written() {
        let of = |value: Value| serde_json::from_value::<Count>(value).expect("never an error").0;
        assert_eq!([json!(12), json!(12.0), json!("12"), json!(" 12 "), json!(u64::MAX)].map(of), {
            [Some(12), Some(12), Some(12), Some(12), Some(u64::MAX)]
        });
        for no_count in
            [json!(-5), json!(null), json!("many"), json!([12]), json!({"n": 12}), json!(true), json!(1e300)]
        {
            assert_eq!(of(no_count.clone()), None, "{no_count}");
        }
    }
}
