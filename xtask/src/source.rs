//! Just enough of Rust's lexical rules to look at code without its comments, strings and tests.
//!
//! A full parser would be a large dependency for a few questions (which paths, which modules, which
//! items, is there `unsafe`, what is a test), and all of them can be answered from tokens.

/// A word, `::`, or one other character, with its line counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// The text with comments and the insides of literals replaced by blanks; lines stay where they
/// were.
pub(crate) fn without_comments_and_literals(text: &str) -> String {
    without_comments(text, ' ')
}

/// The text with comments replaced by blanks and every character of a literal by `literal`, which
/// keeps lines visible that a literal fills alone.
pub(crate) fn without_comments(text: &str, literal: char) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block_comment(&chars, at),
            '"' => end_of_string(&chars, at + 1),
            '\'' => end_of_character(&chars, at),
            'r' if !continues_word(&chars, at) => end_of_raw_string(&chars, at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            let filling = if chars[at] == '/' { ' ' } else { literal };
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|&c| if c.is_whitespace() { c } else { filling }),
            );
            at = end;
        }
    }
    out
}

/// The code (see above) with every item under `#[cfg(test)]` replaced by blanks, also where the
/// attribute asks for a platform or a feature besides.
pub(crate) fn without_tests(code: &str) -> String {
    const MARKS: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test,"];
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = MARKS.iter().filter_map(|mark| rest.find(mark)).min() {
        out.push_str(&rest[..start]);
        let end = start + length_of_item(&rest[start..]);
        out.extend(
            rest[start..end]
                .chars()
                .map(|c| if c == '\n' { '\n' } else { ' ' }),
        );
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Splits code (see above) into tokens.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let length = if is_word(first) {
            code[at..].find(|c| !is_word(c)).unwrap_or(code.len() - at)
        } else if code[at..].starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if first == '\n' {
            line += 1;
        } else if !first.is_whitespace() {
            found.push(Token {
                text: &code[at..at + length],
                line,
            });
        }
        at += length;
    }
    found
}

/// The module that a file below a crate's `src` is: `learn/warca.rs` → learn, warca;
/// `learn/mod.rs` → learn; `lib.rs` and `main.rs` → nothing.
pub(crate) fn module_path(inside: &str) -> Vec<&str> {
    let stem = inside.strip_suffix(".rs").unwrap_or(inside);
    let mut modules: Vec<&str> = stem.split('/').collect();
    if modules.last() == Some(&"mod") || modules == ["lib"] || modules == ["main"] {
        modules.pop();
    }
    modules
}

/// Whether a character can stand inside an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn end_of_line(chars: &[char], start: usize) -> usize {
    chars[start..]
        .iter()
        .position(|&c| c == '\n')
        .map_or(chars.len(), |length| start + length)
}

fn end_of_block_comment(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

/// `start` is the first character after the opening quote.
fn end_of_string(chars: &[char], start: usize) -> usize {
    let mut at = start;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// A quote opens a character literal or a lifetime; for a lifetime the answer is `start`.
fn end_of_character(chars: &[char], start: usize) -> usize {
    if chars.get(start + 1) == Some(&'\\') {
        // The escaped character may itself be a quote, so the search begins behind it.
        let close = chars.iter().skip(start + 3).position(|&c| c == '\'');
        close.map_or(chars.len(), |length| start + 3 + length + 1)
    } else if chars.get(start + 2) == Some(&'\'') {
        start + 3
    } else {
        start
    }
}

/// `start` is at an `r`; the answer is `start` if no raw string begins there.
fn end_of_raw_string(chars: &[char], start: usize) -> usize {
    let hashes = chars[start + 1..].iter().take_while(|&&c| c == '#').count();
    let open = start + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return start;
    }
    let closes = |at: usize| {
        chars[at] == '"'
            && chars[at + 1..]
                .iter()
                .take(hashes)
                .filter(|&&c| c == '#')
                .count()
                == hashes
    };
    (open + 1..chars.len())
        .find(|&at| closes(at))
        .map_or(chars.len(), |at| at + 1 + hashes)
}

/// Whether the character at `at` belongs to a word begun before it. The prefixes of `br""` and
/// `cr""` do not count as such a beginning.
fn continues_word(chars: &[char], at: usize) -> bool {
    match at.checked_sub(1).map(|before| chars[before]) {
        Some('b' | 'c') => at >= 2 && is_word(chars[at - 2]),
        Some(before) => is_word(before),
        None => false,
    }
}

/// An item ends at the first `;` outside brackets or at the brace that closes its body.
fn length_of_item(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let code = without_tests(&without_comments_and_literals(text));
        tokens(&code)
            .iter()
            .map(|token| token.text.to_owned())
            .collect()
    }

    #[test]
    fn comments_are_blanked() {
        assert_eq!(words("a // b\n/* c /* d */ e */ f"), ["a", "f"]);
        assert_eq!(words("/// doc\n//! head\na"), ["a"]);
    }

    #[test]
    fn literals_are_blanked() {
        assert_eq!(words(r#"a "b \" c" d"#), ["a", "d"]);
        assert_eq!(words(r##"a r#"b " c"# d"##), ["a", "d"]);
        assert_eq!(words(r"a '\'' b '{' c"), ["a", "b", "c"]);
        assert_eq!(words("for <'a> x"), ["for", "<", "'", "a", ">", "x"]);
        assert_eq!(words("r#type"), ["r", "#", "type"]);
    }

    #[test]
    fn test_items_are_blanked_and_what_follows_is_kept() {
        assert_eq!(
            words("a;\n#[cfg(test)]\nmod tests { fn f() { b } }\nc"),
            ["a", ";", "c"]
        );
        assert_eq!(words("#[cfg(test)]\nmod tests;\nc"), ["c"]);
        assert_eq!(
            words("#[cfg(test)]\n#[allow(x)]\nfn f() -> [u8; 2] { b }\nc"),
            ["c"]
        );
        assert_eq!(words("#[cfg(all(test, unix))]\nmod tests { b }\nc"), ["c"]);
    }

    #[test]
    fn literals_can_be_filled_instead() {
        let text = "a \"b\nc d\" // e\n/* f */";
        assert_eq!(without_comments(text, '_'), "a __\n_ __     \n       ");
    }

    #[test]
    fn files_are_modules() {
        assert_eq!(module_path("learn/warca.rs"), ["learn", "warca"]);
        assert_eq!(module_path("learn/mod.rs"), ["learn"]);
        assert!(module_path("lib.rs").is_empty());
        assert!(module_path("main.rs").is_empty());
    }

    #[test]
    fn tokens_know_their_line() {
        let found = tokens("a\n\nb::c");
        let lines: Vec<_> = found.iter().map(|token| (token.text, token.line)).collect();
        assert_eq!(lines, [("a", 1), ("b", 3), ("::", 3), ("c", 3)]);
    }
}
