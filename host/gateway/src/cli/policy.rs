//! `policy inspect`: what a component is, before it decides anything; `policy use`: which ones decide.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pmk_policy::{Policy, SettingKind, SettingSpec};
use serde_json::{Value, json};

use super::{Context, layers, logging, print, print_json, table};
use crate::error::Failure;

mod choice;

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Show name, version, exports, imports, settings, digest and size of a component
    Inspect(Inspect),
    /// Have other components decide in the gateway that runs in this home, from the next turn on
    Use(choice::Use),
}

#[derive(Debug, Args)]
pub(super) struct Inspect {
    /// The component
    file: PathBuf,
}

impl PolicyCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        logging::start(true, context.json);
        match self {
            PolicyCommand::Inspect(inspect) => inspect.run(context),
            PolicyCommand::Use(choice) => choice.run(context),
        }
    }
}

impl Inspect {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let policy = Policy::load(&layers::open_runtime(&context.home)?, &self.file)?;
        if context.json { print_json(&document(&policy)) } else { print(&page(&policy)) }
    }
}

fn exports(policy: &Policy) -> Vec<&'static str> {
    let exports = policy.exports();
    [("cap", exports.cap), ("prune", exports.prune), ("summarize", exports.summarize), ("recover", exports.recover)]
        .into_iter()
        .filter_map(|(name, there)| there.then_some(name))
        .collect()
}

fn document(policy: &Policy) -> Value {
    let description = policy.description();
    json!({
        "name": description.name,
        "version": description.version,
        "about": description.about,
        "sha256": policy.identity().sha256,
        "size_bytes": policy.size_bytes(),
        "exports": exports(policy),
        "imports": policy.imports(),
        "settings": description.settings,
    })
}

fn page(policy: &Policy) -> String {
    let description = policy.description();
    let imports = match policy.imports() {
        [] => "none".to_owned(),
        imports => imports.join("\n          "),
    };
    let mut out = format!(
        "name      {}\nversion   {}\nabout     {}\nsha256    {}\nsize      {} bytes\nexports   {}\nimports   {imports}\n",
        description.name,
        description.version,
        description.about,
        policy.identity().sha256,
        policy.size_bytes(),
        exports(policy).join(", "),
    );
    if description.settings.is_empty() {
        out.push_str("settings  none\n");
        return out;
    }
    out.push_str("settings\n");
    let rows: Vec<Vec<String>> =
        std::iter::once(["NAME", "DEFAULT", "VALUES", "WHAT IT DOES"].map(str::to_owned).to_vec())
            .chain(description.settings.iter().map(row))
            .collect();
    for line in table::columns(&rows).lines() {
        out.push_str(&format!("  {line}\n"));
    }
    out
}

fn row(setting: &SettingSpec) -> Vec<String> {
    let (default, values) = match &setting.kind {
        SettingKind::Integer { default, min, max } => (default.to_string(), format!("{min} to {max}")),
        SettingKind::Boolean { default } => (default.to_string(), "true, false".to_owned()),
        SettingKind::Text { default } => (format!("`{default}`"), "text".to_owned()),
    };
    vec![setting.name.clone(), default, values, setting.help.clone()]
}
