//! `policy new`: creates a project to start from.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pmk_system::error::Failure;
use serde_json::json;

use super::super::{
    context::Context,
    output::{print, print_json},
    page::Page,
};
use crate::evaluation::authoring::scaffold::{Language, Name, NameError, Project, ScaffoldError, VENDORED, Written};

#[derive(Debug, Args)]
pub(in crate::cli) struct New {
    /// Policy name; a directory of that name is created here
    name: String,

    /// Language to write it in
    #[arg(long, value_enum, default_value_t = Lang::Rust)]
    lang: Lang,

    /// Directory of the Rust SDK to use [default: included in the project]
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lang {
    /// Built with cargo-component or plain cargo
    Rust,
    /// Built with componentize-js
    Js,
    /// Built with componentize-py
    Python,
}

impl From<Lang> for Language {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Rust => Language::Rust,
            Lang::Js => Language::JavaScript,
            Lang::Python => Language::Python,
        }
    }
}

impl New {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let name: Name = self.name.parse().map_err(|error: NameError| Failure::new(&error).hint(error.hint()))?;
        let project = Project::new(name, self.lang.into(), self.sdk.as_deref())?;
        let Written { folder, own, vendored } = project.write(Path::new(""))?;
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let next = project.next_steps();
        if context.json {
            return print_json(&json!({"folder": folder, "files": own, "vendored": vendored, "next": next}));
        }
        let indented = |lines: &[String]| lines.iter().map(|line| format!("  {line}\n")).collect::<String>();
        let mut page = Page::new(context.language);
        page.say(&format!("wrote `{}`, {} files:", folder.display(), own.len()));
        page.text(&indented(&own));
        if vendored > 0 {
            page.say(&format!("plus its dependencies in `{VENDORED}`, which you need not read"));
        }
        page.say("next:");
        page.text(&indented(&next));
        print(&page.done())
    }
}

impl From<ScaffoldError> for Failure {
    fn from(error: ScaffoldError) -> Self {
        Failure::new(&error).hint(error.hint())
    }
}
