//! Checks the operator's own system prompts, if there are any: whether they are used.

use std::path::Path;

use super::Finding;
use crate::{access::audience::Prompts, messages::Messages};

const NAME: &str = "prompts";
const PAGE: &str = "docs/knowledge.md#audience";

pub(super) fn look(home: &Path, messages: &Messages) -> Vec<Finding> {
    let (prompts, problems) = Prompts::load(home);
    if !problems.is_empty() {
        let hint = messages.doctor_see(PAGE);
        return problems.iter().map(|problem| Finding::odd(NAME, problem.to_string(), &hint)).collect();
    }
    let own: Vec<String> = prompts.own().map(|audience| format!("{audience}.md")).collect();
    if own.is_empty() { vec![] } else { vec![Finding::well(NAME, own.join(", "))] }
}
