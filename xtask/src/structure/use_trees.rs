//! The names that a `use` binds, with groups, nested groups, globs and renames taken apart.

use crate::source::{Token, is_word};

/// One name of a `use`, or one glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf<'a> {
    /// The whole path. It begins with an empty name where it was written with a leading `::`, which
    /// can only mean another crate.
    pub(crate) segments: Vec<&'a str>,
    /// The name that it has from then on; `None` for a glob.
    pub(crate) name: Option<&'a str>,
    pub(crate) line: usize,
}

/// Reads the tree that begins behind the `use`; also returns the place behind its semicolon.
pub(crate) fn leaves<'a>(tokens: &[Token<'a>], start: usize) -> (Vec<Leaf<'a>>, usize) {
    let mut reader = Reader {
        tokens,
        at: start,
        found: Vec::new(),
    };
    reader.tree(&[]);
    let rest = tokens.iter().skip(reader.at);
    let end = reader.at + rest.take_while(|token| token.text != ";").count() + 1;
    (reader.found, end)
}

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    found: Vec<Leaf<'a>>,
}

impl<'a> Reader<'_, 'a> {
    fn text(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", |token| token.text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    fn tree(&mut self, prefix: &[&'a str]) {
        let mut segments = prefix.to_vec();
        loop {
            match self.text() {
                "::" => {
                    if segments.is_empty() {
                        segments.push("");
                    }
                    self.at += 1;
                }
                "{" => return self.group(&segments),
                "*" => {
                    let line = self.line();
                    self.at += 1;
                    return self.found.push(Leaf {
                        segments,
                        name: None,
                        line,
                    });
                }
                // Raw names and macro variables: the sign is skipped, the word follows.
                "#" | "$" => self.at += 1,
                word if word.starts_with(is_word) => {
                    let line = self.line();
                    self.at += 1;
                    // `a::{self}` names `a`; `self::a` begins at this module.
                    if word != "self" || segments.is_empty() {
                        segments.push(word);
                    }
                    if self.text() != "::" {
                        return self.leaf(segments, line);
                    }
                }
                _ => return,
            }
        }
    }

    fn group(&mut self, prefix: &[&'a str]) {
        self.at += 1;
        while !matches!(self.text(), "}" | ";" | "") {
            if self.text() == "," {
                self.at += 1;
                continue;
            }
            let before = self.at;
            self.tree(prefix);
            // What is no tree must not hold the reader up.
            self.at = self.at.max(before + 1);
        }
        self.at += 1;
    }

    fn leaf(&mut self, segments: Vec<&'a str>, line: usize) {
        let mut name = segments.last().copied();
        if self.text() == "as" {
            self.at += 1;
            name = Some(self.text());
            self.at += 1;
        }
        self.found.push(Leaf {
            segments,
            name,
            line,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    /// Each leaf as `path`, `path as name` or `path::*`.
    fn read(text: &str) -> Vec<String> {
        let tokens = tokens(text);
        let (found, end) = leaves(&tokens, 1);
        assert_eq!(tokens.get(end).map(|token| token.text), Some("next"));
        let show = |leaf: &Leaf<'_>| {
            let path = leaf.segments.join("::");
            match leaf.name {
                None => format!("{path}::*"),
                Some(name) if leaf.segments.last() == Some(&name) => path,
                Some(name) => format!("{path} as {name}"),
            }
        };
        found.iter().map(show).collect()
    }

    #[test]
    fn plain_paths() {
        assert_eq!(read("use crate::a::B; next"), ["crate::a::B"]);
        assert_eq!(read("use self::a; next"), ["self::a"]);
        assert_eq!(read("use super::super::a; next"), ["super::super::a"]);
        assert_eq!(read("use ::a::b; next"), ["::a::b"]);
    }

    #[test]
    fn groups_globs_and_renames() {
        assert_eq!(
            read("use super::{a::{self, B, c::{D}}, e::*, F as G,}; next"),
            [
                "super::a",
                "super::a::B",
                "super::a::c::D",
                "super::e::*",
                "super::F as G"
            ]
        );
        assert_eq!(read("use a::B as _; next"), ["a::B as _"]);
    }

    #[test]
    fn leaves_know_their_line() {
        let tokens = tokens("use a::{\nb,\nc};");
        let (found, _) = leaves(&tokens, 1);
        let lines: Vec<usize> = found.iter().map(|leaf| leaf.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn what_is_no_tree_ends() {
        assert_eq!(read("use $($name),*; next"), [""; 0]);
        assert_eq!(read("use a::{?, b}; next"), ["a::b"]);
    }
}
