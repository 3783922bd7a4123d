//! The functions that the bodies of hand-written components may call: the whole contract, and parts of WASI.

/// An imported function: interface, name in the contract, type there, name in bodies, type there.
pub struct Function {
    pub interface: &'static str,
    pub name: &'static str,
    pub ty: &'static str,
    pub alias: &'static str,
    pub core: &'static str,
}

impl Function {
    /// Its name as shown by `policy inspect`.
    pub fn shown(&self) -> &'static str {
        self.name.strip_prefix("[method]").unwrap_or(self.name)
    }

    /// The exported function of a decision in which this function can be called.
    pub fn export(&self) -> &'static str {
        match self.resource() {
            Some("description") => "describe",
            Some("incoming" | "cap-verdict") => "cap",
            Some("overflow" | "recovery") => "recover",
            Some("summary") => "summarize",
            _ => "prune",
        }
    }

    /// A call of it with all arguments zero.
    pub fn call(&self) -> String {
        let params = self.core.split_once("(param ").map_or("", |(_, rest)| rest.split(')').next().unwrap_or(""));
        let zeroes = params.split(' ').filter(|param| !param.is_empty()).map(|param| format!("({param}.const 0)"));
        let handle = self.resource().map(|resource| format!("(local.get ${resource})"));
        let args: Vec<String> = handle.iter().cloned().chain(zeroes.skip(handle.iter().count())).collect();
        let call = format!("(call {} {})", self.alias, args.join(" "));
        if self.core.contains("(result") { format!("(drop {call})") } else { call }
    }

    fn resource(&self) -> Option<&'static str> {
        self.shown().split_once('.').map(|(resource, _)| resource).filter(|_| self.interface == "context")
    }
}

const fn function(
    interface: &'static str,
    name: &'static str,
    ty: &'static str,
    alias: &'static str,
    core: &'static str,
) -> Function {
    Function { interface, name, ty, alias, core }
}

/// The functions that bodies may call. Strings are passed as an offset and a length; lists and strings are returned in
/// the eight bytes at the offset passed last.
#[rustfmt::skip]
pub const FUNCTIONS: &[Function] = &[
    function("host", "log", r#"(param "level" u8) (param "message" string)"#, "$log", "(param i32 i32 i32)"),
    function("host", "setting-integer", r#"(param "name" string) (result (option s64))"#, "$setting-integer", "(param i32 i32 i32)"),
    function("host", "setting-boolean", r#"(param "name" string) (result (option bool))"#, "$setting-boolean", "(param i32 i32 i32)"),
    function("host", "setting-text", r#"(param "name" string) (result (option string))"#, "$setting-text", "(param i32 i32 i32)"),
    function("context", "[method]description.name", r#"(param "self" (borrow $description)) (param "name" string)"#, "$name", "(param i32 i32 i32)"),
    function("context", "[method]description.version", r#"(param "self" (borrow $description)) (param "version" string)"#, "$version", "(param i32 i32 i32)"),
    function("context", "[method]description.about", r#"(param "self" (borrow $description)) (param "line" string)"#, "$about", "(param i32 i32 i32)"),
    function("context", "[method]description.setting-integer", r#"(param "self" (borrow $description)) (param "name" string) (param "default" s64) (param "min" s64) (param "max" s64) (param "help" string)"#, "$declare-integer", "(param i32 i32 i32 i64 i64 i64 i32 i32)"),
    function("context", "[method]description.setting-boolean", r#"(param "self" (borrow $description)) (param "name" string) (param "default" bool) (param "help" string)"#, "$declare-boolean", "(param i32 i32 i32 i32 i32 i32)"),
    function("context", "[method]description.setting-text", r#"(param "self" (borrow $description)) (param "name" string) (param "default" string) (param "help" string)"#, "$declare-text", "(param i32 i32 i32 i32 i32 i32 i32)"),
    function("context", "[method]transcript.length", r#"(param "self" (borrow $transcript)) (result u32)"#, "$length", "(param i32) (result i32)"),
    function("context", "[method]transcript.total-tokens", r#"(param "self" (borrow $transcript)) (result u64)"#, "$total-tokens", "(param i32) (result i64)"),
    function("context", "[method]transcript.tokens", r#"(param "self" (borrow $transcript)) (param "start" u32) (param "end" u32) (result (list u32))"#, "$tokens", "(param i32 i32 i32 i32)"),
    function("context", "[method]transcript.chars", r#"(param "self" (borrow $transcript)) (param "start" u32) (param "end" u32) (result (list u32))"#, "$chars", "(param i32 i32 i32 i32)"),
    function("context", "[method]transcript.roles", r#"(param "self" (borrow $transcript)) (param "start" u32) (param "end" u32) (result (list u8))"#, "$roles", "(param i32 i32 i32 i32)"),
    function("context", "[method]transcript.origins", r#"(param "self" (borrow $transcript)) (param "start" u32) (param "end" u32) (result (list u8))"#, "$origins", "(param i32 i32 i32 i32)"),
    function("context", "[method]transcript.flags", r#"(param "self" (borrow $transcript)) (param "start" u32) (param "end" u32) (result (list u8))"#, "$flags", "(param i32 i32 i32 i32)"),
    function("context", "[method]transcript.groups", r#"(param "self" (borrow $transcript)) (param "start" u32) (param "end" u32) (result (list u32))"#, "$groups", "(param i32 i32 i32 i32)"),
    function("context", "[method]transcript.cuts", r#"(param "self" (borrow $transcript)) (param "before" u32) (param "max" u32) (result (list u32))"#, "$cuts", "(param i32 i32 i32 i32)"),
    function("context", "[method]transcript.turns", r#"(param "self" (borrow $transcript)) (result u32)"#, "$turns", "(param i32) (result i32)"),
    function("context", "[method]transcript.current", r#"(param "self" (borrow $transcript)) (result u32)"#, "$current", "(param i32) (result i32)"),
    function("context", "[method]transcript.seed-end", r#"(param "self" (borrow $transcript)) (result u32)"#, "$seed-end", "(param i32) (result i32)"),
    function("context", "[method]transcript.dropped-turns", r#"(param "self" (borrow $transcript)) (result u32)"#, "$dropped-turns", "(param i32) (result i32)"),
    function("context", "[method]transcript.channel", r#"(param "self" (borrow $transcript)) (result string)"#, "$channel", "(param i32 i32)"),
    function("context", "[method]transcript.text", r#"(param "self" (borrow $transcript)) (param "index" u32) (param "start" u32) (param "max" u32) (result string)"#, "$text", "(param i32 i32 i32 i32 i32)"),
    function("context", "[method]transcript.tools", r#"(param "self" (borrow $transcript)) (param "index" u32) (result (list string))"#, "$tools", "(param i32 i32 i32)"),
    function("context", "[method]transcript.archived", r#"(param "self" (borrow $transcript)) (result u32)"#, "$archived", "(param i32) (result i32)"),
    function("context", "[method]transcript.search", r#"(param "self" (borrow $transcript)) (param "query" string) (param "max" u32) (result (list u32))"#, "$search", "(param i32 i32 i32 i32 i32)"),
    function("context", "[method]transcript.archived-tokens", r#"(param "self" (borrow $transcript)) (param "start" u32) (param "end" u32) (result (list u32))"#, "$archived-tokens", "(param i32 i32 i32 i32)"),
    function("context", "[method]transcript.archived-origins", r#"(param "self" (borrow $transcript)) (param "start" u32) (param "end" u32) (result (list u8))"#, "$archived-origins", "(param i32 i32 i32 i32)"),
    function("context", "[method]transcript.archived-text", r#"(param "self" (borrow $transcript)) (param "number" u32) (param "start" u32) (param "max" u32) (result string)"#, "$archived-text", "(param i32 i32 i32 i32 i32)"),
    function("context", "[method]budget.limit", r#"(param "self" (borrow $budget)) (result u64)"#, "$limit", "(param i32) (result i64)"),
    function("context", "[method]budget.window", r#"(param "self" (borrow $budget)) (result u64)"#, "$window", "(param i32) (result i64)"),
    function("context", "[method]budget.marker-tokens", r#"(param "self" (borrow $budget)) (result u32)"#, "$marker-tokens", "(param i32) (result i32)"),
    function("context", "[method]budget.recall-tokens", r#"(param "self" (borrow $budget)) (result u32)"#, "$recall-tokens", "(param i32) (result i32)"),
    function("context", "[method]budget.phase", r#"(param "self" (borrow $budget)) (result u8)"#, "$phase", "(param i32) (result i32)"),
    function("context", "[method]budget.seed-may-go", r#"(param "self" (borrow $budget)) (result bool)"#, "$seed-may-go", "(param i32) (result i32)"),
    function("context", "[method]plan.remove", r#"(param "self" (borrow $plan)) (param "start" u32) (param "end" u32)"#, "$remove", "(param i32 i32 i32)"),
    function("context", "[method]plan.shorten", r#"(param "self" (borrow $plan)) (param "index" u32) (param "head" u32) (param "tail" u32)"#, "$shorten", "(param i32 i32 i32 i32)"),
    function("context", "[method]plan.digest", r#"(param "self" (borrow $plan)) (param "index" u32)"#, "$digest", "(param i32 i32)"),
    function("context", "[method]plan.marker", r#"(param "self" (borrow $plan)) (param "text" string)"#, "$marker", "(param i32 i32 i32)"),
    function("context", "[method]plan.tokens", r#"(param "self" (borrow $plan)) (result u64)"#, "$plan-tokens", "(param i32) (result i64)"),
    function("context", "[method]plan.clear", r#"(param "self" (borrow $plan))"#, "$clear", "(param i32)"),
    function("context", "[method]plan.compact", r#"(param "self" (borrow $plan)) (param "start" u32) (param "end" u32)"#, "$compact", "(param i32 i32 i32)"),
    function("context", "[method]plan.recall", r#"(param "self" (borrow $plan)) (param "number" u32) (param "max-chars" u32)"#, "$recall", "(param i32 i32 i32)"),
    function("context", "[method]incoming.kind", r#"(param "self" (borrow $incoming)) (result u8)"#, "$incoming-kind", "(param i32) (result i32)"),
    function("context", "[method]incoming.name", r#"(param "self" (borrow $incoming)) (result string)"#, "$incoming-name", "(param i32 i32)"),
    function("context", "[method]incoming.chars", r#"(param "self" (borrow $incoming)) (result u32)"#, "$incoming-chars", "(param i32) (result i32)"),
    function("context", "[method]incoming.tokens", r#"(param "self" (borrow $incoming)) (result u32)"#, "$incoming-tokens", "(param i32) (result i32)"),
    function("context", "[method]incoming.limit", r#"(param "self" (borrow $incoming)) (result u64)"#, "$incoming-limit", "(param i32) (result i64)"),
    function("context", "[method]incoming.text", r#"(param "self" (borrow $incoming)) (param "start" u32) (param "max" u32) (result string)"#, "$incoming-text", "(param i32 i32 i32 i32)"),
    function("context", "[method]cap-verdict.keep", r#"(param "self" (borrow $cap-verdict))"#, "$cap-keep", "(param i32)"),
    function("context", "[method]cap-verdict.shorten", r#"(param "self" (borrow $cap-verdict)) (param "head" u32) (param "tail" u32)"#, "$cap", "(param i32 i32 i32)"),
    function("context", "[method]cap-verdict.digest", r#"(param "self" (borrow $cap-verdict))"#, "$cap-digest", "(param i32)"),
    function("context", "[method]overflow.phase", r#"(param "self" (borrow $overflow)) (result u8)"#, "$overflow-phase", "(param i32) (result i32)"),
    function("context", "[method]overflow.tried", r#"(param "self" (borrow $overflow)) (result (list u8))"#, "$tried", "(param i32 i32)"),
    function("context", "[method]overflow.available", r#"(param "self" (borrow $overflow)) (result (list u8))"#, "$available", "(param i32 i32)"),
    function("context", "[method]overflow.observed-tokens", r#"(param "self" (borrow $overflow)) (result (option u64))"#, "$observed-tokens", "(param i32 i32)"),
    function("context", "[method]overflow.allowed-tokens", r#"(param "self" (borrow $overflow)) (result (option u64))"#, "$allowed-tokens", "(param i32 i32)"),
    function("context", "[method]recovery.choose", r#"(param "self" (borrow $recovery)) (param "rung" u8)"#, "$choose", "(param i32 i32)"),
    function("context", "[method]summary.max-tokens", r#"(param "self" (borrow $summary)) (result u32)"#, "$max-tokens", "(param i32) (result i32)"),
    function("context", "[method]summary.append", r#"(param "self" (borrow $summary)) (param "text" string)"#, "$append", "(param i32 i32 i32)"),
    function("cli/exit", "exit", r#"(param "status" (result))"#, "$exit", "(param i32)"),
    function("clocks/monotonic-clock", "now", "(result u64)", "$now", "(result i64)"),
    function("random/random", "get-random-u64", "(result u64)", "$random", "(result i64)"),
    function("cli/stderr", "get-stderr", "(result (own $output-stream))", "$get-stderr", "(result i32)"),
    function("io/streams", "[method]output-stream.blocking-write-and-flush", r#"(param "self" (borrow $output-stream)) (param "contents" (list u8)) (result (result (error $stream-error)))"#, "$print", "(param i32 i32 i32 i32)"),
];
