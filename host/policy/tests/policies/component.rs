//! Components for tests: a few instructions of WebAssembly text; everything around them is generated here.
//!
//! A body calls the contract's functions by the names in [`FUNCTIONS`] and finds the handles of its function in locals
//! (`$transcript`, `$budget`, `$plan` in `prune`, and so on), which are dropped for it.

#![allow(dead_code, reason = "no test binary uses all of it")]

#[path = "functions.rs"]
pub mod functions;

use std::fmt::Write as _;

use self::functions::{FUNCTIONS, Function};

/// The functions that a component may export, and the handles they receive.
const EXPORTS: &[(&str, &[&str])] = &[
    ("describe", &["description"]),
    ("cap", &["incoming", "cap-verdict"]),
    ("prune", &["transcript", "budget", "plan"]),
    ("summarize", &["transcript", "summary"]),
    ("recover", &["overflow", "recovery"]),
];

/// Imports in addition to [`FUNCTIONS`]: their text, and the imported functions that bodies may call, each with its
/// name in bodies, its instance, its name there, and its type in bodies. [`DROP`] has a type in place of the instance.
#[derive(Clone, Copy)]
pub struct Imports {
    pub text: &'static str,
    pub functions: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

/// Builds a component.
#[derive(Clone)]
pub struct Component {
    version: String,
    bodies: Vec<(&'static str, String)>,
    items: String,
    outside: String,
    imports: Vec<Imports>,
    data: String,
    pages: u32,
    realloc: (String, String),
    encoding: &'static str,
    after: Option<String>,
    gives_back: bool,
}

/// The name of what gives back a handle of a type.
pub const DROP: &str = "[resource-drop]";

/// Allocates memory and never frees any.
const REALLOC: &str = "(global.set $free (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.get $free)
    (global.set $free (i32.add (global.get $free) (local.get 3)))";

/// Describes itself as `test` 1.0.
const DESCRIBE: &str = r#"(call $name (local.get $description) (i32.const 0) (i32.const 4))
    (call $version (local.get $description) (i32.const 8) (i32.const 3))"#;

/// The address of a body's data.
pub const DATA: u32 = 64;

impl Component {
    /// A component that describes itself as `test` and makes no decisions.
    pub fn new() -> Self {
        Component {
            version: "1.0.0".into(),
            bodies: vec![("describe", DESCRIBE.into())],
            items: String::new(),
            outside: String::new(),
            imports: vec![],
            data: String::new(),
            pages: 20,
            realloc: (String::new(), REALLOC.into()),
            encoding: "",
            after: None,
            gives_back: true,
        }
    }

    /// A component that prunes.
    pub fn pruning(body: &str) -> Self {
        Component::new().export("prune", body)
    }

    /// Adds an export, or replaces its body.
    pub fn export(mut self, name: &'static str, body: &str) -> Self {
        self.bodies.retain(|(other, _)| *other != name);
        self.bodies.push((name, body.to_owned()));
        self
    }

    /// Removes the self-description.
    pub fn undescribed(mut self) -> Self {
        self.bodies.retain(|(name, _)| *name != "describe");
        self
    }

    /// Adds to the self-description.
    pub fn describing(self, more: &str) -> Self {
        let body = format!("{DESCRIBE} {more}");
        self.export("describe", &body)
    }

    /// Builds it against another version of the contract.
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    /// Adds functions, globals or a start function to the core module.
    pub fn items(mut self, items: &str) -> Self {
        self.items.push_str(items);
        self
    }

    /// Adds items around the core modules.
    pub fn outside(mut self, items: &str) -> Self {
        self.outside.push_str(items);
        self
    }

    /// Adds imports; bodies call the functions that they need.
    pub fn importing(mut self, imports: Imports) -> Self {
        self.imports.push(imports);
        self
    }

    /// Replaces the allocator. `items` are added to the module with the memory.
    pub fn realloc(mut self, items: &str, body: &str) -> Self {
        self.realloc = (items.to_owned(), body.to_owned());
        self
    }

    /// Passes strings to the interface `host` in another encoding, as in `string-encoding=utf16`.
    pub fn encoding(mut self, encoding: &'static str) -> Self {
        self.encoding = encoding;
        self
    }

    /// Runs a body after each export has returned.
    pub fn after(mut self, body: &str) -> Self {
        self.after = Some(body.to_owned());
        self
    }

    /// Makes it keep the handles that it receives.
    pub fn keeping_handles(mut self) -> Self {
        self.gives_back = false;
        self
    }

    /// Puts text into memory at [`DATA`].
    pub fn data(mut self, text: &str) -> Self {
        self.data = text.to_owned();
        self
    }

    /// Sets the initial memory, in pages of 64 KiB.
    pub fn pages(mut self, pages: u32) -> Self {
        self.pages = pages;
        self
    }

    /// Returns the binary.
    pub fn build(&self) -> Vec<u8> {
        let text = self.text();
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn text(&self) -> String {
        let core = self.core_module();
        let used: Vec<&Function> = FUNCTIONS
            .iter()
            .filter(|f| core.contains(&format!("(call {} ", f.alias)) || core.contains(&format!("(call {})", f.alias)))
            .collect();
        let resources: Vec<&str> = [
            "description",
            "transcript",
            "budget",
            "plan",
            "incoming",
            "cap-verdict",
            "overflow",
            "recovery",
            "summary",
        ]
        .to_vec();
        let mut out = String::from("(component\n");
        self.imports(&mut out, &used, &resources);
        let _ = writeln!(
            out,
            r#"(core module $libc
            (memory (export "memory") {})
            (global $free (mut i32) (i32.const 4096))
            {}
            (func $realloc (export "realloc") (param i32 i32 i32 i32) (result i32) {})
            (data (i32.const 0) "test") (data (i32.const 8) "1.0") (data (i32.const {DATA}) "{}"))
            (core instance $libc (instantiate $libc))
            (alias core export $libc "memory" (core memory $memory))
            (alias core export $libc "realloc" (core func $realloc))"#,
            self.pages, self.realloc.0, self.realloc.1, self.data
        );
        let mut given = String::new();
        let mut declared = String::new();
        for f in &used {
            let instance = f.interface.replace('/', "-");
            let encoding = if f.interface == "host" { self.encoding } else { "" };
            let _ = writeln!(
                out,
                r#"(core func {} (canon lower (func ${instance} "{}") (memory $memory) (realloc $realloc) {}))"#,
                f.alias, f.name, encoding
            );
            let _ = writeln!(given, r#"(export "{0}" (func {0}))"#, f.alias);
            let _ = writeln!(declared, r#"(import "host" "{0}" (func {0} {1}))"#, f.alias, f.core);
        }
        for resource in &resources {
            let _ = writeln!(out, "(core func $drop-{resource} (canon resource.drop ${resource}))");
            let _ = writeln!(given, r#"(export "$drop-{resource}" (func $drop-{resource}))"#);
            let _ = writeln!(declared, r#"(import "host" "$drop-{resource}" (func $drop-{resource} (param i32)))"#);
        }
        for (alias, instance, name, core) in self.imports.iter().flat_map(|imports| imports.functions) {
            let canon = match *name {
                DROP => format!("(canon resource.drop {instance})"),
                name => format!(r#"(canon lower (func {instance} "{name}") (memory $memory) (realloc $realloc))"#),
            };
            let _ = writeln!(out, "(core func {alias} {canon})");
            let _ = writeln!(given, r#"(export "{alias}" (func {alias}))"#);
            let _ = writeln!(declared, r#"(import "host" "{alias}" (func {alias} {core}))"#);
        }
        let _ = writeln!(out, r#"(core module $policy {declared} (import "libc" "memory" (memory 1)) {core})"#);
        let _ = writeln!(
            out,
            r#"(core instance $policy (instantiate $policy (with "libc" (instance $libc)) (with "host" (instance {given}))))"#
        );
        for (name, handles) in EXPORTS {
            if !self.bodies.iter().any(|(body, _)| body == name) {
                continue;
            }
            let params: String = handles.iter().map(|h| format!(r#"(param "{h}" (borrow ${h}))"#)).collect();
            let after = if self.after.is_some() { r#"(post-return (core func $policy "after"))"# } else { "" };
            let _ = writeln!(
                out,
                r#"(func ${name} {params} (canon lift (core func $policy "{name}") {after}))
                (instance ${name} (export "{name}" (func ${name})))
                (export "pmk:policy/{name}@{}" (instance ${name}))"#,
                self.version
            );
        }
        out.push_str(&self.outside);
        out.push(')');
        out
    }

    fn imports(&self, out: &mut String, used: &[&Function], resources: &[&str]) {
        let exported = |interface: &str, out: &mut String| {
            for f in used.iter().filter(|f| f.interface == interface) {
                let _ = writeln!(out, r#"(export "{}" (func {}))"#, f.name, f.ty);
            }
        };
        let _ = writeln!(out, r#"(import "pmk:policy/context@{}" (instance $context"#, self.version);
        for resource in resources {
            let _ = writeln!(out, r#"(export "{resource}" (type ${resource} (sub resource)))"#);
        }
        exported("context", out);
        out.push_str("))\n");
        for resource in resources {
            let _ = writeln!(out, r#"(alias export $context "{resource}" (type ${resource}))"#);
        }
        self.imports.iter().for_each(|imports| out.push_str(imports.text));
        let uses = |interface: &str| used.iter().any(|f| f.interface == interface);
        if uses("host") {
            let _ = writeln!(out, r#"(import "pmk:policy/host@{}" (instance $host"#, self.version);
            exported("host", out);
            out.push_str("))\n");
        }
        for interface in ["cli/exit", "clocks/monotonic-clock", "random/random"] {
            if uses(interface) {
                let _ = writeln!(out, r#"(import "wasi:{interface}@0.2.3" (instance ${}"#, interface.replace('/', "-"));
                exported(interface, out);
                out.push_str("))\n");
            }
        }
        if uses("cli/stderr") {
            out.push_str(
                r#"(import "wasi:io/error@0.2.3" (instance $io-error (export "error" (type (sub resource)))))
                (alias export $io-error "error" (type $error))
                (import "wasi:io/streams@0.2.3" (instance $io-streams
                    (export "output-stream" (type $output-stream (sub resource)))
                    (alias outer 1 $error (type $error-here))
                    (export "error" (type $error (eq $error-here)))
                    (type $variant (variant (case "last-operation-failed" (own $error)) (case "closed")))
                    (export "stream-error" (type $stream-error (eq $variant)))"#,
            );
            exported("io/streams", out);
            out.push_str(
                r#"))
                (alias export $io-streams "output-stream" (type $output-stream))
                (import "wasi:cli/stderr@0.2.3" (instance $cli-stderr
                    (alias outer 1 $output-stream (type $stream-here))
                    (export "output-stream" (type $output-stream (eq $stream-here)))"#,
            );
            exported("cli/stderr", out);
            out.push_str("))\n");
        }
    }

    fn core_module(&self) -> String {
        let mut core = self.items.clone();
        for (name, body) in &self.bodies {
            let handles = EXPORTS.iter().find(|(export, _)| export == name).map_or(&[][..], |(_, handles)| handles);
            let params: String = handles.iter().map(|h| format!("(param ${h} i32)")).collect();
            let given: &[&str] = if self.gives_back { handles } else { &[] };
            let drops: String = given.iter().map(|h| format!("(call $drop-{h} (local.get ${h}))")).collect();
            let _ =
                writeln!(core, r#"(func (@name "{name}") (export "{name}") {params} (local $i i32) {body} {drops})"#);
        }
        if let Some(after) = &self.after {
            let _ = writeln!(core, r#"(func $after (export "after") {after})"#);
        }
        core
    }
}
