//! Component files that are hard to process.

use super::{Attack, GOOD};
use crate::{component::Component, memory::MIB};

const GROUP: &str = "Files";

pub fn attacks() -> Vec<Attack> {
    let outside = |name: &str, items: &str| Attack::new(GROUP, name, &Component::pruning(GOOD).outside(items));
    let inside = |name: &str, items: &str| Attack::new(GROUP, name, &Component::pruning(GOOD).items(items));
    let lists: String = (1..1_000).map(|n| format!("(type $t{n} (list $t{}))", n - 1)).collect();
    let pairs: String = (1..60).map(|n| format!("(type $t{n} (tuple $t{0} $t{0}))", n - 1)).collect();
    let blocks = format!("(func {} {})", "(block ".repeat(2_000), ")".repeat(2_000));
    let functions: String = (0..1_000)
        .map(|n| format!("(func (param i32) (result i32) (i32.add (local.get 0) (i32.const {n})))"))
        .collect();
    let mut attacks = vec![
        Attack::of_bytes(GROUP, "components within components, 3,000 deep", nested(3_000)),
        outside("10,000 components beside each other", &"(component)".repeat(10_000)),
        outside("types within types, 1,000 deep", &format!("(type $t0 (list u8)) {lists}")),
        outside("a type that unfolds to more than there is", &format!("(type $t0 (tuple u8 u8)) {pairs}")),
        inside("blocks within blocks, 2,000 deep", &blocks),
        inside("a function with 50,001 variables", &format!("(func (local {}))", "i32 ".repeat(50_001))),
        inside("1,000 functions", &functions),
        inside(
            "instructions whose result differs between machines",
            "(func (drop (i8x16.relaxed_swizzle \
            (v128.const i64x2 0 0) (v128.const i64x2 0 0))))",
        ),
        inside("instructions for threads", "(func (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1))))"),
        inside(
            "types for a garbage collector",
            "(type $s (struct (field i32))) (func (drop (struct.new $s \
            (i32.const 1))))",
        ),
        outside(
            "functions that run on beside the host",
            r#"(core module $later
                   (func (export "f") (result i32) (i32.const 0))
                   (func (export "cb") (param i32 i32 i32) (result i32) (i32.const 0)))
               (core instance $later (instantiate $later))
               (func (export "later") async
                   (canon lift (core func $later "f") async (callback (core func $later "cb"))))"#,
        ),
        Attack::new(GROUP, "a contract of another major", &Component::pruning("").version("2.0.0")),
        Attack::of_bytes(
            GROUP,
            "an import whose name fills the screen",
            wat::parse_str(format!(
                r#"(component (import "{}:x/y@1.0.0" (instance)) (instance $i)
                    (export "pmk:policy/describe@1.0.0" (instance $i)))"#,
                "a".repeat(50_000)
            ))
            .unwrap(),
        ),
        Attack::of_bytes(
            GROUP,
            "exports that fill the screen",
            wat::parse_str(format!("(component {})", exports(400))).unwrap(),
        ),
    ];
    let deep = "(call $deep (i32.const 40))";
    let recursion = "(func $deep (param i32) (if (i32.eqz (local.get 0)) (then unreachable))
        (call $deep (i32.sub (local.get 0) (i32.const 1))))";
    let lines = Component::pruning(deep).items(&format!("{recursion} {}", line_numbers(3 << 20)));
    attacks.push(Attack::new(GROUP, "three million line numbers, and a trap 40 functions deep", &lines));
    let mut large = Component::pruning(GOOD).build();
    large.extend(custom_section(&vec![0; 30 << 20]));
    attacks.push(Attack { load_bytes: 160 * MIB, ..Attack::of_bytes(GROUP, "30 MiB of nothing", large) });
    attacks
}

/// Nested components.
fn nested(depth: usize) -> Vec<u8> {
    const PREAMBLE: &[u8] = b"\0asm\x0d\0\x01\0";
    const COMPONENT: u8 = 4;
    (0..depth).fold(PREAMBLE.to_vec(), |inner, _| {
        let mut outer = PREAMBLE.to_vec();
        outer.push(COMPONENT);
        outer.extend(leb128(inner.len()));
        outer.extend(inner);
        outer
    })
}

/// Debug information that assigns a separate line to each byte of code, for this many bytes.
fn line_numbers(count: usize) -> String {
    // One unit without children: where its lines are, and the code it covers, which is as much as possible.
    let abbreviations = [1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0, 0, 0];
    let unit = [&[4, 0, 0, 0, 0, 0, 4, 1], [0_u8; 8].as_slice(), &[0xff, 0xff, 0xff, 0x7f]].concat();
    // One file; then each instruction of the line program advances by one byte and one line.
    let tables = [1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, b'a', 0, 0, 0, 0, 0];
    let mut lines = [&[4, 0], (tables.len() as u32).to_le_bytes().as_slice(), &tables, &[0, 5, 2, 0, 0, 0, 0]].concat();
    lines.extend(vec![0x21; count]);
    lines.extend([0, 1, 1]);
    let sized = |content: &[u8]| [&(content.len() as u32).to_le_bytes(), content].concat();
    [(".debug_abbrev", abbreviations.to_vec()), (".debug_info", sized(&unit)), (".debug_line", sized(&lines))]
        .iter()
        .map(|(name, content)| {
            let bytes: String = content.iter().map(|byte| format!("\\{byte:02x}")).collect();
            format!(r#"(@custom "{name}" "{bytes}")"#)
        })
        .collect()
}

fn custom_section(content: &[u8]) -> Vec<u8> {
    let mut section = vec![0];
    section.extend(leb128(content.len() + 2));
    section.extend([1, b'x']);
    section.extend(content);
    section
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = vec![];
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn exports(count: usize) -> String {
    (0..count).map(|n| format!(r#"(instance $i{n}) (export "export-{n}" (instance $i{n}))"#)).collect()
}
