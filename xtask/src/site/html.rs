//! Follows the links of the built site: every page, picture and anchor that one names is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{Finding, links};

/// Pages that repeat others, or that the server shows in place of another.
const SKIPPED: [&str; 3] = ["print.html", "404.html", "toc.html"];

pub(super) fn check(folder: &Path) -> Result<Vec<Finding>> {
    let mut files = BTreeSet::new();
    collect(folder, folder, &mut files)?;
    let mut pages = BTreeMap::new();
    for file in files.iter().filter(|file| file.ends_with(".html")) {
        pages.insert(file.clone(), fs::read_to_string(folder.join(file))?);
    }
    let anchors: BTreeMap<&str, BTreeSet<&str>> = (pages.iter())
        .map(|(path, text)| (path.as_str(), values(text, "id").into_iter().collect()))
        .collect();
    let mut findings = Vec::new();
    for (path, text) in &pages {
        if SKIPPED.iter().any(|skipped| path.ends_with(skipped)) {
            continue;
        }
        let targets: BTreeSet<&str> = ["href", "src"]
            .iter()
            .flat_map(|name| values(text, name))
            .collect();
        for target in targets
            .into_iter()
            .filter(|target| !links::has_scheme(target))
        {
            if let Some(message) = problem(path, target, &files, &anchors) {
                findings.push(Finding::new(path, 1, message));
            }
        }
    }
    Ok(findings)
}

fn problem(
    path: &str,
    target: &str,
    files: &BTreeSet<String>,
    anchors: &BTreeMap<&str, BTreeSet<&str>>,
) -> Option<String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = file.split('?').next().unwrap_or_default();
    let reached = match file.is_empty() {
        true => path.to_owned(),
        false => links::resolve(path, file).unwrap_or_default(),
    };
    if !files.contains(&reached) {
        return Some(format!("the link {target:?} leads nowhere"));
    }
    let known = anchors.get(reached.as_str());
    if !anchor.is_empty() && known.is_some_and(|known| !known.contains(anchor)) {
        return Some(format!(
            "the link {target:?} names a place that {reached} does not have"
        ));
    }
    None
}

/// Values of an attribute.
fn values<'t>(html: &'t str, name: &str) -> Vec<&'t str> {
    let start = format!(" {name}=\"");
    let rests = html.split(start.as_str()).skip(1);
    rests.filter_map(|rest| rest.split('"').next()).collect()
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if let Some(place) = path.strip_prefix(root)?.to_str() {
            files.insert(place.replace('\\', "/"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_and_anchors_are_found() {
        let files = ["a.html", "b/c.html"]
            .map(str::to_owned)
            .into_iter()
            .collect();
        let anchors = BTreeMap::from([
            ("a.html", BTreeSet::from(["x"])),
            ("b/c.html", BTreeSet::new()),
        ]);
        let wrong = |target: &str| problem("b/c.html", target, &files, &anchors).is_some();
        assert!(!wrong("../a.html"));
        assert!(!wrong("../a.html#x"));
        assert!(wrong("../a.html#y"));
        assert!(wrong("d.html"));
        assert!(wrong("#z"));
        let found = values("<a href=\"q\"><p id=\"r\" data-id=\"s\">", "id");
        assert_eq!(found, ["r"]);
    }
}
