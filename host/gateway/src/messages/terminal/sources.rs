//! Collects every text that the sources can print about errors, hints and results: the templates where they are
//! written. A name is followed to what it stands for in its file: to what it is bound to, to what is passed for it if
//! it is an argument, and into functions that return a text. So a text may be assembled elsewhere than where it is
//! printed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Block, Expr, Ident, Item, Local, Meta, Pat, Token,
    punctuated::Punctuated,
    visit::{self, Visit},
};

/// Functions and methods that print their arguments, or pass them on to one that does.
const SAY: [&str; 28] = [
    "new",
    "hint",
    "or_hint",
    "say",
    "notice",
    "warn",
    "warn_of",
    "translated",
    "Err",
    "map_err",
    "inspect_err",
    "ok_or",
    "ok_or_else",
    "line",
    "tell",
    "section",
    "row",
    "columns",
    "summed",
    "counts",
    "grave",
    "Text",
    "list",
    "now",
    "when_long",
    "joined",
    "named",
    "filled",
];
/// The log levels that a terminal shows in the user's language.
const LOGS: [&str; 2] = ["warn", "error"];
/// Functions whose arguments need a row even if they are a single word.
const LABEL: [&str; 8] = ["line", "tell", "say", "section", "row", "summed", "counts", "translated"];
/// The name that the heading of a table is bound to.
const HEADING: &str = "heading";
/// Functions and closures of which every text is printed.
const SAID: [&str; 13] = [
    "hint",
    "noun",
    "kind",
    "refusal",
    "role",
    "conversations",
    "about",
    "phrase",
    "verdict",
    "flags",
    "survival",
    "situation",
    "found",
];
/// Constants and fields whose text is printed.
const NAMED: [&str; 5] = ["HINT", "FIGURES", "noun", "hint", "reason"];
/// Lists of texts that are printed.
const LISTS: [&str; 5] = ["warnings", "problems", "repairs", "odd", "skipped"];

/// All texts that may be printed, as templates with plain holes.
#[derive(Default)]
pub struct Texts {
    pub all: BTreeSet<String>,
    /// Labels and words of tables.
    pub labels: BTreeSet<String>,
}

pub fn texts(host: &Path) -> Texts {
    let mut paths = vec![];
    for entry in std::fs::read_dir(host).expect("a folder") {
        walk(&entry.expect("a crate").path().join("src"), &mut paths);
    }
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a source");
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let files: Vec<_> = paths.iter().map(|path| (path, read(path))).collect();
    let product = || files.iter().filter(|(_, file)| !only_for_tests(&file.attrs));
    let mut errors = Errors::default();
    product().for_each(|(_, file)| errors.visit_file(file));
    let mut texts = Texts::default();
    for (_, file) in product() {
        let mut names = Names::default();
        names.visit_file(file);
        let mut said = Said { errors: &errors.0, names: &names, followed: BTreeSet::new(), texts: &mut texts };
        Places(&mut said).visit_file(file);
    }
    texts
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        match path.file_name().and_then(|name| name.to_str()) {
            Some("tests" | "tests.rs" | "sources.rs") | None => {}
            Some(_) if path.is_dir() => walk(&path, files),
            Some(name) if name.ends_with(".rs") => files.push(path),
            Some(_) => {}
        }
    }
}

/// The types and variants whose `Display` is derived.
#[derive(Default)]
struct Errors(BTreeSet<String>);

impl<'s> Visit<'s> for Errors {
    fn visit_item_enum(&mut self, item: &'s syn::ItemEnum) {
        for variant in item.variants.iter().filter(|variant| is_error(&variant.attrs)) {
            self.0.insert(format!("{}::{}", item.ident, variant.ident));
            self.0.insert(format!("Self::{}", variant.ident));
        }
    }

    fn visit_item_struct(&mut self, item: &'s syn::ItemStruct) {
        if is_error(&item.attrs) {
            self.0.insert(item.ident.to_string());
        }
    }
}

/// What names stand for within a file.
#[derive(Default)]
struct Names<'s> {
    bound: BTreeMap<String, Vec<&'s Expr>>,
    /// The arguments that functions are called with.
    called: BTreeMap<String, Vec<Vec<&'s Expr>>>,
    /// Arguments, by the functions that take them and their positions.
    taken: BTreeMap<String, BTreeSet<(String, usize)>>,
    /// Functions that return a text.
    bodies: BTreeMap<String, Vec<&'s Block>>,
}

impl<'s> Names<'s> {
    fn bind(&mut self, name: &impl ToString, expression: &'s Expr) {
        self.bound.entry(name.to_string()).or_default().push(expression);
    }

    /// Binds every name in a pattern.
    fn bind_all(&mut self, pattern: &'s Pat, expression: &'s Expr) {
        let mut found = Named::default();
        found.visit_pat(pattern);
        found.0.iter().for_each(|name| self.bind(name, expression));
    }

    fn takes<'p>(&mut self, function: &str, arguments: impl Iterator<Item = &'p Pat>) {
        for (at, argument) in arguments.enumerate() {
            let taken = self.taken.entry(name(argument).unwrap_or_default()).or_default();
            taken.insert((function.to_owned(), at));
        }
    }

    fn function(&mut self, signature: &'s syn::Signature, block: &'s Block) {
        let function = signature.ident.to_string();
        let arguments = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(input) => Some(&*input.pat),
            syn::FnArg::Receiver(_) => None,
        });
        self.takes(&function, arguments);
        if returns_a_text(&signature.output) {
            self.bodies.entry(function).or_default().push(block);
        }
    }
}

impl<'s> Visit<'s> for Names<'s> {
    fn visit_item(&mut self, item: &'s Item) {
        if !only_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_local(&mut self, local: &'s Local) {
        if let Some(init) = &local.init {
            if let (Some(name), Expr::Closure(closure)) = (name(&local.pat), &*init.expr) {
                self.takes(&name, closure.inputs.iter());
            }
            self.bind_all(&local.pat, &init.expr);
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_match(&mut self, matched: &'s syn::ExprMatch) {
        matched.arms.iter().for_each(|arm| self.bind_all(&arm.pat, &matched.expr));
        visit::visit_expr_match(self, matched);
    }

    fn visit_expr_let(&mut self, matched: &'s syn::ExprLet) {
        self.bind_all(&matched.pat, &matched.expr);
        visit::visit_expr_let(self, matched);
    }

    fn visit_expr_for_loop(&mut self, each: &'s syn::ExprForLoop) {
        self.bind_all(&each.pat, &each.expr);
        visit::visit_expr_for_loop(self, each);
    }

    fn visit_item_const(&mut self, item: &'s syn::ItemConst) {
        self.bind(&item.ident, &item.expr);
    }

    fn visit_impl_item_const(&mut self, item: &'s syn::ImplItemConst) {
        self.bind(&item.ident, &item.expr);
    }

    fn visit_item_fn(&mut self, item: &'s syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'s syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_expr_call(&mut self, call: &'s syn::ExprCall) {
        if let Some(function) = called(&call.func) {
            self.called.entry(function).or_default().push(call.args.iter().collect());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'s syn::ExprMethodCall) {
        self.called.entry(call.method.to_string()).or_default().push(call.args.iter().collect());
        visit::visit_expr_method_call(self, call);
    }
}

/// The names in a pattern.
#[derive(Default)]
struct Named(Vec<String>);

impl<'s> Visit<'s> for Named {
    fn visit_pat_ident(&mut self, pattern: &'s syn::PatIdent) {
        self.0.push(pattern.ident.to_string());
    }

    fn visit_field_pat(&mut self, field: &'s syn::FieldPat) {
        self.visit_pat(&field.pat);
    }
}

/// The places in a file where something is printed.
struct Places<'a, 'n>(&'a mut Said<'n>);

impl<'s> Visit<'s> for Places<'_, '_> {
    fn visit_item(&mut self, item: &'s Item) {
        if !only_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_local(&mut self, local: &'s Local) {
        if let (Some(name), Some(init)) = (name(&local.pat), &local.init) {
            if name == HEADING {
                Labels(self.0.texts).visit_expr(&init.expr);
            }
            if SAID.contains(&name.as_str()) && matches!(&*init.expr, Expr::Closure(_)) {
                self.0.visit_expr(&init.expr);
            }
        }
        visit::visit_local(self, local);
    }

    fn visit_attribute(&mut self, attribute: &'s Attribute) {
        if is_error(std::slice::from_ref(attribute))
            && let Meta::List(list) = &attribute.meta
            && let Some(template) = template_of(list)
        {
            self.0.visit_lit_str(&template);
            let arguments = list.parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated);
            arguments.iter().flatten().for_each(|argument| self.0.visit_expr(argument));
        }
    }

    fn visit_item_impl(&mut self, item: &'s syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        if of.is_some_and(|of| of.ident == "Display") {
            item.items.iter().for_each(|item| self.0.visit_impl_item(item));
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_fn(&mut self, item: &'s syn::ItemFn) {
        if is_one_of(&item.sig.ident, &SAID) {
            self.0.visit_block(&item.block);
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'s syn::ImplItemFn) {
        if is_one_of(&item.sig.ident, &SAID) {
            self.0.visit_block(&item.block);
        }
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_const(&mut self, item: &'s syn::ItemConst) {
        if is_one_of(&item.ident, &NAMED) {
            self.0.visit_expr(&item.expr);
        }
    }

    fn visit_impl_item_const(&mut self, item: &'s syn::ImplItemConst) {
        if is_one_of(&item.ident, &NAMED) {
            self.0.visit_expr(&item.expr);
        }
    }

    fn visit_expr_call(&mut self, call: &'s syn::ExprCall) {
        let says = |path: &syn::ExprPath| match &last_two(&path.path)[..] {
            [.., kind, new] if new == "new" => ["Failure", "ModelError"].contains(&kind.as_str()),
            names => {
                names.last().is_some_and(|name| SAY.contains(&name.as_str()))
                    || self.0.errors.contains(&names.join("::"))
            }
        };
        if matches!(&*call.func, Expr::Path(path) if says(path)) {
            call.args.iter().for_each(|argument| self.0.visit_expr(argument));
        }
        if called(&call.func).is_some_and(|name| LABEL.contains(&name.as_str())) {
            call.args.iter().for_each(|argument| Labels(self.0.texts).visit_expr(argument));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_struct(&mut self, made: &'s syn::ExprStruct) {
        let names = last_two(&made.path);
        let is_said = names.last().is_some_and(|name| name == "Problem") || self.0.errors.contains(&names.join("::"));
        for field in &made.fields {
            if is_said || matches!(&field.member, syn::Member::Named(name) if is_one_of(name, &NAMED)) {
                self.0.visit_expr(&field.expr);
            }
        }
        visit::visit_expr_struct(self, made);
    }

    fn visit_expr_method_call(&mut self, call: &'s syn::ExprMethodCall) {
        if is_one_of(&call.method, &LABEL) {
            call.args.iter().for_each(|argument| Labels(self.0.texts).visit_expr(argument));
        }
        let onto_a_list = || matches!(&*call.receiver, Expr::Path(name) if name.path.get_ident().is_some_and(|name| is_one_of(name, &LISTS)));
        if is_one_of(&call.method, &SAY) || (call.method == "push" && onto_a_list()) {
            call.args.iter().for_each(|argument| self.0.visit_expr(argument));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, called: &'s syn::Macro) {
        // Its fields are not expressions.
        if let Some(template) = logged(called) {
            // The hint is on a line below.
            for line in template.value().lines() {
                let line = line.trim_start();
                let line = line.strip_prefix("hint: ").unwrap_or(line);
                self.0.visit_lit_str(&syn::LitStr::new(line, template.span()));
            }
        }
        arguments(called).iter().for_each(|argument| self.visit_expr(argument));
    }
}

/// The text that a logging macro shows at a terminal: the one that is not the value of a field.
fn logged(called: &syn::Macro) -> Option<syn::LitStr> {
    let names = last_two(&called.path);
    if !names.last().is_some_and(|name| LOGS.contains(&name.as_str())) || names.first().is_none_or(|of| of != "tracing")
    {
        return None;
    }
    let tokens: Vec<String> = called.tokens.clone().into_iter().map(|token| token.to_string()).collect();
    let is_held = |at: usize| at > 0 && tokens[at - 1] != ",";
    (0..tokens.len()).filter(|at| !is_held(*at)).find_map(|at| syn::parse_str(&tokens[at]).ok())
}

/// Words that are printed as they are.
struct Labels<'a>(&'a mut Texts);

impl<'s> Visit<'s> for Labels<'_> {
    fn visit_lit_str(&mut self, literal: &'s syn::LitStr) {
        self.0.labels.insert(template(&literal.value()).0);
    }

    fn visit_expr_call(&mut self, _: &'s syn::ExprCall) {}

    fn visit_expr_method_call(&mut self, call: &'s syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
    }
}

/// Collects printed texts.
struct Said<'n> {
    errors: &'n BTreeSet<String>,
    names: &'n Names<'n>,
    followed: BTreeSet<String>,
    texts: &'n mut Texts,
}

impl Said<'_> {
    /// Follows a name to what it stands for.
    fn follow(&mut self, name: &str) {
        if !self.followed.insert(name.to_owned()) {
            return;
        }
        let names = self.names;
        names.bound.get(name).into_iter().flatten().for_each(|expression| self.visit_expr(expression));
        for (function, at) in names.taken.get(name).into_iter().flatten() {
            let given = names.called.get(function).into_iter().flatten().filter_map(|given| given.get(*at));
            given.for_each(|given| self.visit_expr(given));
        }
    }

    /// Follows a call into a function.
    fn enter(&mut self, function: &str) {
        let names = self.names;
        if self.followed.insert(format!("{function}()")) {
            names.bodies.get(function).into_iter().flatten().for_each(|body| self.visit_block(body));
        }
    }
}

impl<'s> Visit<'s> for Said<'_> {
    fn visit_lit_str(&mut self, literal: &'s syn::LitStr) {
        let (text, captured) = template(&literal.value());
        self.texts.all.insert(text);
        captured.iter().for_each(|name| self.follow(name));
    }

    fn visit_expr_path(&mut self, path: &'s syn::ExprPath) {
        last_two(&path.path).last().into_iter().for_each(|name| self.follow(name));
    }

    fn visit_expr_call(&mut self, call: &'s syn::ExprCall) {
        called(&call.func).into_iter().for_each(|function| self.enter(&function));
        call.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_expr_method_call(&mut self, call: &'s syn::ExprMethodCall) {
        self.enter(&call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, called: &'s syn::Macro) {
        if !called.path.is_ident("matches") {
            arguments(called).iter().for_each(|argument| self.visit_expr(argument));
        }
    }
}

/// Returns a format string with plain holes, and the names that it captures. Two adjacent holes become one.
pub fn template(text: &str) -> (String, Vec<String>) {
    let (mut plain, mut captured, mut rest) = (String::new(), vec![], text);
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            plain.push_str(&rest[..2]);
            rest = &rest[2..];
        } else if let Some((hole, after)) = rest[1..].split_once('}') {
            captured.extend(hole.split(':').next().map(str::to_owned));
            if !plain.ends_with("{}") {
                plain.push_str("{}");
            }
            rest = after;
        } else {
            break;
        }
    }
    (plain + rest, captured)
}

fn arguments(called: &syn::Macro) -> Vec<Expr> {
    let arguments = called.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
    arguments.map(|arguments| arguments.into_iter().collect()).unwrap_or_default()
}

fn called(function: &Expr) -> Option<String> {
    match function {
        Expr::Path(path) => last_two(&path.path).pop(),
        _ => None,
    }
}

fn last_two(path: &syn::Path) -> Vec<String> {
    let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    names[names.len().saturating_sub(2)..].to_vec()
}

fn name(pattern: &Pat) -> Option<String> {
    match pattern {
        Pat::Ident(pattern) => Some(pattern.ident.to_string()),
        Pat::Type(pattern) => name(&pattern.pat),
        _ => None,
    }
}

/// Whether a function returns a text, or something that contains one.
fn returns_a_text(output: &syn::ReturnType) -> bool {
    struct Texts(bool);
    impl<'s> Visit<'s> for Texts {
        fn visit_ident(&mut self, name: &'s Ident) {
            self.0 |= is_one_of(name, &["str", "String", "Cow", "Failure"]);
        }
    }
    let mut texts = Texts(false);
    texts.visit_return_type(output);
    texts.0
}

fn is_one_of(name: &Ident, names: &[&str]) -> bool {
    names.iter().any(|one| name == one)
}

/// Returns the template of an error. Its arguments need not be expressions: `.0` is none.
fn template_of(list: &syn::MetaList) -> Option<syn::LitStr> {
    let first = list.tokens.clone().into_iter().next()?;
    syn::parse_str(&first.to_string()).ok()
}

fn is_error(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("error"))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        _ => &[],
    }
}

fn only_for_tests(attributes: &[Attribute]) -> bool {
    let test = |attribute: &Attribute| attribute.parse_args::<Ident>().is_ok_and(|condition| condition == "test");
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && test(attribute))
}
