//! The source of one crate, as its `mod` lines name it: what each module defines, imports and mentions. What only tests
//! see is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::buffer::{Cursor, TokenBuffer};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, Item, ItemMod, ItemUse, Meta, UseTree, Visibility};

/// The segments of a path.
pub type Names = Vec<String>;

#[derive(Default)]
pub struct Source {
    pub files: Vec<File>,
    /// The first is the crate's own.
    pub modules: Vec<Module>,
}

pub struct File {
    /// From the folder of the crate's root.
    pub path: PathBuf,
    /// The path of the module it is.
    pub module: Names,
}

/// A module in a file of its own, or between braces in another one's.
#[derive(Default)]
pub struct Module {
    pub file: usize,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    pub items: BTreeSet<String>,
    pub imports: BTreeMap<String, Vec<Names>>,
    pub globs: Vec<Names>,
    pub mentions: Vec<Mention>,
}

pub struct Mention {
    pub path: Names,
    /// All that is in there is meant.
    pub glob: bool,
    /// It hands something on, as a table of contents does.
    pub hands_on: bool,
}

impl Source {
    /// Reads a crate from its `lib.rs` or `main.rs`.
    pub fn read(root: &Path) -> Source {
        let mut source = Source { modules: vec![Module::default()], ..Source::default() };
        let folder = root.parent().expect("a root is in a folder");
        let reader = Reader { top: folder, folder: folder.to_owned(), path: Vec::new(), here: 0, source: &mut source };
        reader.read_file(root);
        source
    }
}

/// What reads one module.
struct Reader<'a> {
    /// The folder of the crate's root.
    top: &'a Path,
    /// Where the files of the children are.
    folder: PathBuf,
    path: Names,
    here: usize,
    source: &'a mut Source,
}

impl Reader<'_> {
    fn read_file(mut self, path: &Path) {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let relative = path.strip_prefix(self.top).expect("a file of the crate is under its root");
        self.module().file = self.source.files.len();
        self.source.files.push(File { path: relative.to_owned(), module: self.path.clone() });
        if !only_for_tests(&parsed.attrs) {
            self.visit_file(&parsed);
        }
    }

    fn module(&mut self) -> &mut Module {
        &mut self.source.modules[self.here]
    }

    fn mention(&mut self, path: Names) {
        self.module().mentions.push(Mention { path, glob: false, hands_on: false });
    }

    /// Each name that a `use` brings.
    fn import(&mut self, tree: &UseTree, mut path: Names, hands_on: bool) {
        let (last, name) = match tree {
            UseTree::Path(tree) => {
                path.push(plain(&tree.ident));
                return self.import(&tree.tree, path, hands_on);
            }
            UseTree::Group(tree) => {
                tree.items.iter().for_each(|tree| self.import(tree, path.clone(), hands_on));
                return;
            }
            UseTree::Glob(_) => {
                self.module().globs.push(path.clone());
                self.module().mentions.push(Mention { path, glob: true, hands_on });
                return;
            }
            UseTree::Name(tree) => (plain(&tree.ident), plain(&tree.ident)),
            UseTree::Rename(tree) => (plain(&tree.ident), plain(&tree.rename)),
        };
        // `a::{self}` is `a`, by that name.
        let name = if name == "self" { path.last().cloned().unwrap_or(name) } else { name };
        if last != "self" {
            path.push(last);
        }
        self.module().imports.entry(name).or_default().push(path.clone());
        self.module().mentions.push(Mention { path, glob: false, hands_on });
    }

    /// The paths among tokens that have no grammar.
    fn scan(&mut self, mut at: Cursor<'_>, texts: bool) {
        let mut after_dot = false;
        while !at.eof() {
            let dot = at.punct().is_some_and(|(punct, _)| punct.as_char() == '.');
            if let Some((inside, _, _, next)) = at.any_group() {
                self.scan(inside, texts);
                at = next;
            } else if let Some((first, next)) = at.ident() {
                let mut path = vec![plain(&first)];
                at = next;
                while let Some((segment, next)) = segment(at) {
                    path.push(plain(&segment));
                    at = next;
                }
                if !after_dot {
                    self.mention(path);
                }
            } else if let Some((literal, next)) = at.literal() {
                if let Some(path) = texts.then(|| quoted(&literal.to_string())).flatten() {
                    self.mention(path);
                }
                at = next;
            } else {
                at = at.token_tree().map_or(Cursor::empty(), |(_, next)| next);
            }
            after_dot = dot;
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = outside(item);
        if only_for_tests(attributes) {
            return;
        }
        if let Some(name) = name {
            self.module().items.insert(plain(name));
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !only_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let name = plain(&module.ident);
        let child = self.source.modules.len();
        let file = self.module().file;
        self.source.modules.push(Module { file, parent: Some(self.here), ..Module::default() });
        self.module().children.insert(name.clone(), child);
        let path = self.path.iter().chain([&name]).cloned().collect();
        let folder = self.folder.join(&name);
        let mut reader = Reader { top: self.top, folder, path, here: child, source: self.source };
        match &module.content {
            Some((_, items)) => items.iter().for_each(|item| reader.visit_item(item)),
            None => reader.read_file(&self.folder.join(format!("{name}.rs"))),
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, Vec::new(), !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.mention(path.segments.iter().map(|segment| plain(&segment.ident)).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.scan(TokenBuffer::new2(called.tokens.clone()).begin(), false);
        visit::visit_macro(self, called);
    }

    /// Some name a function in quotation marks: `#[serde(with = "json::object")]`.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.scan(TokenBuffer::new2(list.tokens.clone()).begin(), true);
        }
    }
}

/// An item's attributes, and its name where it has one that a path can end in.
fn outside(item: &Item) -> (&[Attribute], Option<&Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Mod(item) => (&item.attrs, None),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

fn only_for_tests(attributes: &[Attribute]) -> bool {
    let test = |attribute: &Attribute| attribute.parse_args::<Ident>().is_ok_and(|condition| condition == "test");
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && test(attribute))
}

/// The identifier after `::`.
fn segment(at: Cursor<'_>) -> Option<(Ident, Cursor<'_>)> {
    let (first, at) = at.punct()?;
    let (second, at) = at.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then(|| at.ident()).flatten()
}

/// The path that a text in quotation marks is, if it has more than one segment.
fn quoted(literal: &str) -> Option<Names> {
    let text: syn::LitStr = syn::parse_str(literal).ok()?;
    let path = text.parse_with(syn::Path::parse_mod_style).ok()?;
    (path.segments.len() > 1).then(|| path.segments.iter().map(|segment| plain(&segment.ident)).collect())
}

fn plain(name: &Ident) -> String {
    name.unraw().to_string()
}
