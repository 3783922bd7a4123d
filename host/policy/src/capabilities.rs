//! The capabilities of a component: the functions it imports, by interface. It cannot call what it does not import, so
//! this is known before it ever runs.

use serde::Serialize;
use wasmtime::{
    Engine,
    component::types::{Component, ComponentItem},
};

use crate::contract;

/// An interface that a component imports, and the functions it imports from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// The interface, with its version.
    pub interface: String,
    /// Its functions, and its resources' methods as `RESOURCE.METHOD`, sorted by name.
    pub functions: Vec<String>,
}

impl Capability {
    /// Whether it can read the archive, which may wait for the disk.
    pub fn reads_archive(&self) -> bool {
        let of_archive =
            |name: &str| matches!(name, "transcript.search" | "plan.recall") || name.starts_with("transcript.archived");
        self.is_of_contract() && self.functions.iter().any(|name| of_archive(name))
    }

    /// Whether it belongs to the contract; everything else is WASI, which is linked but denies everything.
    pub fn is_of_contract(&self) -> bool {
        contract::is_of(&self.interface)
    }
}

/// Returns everything that a component imports.
pub(crate) fn of(engine: &Engine, component: &Component) -> Vec<Capability> {
    component
        .imports(engine)
        .map(|(interface, item)| {
            let mut functions = match item.ty {
                ComponentItem::ComponentInstance(instance) => instance
                    .exports(engine)
                    .filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)))
                    .map(|(name, _)| shown(name))
                    .collect(),
                _ => vec![],
            };
            functions.sort();
            Capability { interface: interface.to_owned(), functions }
        })
        .collect()
}

/// `[method]transcript.tokens` without its bracketed prefix.
fn shown(name: &str) -> String {
    let plain = name.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(_, plain)| plain);
    plain.unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_by_their_resource() {
        assert_eq!(shown("[method]transcript.total-tokens"), "transcript.total-tokens");
        assert_eq!(shown("log"), "log");
    }

    /// Regression: `plan.recall`, which reads what it quotes, was not among them.
    #[test]
    fn a_component_that_only_recalls_was_taken_for_one_that_reads_no_archive() {
        let importing = |function: &str| Capability {
            interface: contract::interface("context"),
            functions: vec!["transcript.length".to_owned(), function.to_owned()],
        };
        for function in ["plan.recall", "transcript.search", "transcript.archived-text"] {
            assert!(importing(function).reads_archive(), "{function}");
        }
        for function in ["plan.remove", "budget.recall-tokens", "transcript.text"] {
            assert!(!importing(function).reads_archive(), "{function}");
        }
    }
}
