//! The bombs themselves. Each is small, well formed, and more than whoever compiles it can bear.

/// A component that is not to be compiled without limits.
pub struct Bomb {
    pub name: &'static str,
    pub bytes: Vec<u8>,
}

/// All of them.
pub fn all() -> Vec<Bomb> {
    let of_text = |name, text: String| Bomb { name, bytes: wat::parse_str(text).expect("a component") };
    vec![
        of_text("siblings that instantiate each other, forty levels", siblings(40)),
        Bomb { name: "990,000 empty functions", bytes: empty_functions(990_000) },
        of_text("a table of a thousand branches with many results", branches(1_000, 1_000)),
        of_text("200,000 indirect calls", indirect_calls(200_000)),
        slow(),
        of_text("99 functions of 9,999 variables that all live", living(99, 9_999)),
        of_text("blocks within blocks, 60,000 deep, with a way out of each", blocks(60_000)),
        of_text("types of types, twice as large each", types(60)),
        types_within_types(),
        of_text("memory that is filled at both ends of four gigabytes", far_data()),
    ]
}

/// The one that takes longest for its memory.
pub fn slow() -> Bomb {
    Bomb { name: "16 times 5,000 loops over 2,000 variables", bytes: loops(16, 5_000) }
}

/// The one that whoever counts its parts can bear least: each level is three bytes.
pub fn types_within_types() -> Bomb {
    let mut types = vec![1_u8];
    types.extend([0x42, 1, 1].repeat(100_000));
    types.extend([0x42, 0]);
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    component.extend(section(7, &types));
    Bomb { name: "types within types, 100,000 deep", bytes: component }
}

/// A component of so many functions, each of so many loops in a row, over 2,000 variables.
pub fn loops(functions: usize, each: usize) -> Vec<u8> {
    let turns = (0..each).map(|n| {
        let [to, one, other] = [7, 11, 13].map(|step| 1 + n * step % 2_000);
        format!("(loop (local.set {to} (i32.add (local.get {one}) (local.get {other}))) (br_if 0 (local.get 0)))")
    });
    let function = format!("(func (param i32) (local {}) {})", "i32 ".repeat(2_000), turns.collect::<String>());
    wat::parse_str(in_module(&function.repeat(functions))).expect("a component")
}

fn in_module(body: &str) -> String {
    format!("(component (core module {body}))")
}

fn siblings(levels: usize) -> String {
    let level = |level: usize| {
        let before = level - 1;
        let twice = "(instance (instantiate $c))".repeat(2);
        format!("(component $c{level} (alias outer 1 $c{before} (component $c)) {twice})")
    };
    let levels_above: String = (1..levels).map(level).collect();
    let module = "(core module $m) (core instance (instantiate $m))";
    format!("(component (component $c0 {module}) {levels_above} (instance (instantiate $c{})))", levels - 1)
}

fn branches(targets: usize, results: usize) -> String {
    let results = "i32 ".repeat(results);
    in_module(&format!(
        "(type $many (func (result {results}))) \
         (func (param i32) (result {results}) {} {} (br_table {} (local.get 0)) {})",
        "(block (type $many) ".repeat(targets),
        "(i32.const 1) ".repeat(results.len() / 4),
        (0..targets).map(|n| format!("{n} ")).collect::<String>(),
        ")".repeat(targets),
    ))
}

fn indirect_calls(count: usize) -> String {
    let call = "(call_indirect (type $t) (local.get 0))";
    let functions: String = (0..10).map(|_| format!("(func (param i32) {})", call.repeat(count / 10))).collect();
    in_module(&format!("(type $t (func)) (table 1 funcref) {functions}"))
}

fn living(functions: usize, locals: usize) -> String {
    let kept: String = (1..locals).map(|n| format!("(local.set {n} (i32.load (local.get {})))", n - 1)).collect();
    let used: String = (1..locals).map(|n| format!("(i32.store (local.get {n}) (local.get {}))", n - 1)).collect();
    let function = format!("(func (param i32) (local {}) {kept} {used})", "i32 ".repeat(locals - 1));
    in_module(&format!("(memory 1) {}", function.repeat(functions)))
}

fn blocks(depth: usize) -> String {
    let ways_out: String = (0..depth).map(|out| format!("block (br_if {out} (local.get 0)) ")).collect();
    in_module(&format!("(func (param i32) {ways_out} {})", "end ".repeat(depth)))
}

/// Each type is a pair of the one before.
fn types(levels: usize) -> String {
    let level = |level: usize| format!("(type $t{level} (tuple $t{0} $t{0}))", level - 1);
    format!(
        "(component (type $t0 (tuple u32 u32)) {} (import \"f\" (func (param \"a\" $t{}))))",
        (1..levels).map(level).collect::<String>(),
        levels - 1
    )
}

fn far_data() -> String {
    in_module(
        "(memory 65536) (data (i32.const 0) \"a\") (data (i32.const 0x7fffffff) \"b\") (data (i32.const -1) \"c\")",
    )
}

/// Written by hand: as text it would be larger than a component may be.
fn empty_functions(count: u32) -> Vec<u8> {
    let mut types = vec![];
    types.extend([1, 0x60, 0, 0]);
    let mut functions = number(count);
    functions.resize(functions.len() + count as usize, 0);
    let mut code = number(count);
    (0..count).for_each(|_| code.extend([2, 0, 0x0b]));
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    for (id, content) in [(1, types), (3, functions), (10, code)] {
        module.extend(section(id, &content));
    }
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    component.extend(section(1, &module));
    component
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    let mut section = vec![id];
    section.extend(number(u32::try_from(content.len()).expect("a length")));
    section.extend(content);
    section
}

/// Seven bits a byte, least significant first.
fn number(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
