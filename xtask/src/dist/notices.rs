//! Licences of everything that a program is made of, as one text: whoever hands on the program has to hand on these.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::crates::Crate;

/// Beginnings of the names of files that hold a licence or what it asks to be repeated.
const FILES: [&str; 6] = [
    "licen",
    "copying",
    "notice",
    "unlicense",
    "copyright",
    "patents",
];

/// Parts that are not crates: what they are, where they are from, and their licence.
const PARTS: [(&str, &str, &str); 3] = [
    (
        "Noto Sans Mono, as bitmaps in the crate noto-sans-mono-bitmap",
        "The Noto Project Authors",
        "OFL-1.1",
    ),
    (
        "The standard library of Rust",
        "The Rust Project Developers",
        "MIT",
    ),
    (
        "libc++, libc++abi, libunwind and compiler-rt, where they are linked in",
        "The LLVM Project",
        "Apache-2.0 WITH LLVM-exception",
    ),
];

/// The text.
pub(super) fn notices(crates: &[Crate]) -> Result<String> {
    let mut out = String::from(
        "Metra is licensed under MIT or Apache-2.0, at your option. It holds code of others, under the licences below.\n\n",
    );
    // The same text, whoever it came with, is written once.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in crates.iter().filter(|one| !one.is_ours()) {
        let repository = one.repository.as_deref().unwrap_or_default();
        writeln!(out, "{}: {} {repository}", one.id(), one.licence)?;
        for text in of_crate(one)? {
            texts.entry(text).or_default().push(one.id());
        }
    }
    for (part, authors, licence) in PARTS {
        writeln!(out, "{part}: {licence} ({authors})")?;
        let text = canonical(licence).with_context(|| format!("the text of {licence}"))?;
        texts.entry(text).or_default().push(part.to_owned());
    }
    for (text, owners) in texts {
        let line = "-".repeat(80);
        writeln!(out, "\n{line}\n{}\n{line}\n\n{text}", owners.join(", "))?;
    }
    Ok(out)
}

/// The licence texts of a crate: its own files, or where it has none, those of the licences that it names.
fn of_crate(one: &Crate) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for folder in [one.folder.clone(), one.folder.join("LICENSES")] {
        texts.extend(of_folder(&folder)?);
    }
    if texts.is_empty() {
        let expression = spdx::Expression::parse_mode(&one.licence, spdx::ParseMode::LAX)
            .with_context(|| format!("{}: {}", one.id(), one.licence))?;
        for requirement in expression.requirements() {
            let id = requirement.req.license.id().context(one.id())?;
            texts.push(id.text().trim().to_owned());
        }
    }
    Ok(texts)
}

fn of_folder(folder: &Path) -> Result<Vec<String>> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default().to_lowercase();
        let in_licences = folder.ends_with("LICENSES");
        if path.is_file() && (in_licences || FILES.iter().any(|start| name.starts_with(start))) {
            paths.push(path);
        }
    }
    // The order of a folder is the file system's.
    paths.sort();
    let texts = paths.into_iter().map(|path| {
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        Ok(text.trim().to_owned())
    });
    texts.collect()
}

/// The text of a licence, with that of its exception if it names one.
fn canonical(licence: &str) -> Option<String> {
    if let Some((licence, exception)) = licence.split_once(" WITH ") {
        let exception = spdx::exception_id(exception)?.text().trim();
        return Some(format!("{}\n\n{exception}", canonical(licence)?));
    }
    spdx::license_id(licence).map(|id| id.text().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_brings_a_text() {
        let root = crate::repository_root().unwrap();
        let target = "x86_64-unknown-linux-gnu";
        let crates = super::super::crates::crates(&root, "metra-cli", "postgres", target).unwrap();
        let text = notices(&crates).unwrap();
        for one in crates.iter().filter(|one| !one.is_ours()) {
            let count = text.matches(&one.id()).count();
            assert!(count > 1, "{} has no licence text", one.id());
        }
        assert!(text.contains("SIL OPEN FONT LICENSE"));
        assert!(text.contains("LLVM Exceptions to the Apache 2.0"));
        assert!(text.contains("Permission is hereby granted"));
        assert_eq!(text, notices(&crates).unwrap());
    }
}
