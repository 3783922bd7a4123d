//! Policies written by hand, for what no shipped policy does.

use std::fmt::Write as _;

/// A policy that only prunes.
pub struct Handmade {
    pub name: &'static str,
    /// The body of `prune`; finds `$transcript`, `$budget` and `$plan`, and may call `$text`.
    pub prune: &'static str,
    /// Whether it imports a clock.
    pub wasi: bool,
}

impl Handmade {
    /// One that traps whenever it is asked.
    pub const BROKEN: Handmade = Handmade { name: "broken", prune: "unreachable", wasi: false };

    /// The component.
    pub fn build(&self) -> Vec<u8> {
        let Handmade { name, prune, wasi } = self;
        let mut text = String::from("(component\n");
        if *wasi {
            text.push_str(
                r#"(import "wasi:clocks/monotonic-clock@0.2.0" (instance (export "now" (func (result u64)))))"#,
            );
        }
        text.push_str(
            r#"(import "pmk:policy/context@1.0.0" (instance $context
                (export "description" (type $description (sub resource)))
                (export "transcript" (type $transcript (sub resource)))
                (export "budget" (type (sub resource)))
                (export "plan" (type (sub resource)))
                (export "[method]description.name" (func (param "self" (borrow $description)) (param "name" string)))
                (export "[method]description.version"
                    (func (param "self" (borrow $description)) (param "version" string)))
                (export "[method]transcript.text"
                    (func (param "self" (borrow $transcript)) (param "index" u32) (param "start" u32) (param "max" u32)
                        (result string)))))"#,
        );
        for resource in ["description", "transcript", "budget", "plan"] {
            let _ = writeln!(
                text,
                r#"(alias export $context "{resource}" (type ${resource}))
                (core func $drop-{resource} (canon resource.drop ${resource}))"#
            );
        }
        let length = name.len();
        let _ = write!(
            text,
            r#"(core module $libc
                (memory (export "memory") 8)
                (global $free (mut i32) (i32.const 4096))
                (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                    (global.get $free)
                    (global.set $free (i32.add (global.get $free) (local.get 3))))
                (data (i32.const 0) "1.0.0{name}"))
            (core instance $libc (instantiate $libc))
            (alias core export $libc "memory" (core memory $memory))
            (alias core export $libc "realloc" (core func $realloc))
            (core func $name (canon lower (func $context "[method]description.name") (memory $memory)))
            (core func $version (canon lower (func $context "[method]description.version") (memory $memory)))
            (core func $text (canon lower (func $context "[method]transcript.text") (memory $memory) (realloc $realloc)))
            (core module $policy
                (import "host" "name" (func $name (param i32 i32 i32)))
                (import "host" "version" (func $version (param i32 i32 i32)))
                (import "host" "text" (func $text (param i32 i32 i32 i32 i32)))
                (import "host" "drop-description" (func $drop-description (param i32)))
                (import "host" "drop-transcript" (func $drop-transcript (param i32)))
                (import "host" "drop-budget" (func $drop-budget (param i32)))
                (import "host" "drop-plan" (func $drop-plan (param i32)))
                (func (export "describe") (param $description i32)
                    (call $name (local.get $description) (i32.const 5) (i32.const {length}))
                    (call $version (local.get $description) (i32.const 0) (i32.const 5))
                    (call $drop-description (local.get $description)))
                (func (export "prune") (param $transcript i32) (param $budget i32) (param $plan i32)
                    {prune}
                    (call $drop-transcript (local.get $transcript))
                    (call $drop-budget (local.get $budget))
                    (call $drop-plan (local.get $plan))))
            (core instance $policy (instantiate $policy (with "host" (instance
                (export "name" (func $name))
                (export "version" (func $version))
                (export "text" (func $text))
                (export "drop-description" (func $drop-description))
                (export "drop-transcript" (func $drop-transcript))
                (export "drop-budget" (func $drop-budget))
                (export "drop-plan" (func $drop-plan))))))
            (func $describe (param "description" (borrow $description)) (canon lift (core func $policy "describe")))
            (instance $describe (export "describe" (func $describe)))
            (export "pmk:policy/describe@1.0.0" (instance $describe))
            (func $prune (param "transcript" (borrow $transcript)) (param "budget" (borrow $budget))
                (param "plan" (borrow $plan)) (canon lift (core func $policy "prune")))
            (instance $prune (export "prune" (func $prune)))
            (export "pmk:policy/prune@1.0.0" (instance $prune)))"#
        );
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}
