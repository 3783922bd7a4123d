//! `policy test`: checks whether a component still decides as expected.

use std::path::PathBuf;

use clap::Args;
use pmk_core::Language;
use pmk_system::error::Failure;
use serde_json::json;

use super::super::{
    context::Context,
    output::{print, print_json},
    page::Page,
    text::one_line,
};
use crate::{
    evaluation::authoring::{
        cases::{self, Difference, Outcome, Tried, Unfit},
        stage::Stage,
    },
    policies,
};

/// The most characters shown of a line that differs.
const SHOWN_CHARS: usize = 600;

#[derive(Debug, Args)]
pub(in crate::cli) struct Test {
    /// Component file
    file: PathBuf,

    /// Directory of cases, one JSON file each
    #[arg(long, value_name = "DIR")]
    cases: PathBuf,

    /// Write the actual answers into the cases as the expected ones
    #[arg(long)]
    bless: bool,
}

impl Test {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let files = cases::files(&self.cases)?;
        let stage = Stage::new(policies::load(&policies::open_for_authoring(&context.home)?, &self.file)?);
        let tried = cases::run(&stage, &files, self.bless)?;
        let failed = tried.iter().filter(|tried| matches!(tried.outcome, Outcome::Failed { .. })).count();
        if context.json {
            print_json(&json!({"policy": stage.policy().identity(), "failed": failed, "cases": tried}))?;
        } else {
            print(&tried.iter().map(|tried| shown(tried, context.language)).collect::<String>())?;
        }
        match failed {
            0 => Ok(()),
            failed => Err(Failure::new(format!(
                "policy `{}` decides differently in {failed} of {} cases",
                self.file.display(),
                tried.len()
            ))
            .hint(match self.bless {
                true => "fix the policy or the case: where the policy fails or nothing can be sent, there is no answer to take as the expected one",
                false => "fix the policy, or accept its answers as the expected ones with `--bless`",
            })),
        }
    }
}

fn shown(tried: &Tried, language: Language) -> String {
    let (word, differences, unfit) = match &tried.outcome {
        Outcome::Passed => ("ok", &[][..], None),
        Outcome::Blessed { differences } => ("blessed", &differences[..], None),
        Outcome::Failed { differences, unfit } => ("FAILED", &differences[..], *unfit),
    };
    let mut out = Page::new(language).with("", 8);
    out.line(word, &tried.case);
    if let Some(unfit) = unfit {
        out.say(match unfit {
            Unfit::Failed => "  not taken as the expected answer: the policy fails",
            Unfit::Empty => "  not taken as the expected answer: nothing of the history would be sent",
            Unfit::TooLarge => "  not taken as the expected answer: the new message alone exceeds the budget",
        });
    }
    for Difference { line, expected, found } in differences {
        out.text(&format!("  {line}\n"));
        for (sign, text) in [('-', expected), ('+', found)] {
            if let Some(text) = text {
                out.text(&format!("    {sign} {}\n", one_line(text, SHOWN_CHARS)));
            }
        }
    }
    out.done()
}
