//! The parts of a running gateway besides policies, model, front and store.

use std::path::Path;

use pmk_core::tokens;
use pmk_knowledge::{Ingest, Seeder};
use pmk_models::{Model, Tool};
use pmk_system::{error::Failure, home};

use crate::{
    access::audience::{Audience, Prompts},
    calibration::TokenBudget,
    cli,
    config::Config,
    directive::{self, AvailableDirectives},
    mra::Mra,
    preambles::Preamble,
};

/// The room that a window must leave for a conversation, in tokens: a question of a few sentences.
const LEAST_ROOM: u64 = 64;

/// Loads the system prompts; the operator's take precedence over the built-in ones.
pub(super) fn prompts(home: &Path) -> Prompts {
    let (prompts, problems) = Prompts::load(home);
    for problem in problems {
        tracing::warn!("{problem}");
    }
    prompts
}

/// Refuses a window that leaves no room for a question.
///
/// # Errors
/// The model's window has no room besides the longest system prompt, the tools and the answer.
pub(super) fn check_window(model: &dyn Model, prompts: &Prompts, config: &Config) -> Result<(), Failure> {
    let has_tools = model.has_tools();
    let system = Audience::ALL
        .map(|audience| prompts.system(audience, config.tools.toolbox(has_tools), AvailableDirectives::ALL))
        .into_iter()
        .max_by_key(|system| tokens::estimate(system))
        .unwrap_or_default();
    let tools: Vec<Tool> =
        if has_tools { directive::tools::definitions(AvailableDirectives::ALL, config.language) } else { vec![] };
    let preamble = Preamble::new(system, tools);
    let does = |window: u64| TokenBudget::of(window, preamble.tokens).limit >= LEAST_ROOM;
    let window = model.window();
    if does(window) {
        return Ok(());
    }
    let least = (window..).find(|&window| does(window)).unwrap_or(u64::MAX);
    Err(Failure::new(format!(
        "a context window of {window} tokens leaves no room for a conversation besides the system prompt and the answer"
    ))
    .hint(format!("use a `--window` of at least {least}, or omit it")))
}

/// Returns how `mra` is asked. If it is to be, but cannot be now, that is said once.
pub(super) fn mra(home: &Path, config: &Config) -> Mra {
    let mra = Mra::new(cli::mra::config(config));
    if config.uses_mra()
        && let Err(error) = mra.check()
    {
        let doctor = home::command(home, "doctor");
        tracing::warn!("the model is not offered `mra_ask`: {error}\n  hint: `{doctor}` says what is missing");
    }
    mra
}

/// Returns the seeder, which provides the documents that open a session.
pub(super) fn seeder(config: &Config) -> Option<Seeder> {
    let ingest = config.default_ingest.clone()?;
    if ingest == Ingest::AllRepositories && config.mra_workspace.is_none() {
        tracing::warn!(
            "`defaultIngest` is `{ingest}`, but no workspace is set: sessions start without a seed\n  hint: set \
             `mraWorkspace` in gateway.json, or PMK_MRA_WORKSPACE"
        );
        return None;
    }
    Some(Seeder::new(ingest, config.mra_workspace.clone().unwrap_or_default(), config.language))
}
