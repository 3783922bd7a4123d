//! The prices of models.

use std::{collections::BTreeMap, path::Path};

use pmk_system::files;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::metrics::Tally;

/// The default table.
const SHIPPED: &str = include_str!("prices.toml");

/// A table of prices.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    models: BTreeMap<String, Price>,
}

/// The price of a model, in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    pub input: f64,
    pub cached: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    pub output: f64,
}

/// Why prices cannot be loaded.
#[derive(Debug, Error)]
pub enum PricesError {
    #[error("cannot read the prices `{path}`: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("the prices `{path}`: {what}")]
    Wrong { path: String, what: String },
}

impl Prices {
    /// Loads the prices of a file, or the default table.
    ///
    /// # Errors
    /// [`PricesError`] says what is wrong with the file.
    pub fn load(path: Option<&Path>) -> Result<Prices, PricesError> {
        let Some(path) = path else { return Prices::parse("shipped", SHIPPED) };
        let name = path.display().to_string();
        let text = files::read_text(path).map_err(|source| PricesError::Read { path: name.clone(), source })?;
        Prices::parse(&name, &text)
    }

    fn parse(path: &str, text: &str) -> Result<Prices, PricesError> {
        let wrong = |what: String| PricesError::Wrong { path: path.to_owned(), what };
        let prices: Prices = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            wrong(format!("line {}: {}", before.matches('\n').count() + 1, error.message()))
        })?;
        for (model, price) in &prices.models {
            let Price { input, cached, cache_write, output } = *price;
            if ![input, cached, cache_write.unwrap_or(0.0), output].iter().all(|price| (0.0..1e9).contains(price)) {
                return Err(wrong(format!("a price of `{model}` is not an amount of money")));
            }
        }
        Ok(prices)
    }

    /// Returns the price of a model, by the longest of the names that it is an [edition](is_edition) of. A
    /// router's prefix is ignored.
    pub fn of(&self, model: &str) -> Option<Price> {
        let model = model.rsplit('/').next().unwrap_or(model);
        let is_one = |name: &str| model.strip_prefix(name).is_some_and(is_edition);
        self.models.iter().filter(|(name, _)| is_one(name)).max_by_key(|(name, _)| name.len()).map(|(_, price)| *price)
    }
}

/// Returns whether what follows a name says no more than which edition of the model it is: a date, `latest`, `0` or a
/// router's mark. Anything else, as in `-mini` or `.1`, makes it another model, with a price of its own.
fn is_edition(rest: &str) -> bool {
    let edition = rest.split(['@', '[', ':']).next().unwrap_or_default();
    let is_date = |date: &str| {
        let digits: Vec<usize> = date.split('-').map(str::len).collect();
        date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') && matches!(digits[..], [8] | [4, 2, 2])
    };
    let is_known =
        edition.strip_prefix('-').is_some_and(|edition| ["latest", "0"].contains(&edition) || is_date(edition));
    !rest.ends_with(":free") && (edition.is_empty() || is_known)
}

impl Price {
    /// Returns the cost of a conversation, in dollars. Refused requests cost nothing.
    pub fn of(&self, tally: &Tally) -> f64 {
        let new = tally.tokens_accepted().saturating_sub(tally.tokens_reused);
        let cost = new as f64 * self.cache_write.unwrap_or(self.input)
            + tally.tokens_reused as f64 * self.cached
            + tally.tokens_answered as f64 * self.output;
        cost / 1_000_000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_prices_are_prices() {
        let prices = Prices::load(None).expect("the shipped table");
        let input = |model| prices.of(model).map(|price| price.input);
        assert_eq!(input("claude-opus-4-1-20250805"), Some(15.0));
        assert_eq!(input("claude-opus-4-5"), Some(5.0));
        assert_eq!(input("anthropic/claude-sonnet-4-5-20250929"), Some(3.0));
        assert_eq!((input("gpt-5.1"), input("claude-sonnet-5-5")), (Some(1.25), Some(2.0)));
        assert_eq!((input("gpt-50"), input("sim")), (None, None));
    }

    /// Once, `gpt-4o-mini` cost what `gpt-4o` does, sixteen times too much.
    #[test]
    fn a_small_model_had_the_price_of_the_large_one() {
        let prices = Prices::load(None).expect("the shipped table");
        let input = |model: &str| prices.of(model).map(|price| price.input);
        for unknown in [
            "gpt-4o-mini",
            "gpt-4o:free",
            "gpt-5-nano",
            "gpt-5-nano-2025-08-07",
            "o3-pro",
            "gpt-5-codex",
            "gpt-5-2-mini",
        ] {
            assert_eq!(input(unknown), None, "{unknown}");
        }
        for (known, price) in [
            ("gpt-4o-2024-08-06", 2.5),
            ("gpt-4o-latest", 2.5),
            ("claude-sonnet-4-0", 3.0),
            ("openai/gpt-4o:thinking", 2.5),
            ("gpt-5-mini-2025-08-07", 0.25),
            ("claude-sonnet-4@20250514", 3.0),
            ("claude-opus-4-6[1m]", 5.0),
            ("us.anthropic/claude-opus-4-5-20251101", 5.0),
        ] {
            assert_eq!(input(known), Some(price), "{known}");
        }
    }

    /// Once, every number was a version of the model before it: `gpt-5.4` had half of its price, `claude-opus-4-8` three
    /// times its own.
    #[test]
    fn a_newer_model_had_the_price_of_the_one_it_is_numbered_after() {
        let prices = Prices::load(None).expect("the shipped table");
        let input = |model: &str| prices.of(model).map(|price| price.input);
        assert_eq!((input("gpt-5.4"), input("claude-opus-4-8")), (Some(2.5), Some(5.0)));
        for unknown in ["gpt-5.9", "claude-opus-4-9", "claude-opus-5-9-20270101", "gpt-5-2025", "gpt-5-12345678x"] {
            assert_eq!(input(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn what_is_read_again_is_cheaper_and_what_is_refused_costs_nothing() {
        let price = Price { input: 4.0, cached: 0.4, cache_write: Some(5.0), output: 20.0 };
        let tally = Tally {
            tokens_sent: 4_000_000,
            tokens_reused: 2_000_000,
            tokens_refused: 1_000_000,
            tokens_answered: 500_000,
            ..Tally::default()
        };
        assert_eq!(price.of(&tally), 5.0 + 0.8 + 10.0);
        assert_eq!(Price { cache_write: None, ..price }.of(&tally), 4.0 + 0.8 + 10.0);
    }

    #[test]
    fn a_wrong_table_says_where() {
        let error =
            Prices::parse("p.toml", "[models.a]\ninput = 1.0\ncached = 0.1\noutptu = 3.0\n").expect_err("a slip");
        assert!(error.to_string().contains("outptu"), "{error}");
        let error =
            Prices::parse("p.toml", "[models.a]\ninput = -1.0\ncached = 0.1\noutput = 3.0\n").expect_err("below 0");
        assert_eq!(error.to_string(), "the prices `p.toml`: a price of `a` is not an amount of money");
    }
}
