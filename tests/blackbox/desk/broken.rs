//! Components that no gateway should run, in a few instructions each.

/// Each with its name.
pub fn broken() -> Vec<(&'static str, Vec<u8>)> {
    let removes = r#"(call $remove (local.get 2) (i32.const 0) (i32.const 1))"#;
    let traps = r#"(call $log (i32.const 1) (i32.const 64) (i32.const 12))
        (call $_ZN6policy5inner17h0123456789abcdefE)"#;
    [("tears", removes), ("panics", traps)].map(|(name, body)| (name, component(body))).into()
}

/// A component that prunes with this body, its handles in locals 0 to 2.
fn component(body: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
        (import "pmk:policy/context@1.0.0" (instance $context
            (export "description" (type $description (sub resource)))
            (export "transcript" (type $transcript (sub resource)))
            (export "budget" (type $budget (sub resource)))
            (export "plan" (type $plan (sub resource)))
            (export "[method]description.name" (func (param "self" (borrow $description)) (param "name" string)))
            (export "[method]plan.remove" (func (param "self" (borrow $plan)) (param "start" u32) (param "end" u32)))))
        (import "pmk:policy/host@1.0.0" (instance $host
            (export "log" (func (param "level" u8) (param "message" string)))))
        (alias export $context "description" (type $description))
        (alias export $context "transcript" (type $transcript))
        (alias export $context "budget" (type $budget))
        (alias export $context "plan" (type $plan))
        (core module $memory (memory (export "memory") 1) (data (i32.const 0) "test") (data (i32.const 64) "no such turn"))
        (core instance $memory (instantiate $memory))
        (alias core export $memory "memory" (core memory $bytes))
        (core func $name (canon lower (func $context "[method]description.name") (memory $bytes)))
        (core func $remove (canon lower (func $context "[method]plan.remove")))
        (core func $log (canon lower (func $host "log") (memory $bytes)))
        (core func $drop-description (canon resource.drop $description))
        (core func $drop-transcript (canon resource.drop $transcript))
        (core func $drop-budget (canon resource.drop $budget))
        (core func $drop-plan (canon resource.drop $plan))
        (core module $policy
            (import "host" "name" (func $name (param i32 i32 i32)))
            (import "host" "remove" (func $remove (param i32 i32 i32)))
            (import "host" "log" (func $log (param i32 i32 i32)))
            (import "host" "drop-description" (func $drop-description (param i32)))
            (import "host" "drop-transcript" (func $drop-transcript (param i32)))
            (import "host" "drop-budget" (func $drop-budget (param i32)))
            (import "host" "drop-plan" (func $drop-plan (param i32)))
            (func $_ZN6policy5inner17h0123456789abcdefE unreachable)
            (func (export "describe") (param i32)
                (call $name (local.get 0) (i32.const 0) (i32.const 4))
                (call $drop-description (local.get 0)))
            (func (export "prune") (param i32 i32 i32)
                {body}
                (call $drop-transcript (local.get 0))
                (call $drop-budget (local.get 1))
                (call $drop-plan (local.get 2))))
        (core instance $policy (instantiate $policy (with "host" (instance
            (export "name" (func $name)) (export "remove" (func $remove)) (export "log" (func $log))
            (export "drop-description" (func $drop-description)) (export "drop-transcript" (func $drop-transcript))
            (export "drop-budget" (func $drop-budget)) (export "drop-plan" (func $drop-plan))))))
        (func $describe (param "description" (borrow $description)) (canon lift (core func $policy "describe")))
        (func $prune (param "transcript" (borrow $transcript)) (param "budget" (borrow $budget)) (param "plan" (borrow $plan))
            (canon lift (core func $policy "prune")))
        (component $describer
            (import "import-description" (type $description (sub resource)))
            (import "import-func" (func $f (param "description" (borrow $description))))
            (export $d "description" (type $description))
            (export "describe" (func $f) (func (param "description" (borrow $d)))))
        (component $pruner
            (import "import-transcript" (type $transcript (sub resource)))
            (import "import-budget" (type $budget (sub resource)))
            (import "import-plan" (type $plan (sub resource)))
            (import "import-func" (func $f (param "transcript" (borrow $transcript)) (param "budget" (borrow $budget)) (param "plan" (borrow $plan))))
            (export $t "transcript" (type $transcript))
            (export $b "budget" (type $budget))
            (export $p "plan" (type $plan))
            (export "prune" (func $f) (func (param "transcript" (borrow $t)) (param "budget" (borrow $b)) (param "plan" (borrow $p)))))
        (instance $describer (instantiate $describer
            (with "import-description" (type $description)) (with "import-func" (func $describe))))
        (instance $pruner (instantiate $pruner
            (with "import-transcript" (type $transcript)) (with "import-budget" (type $budget))
            (with "import-plan" (type $plan)) (with "import-func" (func $prune))))
        (export "pmk:policy/describe@1.0.0" (instance $describer))
        (export "pmk:policy/prune@1.0.0" (instance $pruner)))"#
    );
    wat::parse_str(text).expect("a component")
}
