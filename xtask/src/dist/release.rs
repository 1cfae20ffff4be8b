//! What must be true before a release is made public: no address is a placeholder, and all files name one version.

use std::path::Path;

use anyhow::Result;

use crate::{Finding, tree, workspace_package};

/// The domain of addresses that the owners have to fill in; RFC 2606 keeps it from being anybody's.
const PLACEHOLDER: &str = "example.invalid";
/// Files that speak about placeholders.
const EXPLAIN: [&str; 2] = ["xtask/src/dist/release.rs", "docs/releasing.md"];

/// Everything that stands in the way of publishing, for a tag such as v1.2.3 where there is one.
pub fn release_check(root: &Path, tag: Option<&str>) -> Result<Vec<Finding>> {
    let files = tree::read(root)?;
    let texts = tree::texts(&files);
    let version = workspace_package(root, "version")?;
    let mut findings = check(&texts, &version);
    if let Some(tag) = tag.filter(|tag| *tag != format!("v{version}")) {
        let message =
            format!("the version is {version}, and the tag is {tag}; expected v{version}");
        findings.push(Finding::new("Cargo.toml", 1, message));
    }
    Ok(findings)
}

fn check(texts: &[(&str, &str)], version: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in texts {
        if EXPLAIN.contains(path) {
            continue;
        }
        for (number, line) in (1..).zip(text.lines()) {
            if line.contains(PLACEHOLDER) {
                let message =
                    format!("{PLACEHOLDER} is a placeholder; expected an address of the owners");
                findings.push(Finding::new(path, number, message));
            }
        }
    }
    let expected = [
        ("CHANGELOG.md", format!("## {version}")),
        ("CITATION.cff", format!("version: {version}")),
    ];
    for (path, start) in expected {
        let text = texts.iter().find(|(found, _)| *found == path);
        let text = text.map_or("", |(_, text)| text);
        if !text.lines().any(|line| line.starts_with(&start)) {
            let message = format!(
                "no line begins with {start:?}; expected one for the version of Cargo.toml"
            );
            findings.push(Finding::new(path, 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_other_versions_are_found() {
        let good = [
            ("CHANGELOG.md", "# Changelog\n\n## 1.2.3 (2026-01-01)\n"),
            ("CITATION.cff", "version: 1.2.3\n"),
            ("docs/releasing.md", "replace example.invalid\n"),
        ];
        assert!(check(&good, "1.2.3").is_empty());
        let found = check(&good, "1.2.4");
        assert_eq!(found.len(), 2);
        let found = check(
            &[good[0], good[1], ("a.md", "x\nhttps://example.invalid/m\n")],
            "1.2.3",
        );
        assert_eq!(
            (found.len(), found[0].line, found[0].path.as_str()),
            (1, 2, "a.md")
        );
    }

    #[test]
    fn a_tag_of_another_version_is_found() {
        let root = crate::repository_root().unwrap();
        let all = |tag: Option<&str>| release_check(&root, tag).unwrap().len();
        let version = workspace_package(&root, "version").unwrap();
        assert_eq!(all(None), all(Some(&format!("v{version}"))));
        assert_eq!(all(None) + 1, all(Some("v99.0.0")));
    }
}
