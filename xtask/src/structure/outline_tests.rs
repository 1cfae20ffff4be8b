//! Outlines of small files, each written to hold one way of declaring or naming.

use super::*;
use crate::structure::sources::sources;

fn with_outline<T>(text: &str, look: impl FnOnce(&Outline<'_>) -> T) -> T {
    let found = sources(&[("crates/metra/src/learn/mod.rs", text)]);
    look(&outline(&found[0]))
}

/// Each item as `module: visibility kind name`.
fn items(text: &str) -> Vec<String> {
    with_outline(text, |outline| {
        let show = |item: &Item<'_>| {
            let module = item.module.join("::");
            let visibility = match item.visibility {
                Visibility::Public => "pub ",
                Visibility::Restricted => "pub(..) ",
                Visibility::Private => "",
            };
            format!("{module}: {visibility}{} {}", item.kind, item.name)
        };
        outline.items.iter().map(show).collect()
    })
}

fn paths(text: &str) -> Vec<String> {
    with_outline(text, |outline| {
        let show = |path: &NamedPath<'_>| path.segments.join("::");
        outline.paths.iter().map(show).collect()
    })
}

fn members(text: &str) -> Vec<String> {
    with_outline(text, |outline| {
        let show = |member: &Member<'_>| format!("{}.{}", member.of.join("::"), member.name);
        outline.members.iter().map(show).collect()
    })
}

#[test]
fn items_have_kind_and_visibility() {
    assert_eq!(
        items("pub struct A { pub b: u8 }\nenum C { D }\npub(crate) trait E { fn f(); }"),
        [
            "learn: pub struct A",
            "learn: enum C",
            "learn: pub(..) trait E"
        ]
    );
    assert_eq!(
        items(
            "pub const fn f<const N: usize>(x: *const u8) -> &'static str {}\npub const X: u8 = 1;"
        ),
        ["learn: pub fn f", "learn: pub const X"]
    );
    assert_eq!(
        items(
            "pub async unsafe fn g() {}\npub type T = fn(u8);\npub(in crate::a) static mut S: u8 = 1;"
        ),
        [
            "learn: pub fn g",
            "learn: pub type T",
            "learn: pub(..) static S"
        ]
    );
}

#[test]
fn bodies_hold_no_items() {
    assert_eq!(
        items("fn f() { struct Inside; }\nimpl A for B { type C = D; fn g() {} }\nfn h() {}"),
        ["learn: fn f", "learn: fn h"]
    );
}

#[test]
fn modules_in_braces_and_calls_of_macros_hold_items() {
    assert_eq!(
        items("mod a { pub fn f() {} }\npub mod b;\nparameters! { pub struct C { d: u8 = 1, } }"),
        [
            "learn: mod a",
            "learn::a: pub fn f",
            "learn: pub mod b",
            "learn: pub struct C"
        ]
    );
}

#[test]
fn an_exported_macro_is_at_the_root() {
    assert_eq!(
        items(
            "#[macro_export]\nmacro_rules! a { () => { pub struct B; } }\nmacro_rules! c { () => {} }"
        ),
        [": pub macro a", "learn: macro c"]
    );
}

#[test]
fn members_are_public_and_of_no_trait() {
    let text = "impl<'a, F: Fn(u8) -> u8> super::A<F> {\n    pub const B: u8 = 1;\n    \
                pub const fn c() { fn inside() {} }\n    pub(crate) fn d() {}\n    fn e() {}\n}\n\
                impl F for A { fn g() {} }\nimpl A where for<'b> X: Y<'b> { pub fn h() {} }";
    assert_eq!(members(text), ["super::A.B", "super::A.c", "A.h"]);
    assert!(members("fn f() -> impl A { pub fn g() {} }").is_empty());
}

#[test]
fn paths_in_code_are_read() {
    assert_eq!(
        paths("#[x(y = a::b)]\nfn f() { super::g::<crate::T>(); for i in 0..self::n::M {} }"),
        ["a::b", "super::g", "crate::T", "self::n::M"]
    );
    assert_eq!(
        paths(
            "x.collect::<u8>(); <A as B>::C::d(); $crate::e::f(); $g::h(); pub(in crate::a) fn i() {}"
        ),
        ["crate::e::f"]
    );
}

#[test]
fn imports_have_their_module_and_visibility() {
    let text = "pub use a::{B, C};\npub(super) use d::E;\nmod f {\n    use super::*;\n}\n\
                fn g(_: impl Sized + use<'_>) { use h::I; }";
    with_outline(text, |outline| {
        let show = |found: &Use<'_>| {
            let path = found.leaf.segments.join("::");
            (path, found.visibility, found.module.len(), found.leaf.line)
        };
        assert_eq!(
            outline.uses.iter().map(show).collect::<Vec<_>>(),
            [
                ("a::B".into(), Visibility::Public, 1, 1),
                ("a::C".into(), Visibility::Public, 1, 1),
                ("d::E".into(), Visibility::Restricted, 1, 2),
                ("super".into(), Visibility::Private, 2, 4),
                ("h::I".into(), Visibility::Private, 1, 6),
            ]
        );
    });
}
