//! The outline of a source file: its items with their visibility, the public members of its types,
//! what it imports, and every path that its code names.
//!
//! What a macro makes is unknown, but what stands in the call of a macro at the level of a module is
//! read as items, because that is how learners declare their structs of parameters.

use crate::source::{Token, is_word, tokens};
use crate::structure::sources::Source;
use crate::structure::use_trees::{Leaf, leaves};

/// Who may name an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Plain `pub`.
    Public,
    /// `pub(crate)`, `pub(super)` and the like.
    Restricted,
    /// No `pub`.
    Private,
}

/// An item at the level of a module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Item<'a> {
    /// The module that it is in, from the root of the crate.
    pub(crate) module: Vec<&'a str>,
    /// The keyword that declares it, or `macro`.
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) visibility: Visibility,
    pub(crate) line: usize,
}

/// A public function or constant in an `impl` block that is of no trait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    pub(crate) module: Vec<&'a str>,
    /// The path that names the type.
    pub(crate) of: Vec<&'a str>,
    pub(crate) name: &'a str,
}

/// One name that a `use` binds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Use<'a> {
    pub(crate) module: Vec<&'a str>,
    pub(crate) visibility: Visibility,
    pub(crate) leaf: Leaf<'a>,
}

/// A path of at least two names in the code, outside of `use`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedPath<'a> {
    pub(crate) module: Vec<&'a str>,
    pub(crate) segments: Vec<&'a str>,
    pub(crate) line: usize,
}

/// What a file declares and names.
#[derive(Debug, Default)]
pub(crate) struct Outline<'a> {
    pub(crate) items: Vec<Item<'a>>,
    pub(crate) members: Vec<Member<'a>>,
    pub(crate) uses: Vec<Use<'a>>,
    pub(crate) paths: Vec<NamedPath<'a>>,
}

/// What an open brace belongs to.
enum Scope<'a> {
    Module(&'a str),
    /// The call of a macro among items.
    Call,
    /// An `impl` block of a type itself.
    Inherent(Vec<&'a str>),
    Body,
}

/// Reads the outline of a source.
pub(crate) fn outline<'a>(source: &'a Source<'a>) -> Outline<'a> {
    let tokens = tokens(&source.code);
    let mut reader = Reader {
        tokens: &tokens,
        module: source.module(),
        scopes: Vec::new(),
        next: None,
        exports_macro: false,
        outline: Outline::default(),
    };
    let mut at = 0;
    while at < tokens.len() {
        at = reader.step(at);
    }
    reader.outline
}

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    module: Vec<&'a str>,
    scopes: Vec<Scope<'a>>,
    /// What the next open brace belongs to, where its head has been read already.
    next: Option<Scope<'a>>,
    exports_macro: bool,
    outline: Outline<'a>,
}

impl<'a> Reader<'_, 'a> {
    /// The text of a token; empty outside the file.
    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    fn before(&self, at: usize, distance: usize) -> &'a str {
        at.checked_sub(distance).map_or("", |at| self.text(at))
    }

    /// Reads what begins at a token and returns where to go on.
    fn step(&mut self, at: usize) -> usize {
        match self.text(at) {
            "{" => self.open(at),
            "}" => self.close(),
            "macro_export" => self.exports_macro = true,
            "use" if self.text(at + 1) != "<" => return self.import(at),
            "mod" if self.among_items() && starts_word(self.text(at + 1)) => {
                self.item(at, "mod", at + 1);
                if self.text(at + 2) == "{" {
                    self.next = Some(Scope::Module(self.text(at + 1)));
                }
                return at + 2;
            }
            "macro_rules" if self.text(at + 1) == "!" => {
                self.declare_macro(at);
                return at + 3;
            }
            "impl" if self.among_items() && self.begins_item(at) => {
                self.next = Some(match self.inherent_type(at) {
                    Some(of) => Scope::Inherent(of),
                    None => Scope::Body,
                });
            }
            "struct" | "enum" | "trait" | "union" | "type" | "fn" | "const" | "static" => {
                self.declaration(at);
            }
            text if starts_word(text) => return self.path(at),
            _ => {}
        }
        at + 1
    }

    fn open(&mut self, at: usize) {
        let scope = match self.next.take() {
            Some(scope) => scope,
            None if self.before(at, 1) == "!" && self.among_items() => Scope::Call,
            None => Scope::Body,
        };
        if let Scope::Module(name) = scope {
            self.module.push(name);
        }
        self.scopes.push(scope);
    }

    fn close(&mut self) {
        if let Some(Scope::Module(_)) = self.scopes.pop() {
            self.module.pop();
        }
    }

    /// Whether the place is the level of a module, and not inside a body.
    fn among_items(&self) -> bool {
        let mut scopes = self.scopes.iter();
        scopes.all(|scope| matches!(scope, Scope::Module(_) | Scope::Call))
    }

    /// Whether `impl` begins an item; in a type, as in `-> impl Trait`, something else precedes it.
    fn begins_item(&self, at: usize) -> bool {
        matches!(
            self.before(at, 1),
            "" | "}" | "{" | ";" | "]" | "unsafe" | "default"
        )
    }

    fn import(&mut self, at: usize) -> usize {
        let (found, end) = leaves(self.tokens, at + 1);
        let visibility = self.visibility(at);
        for leaf in found {
            self.outline.uses.push(Use {
                module: self.module.clone(),
                visibility,
                leaf,
            });
        }
        end
    }

    fn declare_macro(&mut self, at: usize) {
        let exported = std::mem::take(&mut self.exports_macro);
        let name = self.text(at + 2);
        self.outline.items.push(Item {
            // The compiler puts an exported macro at the root, wherever it is declared.
            module: match exported {
                true => Vec::new(),
                false => self.module.clone(),
            },
            kind: "macro",
            name,
            visibility: match exported {
                true => Visibility::Public,
                false => Visibility::Private,
            },
            line: self.tokens[at].line,
        });
        self.next = Some(Scope::Body);
    }

    /// The path of the type for `impl Type {`; `None` for `impl Trait for Type {`.
    fn inherent_type(&self, at: usize) -> Option<Vec<&'a str>> {
        let mut at = at + 1;
        if self.text(at) == "<" {
            at = self.behind_angles(at);
        }
        let (of, mut end) = self.segments(at);
        while !matches!(self.text(end), "{" | ";" | "") {
            // A bound such as `for<'b> Fn(&'b T)` is of no trait's implementation.
            if self.text(end) == "for" && self.text(end + 1) != "<" {
                return None;
            }
            end += 1;
        }
        (!of.is_empty()).then_some(of)
    }

    /// Where the generics end that open at `at`; the `>` of an arrow closes nothing.
    fn behind_angles(&self, mut at: usize) -> usize {
        let mut depth = 0_usize;
        while at < self.tokens.len() {
            match self.text(at) {
                "<" => depth += 1,
                ">" if !matches!(self.before(at, 1), "-" | "=") => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        at
    }

    fn declaration(&mut self, at: usize) {
        let name_at = match (self.text(at), self.text(at + 1)) {
            ("static", "mut") => at + 2,
            _ => at + 1,
        };
        let kind = self.text(at);
        let name = self.text(name_at);
        let is_name = starts_word(name) && name != "_";
        // Not declarations: `const fn`, `*const T`, `&'static T`, `<const N: usize>`, `r#type`.
        if !is_name
            || (kind == "const" && matches!(name, "fn" | "unsafe" | "async" | "extern"))
            || matches!(self.before(at, 1), "*" | "'" | "<" | "," | "#")
        {
            return;
        }
        if self.among_items() {
            self.item(at, kind, name_at);
        } else if let Some(Scope::Inherent(of)) = self.scopes.last()
            && self.visibility(at) == Visibility::Public
        {
            self.outline.members.push(Member {
                module: self.module.clone(),
                of: of.clone(),
                name,
            });
        }
    }

    fn item(&mut self, at: usize, kind: &'a str, name_at: usize) {
        self.outline.items.push(Item {
            module: self.module.clone(),
            kind,
            name: self.text(name_at),
            visibility: self.visibility(at),
            line: self.tokens[at].line,
        });
    }

    /// The visibility that stands before a keyword.
    fn visibility(&self, mut at: usize) -> Visibility {
        const QUALIFIERS: [&str; 5] = ["const", "async", "unsafe", "extern", "auto"];
        while QUALIFIERS.contains(&self.before(at, 1)) {
            at -= 1;
        }
        if self.before(at, 1) == "pub" {
            return Visibility::Public;
        }
        if self.before(at, 1) != ")" {
            return Visibility::Private;
        }
        let open = (0..at).rev().find(|&at| self.text(at) == "(");
        match open.map(|open| self.before(open, 1)) {
            Some("pub") => Visibility::Restricted,
            _ => Visibility::Private,
        }
    }

    /// Reads the path that may begin at a word and returns where to go on.
    fn path(&mut self, at: usize) -> usize {
        let (segments, end) = self.segments(at);
        let before = self.before(at, 1);
        // The range `..a::b` is a path; the method in `x.collect::<T>()` is none.
        let is_method = before == "." && self.before(at, 2) != ".";
        let is_variable = before == "$" && segments[0] != "crate";
        let is_visibility = before == "in" && self.before(at, 3) == "pub";
        if segments.len() > 1 && before != "::" && !is_method && !is_variable && !is_visibility {
            self.outline.paths.push(NamedPath {
                module: self.module.clone(),
                segments,
                line: self.tokens[at].line,
            });
        }
        end
    }

    /// The words joined by `::` from `at`, and where they end.
    fn segments(&self, at: usize) -> (Vec<&'a str>, usize) {
        let mut segments = Vec::new();
        let mut end = at;
        while starts_word(self.text(end)) {
            segments.push(self.text(end));
            end += 1;
            if self.text(end) != "::" || !starts_word(self.text(end + 1)) {
                break;
            }
            end += 1;
        }
        (segments, end)
    }
}

fn starts_word(text: &str) -> bool {
    text.starts_with(is_word)
}

#[cfg(test)]
#[path = "outline_tests.rs"]
mod tests;
