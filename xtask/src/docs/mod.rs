//! Documents that quote results, written from the files in `docs/results/data`: a page for each comparison, the pages of
//! codes and benches, all claims of the papers, and every figure that a guide quotes.
//!
//! With `check` nothing is written: what differs from the data is found, and so is a figure in a guide that is quoted
//! from nowhere.

mod claims;
mod data;
mod fusion;
mod headline;
mod label_sets;
mod migration;
mod peers;
mod prose;
mod quotes;
mod recorded;
mod service;
mod several_vectors;
mod two_towers;
mod warm_start;
mod zero_shot;

pub(crate) use self::data::{Comparison, FOLDER};

use self::data::Data;
use crate::{Finding, bench, codes, reproduce, tree};
use anyhow::Result;
use metra::experiment::compare::Gain;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Write all documents that quote results, or check that they are as they would be written.
pub fn docs(root: &Path, check: bool) -> Result<Vec<Finding>> {
    let data = Data::read(root)?;
    let mut findings = one_build(&data);
    let mut documents = BTreeMap::new();
    for name in reproduce::experiments(root)? {
        match data.comparisons.get(&name) {
            Some(comparison) => {
                let page = page(&name, comparison, &data);
                documents.insert(format!("docs/results/{name}.md"), page);
            }
            None => {
                let message = format!(
                    "it has no results; expected {FOLDER}/{name}.json, which `cargo xtask reproduce {name}` writes"
                );
                let path = format!("experiments/{name}.toml");
                findings.push(Finding::new(&path, 1, message));
            }
        }
    }
    documents.insert("docs/results/codes.md".to_owned(), codes::codes_page(root)?);
    documents.extend(bench::recorded_pages(root)?);
    let pages = [
        ("docs/results/README.md", headline::page(&data)?),
        (headline::CHART, headline::chart(&data)?),
        ("docs/results/claims.md", claims::page(root, &data)?),
        ("docs/results/recorded.md", recorded::page(&data)?),
        ("docs/results/fusion.md", fusion::page(&data)?),
        ("docs/results/label_sets.md", label_sets::page(&data)?),
        ("docs/results/migration.md", migration::page(&data)?),
        ("docs/results/service.md", service::page(&data)?),
        (
            "docs/results/several_vectors.md",
            several_vectors::page(&data)?,
        ),
        ("docs/results/two_towers.md", two_towers::page(&data)?),
        ("docs/results/warm_start.md", warm_start::page(&data)?),
        ("docs/results/zero_shot.md", zero_shot::page(&data)?),
    ];
    documents.extend(pages.map(|(path, text)| (path.to_owned(), text)));
    let files = tree::read(root)?;
    let texts: BTreeMap<&str, &str> = tree::texts(&files).into_iter().collect();
    for (path, text) in &texts {
        if path.ends_with(".md") && !documents.contains_key(*path) {
            let (text, found) = prose::updated(path, text, &data);
            findings.extend(found);
            documents.insert((*path).to_owned(), text);
        }
    }
    for (path, text) in &documents {
        let found = texts.get(path.as_str()).copied().unwrap_or_default();
        if found == text {
            continue;
        }
        if check {
            findings.push(difference(path, found, text));
        } else {
            std::fs::write(root.join(path), text)?;
        }
    }
    findings.sort();
    Ok(findings)
}

/// The page of a comparison.
fn page(name: &str, comparison: &Comparison, data: &Data) -> String {
    let mut text = metra_report::markdown(&comparison.results, Some(&comparison.costs));
    let Comparison { commit, cpu, .. } = comparison;
    let digest = &comparison.results.code_digest;
    text.push_str(&format!(
        "\nFigures: [{name}.json](data/{name}.json), of commit {commit} (digest of the library's sources {digest}) on {cpu}.\n"
    ));
    let again = format!("{name}_fresh");
    let first = name.strip_suffix("_fresh").unwrap_or_default();
    if data.comparisons.contains_key(&again) {
        text.push_str(&format!(
            "\nThe same methods on newly drawn parts: [{again}]({again}.md).\n"
        ));
    } else if data.comparisons.contains_key(first) {
        text.push_str(&format!(
            "\nThe same methods on the parts that their settings were settled with: [{first}]({first}.md).\n"
        ));
    }
    text
}

/// A difference with its interval, as it may stand in Markdown.
fn interval(gain: &Gain) -> String {
    let [difference, low, high] = [gain.difference, gain.low, gain.high].map(signed);
    format!("{difference} \\[{low}, {high}\\]")
}

fn signed(value: f64) -> String {
    format!("{value:+.4}").replace('-', "−")
}

/// Comparisons of several builds are no comparison.
fn one_build(data: &Data) -> Vec<Finding> {
    let digests: BTreeSet<&str> = (data.comparisons.values())
        .map(|comparison| comparison.results.code_digest.as_str())
        .collect();
    let mut findings = Vec::new();
    for (name, comparison) in &data.comparisons {
        let path = format!("{FOLDER}/{name}.json");
        if comparison.commit.ends_with("-dirty") {
            let message = "it is of files that were never committed; expected results of a commit";
            findings.push(Finding::new(&path, 1, message));
        }
        if digests.len() > 1 {
            let digest = &comparison.results.code_digest;
            let message =
                format!("it is of the build {digest}; expected the same for all comparisons");
            findings.push(Finding::new(&path, 1, message));
        }
    }
    findings
}

fn difference(path: &str, found: &str, expected: &str) -> Finding {
    let line = (1..)
        .zip(found.lines().zip(expected.lines()))
        .find(|(_, (found, expected))| found != expected)
        .map_or(found.lines().count() + 1, |(line, _)| line);
    let wanted = expected.lines().nth(line - 1).unwrap_or_default();
    let message =
        format!("it differs from its data; expected {wanted:?}, which `cargo xtask docs` writes");
    Finding::new(path, line, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_say_what_the_data_say() {
        let findings = docs(&crate::repository_root().unwrap(), true).unwrap();
        let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }

    #[test]
    fn a_page_that_was_changed_is_found() {
        let finding = difference("a.md", "a\n.5\n", "a\n.6\n");
        assert_eq!((finding.line, finding.path.as_str()), (2, "a.md"));
        assert!(finding.message.contains(".6"));
        let finding = difference("a.md", "a\n", "a\nb\n");
        assert_eq!(finding.line, 2);
        assert!(finding.message.contains("\"b\""));
    }
}
