//! `policy inspect`: what a component is, before it decides anything.

use std::path::PathBuf;

use clap::Args;
use pmk_policy::{Policy, SettingKind, SettingSpec, contract};
use pmk_system::error::Failure;
use serde_json::{Value, json};

use super::{
    super::{
        context::Context,
        output::{print, print_json},
        table,
        text::printable,
    },
    decisions,
};
use crate::policies;

#[derive(Debug, Args)]
pub(in crate::cli) struct Inspect {
    /// The component
    file: PathBuf,
}

impl Inspect {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = policies::open_for_authoring(&context.home)?;
        let policy = policies::load(&runtime, &self.file)?;
        // One that is not allowed is not loaded.
        let allowed = runtime.trust().allow.is_some();
        if context.json { print_json(&document(&policy, allowed)) } else { print(&printable(&page(&policy, allowed))) }
    }
}

fn document(policy: &Policy, allowed: bool) -> Value {
    let description = policy.description();
    json!({
        "name": description.name,
        "version": description.version,
        "about": description.about,
        "sha256": policy.identity().sha256,
        "size_bytes": policy.size_bytes(),
        "contract": {"wanted": policy.contract_version(), "offered": contract::VERSION},
        "exports": decisions(policy.exports()),
        "imports": policy.imports(),
        "capabilities": policy.capabilities(),
        "wasi": wasi(policy),
        // `null`: nobody was asked.
        "allowed": allowed.then_some(true),
        "settings": description.settings,
    })
}

/// The interfaces of WASI that it imports.
fn wasi(policy: &Policy) -> Vec<&str> {
    let foreign = policy.capabilities().iter().filter(|capability| !capability.is_of_contract());
    foreign.map(|capability| capability.interface.as_str()).collect()
}

fn page(policy: &Policy, allowed: bool) -> String {
    let description = policy.description();
    let mut out = format!(
        "name      {}\nversion   {}\nabout     {}\nsha256    {}\nsize      {} bytes\n\
         contract  wants {}, this host offers {}\nexports   {}\n",
        description.name,
        description.version,
        description.about,
        policy.identity().sha256,
        policy.size_bytes(),
        policy.contract_version(),
        contract::VERSION,
        decisions(policy.exports()).join(", "),
    );
    if policy.capabilities().is_empty() {
        out.push_str("imports   none\n");
    }
    for (at, capability) in policy.capabilities().iter().enumerate() {
        let heading = if at == 0 { "imports" } else { "" };
        out.push_str(&format!("{heading:<10}{}\n", capability.interface));
        for functions in capability.functions.chunk_by(|a, b| resource(a) == resource(b)) {
            out.push_str(&format!("            {}\n", methods(functions)));
        }
    }
    out.push_str(match wasi(policy).is_empty() {
        true => "wasi      none\n",
        false => {
            "wasi      imported, and denied: no files, network, environment; clocks and random numbers stand still\n"
        }
    });
    out.push_str(match allowed {
        true => "allowed   yes, by `policy.allow`\n",
        false => "allowed   not asked: gateway.json has no `policy.allow`\n",
    });
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

/// What a function belongs to, where it is a method.
fn resource(function: &str) -> Option<&str> {
    function.split_once('.').map(|(resource, _)| resource)
}

/// The methods of one resource, or functions of an interface, on one line.
fn methods(functions: &[String]) -> String {
    let Some(resource) = functions.first().and_then(|first| resource(first)) else { return functions.join(", ") };
    let names = functions.iter().filter_map(|function| function.split_once('.')).map(|(_, method)| method);
    format!("{resource}: {}", names.collect::<Vec<_>>().join(", "))
}

fn row(setting: &SettingSpec) -> Vec<String> {
    let (default, values) = match &setting.kind {
        SettingKind::Integer { default, min, max } => (default.to_string(), format!("{min} to {max}")),
        SettingKind::Boolean { default } => (default.to_string(), "true, false".to_owned()),
        SettingKind::Text { default } => (format!("`{default}`"), "text".to_owned()),
    };
    vec![setting.name.clone(), default, values, setting.help.clone()]
}
