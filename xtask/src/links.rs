//! Relative links in Markdown files point at files of the repository.
//!
//! Addresses on the network are not asked: a check must give the same answer without one.

use std::collections::BTreeSet;

use crate::Finding;
use crate::markdown::{prose_lines, without_code_spans};

/// Checks one Markdown file; `paths` are all files of the repository.
pub(crate) fn check(path: &str, text: &str, paths: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in targets(text) {
        let file = target.split(['#', '?']).next().unwrap_or_default();
        if file.is_empty() || has_scheme(&target) {
            continue;
        }
        let reached = resolve(path, file);
        if !reached
            .as_deref()
            .is_some_and(|reached| exists(reached, paths))
        {
            let message = format!(
                "the link `{target}` leads nowhere; expected the path of a file of the repository, \
                 relative to this one"
            );
            findings.push(Finding::new(path, line, message));
        }
    }
    findings
}

/// The targets of `[text](target)`, `![text](target)` and `[name]: target`, outside code.
pub(crate) fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, content) in prose_lines(text) {
        let prose = without_code_spans(content);
        found.extend(
            inline_targets(&prose)
                .into_iter()
                .map(|target| (line, target)),
        );
        found.extend(definition_target(&prose).map(|target| (line, target)));
    }
    found
}

fn inline_targets(prose: &str) -> Vec<String> {
    let starts = prose
        .match_indices("](")
        .map(|(at, mark)| &prose[at + mark.len()..]);
    starts
        .filter_map(|rest| bare(&rest[..closing_bracket(rest)?]))
        .collect()
}

fn definition_target(prose: &str) -> Option<String> {
    // `[^1]: …` is a footnote, whose text is no target.
    let (name, rest) = prose.trim_start().strip_prefix('[')?.split_once("]:")?;
    if name.starts_with('^') || name.contains(']') {
        None
    } else {
        bare(rest)
    }
}

/// A target may hold pairs of round brackets of its own.
fn closing_bracket(rest: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Takes off the title that may follow a target, and the angle brackets around it.
fn bare(target: &str) -> Option<String> {
    let target = target.trim();
    let address = match target.strip_prefix('<') {
        Some(inner) => inner.split('>').next()?,
        None => target.split_whitespace().next()?,
    };
    Some(address.to_owned())
}

pub(crate) fn has_scheme(target: &str) -> bool {
    let scheme = target.split_once(':').map_or("", |(scheme, _)| scheme);
    !scheme.is_empty()
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// `None` if the target leaves the repository or is absolute.
pub(crate) fn resolve(path: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A folder exists if a file lies in it, which is also how git sees it.
fn exists(reached: &str, paths: &BTreeSet<String>) -> bool {
    let folder = format!("{reached}/");
    let first_inside = paths.range(folder.clone()..).next();
    reached.is_empty()
        || paths.contains(reached)
        || first_inside.is_some_and(|path| path.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let paths = ["README.md", "docs/guide/start.md", "docs/guide/plot.svg"];
        let paths = paths.into_iter().map(str::to_owned).collect();
        check(path, text, &paths)
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn links_to_nothing_are_found() {
        assert_eq!(lines("README.md", "a\n[b](docs/gide/start.md)\n"), [2]);
        assert_eq!(
            lines("docs/guide/start.md", "![b](plots.svg \"A title\")"),
            [1]
        );
        assert_eq!(lines("README.md", "see [b]\n\n[b]: missing.md\n"), [3]);
        assert_eq!(lines("README.md", "[out](../other/README.md)"), [1]);
        assert_eq!(lines("README.md", "[absolute](/README.md)"), [1]);
    }

    #[test]
    fn links_to_files_and_folders_pass() {
        let text = "[a](docs/guide/start.md#part), [b](docs/guide/), ![c](<docs/guide/plot.svg>)";
        assert!(lines("README.md", text).is_empty());
        assert!(lines("docs/guide/start.md", "[a](../../README.md) [b](plot.svg)").is_empty());
    }

    #[test]
    fn addresses_anchors_and_footnotes_pass() {
        let text = "[a](https://example.org/x) [b](#part) [c](mailto:a@example.org)\n[^1]: Text.\n";
        assert!(lines("README.md", text).is_empty());
    }

    #[test]
    fn code_is_not_prose() {
        let text = "```rust\nlet f = x[0](y);\n```\n`a[0](missing)` and [b](README.md)\n";
        assert!(lines("README.md", text).is_empty());
    }
}
