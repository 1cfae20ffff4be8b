//! Words in names that only this project uses in their sense. A reader who knows the field looks for
//! its own words, so each of these is to become one of them.

use std::collections::BTreeMap;

use crate::Finding;
use crate::source::{is_word, tokens};
use crate::structure::sources::Source;

/// The private words.
pub(crate) const WORDS: [&str; 16] = [
    "told",
    "asked",
    "elsewhere",
    "kin",
    "ground",
    "stretch",
    "desk",
    "news",
    "mood",
    "heaps",
    "gave",
    "wish",
    "away",
    "kept",
    "said",
    "heard",
];

/// One private word inside a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Occurrence<'a> {
    pub(crate) path: &'a str,
    pub(crate) line: usize,
    pub(crate) name: &'a str,
    pub(crate) word: &'static str,
}

/// Every private word in the code's names; one that stands twice in a name counts twice.
pub(crate) fn occurrences<'a>(sources: &'a [Source<'a>]) -> Vec<Occurrence<'a>> {
    let mut found = Vec::new();
    for source in sources {
        for token in tokens(&source.code) {
            if !token.text.starts_with(is_word) {
                continue;
            }
            for part in parts(token.text) {
                let known = WORDS.iter().find(|word| part.eq_ignore_ascii_case(word));
                found.extend(known.map(|word| Occurrence {
                    path: source.path,
                    line: token.line,
                    name: token.text,
                    word,
                }));
            }
        }
    }
    found
}

/// How often each word occurs.
pub(crate) fn counts(occurrences: &[Occurrence<'_>]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::from(WORDS.map(|word| (word, 0)));
    for occurrence in occurrences {
        *counts.entry(occurrence.word).or_default() += 1;
    }
    counts
}

/// One finding for each occurrence.
pub(crate) fn findings(occurrences: &[Occurrence<'_>]) -> Vec<Finding> {
    let finding = |found: &Occurrence<'_>| {
        let message = format!(
            "`{}` has the private word `{}`; expected a word of the field",
            found.name, found.word
        );
        Finding::new(found.path, found.line, message)
    };
    occurrences.iter().map(finding).collect()
}

/// The words of a name: `row_count`, `rowCount` and `RowCount` → row, count.
fn parts(name: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for piece in name.split('_') {
        let chars: Vec<(usize, char)> = piece.char_indices().collect();
        let mut start = 0;
        for at in 1..chars.len() {
            let next_is_small = chars.get(at + 1).is_some_and(|(_, c)| c.is_lowercase());
            // The last capital of `HTMLPage` begins the next word.
            if chars[at].1.is_uppercase() && (!chars[at - 1].1.is_uppercase() || next_is_small) {
                found.push(&piece[start..chars[at].0]);
                start = chars[at].0;
            }
        }
        found.push(&piece[start..]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::sources::sources;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(parts("row_count"), ["row", "count"]);
        assert_eq!(parts("KinOfRows"), ["Kin", "Of", "Rows"]);
        assert_eq!(parts("HTMLPage2Kin"), ["HTML", "Page2", "Kin"]);
        assert_eq!(parts("RECIPE_WORDS"), ["RECIPE", "WORDS"]);
        assert_eq!(parts("größeÄndern"), ["größe", "Ändern"]);
    }

    #[test]
    fn whole_words_in_code_are_counted() {
        let text = "// told\nmod told;\nfn as_told(kind: Kin) -> &'static str { \"told\" }\n\
                    const TOLD: u8 = background;\n#[cfg(test)]\nmod tests { fn told() {} }";
        let sources = sources(&[("python/src/lib.rs", text), ("docs/told.md", "told")]);
        let found = occurrences(&sources);
        let mut counts = counts(&found);
        assert_eq!(counts.len(), WORDS.len());
        counts.retain(|_, number| *number > 0);
        assert_eq!(counts, [("kin", 1), ("told", 3)].into());
        let findings = findings(&found);
        assert_eq!(findings.len(), 4);
        assert_eq!(findings[1].line, 3);
        assert!(findings[1].message.starts_with("`as_told`"));
    }
}
