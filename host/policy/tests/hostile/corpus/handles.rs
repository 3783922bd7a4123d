//! Handles that the component may not use.

use super::{Attack, forever, pruning};
use crate::component::Component;

const GROUP: &str = "Handles";

pub fn attacks() -> Vec<Attack> {
    let mut attacks = pruning(
        GROUP,
        &[
            ("the handle 0", "(call $clear (i32.const 0))"),
            ("a guessed handle", "(call $clear (i32.const 77))"),
            ("the largest handle", "(call $clear (i32.const -1))"),
            ("the handle of another resource", "(call $clear (local.get $transcript))"),
            ("a handle is given back twice", "(call $drop-plan (local.get $plan))"),
            ("a handle is given back as another resource", "(call $drop-plan (local.get $budget))"),
            (
                "a handle is used after it was given back",
                "(call $drop-plan (local.get $plan)) (call $clear (local.get $plan))",
            ),
            ("a handle it never had is given back", "(call $drop-plan (i32.const 12345))"),
            ("asks a resource of another decision", "(drop (call $incoming-tokens (local.get $transcript)))"),
            ("opens standard error for ever", &forever("(drop (call $get-stderr))")),
        ],
    );
    let kept = Component::pruning("(call $clear (global.get $kept))")
        .items("(global $kept (mut i32) (i32.const 0))")
        .describing("(global.set $kept (local.get $description))");
    attacks.extend([
        Attack::new(GROUP, "handles are not given back", &Component::pruning("").keeping_handles()),
        Attack::new(GROUP, "a handle of an earlier call", &kept),
    ]);
    attacks
}
