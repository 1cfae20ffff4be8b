//! What file names say: `{label}_c{camera}` finds the person and the camera in `007_c2.png`.
//!
//! Names of data sets are short texts with fixed letters between the fields, so a pattern is written like
//! the name itself; regular expressions would do, but nobody gets `^(?P<label>[^/]+)_c…$` right at once.
//!
//! | in a pattern | stands for |
//! | --- | --- |
//! | `{name}` | one or more characters but `/`, kept in the column `name` |
//! | `{name:number}` | digits, perhaps after `-`, kept as a number: `007` is 7 |
//! | `*` | any characters but `/` |
//! | `**` | any characters |
//! | `\` | the next character as it is |
//! | anything else | itself |
//!
//! Fields take as few characters as will do. The ending (`.png`) is not looked at. A pattern without `/` is
//! held against the file's name, one with `/` against the path below the folder.

use crate::{Error, Result};
use std::path::Path;

/// A pattern of paths.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    tokens: Vec<Token>,
    whole_path: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Literal(char),
    Field {
        name: String,
        number: bool,
    },
    /// Any characters, `/` among them or not.
    Any {
        slash: bool,
    },
}

/// Columns that the table has of its own.
const TAKEN: [&str; 2] = ["path", "vector"];

impl Pattern {
    /// Read a pattern.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |problem: String| Error::found(format!("pattern {text:?}"), problem);
        let mut tokens: Vec<Token> = Vec::new();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            rest = &rest[next.len_utf8()..];
            let token = match next {
                '{' => {
                    let (inside, after) = rest
                        .split_once('}')
                        .ok_or_else(|| wrong("expected } after {, found none".into()))?;
                    rest = after;
                    let (name, number) = match inside.split_once(':') {
                        None => (inside, false),
                        Some((name, "number")) => (name, true),
                        Some((_, kind)) => {
                            return Err(wrong(format!("expected number after :, found {kind:?}")));
                        }
                    };
                    if !is_name(name) {
                        let expected = "a name of letters, digits and _ in braces";
                        return Err(wrong(format!("expected {expected}, found {name:?}")));
                    }
                    if TAKEN.contains(&name) {
                        let problem = format!("the table has a column {name:?} already");
                        return Err(wrong(problem));
                    }
                    let name = name.to_owned();
                    Token::Field { name, number }
                }
                '}' => return Err(wrong("expected { before }, found none".into())),
                '*' => {
                    let slash = rest.starts_with('*');
                    rest = rest.trim_start_matches('*');
                    Token::Any { slash }
                }
                '\\' => {
                    let escaped = rest.chars().next();
                    let escaped =
                        escaped.ok_or_else(|| wrong("expected a character after \\".into()))?;
                    rest = &rest[escaped.len_utf8()..];
                    Token::Literal(escaped)
                }
                other => Token::Literal(other),
            };
            if let (Token::Field { name, .. }, Some(Token::Field { name: before, .. })) =
                (&token, tokens.last())
            {
                let problem = format!(
                    "expected something between {{{before}}} and {{{name}}}: nothing says where \
                     one ends"
                );
                return Err(wrong(problem));
            }
            tokens.push(token);
        }
        let pattern = Pattern {
            text: text.to_owned(),
            whole_path: tokens
                .iter()
                .any(|token| matches!(token, Token::Literal('/') | Token::Any { slash: true })),
            tokens,
        };
        let names: Vec<&str> = pattern.names().collect();
        for (place, name) in names.iter().enumerate() {
            if names[..place].contains(name) {
                return Err(wrong(format!(
                    "expected every name once, found {name:?} twice"
                )));
            }
        }
        if names.is_empty() {
            return Err(wrong(
                "expected a field in braces, as {label}, found none".into(),
            ));
        }
        Ok(pattern)
    }

    /// The fields, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|token| match token {
            Token::Field { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The fields of a path below its folder; none where it does not fit.
    pub fn fields(&self, path: &Path) -> Option<Vec<String>> {
        let path = path.with_extension("");
        let shown = if self.whole_path {
            path.to_string_lossy()
        } else {
            path.file_name()?.to_string_lossy()
        };
        let text: Vec<char> = shown.chars().collect();
        let mut attempt = Attempt {
            tokens: &self.tokens,
            text: &text,
            failed: vec![false; (self.tokens.len() + 1) * (text.len() + 1)],
            taken: Vec::new(),
        };
        if !attempt.fits(0, 0) {
            return None;
        }
        let taken = attempt.taken.into_iter().rev();
        let numbers = self.tokens.iter().filter_map(|token| match token {
            Token::Field { number, .. } => Some(*number),
            _ => None,
        });
        let fields = taken.zip(numbers).map(|((start, end), number)| {
            let field: String = text[start..end].iter().collect();
            if number { plain(&field) } else { Some(field) }
        });
        fields.collect()
    }
}

/// Tries ways to fit, each once: a place from which the rest did not fit is not tried again.
struct Attempt<'a> {
    tokens: &'a [Token],
    text: &'a [char],
    failed: Vec<bool>,
    /// Where fields begin and end, the last first.
    taken: Vec<(usize, usize)>,
}

impl Attempt<'_> {
    fn fits(&mut self, token: usize, start: usize) -> bool {
        let place = token * (self.text.len() + 1) + start;
        if self.failed[place] {
            return false;
        }
        let Some(what) = self.tokens.get(token) else {
            return start == self.text.len();
        };
        let fits = match what {
            Token::Literal(letter) => {
                self.text.get(start) == Some(letter) && self.fits(token + 1, start + 1)
            }
            Token::Any { slash } => {
                let run = self.run(start, |letter| *slash || letter != '/');
                (start..=run).any(|end| self.fits(token + 1, end))
            }
            Token::Field { number, .. } => {
                let (least, run) = if *number {
                    let sign = usize::from(self.text.get(start) == Some(&'-'));
                    let run = self.run(start + sign, |letter| letter.is_ascii_digit());
                    (start + sign + 1, run)
                } else {
                    (start + 1, self.run(start, |letter| letter != '/'))
                };
                let end = (least..=run).find(|end| self.fits(token + 1, *end));
                if let Some(end) = end {
                    self.taken.push((start, end));
                }
                end.is_some()
            }
        };
        self.failed[place] = !fits;
        fits
    }

    /// Where a run of letters ends.
    fn run(&self, start: usize, belongs: impl Fn(char) -> bool) -> usize {
        let letters = self.text.get(start..).unwrap_or_default();
        start
            + letters
                .iter()
                .take_while(|letter| belongs(**letter))
                .count()
    }
}

fn is_name(name: &str) -> bool {
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    letters && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// A number as it prints; none where it is too long for 64 bits.
fn plain(digits: &str) -> Option<String> {
    digits.parse::<i64>().ok().map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pattern: &str, path: &str) -> Option<Vec<String>> {
        Pattern::parse(pattern).unwrap().fields(Path::new(path))
    }

    #[track_caller]
    fn finds(pattern: &str, path: &str, expected: &[&str]) {
        assert_eq!(
            fields(pattern, path).as_deref(),
            Some(&expected.iter().map(|f| f.to_string()).collect::<Vec<_>>()[..])
        );
    }

    #[test]
    fn names_of_well_known_sets() {
        finds("{label}_c{camera}", "007_c2.png", &["007", "2"]);
        finds(
            "{label:number}_c{camera:number}",
            "deep/er/007_c2.png",
            &["7", "2"],
        );
        let market = "{label:number}_c{camera:number}s*";
        finds(
            market,
            "bounding_box_test/-1_c3s2_000451_03.jpg",
            &["-1", "3"],
        );
        finds("{label}/*", "Coast/image_0001.jpg", &["Coast"]);
        finds("**/{label}/{view}", "a/b/c/cat/7.webp", &["cat", "7"]);
        finds(
            "page-{time}",
            "page-2024-05-01T12.00.png",
            &["2024-05-01T12.00"],
        );
    }

    #[test]
    fn what_does_not_fit_gives_nothing() {
        for (pattern, path) in [
            ("{label}_c{camera}", "007.png"),
            ("{label}_c{camera}", "_c2.png"),
            ("{label:number}_*", "x7_1.png"),
            ("{label:number}", "99999999999999999999.png"),
            ("{label}/*", "image.png"),
            ("{label}/*", "a/b/image.png"),
            ("{label:number}", "-.png"),
        ] {
            assert_eq!(fields(pattern, path), None, "{pattern} {path}");
        }
    }

    #[test]
    fn fields_take_as_little_as_will_do_and_letters_can_be_escaped() {
        finds("{a}_{b}", "1_2_3", &["1", "2_3"]);
        finds("{a}_{b:number}", "1_2_3", &["1_2", "3"]);
        finds(r"\{{a}\}\*", "{x}*.png", &["x"]);
        finds("ä{a}é", "äßé.png", &["ß"]);
    }

    /// Many stars and a path that fails at its end: tried naively, this takes longer than anyone waits.
    #[test]
    fn no_pattern_takes_forever() {
        let pattern = format!("{}{{label}}x", "*a".repeat(30));
        assert_eq!(fields(&pattern, &"a".repeat(200)), None);
    }

    #[test]
    fn patterns_that_say_nothing_are_refused() {
        for (pattern, word) in [
            ("{label", "expected }"),
            ("label}", "expected {"),
            ("{la bel}", "letters"),
            ("{}", "letters"),
            ("{label:date}", "expected number"),
            ("{a}{b}", "something between"),
            ("{a}_{a}", "twice"),
            ("{path}", "already"),
            ("a*", "a field"),
            ("{a}\\", "a character after"),
        ] {
            let error = Pattern::parse(pattern).unwrap_err().to_string();
            assert!(error.contains(word), "{pattern}: {error}");
        }
    }
}
