//! `cargo xtask site`: the documentation as a web site. `docs` is a folder of Markdown that reads well in the repository;
//! this copies it, lets links that leave it lead to the repository, adds the reference that the command itself
//! prints, has mdBook build it, and follows every link of the result.

mod html;
mod reference;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{Finding, links, tree, workspace_package};

/// The list of chapters.
const CHAPTERS: &str = "docs/SUMMARY.md";
/// Lines of it that stand for chapters which nobody lists by hand: those of the reference, and all pages of a folder.
const REFERENCE: &str = "<!-- what the command writes about itself -->";
const FOLDERS: [(&str, &str); 2] = [
    ("  <!-- every other page of results -->", "docs/results/"),
    ("  <!-- every record -->", "docs/decisions/"),
];

/// Build the site in `output` with these programs; what is wrong with it.
pub fn site(
    root: &Path,
    output: &Path,
    mdbook: &Path,
    metra: &Path,
    python: &Path,
) -> Result<Vec<Finding>> {
    let source = output.join("src");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    let repository = workspace_package(root, "repository")?;
    let files = tree::read(root)?;
    let paths: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
    for file in &files {
        let place = file.path.strip_prefix("docs/");
        let Some(place) = place.filter(|place| !place.ends_with(".toml")) else {
            continue;
        };
        let bytes = match file.text().filter(|_| place.ends_with(".md")) {
            Some(text) => rewritten(&file.path, text, &repository, &paths).into_bytes(),
            None => file.bytes.clone(),
        };
        tree::write(&source.join(place), &bytes)?;
    }
    let texts = tree::texts(&files);
    let chapters = chapters(&fs::read_to_string(root.join(CHAPTERS))?, &texts);
    tree::write(&source.join("SUMMARY.md"), chapters.as_bytes())?;
    let mut findings = missing_chapters(&paths, &chapters);
    reference::write(root, metra, python, &source)?;
    let settings = fs::read_to_string(root.join("docs/book.toml"))?;
    fs::write(
        output.join("book.toml"),
        settings.replace("REPOSITORY", &repository),
    )?;
    let built = Command::new(mdbook)
        .args(["build", "--dest-dir"])
        // Otherwise it would lie in the folder that this runs in.
        .arg(output.join("html"))
        .arg(output)
        .output()
        .with_context(|| format!("{} could not be run", mdbook.display()))?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success(), "mdbook failed: {said}");
    for line in said
        .lines()
        .filter(|line| line.contains("WARN") || line.contains("ERROR"))
    {
        findings.push(Finding::new(CHAPTERS, 1, format!("mdbook says: {line}")));
    }
    findings.extend(html::check(&output.join("html"))?);
    findings.sort();
    Ok(findings)
}

/// A page whose links to files outside `docs` lead to the repository.
fn rewritten(path: &str, text: &str, repository: &str, paths: &BTreeSet<String>) -> String {
    let mut out = text.to_owned();
    let targets: BTreeSet<String> = links::targets(text)
        .into_iter()
        .map(|(_, target)| target)
        .collect();
    for target in targets {
        let (file, anchor) = match target.split_once('#') {
            Some((file, anchor)) => (file, format!("#{anchor}")),
            None => (target.as_str(), String::new()),
        };
        if file.is_empty() || links::has_scheme(&target) {
            continue;
        }
        let Some(reached) = links::resolve(path, file) else {
            continue;
        };
        let is_file = paths.contains(&reached);
        let address = match (reached.starts_with("docs/"), file.strip_suffix("README.md")) {
            // mdBook calls the first page of a folder so.
            (true, Some(folder)) if is_file => format!("{folder}index.md{anchor}"),
            (true, _) if is_file => continue,
            _ if is_file => format!("{repository}/blob/main/{reached}{anchor}"),
            _ => format!("{repository}/tree/main/{reached}{anchor}"),
        };
        for end in [")", " "] {
            out = out.replace(&format!("]({target}{end}"), &format!("]({address}{end}"));
        }
    }
    out
}

/// The list of chapters with those that nobody lists by hand.
fn chapters(listed: &str, texts: &[(&str, &str)]) -> String {
    let mut out = listed.replace(REFERENCE, &reference::chapters());
    for (mark, folder) in FOLDERS {
        let mut lines = Vec::new();
        for (path, text) in texts {
            let Some(place) = path
                .strip_prefix("docs/")
                .filter(|_| path.starts_with(folder))
            else {
                continue;
            };
            if place.ends_with(".md") && !listed.contains(&format!("]({place})")) {
                let title = text
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .trim_start_matches("# ");
                lines.push(format!("  - [{}]({place})", title.replace(['[', ']'], "")));
            }
        }
        out = out.replace(mark, &lines.join("\n"));
    }
    out
}

/// Pages that the list of chapters does not have: mdBook leaves them out, and links to them lead nowhere.
fn missing_chapters(paths: &BTreeSet<String>, chapters: &str) -> Vec<Finding> {
    let listed: BTreeSet<String> = (links::targets(chapters).into_iter())
        .filter_map(|(_, target)| links::resolve(CHAPTERS, &target))
        .collect();
    let pages = paths
        .iter()
        .filter(|path| path.starts_with("docs/") && path.ends_with(".md"));
    let missing = pages.filter(|path| *path != CHAPTERS && !listed.contains(*path));
    let message = "it is no chapter of the site; expected it in docs/SUMMARY.md";
    missing.map(|path| Finding::new(path, 1, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_leave_the_documents_lead_to_the_repository() {
        let paths = [
            "docs/README.md",
            "docs/a.md",
            "docs/b/c.md",
            "src/x.rs",
            "deploy/y.yaml",
        ];
        let paths = paths.into_iter().map(str::to_owned).collect();
        let text = "[a](../a.md) [r](../README.md#s) [x](../../src/x.rs#L3) [d](../../deploy) [w](https://w.org) `[n](../../src/x.rs)`\n";
        let found = rewritten("docs/b/c.md", text, "https://r.org/m", &paths);
        assert!(found.contains("[a](../a.md)"));
        assert!(found.contains("[r](../index.md#s)"));
        assert!(found.contains("[x](https://r.org/m/blob/main/src/x.rs#L3)"));
        assert!(found.contains("[d](https://r.org/m/tree/main/deploy)"));
        assert!(found.contains("[w](https://w.org)"));
    }

    #[test]
    fn every_page_is_a_chapter() {
        let root = crate::repository_root().unwrap();
        let files = tree::read(&root).unwrap();
        let texts = tree::texts(&files);
        let paths = files.iter().map(|file| file.path.clone()).collect();
        let listed = fs::read_to_string(root.join(CHAPTERS)).unwrap();
        let chapters = chapters(&listed, &texts);
        assert!(!chapters.contains("<!--"));
        assert_eq!(missing_chapters(&paths, &chapters), []);
        assert!(missing_chapters(&paths, "").len() > 50);
    }
}
