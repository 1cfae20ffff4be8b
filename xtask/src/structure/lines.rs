//! Lines of Rust without blank lines, lines of comment only and tests: what there is to read.

use std::collections::BTreeMap;

use crate::source::{without_comments, without_tests};
use crate::structure::sources::Source;

/// Lines of each package.
pub(crate) fn lines<'a>(sources: &[Source<'a>]) -> BTreeMap<&'a str, usize> {
    let mut found = BTreeMap::new();
    for source in sources {
        *found.entry(source.package).or_default() += of_text(source.text);
    }
    found
}

fn of_text(text: &str) -> usize {
    // A literal is filled and not blanked: a line inside a long text is a line of code.
    let code = without_tests(&without_comments(text, '_'));
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::sources::sources;

    #[test]
    fn comments_blank_lines_and_tests_do_not_count() {
        let text = "//! Head.\n\nfn f() { // why\n    /* a\n       b */\n    g()\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn h() {}\n}\n";
        assert_eq!(of_text(text), 3);
    }

    #[test]
    fn lines_of_a_literal_count() {
        assert_eq!(
            of_text("const A: &str = \"first\n// second\n\nfourth\";\n"),
            3
        );
    }

    #[test]
    fn packages_are_counted_apart() {
        let sources = sources(&[
            ("crates/metra/src/lib.rs", "fn f() {}\n"),
            ("crates/metra/src/error.rs", "fn f() {\n}\n"),
            ("crates/metra/src/tests.rs", "fn f() {}\n"),
            ("xtask/src/lib.rs", "fn f() {}\n"),
        ]);
        assert_eq!(lines(&sources), [("crates/metra", 3), ("xtask", 1)].into());
    }
}
