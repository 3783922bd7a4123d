//! `case list|show|export`: the cases of channels, whether the gateway is running or not (specification 003 §11).

use std::{io::Write, path::PathBuf};

use clap::{Args, Subcommand};
use pmk_core::Language;
use pmk_system::error::Failure;
use serde_json::{Value, json};

use super::{
    context::{Context, block_on},
    output::{print, print_json},
    page::Page,
    sessions::export::create,
    text::{one_line, printable, time},
};
use crate::{
    case::{Case, CaseId, CaseMessage, NoteKind, document},
    store::Store,
};

#[derive(Debug, Subcommand)]
pub(super) enum CaseCommand {
    /// List all cases, open ones first
    List,
    /// Show what is known about a case
    Show(Number),
    /// Export a case and its messages as one Markdown file
    Export(Export),
}

#[derive(Debug, Args)]
pub(super) struct Number {
    /// Case number, as printed by `case list`
    #[arg(value_name = "ID")]
    id: CaseId,
}

#[derive(Debug, Args)]
pub(super) struct Export {
    #[command(flatten)]
    number: Number,
    /// File to create; must not exist yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl CaseCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            CaseCommand::List => list(context),
            CaseCommand::Show(number) => number.show(context),
            CaseCommand::Export(export) => export.run(context),
        }
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let cases = match Store::open_if_any(context.place()?)? {
        Some(store) => block_on(async { Ok(store.cases().await?) })?,
        None => vec![],
    };
    if context.json {
        return print_json(&cases.iter().map(in_json).collect());
    }
    if cases.is_empty() {
        context.say(&format!("no cases in `{}`", context.home.display()));
        return Ok(());
    }
    let heading = ["#CASE", "STATE", "CHANNEL", "OPENED", "#HYPOTHESES", "#QUESTIONS", "#MESSAGES", "TITLE"];
    let rows = cases.iter().map(|case| {
        let count = |kind| case.notes_of(kind).count().to_string();
        vec![
            case.id.to_string(),
            context.translated(state(case)).into_owned(),
            printable(&case.channel),
            time(case.opened_at_ms),
            count(NoteKind::Hypothesis),
            count(NoteKind::Question),
            case.messages.to_string(),
            one_line(&case.title, 60),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(heading.map(str::to_owned).to_vec()).chain(rows).collect();
    print(&context.columns(&rows))
}

impl Number {
    fn show(self, context: &Context) -> Result<(), Failure> {
        let case = block_on(async { self.case(&Store::open_existing(context.place()?)?).await })?;
        if context.json {
            return print_json(&in_json(&case));
        }
        print(&page(&case, context.language))
    }

    async fn case(&self, store: &Store) -> Result<Case, Failure> {
        let unknown = || {
            Failure::new(format!("case {} does not exist", self.id)).hint("list all cases with `pmk-host case list`")
        };
        store.case(self.id).await?.ok_or_else(unknown)
    }
}

impl Export {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let (case, messages) = block_on(async {
            let store = Store::open_existing(context.place()?)?;
            let case = self.number.case(&store).await?;
            let messages = store.case_messages(case.id).await?;
            Ok((case, messages))
        })?;
        let Some(to) = self.to.as_ref().filter(|to| to.as_os_str() != "-") else {
            if context.json {
                let mut whole = in_json(&case);
                whole["said"] = messages.iter().map(message_in_json).collect();
                return print_json(&whole);
            }
            return print(&document(&case, &messages, context.language));
        };
        let path = std::path::absolute(to).map_err(Failure::new)?;
        create(&path, |file| file.write_all(document(&case, &messages, context.language).as_bytes()))?;
        if context.json {
            return print_json(&json!({"case": case.id.0, "messages": messages.len(), "to": path}));
        }
        context.say(&format!("case {} written to `{}`", case.id, path.display()));
        Ok(())
    }
}

fn state(case: &Case) -> &'static str {
    if case.closed.is_none() { "open" } else { "closed" }
}

fn page(case: &Case, language: Language) -> String {
    let mut page = Page::new(language).with("  ", 10);
    let by = |page: &mut Page, label: &str, at_ms, user: Option<&str>| match user {
        Some(user) => page.line(label, format!("{} {} {}", time(at_ms), page.translated("by"), printable(user))),
        None => page.line(label, time(at_ms)),
    };
    let title = page.translated(&format!("case {}", case.id));
    page.text(&format!("{title}{}{}\n", language.pick(": ", "："), one_line(&case.title, 200)));
    page.line("channel", printable(&case.channel));
    by(&mut page, "opened at", case.opened_at_ms, case.opened_by.as_deref());
    if let Some((at_ms, user)) = &case.closed {
        by(&mut page, "closed at", *at_ms, user.as_deref());
    }
    page.line("messages", case.messages);
    for kind in [NoteKind::Hypothesis, NoteKind::Question] {
        page.text("\n");
        page.say(match kind {
            NoteKind::Hypothesis => "hypotheses",
            NoteKind::Question => "open questions",
        });
        for kept in case.notes_of(kind) {
            page.text(&format!("  {}  {}\n", time(kept.at_ms), one_line(&kept.note.text, 600)));
        }
        if case.notes_of(kind).next().is_none() {
            page.tell("none", "");
        }
    }
    page.done()
}

fn in_json(case: &Case) -> Value {
    let notes = |kind| -> Vec<Value> {
        let notes = case.notes_of(kind);
        notes.map(|kept| json!({"text": kept.note.text, "at": time(kept.at_ms), "message": kept.message})).collect()
    };
    let (closed_at, closed_by) = case.closed.clone().unzip();
    json!({
        "case": case.id.0,
        "state": state(case),
        "channel": case.channel,
        "title": case.title,
        "opened_at": time(case.opened_at_ms),
        "opened_by": case.opened_by,
        "closed_at": closed_at.map(time),
        "closed_by": closed_by.flatten(),
        "hypotheses": notes(NoteKind::Hypothesis),
        "questions": notes(NoteKind::Question),
        "messages": case.messages,
    })
}

fn message_in_json(message: &CaseMessage) -> Value {
    json!({
        "id": message.id,
        "session": message.key,
        "at": time(message.at_ms),
        "role": message.message.role,
        "user": message.user,
        "text": message.message.plain_text(),
    })
}
