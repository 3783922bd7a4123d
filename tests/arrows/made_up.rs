//! Small crates, made up, that show what is found and what is not.

use crate::arrows::Arrows;
use crate::source::Source;

/// The arrows of a crate of these files.
fn arrows(files: &[(&str, &str)]) -> Arrows {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    Arrows::of(&Source::read(&folder.path().join("lib.rs")))
}

/// That these two files of different modules point to each other, and what is named.
#[track_caller]
fn one_circle(files: &[(&str, &str)], lines: [&str; 2]) {
    let found = arrows(files).circle_of_modules();
    let expected = format!("2 modules in one knot (a, b); a shortest circle:\n  {}", lines.join("\n  "));
    assert_eq!(found, [expected]);
}

#[track_caller]
fn none(files: &[(&str, &str)]) {
    let arrows = arrows(files);
    let found = [arrows.circle_of_modules(), arrows.circles_across_folders()].concat();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

const A_USES_B: (&str, &str) = ("a.rs", "use crate::b::B; pub struct A; pub fn go() -> B { B }");

#[test]
fn one_way_is_no_circle() {
    none(&[("lib.rs", "mod a; mod b;"), A_USES_B, ("b.rs", "pub struct B;")]);
}

#[test]
fn a_circle_of_modules_is_found_and_said_arrow_by_arrow() {
    one_circle(
        &[
            ("lib.rs", "mod a; mod b;"),
            A_USES_B,
            ("b.rs", "use crate::a::{self, A}; pub struct B(A); fn f() { a::go() }"),
        ],
        ["a.rs -> b.rs: B", "b.rs -> a.rs: A, go"],
    );
}

#[test]
fn a_path_through_super_is_followed() {
    one_circle(
        &[
            ("lib.rs", "mod a; mod b;"),
            A_USES_B,
            ("b.rs", "mod c; pub struct B;"),
            ("b/c.rs", "use super::super::a::A; fn f(_: A) {}"),
        ],
        ["a.rs -> b.rs: B", "b/c.rs -> a.rs: A"],
    );
}

#[test]
fn a_nested_tree_of_names_is_followed() {
    one_circle(
        &[
            ("lib.rs", "mod a; mod b; mod c;"),
            A_USES_B,
            ("b.rs", "use crate::{c::{self, C}, a::{A as Other, inner::{Deep}}}; pub struct B(Other, Deep);"),
            ("a/inner.rs", "pub struct Deep;"),
            ("c.rs", "pub struct C;"),
            ("a.rs", "pub mod inner; use crate::b::B; pub struct A;"),
        ],
        ["a.rs -> b.rs: B", "b.rs -> a.rs: A\n  b.rs -> a/inner.rs: Deep"],
    );
}

#[test]
fn a_path_in_the_middle_of_a_function_is_followed() {
    let functions = [
        "pub struct B; fn f() { let _ = crate::a::go(); }",
        "pub struct B; fn f() -> Option<crate::a::go> { None }",
        "pub struct B; fn f() { println!(\"{:?}\", [crate::a::go()]) }",
        "pub struct B; fn f() { use crate::a; a::go(); }",
        "pub struct B; mod inline { fn f() { super::super::a::go(); } }",
        "pub struct B; #[derive(X)] struct C { #[serde(with = \"crate::a::go\")] field: u8 }",
        "pub struct B; macro_rules! m { () => { $crate::a::go() } }",
    ];
    for function in functions {
        one_circle(
            &[("lib.rs", "mod a; mod b;"), A_USES_B, ("b.rs", function)],
            ["a.rs -> b.rs: B", "b.rs -> a.rs: go"],
        );
    }
}

#[test]
fn a_name_handed_on_points_to_where_it_is_defined() {
    let c = |text| {
        [("lib.rs", "mod a; mod b; mod c;"), A_USES_B, ("b.rs", "use crate::c::A; pub struct B(A);"), ("c.rs", text)]
    };
    one_circle(&c("pub use crate::a::A;"), ["a.rs -> b.rs: B", "b.rs -> a.rs: A"]);
    one_circle(&c("pub use crate::a::*;"), ["a.rs -> b.rs: B", "b.rs -> a.rs: A"]);
    none(&c("pub struct A;"));
}

#[test]
fn a_table_of_contents_points_to_nothing() {
    let room = |contents| {
        arrows(&[
            ("lib.rs", "mod a; pub use a::A;"),
            ("a.rs", contents),
            ("a/inner.rs", "mod deep; pub use deep::A; pub fn f() { super::own() }"),
            ("a/inner/deep.rs", "pub struct A; impl A { fn f() { crate::a::own() } }"),
        ])
    };
    let listed = room("mod inner; pub use inner::A; pub fn own() {}");
    assert_eq!(listed.circles_across_folders(), [""; 0]);
    let used = room("mod inner; pub use inner::A; pub fn own() { A::f() }").circles_across_folders();
    let expected = ["  a.rs -> a/inner/deep.rs: A", "  a/inner/deep.rs -> a.rs: own"].join("\n");
    assert_eq!(used, [format!("2 files in a knot across folders; a shortest circle:\n{expected}")]);
}

#[test]
fn files_of_one_folder_may_form_a_circle() {
    let files = [
        ("lib.rs", "mod room;"),
        ("room.rs", "mod a; mod b; pub struct R; pub fn go() { a::f() }"),
        ("room/a.rs", "pub fn f() { super::b::f() }"),
        ("room/b.rs", "use super::{R, a}; pub fn f() -> R { a::f(); R }"),
    ];
    none(&files);
    assert_eq!(arrows(&files).files_in_circles(), "3 of 4 files in circles [3]");
}

#[test]
fn a_circle_over_the_border_of_a_folder_is_found_inside_a_module() {
    let files = |b| {
        arrows(&[
            ("lib.rs", "mod room;"),
            ("room.rs", "mod a; mod b;"),
            ("room/a.rs", "pub mod deep; pub struct A;"),
            ("room/a/deep.rs", "use crate::room::b; pub fn f() { b::f() }"),
            ("room/b.rs", b),
        ])
    };
    assert_eq!(files("pub fn f() -> super::a::A { todo!() }").circles_across_folders(), [""; 0]);
    let found = files("pub fn f() { super::a::deep::f() }");
    assert_eq!(found.circle_of_modules(), [""; 0]);
    assert_eq!(
        found.circles_across_folders(),
        [
            "2 files in a knot across folders; a shortest circle:\n  room/a/deep.rs -> room/b.rs: f\n  room/b.rs -> room/a/deep.rs: f"
        ]
    );
}

#[test]
fn two_modules_form_a_circle_even_where_no_two_files_do() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod one; pub struct A;"),
        ("a/one.rs", "use crate::b::B; fn f(_: B) {}"),
        ("b.rs", "mod one; pub struct B;"),
        ("b/one.rs", "use crate::a::A; fn f(_: A) {}"),
    ];
    one_circle(&files, ["a/one.rs -> b.rs: B", "b/one.rs -> a.rs: A"]);
    assert_eq!(arrows(&files).circles_across_folders(), [""; 0]);
}

#[test]
fn what_only_tests_see_is_left_out() {
    none(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        A_USES_B,
        (
            "b.rs",
            "pub struct B; #[cfg(test)] mod tests { use crate::a::A; } #[cfg(test)] mod more; #[cfg(test)] use crate::a;
             impl B { #[cfg(test)] fn f() { crate::a::go() } }",
        ),
        ("b/more.rs", "use crate::a::A;"),
        ("c.rs", "#![cfg(test)] use crate::b::B;"),
    ]);
}

#[test]
fn other_crates_and_names_of_the_same_sound_are_no_arrows() {
    none(&[
        ("lib.rs", "mod a; mod b;"),
        A_USES_B,
        ("b.rs", "use ::a::A; use other::a::go; pub struct B; fn f(a: B) { let _ = (a.a, other::a::A, go()); }"),
    ]);
}

#[test]
#[should_panic = "missing.rs"]
fn a_module_whose_file_is_not_found_is_not_passed_over() {
    arrows(&[("lib.rs", "mod missing;")]);
}
