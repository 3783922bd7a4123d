//! `atoms list|show|approve|reject|edit`: the answers that people gave, and verdicts on them (specification 003 §10).

use std::{cmp::Reverse, collections::HashMap};

use clap::{Args, Subcommand};
use pmk_knowledge::{
    Atom, Status,
    files::AtomFiles,
    moderation::{self, ModerationError, Promote, StoredAtom},
};
use pmk_system::{clock, error::Failure};
use serde_json::{Value, json};

use self::edit::Edited;
use super::{
    change::record,
    context::{Context, block_on},
    output::{print, print_json},
    page::Page,
    text::{one_line, printable, time},
};
use crate::store::{AtomUse, Store};

mod edit;

/// The most characters of a question in a line of the list.
const LISTED_CHARS: usize = 60;

#[derive(Debug, Subcommand)]
pub(super) enum AtomsCommand {
    /// List all atoms, most recent first
    List(List),
    /// Show an atom
    Show(One),
    /// Make a pending atom retrievable at once
    Approve(One),
    /// Delete an atom
    Reject(One),
    /// Edit an atom in $VISUAL or $EDITOR
    Edit(One),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only pending ones
    #[arg(long)]
    pending: bool,
    /// Only approved ones never shown to the model
    #[arg(long, conflicts_with_all = ["pending", "doubted"])]
    unused: bool,
    /// Only those whose answers were doubted: they got a 👎, or people were asked anyway
    #[arg(long, conflicts_with = "pending")]
    doubted: bool,
}

#[derive(Debug, Args)]
pub(super) struct One {
    /// Atom ID or a unique prefix of it
    id: String,
}

impl AtomsCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let shelf = Shelf::open(context)?;
        match self {
            AtomsCommand::List(list) => list.run(context, &shelf),
            AtomsCommand::Show(one) => show(context, shelf.find(&one.id)?),
            AtomsCommand::Approve(one) => approve(context, &one.id, &shelf),
            AtomsCommand::Reject(one) => reject(context, &one.id, &shelf),
            AtomsCommand::Edit(one) => edit(context, &one.id, &shelf),
        }
    }
}

/// The current atoms; those that are due have just been approved.
struct Shelf {
    /// `None` if no atom was ever saved.
    files: Option<AtomFiles>,
    atoms: Vec<StoredAtom>,
}

impl Shelf {
    fn open(context: &Context) -> Result<Shelf, Failure> {
        let Some(files) = AtomFiles::open_existing(&context.home)? else {
            return Ok(Shelf { files: None, atoms: vec![] });
        };
        let loaded = moderation::load(&files, clock::now_ms(), Promote::Yes)?;
        for problem in loaded.problems {
            context.warn(&problem.to_string());
        }
        Ok(Shelf { files: Some(files), atoms: loaded.atoms })
    }

    fn find(&self, prefix: &str) -> Result<&StoredAtom, Failure> {
        Ok(moderation::find(&self.atoms, prefix)?)
    }

    /// Returns the matching atom, with the files to change it in.
    fn found(&self, prefix: &str) -> Result<(&AtomFiles, &StoredAtom), Failure> {
        let stored = self.find(prefix)?;
        // If there is an atom, the folder exists.
        self.files.as_ref().map(|files| (files, stored)).ok_or_else(|| ModerationError::NotFound(prefix.into()).into())
    }
}

impl List {
    fn run(self, context: &Context, shelf: &Shelf) -> Result<(), Failure> {
        let uses = uses(context)?;
        let used = |it: &StoredAtom| uses.get(&it.atom.meta.id).copied().unwrap_or_default();
        let mut atoms: Vec<&StoredAtom> = shelf.atoms.iter().filter(|it| self.lists(&it.atom, used(it))).collect();
        atoms.sort_by_key(|it| Reverse(it.atom.meta.created_at));
        if context.json {
            return print_json(&atoms.into_iter().map(|it| with_use(summary(it), used(it))).collect());
        }
        if atoms.is_empty() {
            let home = context.home.display();
            context.say(&match self {
                List { pending: true, .. } => format!("no pending atoms in `{home}`"),
                List { unused: true, .. } => format!("no unused atoms in `{home}`"),
                List { doubted: true, .. } => format!("no doubted atoms in `{home}`"),
                _ => format!("no atoms in `{home}`"),
            });
            return Ok(());
        }
        let heading = ["ID", "STATUS", "SCOPE", "AUTO-APPROVED", "SHOWN", "LAST SHOWN", "DOUBTED", "QUESTION"];
        let heading = heading.map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(heading)
            .chain(atoms.into_iter().map(|stored| {
                let (atom, used) = (&stored.atom, used(stored));
                vec![
                    printable(moderation::short_id(&shelf.atoms, &atom.meta.id)),
                    listed_status(atom, context),
                    printable(&atom.meta.scope),
                    atom.due_at_ms().map_or_else(|| "-".into(), time),
                    used.shown.to_string(),
                    used.last_shown_at_ms.map_or_else(|| "-".into(), time),
                    used.doubted.to_string(),
                    one_line(&atom.meta.question, LISTED_CHARS),
                ]
            }))
            .collect();
        print(&context.columns(&rows))
    }

    fn lists(&self, atom: &Atom, used: AtomUse) -> bool {
        let status = atom.meta.status;
        (!self.pending || status == Status::Pending)
            && (!self.unused || status == Status::Approved && used.shown == 0)
            && (!self.doubted || used.doubted > 0)
    }
}

/// Returns the use of each atom; empty if nothing was ever stored.
fn uses(context: &Context) -> Result<HashMap<String, AtomUse>, Failure> {
    let Some(store) = Store::open_if_any(context.place()?)? else { return Ok(HashMap::new()) };
    block_on(async { Ok(store.atom_uses().await?) })
}

fn with_use(mut summary: Value, used: AtomUse) -> Value {
    summary["shown"] = used.shown.into();
    summary["last_shown_at"] = used.last_shown_at_ms.map(time).into();
    summary["doubted"] = used.doubted.into();
    summary
}

fn show(context: &Context, stored: &StoredAtom) -> Result<(), Failure> {
    let StoredAtom { path, atom } = stored;
    if context.json {
        let mut document = summary(stored);
        document["answer"] = atom.answer().into();
        return print_json(&document);
    }
    let status = match atom.due_at_ms() {
        Some(due) => format!("pending, auto-approved {}", time(due)),
        None => status_name(atom.meta.status).to_owned(),
    };
    let mut page = Page::new(context.language);
    let value = |text: &str| one_line(text, usize::MAX);
    page.line("id", value(&atom.meta.id));
    page.tell("status", &status);
    match &atom.meta.flag_reason {
        Some(reason) => page.line("flagged", value(reason)),
        None => page.tell("flagged", "no"),
    }
    page.line("scope", value(&atom.meta.scope));
    page.line("question", value(&atom.meta.question));
    page.line("summary", value(atom.summary()));
    page.line("created", time(atom.meta.created_at));
    page.line("by", value(&atom.meta.source.contributor_user_id));
    page.line("thread", value(&atom.meta.source.thread_key));
    page.line("tags", value(&atom.meta.tags.join(", ")));
    page.line("file", value(&path.display().to_string()));
    page.text(&format!("\n{}\n", atom.body.trim_end()));
    print(&printable(&page.done()))
}

fn summary(StoredAtom { path, atom }: &StoredAtom) -> Value {
    json!({
        "id": atom.meta.id,
        "status": atom.meta.status,
        "scope": atom.meta.scope,
        "question": atom.meta.question,
        "summary": atom.summary(),
        "tags": atom.meta.tags,
        "contributor": atom.meta.source.contributor_user_id,
        "thread": atom.meta.source.thread_key,
        "created_at": time(atom.meta.created_at),
        "due_at": atom.due_at_ms().map(time),
        "flagged": atom.meta.flagged,
        "flag_reason": atom.meta.flag_reason,
        "file": path,
    })
}

fn listed_status(atom: &Atom, context: &Context) -> String {
    let status = status_name(atom.meta.status);
    let status = if atom.meta.flagged { format!("{status}, flagged") } else { status.to_owned() };
    context.translated(&status).into_owned()
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::Approved => "approved",
    }
}

fn approve(context: &Context, prefix: &str, shelf: &Shelf) -> Result<(), Failure> {
    let found = shelf.found(prefix);
    let id = id_or(prefix, &found);
    let approved = found.and_then(|(files, stored)| {
        moderation::approve_file(files, &stored.path)?.ok_or_else(|| ModerationError::NotFound(prefix.into()).into())
    });
    record(context, "atoms.approve", &[&id], approved)?;
    if context.json {
        return print_json(&json!({"id": id, "status": "approved"}));
    }
    context.say(&format!("`{id}` is approved"));
    Ok(())
}

fn reject(context: &Context, prefix: &str, shelf: &Shelf) -> Result<(), Failure> {
    let found = shelf.found(prefix);
    let id = id_or(prefix, &found);
    let rejected = found.and_then(|(files, stored)| Ok(moderation::reject_file(files, &stored.path)?));
    record(context, "atoms.reject", &[&id], rejected)?;
    if context.json {
        return print_json(&json!({"id": id, "status": "rejected"}));
    }
    context.say(&format!("`{id}` is deleted"));
    Ok(())
}

fn edit(context: &Context, prefix: &str, shelf: &Shelf) -> Result<(), Failure> {
    let found = shelf.found(prefix);
    let id = id_or(prefix, &found);
    let edited = found.and_then(|(files, stored)| edit::edit(&context.home, files, &stored.path));
    let saved = match edited {
        // There was no change, so there is nothing to log.
        Ok(Edited::Unchanged) => false,
        edited => record(context, "atoms.edit", &[&id], edited).map(|_| true)?,
    };
    if context.json {
        return print_json(&json!({"id": id, "saved": saved}));
    }
    context.say(&if saved { format!("`{id}` is saved") } else { format!("`{id}` is unchanged") });
    Ok(())
}

/// The id of the atom found, or else the given prefix.
fn id_or(prefix: &str, found: &Result<(&AtomFiles, &StoredAtom), Failure>) -> String {
    found.as_ref().map_or_else(|_| prefix.to_owned(), |(_, stored)| stored.atom.meta.id.clone())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use pmk_knowledge::Atom;

    #[test]
    fn a_short_id_is_enough_to_find_its_atom() {
        let ids = [
            "a",
            "2026-04-28T0213-5388-預算",
            "2026-04-28T0213-5388-預",
            "2026-04-28T0213-53ff-x",
            "2026-04-28T0213-5388",
        ];
        let atoms = ids.map(|id| StoredAtom {
            path: PathBuf::from(id),
            atom: Atom::parse(&format!("---\nid: {id}\nquestion: q\n---\n")).unwrap(),
        });
        let shelf = Shelf { files: None, atoms: atoms.into() };
        let short = ids.map(|id| moderation::short_id(&shelf.atoms, id));
        assert_eq!(short, ["a", ids[1], ids[2], "2026-04-28T0213-53ff", ids[4]]);
        for (short, id) in short.into_iter().zip(ids) {
            assert_eq!(shelf.find(short).unwrap().atom.meta.id, id);
        }
    }
}
