//! The calls, each with what makes it dear.

use crate::{
    archive,
    component::{Component, DATA},
};

/// Where what a call gives comes back.
pub const BACK: u32 = 40_000;

/// A message of [`crate::LONG_CHARS`] characters, by its index and its number.
pub const LONG: u32 = 50_003;

/// A call, made again and again.
pub struct Case {
    /// As the contract has it.
    pub call: &'static str,
    /// Its arguments, in words.
    pub with: &'static str,
    /// The decision in which it is made.
    pub export: &'static str,
    /// What a call is in the text of a component; `$i` counts them.
    body: String,
    /// What is done once before.
    before: String,
    data: String,
    pages: u32,
    encoding: &'static str,
    /// After so many it is no longer what it was.
    pub most: u32,
}

impl Case {
    /// A component that makes so many calls.
    pub fn component(&self, count: u32) -> Component {
        let calls = match count {
            0 => String::new(),
            _ => format!(
                "(local.set $i (i32.const 0)) (loop $l {} (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) \
                 (i32.const 1))) (i32.const {count}))))",
                self.body
            ),
        };
        // The loop may use the place of the second handle, which is given back afterwards.
        let second = match self.export {
            "prune" => "$plan",
            "cap" => "$cap-verdict",
            "summarize" => "$summary",
            _ => "$recovery",
        };
        let body = format!(
            "(i32.store (i32.const 32) (local.get {second})) {} {calls} (local.set {second} (i32.load (i32.const 32)))",
            self.before
        );
        Component::new()
            .items("(table 1 funcref) (func $nothing)")
            .export(self.export, &body)
            .data(&self.data)
            .describing(
                "(call $declare-integer (local.get $description) (i32.const 0) (i32.const 4) (i64.const 1) (i64.const \
                 0) (i64.const 9) (i32.const 0) (i32.const 0)) (call $declare-text (local.get $description) (i32.const \
                 0) (i32.const 3) (i32.const 64) (i32.const 1000) (i32.const 0) (i32.const 0))",
            )
            // Again and again the same place, so that there is always one.
            .realloc("", "(i32.const 65536)")
            .pages(self.pages)
            .encoding(self.encoding)
    }

    pub fn before(mut self, before: &str) -> Self {
        self.before = before.to_owned();
        self
    }

    pub fn data(mut self, data: &str) -> Self {
        self.data = data.to_owned();
        self
    }

    fn utf16(mut self) -> Self {
        self.encoding = "string-encoding=utf16";
        self
    }

    fn pages(mut self, pages: u32) -> Self {
        self.pages = pages;
        self
    }

    pub fn most(mut self, most: u32) -> Self {
        self.most = most;
        self
    }
}

fn case(export: &'static str, call: &'static str, with: &'static str, body: &str) -> Case {
    let data = "a word or two ".repeat(1_000);
    Case {
        call,
        with,
        export,
        body: body.to_owned(),
        before: String::new(),
        data,
        pages: 64,
        encoding: "",
        most: 1 << 28,
    }
}

/// One of the transcript's, by its name in bodies and what comes after the handle.
pub fn transcript(call: &'static str, with: &'static str, args: &str) -> Case {
    let name = call.strip_prefix("transcript.").unwrap_or(call);
    case("prune", call, with, &format!("(call ${name} (local.get $transcript) {args} (i32.const {BACK}))"))
}

/// One that gives a number.
fn number(export: &'static str, call: &'static str, alias: &str, handle: &str) -> Case {
    case(export, call, "", &format!("(drop (call ${alias} (local.get ${handle})))"))
}

pub fn plan(call: &'static str, with: &'static str, alias: &str, args: &str) -> Case {
    case("prune", call, with, &format!("(call ${alias} (local.get $plan) {args})"))
}

pub fn numbers(values: &[u32]) -> String {
    values.iter().map(|value| format!("(i32.const {value}) ")).collect()
}

pub fn all() -> Vec<Case> {
    [computing(), host(), of_transcript(), archive::all(), of_plan(), of_the_rest()].into_iter().flatten().collect()
}

/// What the component does itself.
fn computing() -> Vec<Case> {
    let many = |one: &str| one.repeat(50);
    let op = |with, body: &str| case("prune", "(instructions)", with, body);
    let random = "(local.set $plan (i32.add (i32.mul (local.get $plan) (i32.const 1664525)) (i32.const 1013904223)))";
    vec![
        op("a loop that counts", ""),
        op("additions", &many("(local.set $plan (i32.add (local.get $plan) (local.get $i)))")),
        op("divisions", &many("(local.set $plan (i32.div_u (i32.const -1) (i32.or (local.get $plan) (i32.const 1))))")),
        op("64-bit divisions", &many("(local.set $plan (i32.wrap_i64 (i64.div_u (i64.const -1) (i64.or (i64.extend_i32_u (local.get $plan)) (i64.const 1)))))")),
        op("square roots", &many("(local.set $plan (i32.reinterpret_f32 (f32.sqrt (f32.reinterpret_i32 (local.get $plan)))))")),
        op("square roots of doubles, one of the other", &format!("(f64.store (i32.const 48) {}(f64.load (i32.const 48)){})", "(f64.sqrt ".repeat(50), ")".repeat(50))),
        op("reads near", &many("(local.set $plan (i32.add (local.get $plan) (i32.load (i32.and (local.get $i) (i32.const 0xffff)))))")),
        op("reads all over 100 MB", &format!("{random} (local.set $plan (i32.xor (local.get $plan) (i32.load (i32.and (local.get $plan) (i32.const 0x3fffffc)))))")).before("(memory.fill (i32.const 131072) (i32.const 9) (i32.const 66000000))").pages(1_100),
        op("memory.grow of nothing", &many("(drop (memory.grow (i32.const 0)))")),
        op("table.grow of nothing", &many("(drop (table.grow (ref.null func) (i32.const 0)))")),
        op("calls", &many("(call $nothing)")),
        op("memory.size", &many("(drop (memory.size))")),
        op("memory.fill of nothing", &many("(memory.fill (i32.const 0) (i32.const 0) (i32.const 0))")),
        op("memory.copy of nothing", &many("(memory.copy (i32.const 0) (i32.const 0) (i32.const 0))")),
        op("memory.fill of 60,000 bytes", "(memory.fill (i32.const 65536) (i32.const 0) (i32.const 60000))"),
        op("memory.copy of 60,000 bytes", "(memory.copy (i32.const 65536) (i32.const 131072) (i32.const 60000))"),
    ]
}

/// Writes the name `tes` at 24 as UTF-16.
fn utf16_name() -> String {
    (0..)
        .zip("tes".bytes())
        .map(|(at, byte)| format!("(i32.store16 (i32.const {}) (i32.const {byte}))", 24 + at * 2))
        .collect()
}

fn host() -> Vec<Case> {
    vec![
        case("prune", "log", "1 byte", "(call $log (i32.const 3) (i32.const 64) (i32.const 1))"),
        case("prune", "log", "10,000 bytes", "(call $log (i32.const 3) (i32.const 64) (i32.const 10000))"),
        case("prune", "log", "1 MB, the log full", "(call $log (i32.const 1) (i32.const 64) (i32.const 1000000))")
            .before("(call $log (i32.const 3) (i32.const 64) (i32.const 10000))"),
        case(
            "prune",
            "log",
            "50,000 characters of UTF-16, the log full",
            "(call $log (i32.const 1) (i32.const 64) (i32.const 50000))",
        )
        .before("(call $log (i32.const 3) (i32.const 64) (i32.const 10000))")
        .data(&"a word or two ".repeat(2_500))
        .utf16(),
        case(
            "prune",
            "setting-text",
            "1,000 bytes as UTF-16",
            &format!("(call $setting-text (i32.const 24) (i32.const 3) (i32.const {BACK}))"),
        )
        .before(&utf16_name())
        .utf16(),
        case(
            "prune",
            "setting-integer",
            "",
            &format!("(call $setting-integer (i32.const 0) (i32.const 4) (i32.const {BACK}))"),
        ),
        case(
            "prune",
            "setting-boolean",
            "no such setting",
            &format!("(call $setting-boolean (i32.const 64) (i32.const 4) (i32.const {BACK}))"),
        ),
        case(
            "prune",
            "setting-boolean",
            "a name of 1 MB",
            &format!("(call $setting-boolean (i32.const 64) (i32.const 1000000) (i32.const {BACK}))"),
        ),
        case(
            "prune",
            "setting-text",
            "1,000 bytes",
            &format!("(call $setting-text (i32.const 0) (i32.const 3) (i32.const {BACK}))"),
        ),
    ]
}

fn of_transcript() -> Vec<Case> {
    let columns = ["tokens", "chars", "roles", "origins", "flags", "groups"];
    let calls = [
        "transcript.tokens",
        "transcript.chars",
        "transcript.roles",
        "transcript.origins",
        "transcript.flags",
        "transcript.groups",
    ];
    let mut cases = vec![];
    for (call, alias) in [
        "transcript.length",
        "transcript.total-tokens",
        "transcript.turns",
        "transcript.current",
        "transcript.seed-end",
        "transcript.dropped-turns",
        "transcript.archived",
    ]
    .iter()
    .map(|call| (*call, call.strip_prefix("transcript.").unwrap_or(call)))
    {
        cases.push(number("prune", call, alias, "transcript"));
    }
    for (call, _) in calls.into_iter().zip(columns) {
        cases.push(transcript(call, "an empty range", &numbers(&[5, 5])));
        cases.push(transcript(call, "one", &numbers(&[5, 6])));
        cases.push(transcript(call, "100,000", &numbers(&[0, 100_000])));
    }
    cases.push(transcript("transcript.cuts", "none", &numbers(&[0, 1])));
    cases.push(transcript("transcript.cuts", "50,000", &numbers(&[100_000, 100_000])));
    cases.push(transcript("transcript.channel", "7 bytes", ""));
    cases.push(transcript("transcript.text", "no such message", &numbers(&[200_000, 0, 10])));
    cases.push(transcript("transcript.text", "1 character of 150", &numbers(&[7, 0, 1])));
    cases.push(
        transcript("transcript.text", "every message, whole", "(local.get $i) (i32.const 0) (i32.const -1)")
            .most(100_000),
    );
    cases.push(transcript("transcript.text", "1 character of 20,000", &numbers(&[LONG, 19_999, 1])));
    cases.push(transcript("transcript.text", "all of 20,000", &numbers(&[LONG, 0, 20_000])));
    cases.push(transcript("transcript.tools", "none", &numbers(&[7])));
    cases.push(transcript("transcript.tools", "two", &numbers(&[LONG - 1])));
    cases
}

fn of_plan() -> Vec<Case> {
    let tokens = |with, before: &str| number("prune", "plan.tokens", "plan-tokens", "plan").with(with).before(before);
    vec![
        number("prune", "budget.limit", "limit", "budget"),
        number("prune", "budget.window", "window", "budget"),
        number("prune", "budget.marker-tokens", "marker-tokens", "budget"),
        number("prune", "budget.recall-tokens", "recall-tokens", "budget"),
        number("prune", "budget.phase", "phase", "budget"),
        number("prune", "budget.seed-may-go", "seed-may-go", "budget"),
        plan("plan.remove", "one each time", "remove", "(local.get $i) (i32.add (local.get $i) (i32.const 1))").most(100_000),
        plan("plan.remove", "100,000", "remove", &numbers(&[0, 100_000])).most(100_000),
        plan("plan.remove", "too many already", "remove", &numbers(&[0, 100_000])).before("(loop $e (call $remove (local.get $plan) (i32.const 0) (i32.const 1)) (br_if $e (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 210000))))"),
        plan("plan.shorten", "each message", "shorten", "(local.get $i) (i32.const 9) (i32.const 9)").most(99_000),
        plan("plan.shorten", "a long one each time", "shorten", "(i32.add (i32.mul (local.get $i) (i32.const 100)) (i32.const 3)) (i32.const 9) (i32.const 9)").most(1_000),
        plan("plan.shorten", "the same again", "shorten", "(i32.const 7) (i32.const 9) (i32.const 9)").most(200_000),
        plan("plan.shorten", "no such message", "shorten", "(i32.const 200000) (i32.const 9) (i32.const 9)").most(200_000),
        plan("plan.digest", "a long one each time", "digest", "(i32.add (i32.mul (local.get $i) (i32.const 100)) (i32.const 3))").most(1_000),
        plan("plan.digest", "each message", "digest", "(local.get $i)").most(99_000),
        plan("plan.clear", "nothing", "clear", ""),
        case("prune", "plan.clear", "one that is shortened", "(call $shorten (local.get $plan) (i32.const 50003) (i32.const 9) (i32.const 9)) (call $clear (local.get $plan))"),
        plan("plan.compact", "", "compact", &numbers(&[0, 100])),
        plan("plan.marker", "290 characters", "marker", &numbers(&[DATA, 290])),
        plan("plan.marker", "10,000 characters", "marker", &numbers(&[DATA, 10_000])),
        tokens("nothing", ""),
        tokens("a marker of 290 characters", "(call $marker (local.get $plan) (i32.const 64) (i32.const 290)) (call $remove (local.get $plan) (i32.const 0) (i32.const 2))"),
        tokens("something recalled, 50,000 edits", "(loop $e (call $remove (local.get $plan) (local.get $i) (i32.add (local.get $i) (i32.const 1))) (br_if $e \
             (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 2))) (i32.const 100000)))) (call $recall (local.get $plan) (i32.const 7) (i32.const 10))"),
    ]
}

fn of_the_rest() -> Vec<Case> {
    let incoming = |call, with, alias: &str, args: &str| {
        case("cap", call, with, &format!("(call ${alias} (local.get $incoming) {args} (i32.const {BACK}))"))
    };
    let verdict = |call, alias: &str, args: &str| {
        case("cap", call, "", &format!("(call ${alias} (local.get $cap-verdict) {args})"))
    };
    let overflow = |call, alias: &str| {
        case("recover", call, "", &format!("(call ${alias} (local.get $overflow) (i32.const {BACK}))"))
    };
    vec![
        number("cap", "incoming.kind", "incoming-kind", "incoming"),
        incoming("incoming.name", "6 bytes", "incoming-name", ""),
        number("cap", "incoming.chars", "incoming-chars", "incoming").with("of 100,000 bytes"),
        number("cap", "incoming.tokens", "incoming-tokens", "incoming").with("of 100,000 bytes"),
        number("cap", "incoming.tokens", "incoming-tokens", "incoming").with("the first time").most(1),
        number("cap", "incoming.limit", "incoming-limit", "incoming"),
        incoming("incoming.text", "the last of 100,000", "incoming-text", &numbers(&[99_999, 1])),
        incoming("incoming.text", "all of 100,000", "incoming-text", &numbers(&[0, 100_000])),
        verdict("cap-verdict.keep", "cap-keep", ""),
        verdict("cap-verdict.shorten", "cap", &numbers(&[1, 1])),
        verdict("cap-verdict.digest", "cap-digest", ""),
        number("recover", "overflow.phase", "overflow-phase", "overflow"),
        overflow("overflow.tried", "tried"),
        overflow("overflow.available", "available"),
        overflow("overflow.observed-tokens", "observed-tokens"),
        overflow("overflow.allowed-tokens", "allowed-tokens"),
        case("recover", "recovery.choose", "", "(call $choose (local.get $recovery) (i32.const 1))"),
        number("summarize", "summary.max-tokens", "max-tokens", "summary"),
        case(
            "summarize",
            "summary.append",
            "1 byte",
            "(call $append (local.get $summary) (i32.const 64) (i32.const 1))",
        )
        .most(100_000),
        case(
            "summarize",
            "summary.append",
            "1 MB, full already",
            "(call $append (local.get $summary) (i32.const 64) (i32.const 1000000))",
        ),
        case("prune", "wasi: monotonic-clock.now", "", "(drop (call $now))"),
        case("prune", "wasi: random.get-random-u64", "", "(drop (call $random))"),
        case(
            "prune",
            "wasi: output-stream.write",
            "100 bytes",
            &format!("(call $print (local.get $plan) (i32.const 64) (i32.const 100) (i32.const {BACK}))"),
        )
        .before("(local.set $plan (call $get-stderr))"),
        case(
            "prune",
            "wasi: output-stream.write",
            "4,000 bytes",
            &format!("(call $print (local.get $plan) (i32.const 64) (i32.const 4000) (i32.const {BACK}))"),
        )
        .before("(local.set $plan (call $get-stderr))"),
        case("prune", "wasi: stderr.get-stderr", "", "(drop (call $get-stderr))").most(990),
    ]
}

impl Case {
    fn with(mut self, with: &'static str) -> Self {
        self.with = with;
        self
    }
}
