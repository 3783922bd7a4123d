#!/usr/bin/env python3
"""Draws a sample of cargo-mutants' list with a seed, and builds all of it into one copy of the sources, as switches.

    plant.py LIST.json COPY --seed N --first N [--without FILE] [--also NAME]…

Writes COPY/mutants.json: the number of each that was built in, and what it is. Number 0 is none of them.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path

import tree_sitter_rust
from tree_sitter import Language, Parser

PARSER = Parser(Language(tree_sitter_rust.language()))

SWITCH = """\
//! Which mutant is on, and which were reached.
use std::{fs::OpenOptions, io::Write, sync::OnceLock, sync::atomic::{AtomicBool, Ordering}};

static REACHED: [AtomicBool; 4200] = [const { AtomicBool::new(false) }; 4200];

/// The one of these that is on, or 0.
#[allow(clippy::all)]
pub fn one_of(these: &[u32]) -> u32 {
    static ON: OnceLock<(u32, Option<String>)> = OnceLock::new();
    let (on, tells) = ON.get_or_init(|| {
        let on = std::env::var("PMK_MUTANT").ok().and_then(|on| on.parse().ok()).unwrap_or(0);
        (on, std::env::var("PMK_MUTANTS_REACHED").ok())
    });
    if let Some(path) = tells {
        for number in these {
            if !REACHED[*number as usize].swap(true, Ordering::Relaxed) {
                if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
                    let _ = file.write_all(format!("{number}\\n").as_bytes());
                }
            }
        }
    }
    if these.contains(on) { *on } else { 0 }
}
"""


class Unfit(Exception):
    """It cannot be a switch."""


class File:
    """A source, and what is put in it. A change is of a range of bytes: `render(numbers)` gives what stands there."""

    def __init__(self, path):
        self.path = path
        self.source = path.read_bytes()
        self.tree = PARSER.parse(self.source)
        self.lines = self.source.split(b"\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.changes = defaultdict(list)

    def offset(self, at):
        line = self.lines[at["line"] - 1].decode()
        return self.starts[at["line"] - 1] + len(line[: at["column"] - 1].encode())

    def node(self, start, end, kinds):
        node = self.tree.root_node.descendant_for_byte_range(start, end)
        while node is not None and node.type not in kinds:
            node = node.parent
        if node is None:
            raise Unfit("no such expression")
        return node

    def add(self, number, mutant):
        start, end = self.offset(mutant["span"]["start"]), self.offset(mutant["span"]["end"])
        genre, new = mutant["genre"], mutant["replacement"]
        at = self.tree.root_node.descendant_for_byte_range(start, max(start, end - 1))
        self.must_run(at)
        if genre == "FnValue":
            key = (start, start, "value", start, start)
            self.changes[key].append((number, new))
        elif genre == "BinaryOperator":
            node = self.node(start, end, ("binary_expression", "compound_assignment_expr"))
            operator = node.child_by_field_name("operator")
            if (operator.start_byte, operator.end_byte) != (start, end) or has_let(node):
                raise Unfit("not an expression of its own")
            self.changes[(node.start_byte, node.end_byte, "operator", start, end)].append((number, new))
        elif genre == "UnaryOperator":
            node = self.node(start, end, ("unary_expression",))
            if node.start_byte != start or has_let(node):
                raise Unfit("not an expression of its own")
            self.changes[(node.start_byte, node.end_byte, "operator", start, end)].append((number, new))
        elif genre == "MatchArmGuard":
            if has_let(at):
                raise Unfit("a guard that binds")
            self.changes[(start, end, "whole", start, end)].append((number, new))
        elif genre == "MatchArm":
            arm = self.node(start, end, ("match_arm",))
            pattern = arm.child_by_field_name("pattern")
            condition = pattern.child_by_field_name("condition")
            if arm.start_byte != start or (condition is not None and has_let(condition)):
                raise Unfit("not an arm that can be guarded")
            at = condition.start_byte if condition is not None else pattern.end_byte
            end = condition.end_byte if condition is not None else at
            self.changes[(at, end, "and" if condition is not None else "if", at, end)].append((number, new))
        elif genre == "StructField":
            node = self.node(start, end, ("struct_expression",))
            comma = end
            while self.source[comma : comma + 1].isspace():
                comma += 1
            end = comma + 1 if self.source[comma : comma + 1] == b"," else end
            self.changes[(node.start_byte, node.end_byte, "operator", start, end)].append((number, ""))
        else:
            raise Unfit(genre)

    def must_run(self, node):
        while node is not None:
            if node.type in ("const_item", "static_item", "array_type", "const_block"):
                raise Unfit("a constant")
            if node.type in ("token_tree", "macro_definition"):
                raise Unfit("inside a macro")
            if node.type == "function_item":
                modifiers = [child for child in node.children if child.type == "function_modifiers"]
                if any(b"const" in child.text for child in modifiers):
                    raise Unfit("a constant function")
            node = node.parent

    def render(self, start, end, inside=None):
        """The bytes of a range with all that is changed in it, but for `inside` itself and what surrounds it."""
        within = [key for key in self.changes if start <= key[0] and key[1] <= end and not is_around(key, inside)]
        # The outermost first; what is inside it is rendered by it.
        within.sort(key=lambda key: (key[0], key[2] != "value", -key[1], key))
        out, at = b"", start
        for key in within:
            if key[0] < at:
                continue
            out += self.source[at : key[0]] + self.change(key)
            at = key[1]
        return out + self.source[at:end]

    def change(self, key):
        start, end, kind, inner_start, inner_end = key
        these = self.changes[key]
        numbers = ", ".join(str(number) for number, _ in these)
        on = f"crate::mutant::one_of(&[{numbers}])"
        if kind == "value":
            return "".join(
                f"if crate::mutant::one_of(&[{number}]) == {number} {{ return {new}; }} " for number, new in these
            ).encode()
        if kind == "if":
            return f" if {on} == 0".encode()
        old = self.render(start, end, key)
        if kind == "and":
            return f"{on} == 0 && (".encode() + old + b")"
        out = f"(match {on} {{ ".encode()
        for number, new in these:
            before, after = self.render(start, inner_start, key), self.render(inner_end, end, key)
            text = new.encode() if kind == "whole" else before + b" " + new.encode() + b" " + after
            out += f"{number} => {{ ".encode() + text + b" } "
        return out + b"_ => { " + old + b" } })"


def is_around(key, inside):
    """Whether a change is `inside`, or one that comes before it or has it in itself."""
    if inside is None:
        return False
    return (key[2] == "value" and key[0] == inside[0]) or (key[:2] == inside[:2] and key <= inside)


def has_let(node):
    return node.type in ("let_condition", "let_chain") or any(has_let(child) for child in node.children)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("list", type=Path)
    options.add_argument("copy", type=Path)
    options.add_argument("--seed", type=int, required=True)
    options.add_argument("--first", type=int, required=True, help="so many of the list are tried")
    options.add_argument("--without", type=Path, help="a file with a number and a reason in each line")
    options.add_argument("--also", action="append", default=[], help="the name of another one, not of the sample")
    options = options.parse_args()

    mutants = json.loads(options.list.read_text())
    mutants.sort(key=lambda mutant: mutant["name"])
    random.Random(options.seed).shuffle(mutants)
    unfit = {}
    if options.without and options.without.exists():
        lines = options.without.read_text().splitlines()
        unfit = {int(number): why for number, _, why in (line.partition(" ") for line in lines)}
    files, taken, also, left = {}, [], [], []
    for number, mutant in enumerate(mutants, 1):
        is_wanted = mutant["name"] in options.also
        if number > options.first and not is_wanted:
            continue
        path = mutant["file"]
        try:
            if number in unfit:
                raise Unfit(unfit[number])
            files.setdefault(path, File(options.copy / path)).add(number, mutant)
            (also if number > options.first else taken).append({"number": number, "name": mutant["name"], "file": path})
        except Unfit as why:
            left.append({"number": number, "name": mutant["name"], "why": str(why)})
    for file in files.values():
        if file.changes:
            file.path.write_bytes(file.render(0, len(file.source)))
    for crate in sorted({path.split("/src/")[0] for path in files}):
        root = options.copy / crate / "src/lib.rs"
        (root.parent / "mutant.rs").write_text(SWITCH)
        root.write_text(root.read_text() + "\n/// Which mutant is on.\npub mod mutant;\n")
    (options.copy / "mutants.json").write_text(json.dumps({"taken": taken, "also": also, "left": left}, indent=1))
    print(f"seed {options.seed}: {len(taken)} of {len(mutants)} built in, {len(left)} on the way that cannot be")


main()
