//! A deterministic simulation of a model, with a real context window.
//!
//! It answers by quoting the sentence of its prompt that best matches the question, so that it can no longer answer
//! from what a policy has dropped; then it says that it is a simulation. It counts its prompt and refuses one that is
//! too long with the message of Anthropic's API. The same request always gives the same answer.

use std::time::Duration;

use async_trait::async_trait;
use pmk_core::{Block, text, tokens};

use super::{Answer, ErrorClass, Meter, Model, ModelError, Request, Stop, Usage};

mod passing;
mod quote;
mod talk;
mod terms;

/// The provider's name.
pub(crate) const PROVIDER: &str = "sim";
/// The default context window in tokens.
pub(crate) const DEFAULT_WINDOW: u64 = 200_000;

/// The behaviour of the simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimConfig {
    /// The context window in tokens.
    pub window: u64,
    /// Tokens that this model counts per token of the host's estimate: other than 1 to test calibration.
    pub factor: f64,
    /// Tokens that it counts in addition to what was sent.
    pub overhead_tokens: u64,
    /// The time until it answers, in milliseconds.
    pub delay_ms: u64,
}

impl Default for SimConfig {
    fn default() -> Self {
        SimConfig { window: DEFAULT_WINDOW, factor: 1.0, overhead_tokens: 0, delay_ms: 0 }
    }
}

impl SimConfig {
    /// Parses what may follow `sim:` on the command line, such as `factor=2.5,overhead=20000,delay=50`.
    ///
    /// # Errors
    /// Which part is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut config = SimConfig::default();
        for word in text.split(',') {
            let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not `NAME=VALUE`"))?;
            let bad = || format!("`{value}` is not a valid value of `{name}`");
            match name.trim() {
                "factor" => {
                    config.factor =
                        value.parse().ok().filter(|factor| (0.01..=100.0).contains(factor)).ok_or_else(bad)?;
                }
                // No provider counts further, and sums of more would overflow.
                "overhead" => config.overhead_tokens = value.parse::<u32>().map_err(|_| bad())?.into(),
                "delay" => config.delay_ms = value.parse().map_err(|_| bad())?,
                other => return Err(format!("unknown setting `{other}`; use `factor`, `overhead` or `delay`")),
            }
        }
        Ok(config)
    }
}

/// The simulation.
#[derive(Clone, Debug)]
pub struct Sim {
    config: SimConfig,
}

impl Sim {
    /// Creates a simulation with this behaviour.
    pub fn new(config: SimConfig) -> Self {
        Sim { config }
    }

    fn count(&self, request: &Request) -> u64 {
        let messages = request.messages.iter().map(|message| tokens::message(message));
        let estimate: u64 = messages.chain([tokens::estimate(&request.system)]).map(u64::from).sum();
        self.counts(estimate)
    }

    /// The tokens that it counts for a prompt with this estimate by the host.
    pub fn counts(&self, estimate: u64) -> u64 {
        self.scale(estimate) + self.config.overhead_tokens
    }

    fn scale(&self, estimate: u64) -> u64 {
        (estimate as f64 * self.config.factor).ceil() as u64
    }

    /// The answer, without the delay.
    ///
    /// # Errors
    /// If the prompt is too long.
    pub fn answer(&self, request: &Request) -> Result<Answer, ModelError> {
        let window = self.config.window;
        let prompt = self.count(request);
        if prompt > window {
            let (observed_tokens, allowed_tokens) = (Some(prompt), Some(window));
            let class = ErrorClass::Overflow { observed_tokens, allowed_tokens, is_of_request: false };
            return Err(ModelError::new(class, format!("prompt is too long: {prompt} tokens > {window} maximum")));
        }
        let whole = talk::reply(&request.messages);
        let room = u64::from(request.max_answer_tokens).min(window - prompt);
        let said = self.head(&whole, room);
        let stop = if said.len() == whole.len() {
            Stop::End
        } else if room < u64::from(request.max_answer_tokens) {
            Stop::WindowFull
        } else {
            Stop::MaxTokens
        };
        let output_tokens = self.scale(u64::from(tokens::estimate(said)));
        let blocks = if said.is_empty() { vec![] } else { vec![Block::Text { text: said.to_owned() }] };
        Ok(Answer { blocks, stop, usage: Usage { input_tokens: prompt, output_tokens, ..Usage::default() } })
    }

    /// The longest prefix of a text that costs at most `room`.
    fn head<'a>(&self, whole: &'a str, room: u64) -> &'a str {
        let fits = |said: &str| self.scale(u64::from(tokens::estimate(said))) <= room;
        if fits(whole) {
            return whole;
        }
        let lengths: Vec<usize> = (1..=whole.chars().count()).collect();
        text::head(whole, lengths.partition_point(|&chars| fits(text::head(whole, chars))))
    }
}

#[async_trait]
impl Model for Sim {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn name(&self) -> &str {
        PROVIDER
    }

    fn window(&self) -> u64 {
        self.config.window
    }

    async fn ask(&self, request: &Request, meter: &Meter) -> Result<Answer, ModelError> {
        if self.config.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.config.delay_ms)).await;
        }
        self.answer(request).inspect(|answer| meter.add(answer.usage))
    }
}

#[cfg(test)]
mod tests;
