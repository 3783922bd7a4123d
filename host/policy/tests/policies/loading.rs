//! Errors when loading a file, and the self-description of a valid component.

use std::fs;

use pmk_policy::{CacheStats, Compiler, LoadError, Policy, Runtime, RuntimeConfig, SettingKind};

use crate::{
    component::{Component, DATA},
    good, layer, prune, runtime, runtime_with, small_limits,
};

fn refused(bytes: &[u8]) -> LoadError {
    Policy::from_bytes(&runtime(), "p.wasm", bytes).expect_err("a refusal")
}

/// A component that consists of the given items only.
fn component(items: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {items})")).unwrap()
}

#[test]
fn files_that_are_no_component_are_named() {
    let home = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let path = home.path().join("p.wasm");
    let load = || Policy::load(&runtime, &path).expect_err("a refusal");
    assert!(matches!(load(), LoadError::Missing { .. }));
    for (content, message) in [
        (&b""[..], "is empty"),
        (b"\0as", "is not a valid component: it ends within the header"),
        (b"\0asm\x0d", "is not a valid component"),
        (b"#!/bin/sh\n", "is not WebAssembly"),
        (b"(component)", "is not WebAssembly"),
        (b"\0asm\x01\0\0\0", "is a core WebAssembly module, not a component"),
        (b"\0asm\x0d\0\x01\0\xff\xff\xff", "is not a valid component"),
    ] {
        fs::write(&path, content).unwrap();
        let error = load();
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    fs::File::create(&path).unwrap().set_len((64 << 20) + 1).unwrap();
    assert!(matches!(load(), LoadError::TooLarge { .. }));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(load(), LoadError::Directory { .. }));
}

/// Regression: the hint was to wrap it with `wasm-tools`, which refuses such a module.
#[test]
fn a_module_of_wasi_0_1_was_to_be_wrapped_which_cannot_be_done() {
    let hint = |import: &str| {
        let module = format!("(module (import \"{import}\" \"environ_get\" (func (param i32 i32) (result i32))))");
        refused(&wat::parse_str(module).unwrap()).hint().unwrap()
    };
    let hints = [hint("wasi_snapshot_preview1"), hint("pmk:policy/context@1.0.0")];
    assert!(hints[0].contains("for wasm32-wasip2") && !hints[0].contains("wasm-tools"), "{}", hints[0]);
    assert!(hints[1].contains("`wasm-tools component new p.wasm"), "{}", hints[1]);
}

#[test]
fn a_component_cut_short_is_refused() {
    let whole = good().build();
    for length in [9, whole.len() / 4, whole.len() / 2, whole.len() - 1] {
        let error = refused(&whole[..length]);
        assert!(!error.to_string().contains('\n'), "{error}");
        assert!(matches!(error, LoadError::Invalid { .. }), "{length}: {error}");
    }
}

#[test]
fn another_version_of_the_contract_says_both() {
    let error = refused(&good().version("2.0.0").build());
    let offers = pmk_policy::contract::VERSION;
    let expected = format!("policy `p.wasm` requires `pmk:policy/context@2.0.0`, this host offers {offers}");
    assert_eq!(error.to_string(), expected);
    assert!(matches!(refused(&good().version("0.9.0").build()), LoadError::OtherVersion { .. }));
    assert!(matches!(refused(&good().version("1.1.0-rc.1").build()), LoadError::OtherVersion { .. }));
}

#[test]
fn a_later_minor_runs_when_it_uses_nothing_new() {
    let runtime = runtime();
    let later = layer(&runtime, &good().version("1.4.0"));
    assert!(later.policy.exports().prune);
    let stack = pmk_policy::Stack::new([], later);
    assert_eq!(prune(&stack).applied.removed, [0, 1]);
}

#[test]
fn a_later_minor_that_uses_something_new_is_refused() {
    let error = refused(&component(
        r#"(import "pmk:policy/host@1.9.0" (instance (export "recall" (func))))
           (instance $i) (export "pmk:policy/describe@1.9.0" (instance $i))"#,
    ));
    assert!(error.to_string().contains("has no function `describe`"), "{error}");
    let bytes = good().items("(;;)").build();
    assert!(Policy::from_bytes(&runtime(), "p.wasm", &bytes).is_ok());
    let with_describe = component(
        r#"(import "pmk:policy/host@1.9.0" (instance $host (export "recall" (func))))
           (core module $m (func (export "f")))
           (core instance $m (instantiate $m))
           (func $f (canon lift (core func $m "f")))
           (instance $i (export "describe" (func $f)))
           (export "pmk:policy/describe@1.9.0" (instance $i))"#,
    );
    let error = refused(&with_describe);
    assert!(error.to_string().contains("requires `pmk:policy/host@1.9.0`, this host offers"), "{error}");
    assert!(error.to_string().ends_with("which has no such `recall`"), "{error}");
    assert!(error.hint().unwrap().contains("offers the other version"), "{error}");
}

#[test]
fn foreign_imports_are_refused_by_name() {
    for import in ["acme:filter/words@1.0.0", "wasi:http/types@0.2.3", "wasi:cli/environment@0.3.0"] {
        let error = refused(&component(&format!(
            r#"(import "{import}" (instance)) (instance $i) (export "pmk:policy/describe@1.0.0" (instance $i))"#
        )));
        assert!(matches!(&error, LoadError::ForeignImport { import: named, .. } if named == import), "{error}");
    }
}

#[test]
fn exports_must_be_ours_and_describe_among_them() {
    let error = refused(&component(""));
    assert_eq!(error.to_string(), "policy `p.wasm` exports nothing of `pmk:policy`: it has no exports");
    let error = refused(&component(r#"(instance $i) (export "wasi:cli/run@0.2.3" (instance $i))"#));
    assert!(error.to_string().ends_with("found `wasi:cli/run@0.2.3`"), "{error}");
    let error = refused(&good().undescribed().build());
    let expected = format!("policy `p.wasm` does not export `{}`", pmk_policy::contract::interface("describe"));
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_export_of_another_type_is_refused() {
    let error = refused(&component(
        r#"(core module $m (func (export "f")))
           (core instance $m (instantiate $m))
           (func $f (canon lift (core func $m "f")))
           (instance $i (export "describe" (func $f)))
           (export "pmk:policy/describe@1.0.0" (instance $i))"#,
    ));
    assert!(matches!(&error, LoadError::WrongExport { export, .. } if export.contains("describe")), "{error}");
}

#[test]
fn descriptions_are_checked() {
    let declare = |default: i64, min: i64, max: i64| {
        format!(
            "(call $declare-integer (local.get $description) (i32.const 0) (i32.const 4) (i64.const {default}) \
             (i64.const {min}) (i64.const {max}) (i32.const 8) (i32.const 3))"
        )
    };
    let twice = Component::new().describing(&format!("{} {}", declare(1, 0, 2), declare(1, 0, 2)));
    assert_eq!(
        refused(&twice.build()).to_string(),
        "policy `p.wasm` has an invalid description: setting `test` is declared twice"
    );
    let outside = Component::new().describing(&declare(3, 0, 2));
    assert!(refused(&outside.build()).to_string().contains("a default of 3 outside 0 to 2"));
    let nameless = Component::new().export("describe", "");
    assert!(refused(&nameless.build()).to_string().ends_with("it has no name"));
    let misnamed = Component::new()
        .data("No Name")
        .describing(&format!("(call $name (local.get $description) (i32.const {DATA}) (i32.const 7))"));
    assert!(refused(&misnamed.build()).to_string().contains("`No Name` is not 1 to 64 characters of"));
}

#[test]
fn a_policy_that_fails_to_describe_itself_says_how() {
    let error = refused(&Component::new().export("describe", "unreachable").build());
    assert!(matches!(error, LoadError::Describe { .. }));
    assert!(error.to_string().contains("could not describe itself: it trapped: "), "{error}");
    let error = refused(&good().items("(func $spin (loop $l (br $l))) (start $spin)").build());
    assert!(error.to_string().contains("used up its 20000000 units of fuel"), "{error}");
    let error = refused(&good().pages(200).build());
    assert!(error.to_string().contains("asked for 13107200 bytes of memory, but only 8388608 are allowed"), "{error}");
    assert!(error.hint().unwrap().contains("memory"));
}

#[test]
fn a_good_policy_says_what_it_is() {
    let component = good().export("cap", "").describing(
        "(call $declare-integer (local.get $description) (i32.const 0) (i32.const 4) (i64.const 7) (i64.const 1) \
         (i64.const 9) (i32.const 8) (i32.const 3))",
    );
    let bytes = component.build();
    let policy = Policy::from_bytes(&runtime(), "p.wasm", &bytes).unwrap();
    assert_eq!(policy.name(), "test");
    assert_eq!(policy.identity().version, "1.0");
    assert_eq!(policy.identity().sha256.len(), 64);
    assert_eq!(policy.size_bytes(), bytes.len() as u64);
    let exports = policy.exports();
    assert!(exports.cap && exports.prune && !exports.summarize && !exports.recover);
    assert_eq!(policy.imports(), ["pmk:policy/context@1.0.0"]);
    let setting = policy.description().setting("test").unwrap();
    assert_eq!(setting.kind, SettingKind::Integer { default: 7, min: 1, max: 9 });
    assert_eq!(setting.help, "1.0");
}

#[test]
fn a_second_runtime_finds_the_compiled_code() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("cache");
    let bytes = good().build();
    let stats = || {
        let runtime = Runtime::new(RuntimeConfig {
            compiler: Compiler::Here,
            cache_dir: Some(dir.clone()),
            limits: small_limits(),
        })
        .unwrap();
        assert!(runtime.warnings().is_empty(), "{:?}", runtime.warnings());
        Policy::from_bytes(&runtime, "p.wasm", &bytes).unwrap();
        runtime.cache_stats().unwrap()
    };
    assert_eq!(stats(), CacheStats { hits: 0, misses: 1 });
    assert_eq!(stats(), CacheStats { hits: 1, misses: 0 });
}

#[test]
fn a_cache_that_cannot_be_used_is_a_warning() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("cache");
    fs::write(&file, "in the way").unwrap();
    let runtime =
        Runtime::new(RuntimeConfig { compiler: Compiler::Here, cache_dir: Some(file.clone()), limits: small_limits() })
            .unwrap();
    assert!(runtime.warnings()[0].contains(&file.display().to_string()), "{:?}", runtime.warnings());
    assert_eq!(runtime.cache_stats(), None);
    assert!(Policy::from_bytes(&runtime, "p.wasm", &good().build()).is_ok());
}

/// Regression: the engine had no room for more than 100,000, whatever was allowed.
#[test]
fn tables_above_the_default_were_refused_although_they_were_allowed() {
    let mut limits = small_limits();
    limits.table_elements = 200_000;
    limits.compile.structure.table_elements = 200_000;
    let runtime = runtime_with(limits);
    let body = "(if (i32.eq (table.grow (ref.null func) (i32.const 40000)) (i32.const -1)) (then unreachable))
        (call $remove (local.get $plan) (i32.const 0) (i32.const 2))";
    let large = layer(&runtime, &Component::pruning(body).items("(table 150000 funcref)"));
    let decision = prune(&pmk_policy::Stack::new([], large));
    assert_eq!(decision.records[0].outcome, pmk_policy::Outcome::Accepted);
}

/// Regression: the engine had room for 1 MiB, a third of what so many functions take as are allowed, and the hint was
/// to link the policy into one module.
#[test]
fn what_an_instance_consists_of_was_too_much_far_below_the_limits() {
    let globals = "(global i64 (i64.const 0))".repeat(70_000);
    let with = |instances| {
        let more = "(core instance (instantiate $large))".repeat(instances);
        good().outside(&format!("(core module $large {globals}) {more}"))
    };
    let decision = prune(&pmk_policy::Stack::new([], layer(&runtime(), &with(1))));
    assert_eq!(decision.records[0].outcome, pmk_policy::Outcome::Accepted);
    let hint = refused(&with(10).build()).hint().unwrap();
    assert!(hint.starts_with("the policy has more functions, imports and globals than"), "{hint}");
}

#[test]
fn the_default_limits_are_enough_for_an_interpreter() {
    let large = good().pages(1_000);
    assert!(Policy::from_bytes(&runtime_with(pmk_policy::Limits::default()), "p.wasm", &large.build()).is_ok());
}
