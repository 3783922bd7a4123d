//! `policy inspect`: shows what a component is, without any decision.

use std::path::PathBuf;

use clap::Args;
use pmk_core::Language;
use pmk_policy::{Policy, SettingKind, SettingSpec, contract};
use pmk_system::error::Failure;
use serde_json::{Value, json};

use super::{
    super::{
        context::Context,
        output::{print, print_json},
        page::Page,
        table,
        text::printable,
    },
    decisions,
};
use crate::{messages::terminal, policies};

#[derive(Debug, Args)]
pub(in crate::cli) struct Inspect {
    /// Component file
    file: PathBuf,
}

impl Inspect {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = policies::open_for_authoring(&context.home)?;
        let policy = policies::load(&runtime, &self.file)?;
        // A component that is not allowed does not load.
        let allowed = runtime.trust().allow.is_some();
        if context.json {
            print_json(&document(&policy, allowed))
        } else {
            print(&printable(&page(&policy, allowed, context.language)))
        }
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
        // `null` means that `policy.allow` is not configured.
        "allowed": allowed.then_some(true),
        "settings": description.settings,
    })
}

/// The WASI interfaces that it imports.
fn wasi(policy: &Policy) -> Vec<&str> {
    let foreign = policy.capabilities().iter().filter(|capability| !capability.is_of_contract());
    foreign.map(|capability| capability.interface.as_str()).collect()
}

fn page(policy: &Policy, allowed: bool, language: Language) -> String {
    let description = policy.description();
    let mut out = Page::new(language);
    out.line("name", &description.name);
    out.line("version", &description.version);
    out.line("about", terminal::of_a_policy(&description.about, language));
    out.line("sha256", &policy.identity().sha256);
    out.tell("size", &format!("{} bytes", policy.size_bytes()));
    out.tell("contract", &format!("requires {}, this host offers {}", policy.contract_version(), contract::VERSION));
    out.line("exports", decisions(policy.exports()).join(", "));
    if policy.capabilities().is_empty() {
        out.tell("imports", "none");
    }
    for (at, capability) in policy.capabilities().iter().enumerate() {
        out.line(if at == 0 { "imports" } else { "" }, &capability.interface);
        for functions in capability.functions.chunk_by(|a, b| resource(a) == resource(b)) {
            out.line("", format!("  {}", methods(functions)));
        }
    }
    out.tell(
        "wasi",
        match wasi(policy).is_empty() {
            true => "none",
            false => "imported, but denied: no files, network, environment; clocks and random numbers are fixed",
        },
    );
    out.tell(
        "allowed",
        match allowed {
            true => "yes, by `policy.allow`",
            false => "not checked: gateway.json has no `policy.allow`",
        },
    );
    if description.settings.is_empty() {
        out.tell("settings", "none");
        return out.done();
    }
    out.say("settings");
    let heading = ["NAME", "DEFAULT", "VALUES", "WHAT IT DOES"].map(str::to_owned).to_vec();
    let rows = description.settings.iter().map(|setting| row(setting, &out, language));
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
    for line in table::columns(&rows, language).lines() {
        out.text(&format!("  {line}\n"));
    }
    out.done()
}

/// The resource of a method.
fn resource(function: &str) -> Option<&str> {
    function.split_once('.').map(|(resource, _)| resource)
}

/// The methods of one resource, or the functions of an interface, on one line.
fn methods(functions: &[String]) -> String {
    let Some(resource) = functions.first().and_then(|first| resource(first)) else { return functions.join(", ") };
    let names = functions.iter().filter_map(|function| function.split_once('.')).map(|(_, method)| method);
    format!("{resource}: {}", names.collect::<Vec<_>>().join(", "))
}

fn row(setting: &SettingSpec, page: &Page, language: Language) -> Vec<String> {
    let (default, values) = match &setting.kind {
        SettingKind::Integer { default, min, max } => {
            (default.to_string(), page.translated(&format!("{min} to {max}")))
        }
        SettingKind::Boolean { default } => (default.to_string(), "true, false".to_owned()),
        SettingKind::Text { default } => (format!("`{default}`"), page.translated("text")),
    };
    let does = terminal::of_a_policy(&setting.help, language).into_owned();
    vec![setting.name.clone(), default, values, does]
}
