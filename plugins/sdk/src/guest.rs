//! Connects the exports of the contract to a policy's traits.

mod memory;

use std::{panic, sync::Once};

use crate::{
    bindings::{Budget, CapVerdict, Description, Incoming, Overflow, Plan, Recovery, Summary, Transcript, log},
    codes::level,
    policy::{Cap, Policy, Prune, Recover, Summarize},
};

/// The bindings of one export, and the trait of this crate behind it.
macro_rules! export {
    (
        $module:ident, $world:literal, $interface:literal,
        $trait:ident::$function:ident($($name:ident: $type:ident),+)
    ) => {
        #[doc(hidden)]
        pub mod $module {
            wit_bindgen::generate!({
                path: ["../../wit", "wit"],
                world: $world,
                with: {
                    "pmk:policy/context@1.2.0": crate::bindings::imports::pmk::policy::context,
                    $interface: generate,
                },
                pub_export_macro: true,
            });
        }

        impl<P: $trait> $module::exports::pmk::policy::$module::Guest for P {
            fn $function($($name: &$type),+) {
                report_panics();
                <P as $trait>::$function($($name),+);
            }
        }
    };
}

export!(describe, "pmk:sdk/describe", "pmk:policy/describe@1.2.0",
    Policy::describe(description: Description));
export!(cap, "pmk:sdk/cap", "pmk:policy/cap@1.2.0",
    Cap::cap(incoming: Incoming, verdict: CapVerdict));
export!(prune, "pmk:sdk/prune", "pmk:policy/prune@1.2.0",
    Prune::prune(transcript: Transcript, budget: Budget, plan: Plan));
export!(summarize, "pmk:sdk/summarize", "pmk:policy/summarize@1.2.0",
    Summarize::summarize(transcript: Transcript, summary: Summary));
export!(recover, "pmk:sdk/recover", "pmk:policy/recover@1.2.0",
    Recover::recover(overflow: Overflow, recovery: Recovery));

/// Sends the message of a panic to the host's log. Without WASI a component has no standard error, and otherwise the
/// operator would see only `unreachable`.
fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(|info| log(level::ERROR, &info.to_string()))));
}
