//! The macro that turns a type into a component.

/// Exports a policy: `export!(MyPolicy: cap, prune, summarize, recover)`, with any of the four, or none.
///
/// On wasm this generates the component's exports, including the self-description. On other targets it only checks that
/// the type implements the traits, so that the crate can be tested natively. Use it once per crate.
#[macro_export]
macro_rules! export {
    ($policy:ident $(: $($decision:ident),+ $(,)?)?) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            $crate::guest::describe::export!($policy with_types_in $crate::guest::describe);
            $($($crate::guest::$decision::export!($policy with_types_in $crate::guest::$decision);)+)?
        };
        #[cfg(not(target_family = "wasm"))]
        const _: () = {
            $crate::__implements!($policy, describe);
            $($($crate::__implements!($policy, $decision);)+)?
        };
    };
}

/// Fails to compile when a policy does not implement the trait behind a decision.
#[doc(hidden)]
#[macro_export]
macro_rules! __implements {
    ($policy:ident, describe) => {
        const _: fn(&$crate::Description) = <$policy as $crate::Policy>::describe;
    };
    ($policy:ident, cap) => {
        const _: fn(&$crate::Incoming, &$crate::CapVerdict) = <$policy as $crate::Cap>::cap;
    };
    ($policy:ident, prune) => {
        const _: fn(&$crate::Transcript, &$crate::Budget, &$crate::Plan) = <$policy as $crate::Prune>::prune;
    };
    ($policy:ident, summarize) => {
        const _: fn(&$crate::Transcript, &$crate::Summary) = <$policy as $crate::Summarize>::summarize;
    };
    ($policy:ident, recover) => {
        const _: fn(&$crate::Overflow, &$crate::Recovery) = <$policy as $crate::Recover>::recover;
    };
}
