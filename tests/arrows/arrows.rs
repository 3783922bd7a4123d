//! Which file points to which: paths, followed to where the thing is defined; and the circles that may not be.

use std::collections::{BTreeMap, BTreeSet};

use crate::circles::{knots, shortest};
use crate::source::{Mention, Source};

/// So often a name is handed on at most; who hands it on in a ring defines nothing.
const MOST_STEPS: usize = 16;

pub struct Arrows {
    files: Vec<Place>,
    /// From file to file, with what is named.
    arrows: BTreeMap<(usize, usize), BTreeSet<String>>,
}

/// Where a file is.
struct Place {
    path: String,
    /// Its module under the crate's root; the root has none.
    room: Option<String>,
    /// `x.rs` is in the folder `x`, if it has files there.
    folder: Vec<String>,
}

impl Arrows {
    pub fn of(source: &Source) -> Arrows {
        let mut arrows: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (here, module) in source.modules.iter().enumerate() {
            for mention in module.mentions.iter().filter(|mention| !contents(source, here, mention)) {
                let (there, name) = match resolve(source, here, &mention.path, MOST_STEPS) {
                    Some(End::Item(there, name)) => (there, name),
                    Some(End::Module(there)) if mention.glob => (there, "*".to_owned()),
                    // A module alone is no thing; what is taken from it is mentioned, too.
                    Some(End::Module(_)) | None => continue,
                };
                let to = source.modules[there].file;
                if to != module.file {
                    arrows.entry((module.file, to)).or_default().insert(name);
                }
            }
        }
        Arrows { files: places(source), arrows }
    }

    /// The shortest circle of each knot of the modules under the crate's root.
    pub fn circle_of_modules(&self) -> Vec<String> {
        let rooms = self.arrows_of_rooms();
        let described = knots(&rooms).into_iter().map(|knot| {
            let circle = shortest(&rooms, knot.iter().flat_map(|from| knot.iter().map(move |to| (*from, *to))));
            let lines = circle
                .iter()
                .flat_map(|(from, to)| self.lines(move |a, b| self.room(a) == Some(from) && self.room(b) == Some(to)));
            let names: Vec<_> = knot.into_iter().collect();
            let lines = lines.collect::<Vec<_>>().join("\n");
            format!("{} modules in one knot ({}); a shortest circle:\n{lines}", names.len(), names.join(", "))
        });
        described.collect()
    }

    /// The shortest circle across folders of each knot of files. Arrows between modules that form a circle themselves
    /// are left out, not to hide with one great knot what is inside them.
    pub fn circles_across_folders(&self) -> Vec<String> {
        let entangled = knots(&self.arrows_of_rooms());
        let between = |a: usize, b: usize| {
            let rooms = self.room(a).zip(self.room(b)).filter(|(a, b)| a != b);
            rooms.is_some_and(|(a, b)| entangled.iter().any(|knot| knot.contains(a) && knot.contains(b)))
        };
        let arrows: BTreeSet<_> = self.arrows.keys().copied().filter(|(a, b)| !between(*a, *b)).collect();
        let folder = |file: usize| &self.files[file].folder;
        let described = knots(&arrows).into_iter().filter_map(|knot| {
            let inside = arrows.iter().copied().filter(|(a, b)| knot.contains(a) && knot.contains(b));
            let crossing: Vec<_> = inside.filter(|(a, b)| folder(*a) != folder(*b)).collect();
            let circle = shortest(&arrows, crossing.into_iter());
            let lines = circle.iter().flat_map(|arrow| self.lines(move |a, b| (a, b) == *arrow));
            let lines = lines.collect::<Vec<_>>().join("\n");
            (!circle.is_empty())
                .then(|| format!("{} files in a knot across folders; a shortest circle:\n{lines}", knot.len()))
        });
        described.collect()
    }

    pub fn files_in_circles(&self) -> String {
        let mut sizes: Vec<_> = knots(&self.arrows.keys().copied().collect()).iter().map(BTreeSet::len).collect();
        sizes.sort_unstable();
        sizes.reverse();
        format!("{} of {} files in circles {sizes:?}", sizes.iter().sum::<usize>(), self.files.len())
    }

    fn arrows_of_rooms(&self) -> BTreeSet<(&str, &str)> {
        let arrows = self.arrows.keys().filter_map(|(a, b)| self.room(*a).zip(self.room(*b)));
        arrows.filter(|(a, b)| a != b).collect()
    }

    fn room(&self, file: usize) -> Option<&str> {
        self.files[file].room.as_deref()
    }

    /// The arrows that are wanted, a line each.
    fn lines(&self, wanted: impl Fn(usize, usize) -> bool) -> impl Iterator<Item = String> {
        self.arrows.iter().filter(move |((a, b), _)| wanted(*a, *b)).map(|((a, b), names)| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            format!("  {} -> {}: {}", self.files[*a].path, self.files[*b].path, names.join(", "))
        })
    }
}

fn places(source: &Source) -> Vec<Place> {
    let parents: BTreeSet<_> =
        source.files.iter().flat_map(|file| (0..file.module.len()).map(|n| &file.module[..n])).collect();
    let place = |file: &crate::source::File| {
        let depth = file.module.len();
        let own = depth == 0 || parents.contains(&file.module[..]);
        let folder = file.module[..if own { depth } else { depth - 1 }].to_vec();
        Place { path: file.path.display().to_string(), room: file.module.first().cloned(), folder }
    };
    source.files.iter().map(place).collect()
}

/// Whether it is a line of a table of contents: a module hands on what a child of its own has.
fn contents(source: &Source, here: usize, mention: &Mention) -> bool {
    let first = mention.path.iter().find(|name| *name != "self");
    mention.hands_on && first.is_some_and(|name| source.modules[here].children.contains_key(name))
}

/// What a path leads to.
enum End {
    Module(usize),
    /// Something that is defined in a module.
    Item(usize, String),
}

/// Follows a path from a module; none leads out of the crate.
fn resolve(source: &Source, here: usize, path: &[String], steps: usize) -> Option<End> {
    let (first, rest) = path.split_first()?;
    let steps = steps.checked_sub(1)?;
    let mut end = match first.as_str() {
        "crate" => End::Module(0),
        "self" => End::Module(here),
        "super" => End::Module(source.modules[here].parent?),
        name => find(source, here, name, rest.is_empty(), steps)?,
    };
    for (n, name) in rest.iter().enumerate() {
        let End::Module(at) = end else { break }; // A variant, or an associated item.
        end = match name.as_str() {
            "super" => End::Module(source.modules[at].parent?),
            name => find(source, at, name, n + 1 == rest.len(), steps)
                // From another crate, or made by a macro.
                .unwrap_or_else(|| End::Item(at, name.to_owned())),
        };
    }
    Some(end)
}

/// What a name means in a module. A module and a function may have the same one; only a module is followed by `::`.
fn find(source: &Source, here: usize, name: &str, last: bool, steps: usize) -> Option<End> {
    let module = &source.modules[here];
    let child = || module.children.get(name).map(|child| End::Module(*child));
    let item = || module.items.contains(name).then(|| End::Item(here, name.to_owned()));
    let import = || module.imports.get(name)?.iter().find_map(|path| resolve(source, here, path, steps));
    let glob = || {
        module.globs.iter().find_map(|path| match resolve(source, here, path, steps)? {
            End::Module(there) if there != here => find(source, there, name, last, steps.checked_sub(1)?),
            _ => None,
        })
    };
    if last {
        item().or_else(import).or_else(child).or_else(glob)
    } else {
        child().or_else(import).or_else(item).or_else(glob)
    }
}
