//! Words in names that only this project uses in their sense. A reader who knows the field looks for
//! its own words, so each of these is to become one of them.

use std::collections::BTreeMap;

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

/// How often each word stands in the code's names; one that stands twice in a name counts twice.
pub(crate) fn counts(sources: &[Source<'_>]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::from(WORDS.map(|word| (word, 0)));
    for source in sources {
        for token in tokens(&source.code) {
            if !token.text.starts_with(is_word) {
                continue;
            }
            for part in parts(token.text) {
                if let Some(word) = WORDS.iter().find(|word| part.eq_ignore_ascii_case(word)) {
                    *counts.entry(word).or_default() += 1;
                }
            }
        }
    }
    counts
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
        let mut counts = counts(&sources);
        assert_eq!(counts.len(), WORDS.len());
        counts.retain(|_, number| *number > 0);
        assert_eq!(counts, [("kin", 1), ("told", 3)].into());
    }
}
