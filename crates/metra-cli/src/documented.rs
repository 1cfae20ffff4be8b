//! Every command that a document shows is one that this program takes: its verb, options and values are parsed. What it
//! does is tested elsewhere; most documents speak of files that a reader has.

use crate::{Command, help};

use clap::CommandFactory;
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};

/// Where documents are, from the root of the repository.
const PLACES: [&str; 5] = [
    "README.md",
    "docs",
    "examples",
    "python/README.md",
    "experiments",
];
/// What ends a command in a line of a shell.
const ENDS: [&str; 8] = ["|", ">", ">>", "2>", "<", "&&", "||", ";"];

#[test]
fn documented_commands_are_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    let mut wrong = Vec::new();
    for path in documents(&root) {
        let text = std::fs::read_to_string(&path).unwrap();
        for shown in commands(&text) {
            count += 1;
            if let Err(message) = check(&shown) {
                wrong.push(format!("{}: {shown}\n    {message}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "only {count} commands were found");
}

#[test]
fn wrong_commands_are_noticed() {
    let text = "```\n$ metra train x --labels y | head\n```\n`metra train x --label y -o m` and `metra check --nothing x`";
    let shown = commands(text);
    assert_eq!(shown.len(), 3);
    assert!(check(&shown[0]).unwrap_err().contains("--labels"));
    assert_eq!(check(&shown[1]), Ok(()));
    assert!(check(&shown[2]).is_err());
    assert!(check("metra trane x").is_err());
    // What is left out may have been needed; what is there is looked at all the same.
    assert_eq!(check("metra train … --label y"), Ok(()));
    assert!(check("metra train … --labels y").is_err());
}

fn documents(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = PLACES.iter().map(|place| root.join(place)).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path.starts_with(root.join("docs/results")) {
            // Made from results, whose commands were run.
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Lines of fenced code and spans of inline code that begin with the command.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            let line = line.trim_start().trim_start_matches("$ ");
            found.extend(line.starts_with("metra ").then(|| line.to_owned()));
        } else {
            // A command in prose may be the name of an option, without its value and all else.
            let spans = line.split('`').skip(1).step_by(2);
            let spans = spans.filter(|span| span.starts_with("metra ") && span.contains(" --"));
            found.extend(spans.map(|span| format!("{span} …")));
        }
    }
    found
}

fn check(shown: &str) -> Result<(), String> {
    let words = shlex::split(shown).ok_or("its quotes do not close")?;
    let is_open = |word: &String| word.contains('…') || word.contains("...");
    let is_partial = words.iter().any(is_open);
    let mut words: Vec<String> = (words.into_iter())
        .take_while(|word| !ENDS.contains(&word.as_str()) && !word.starts_with('#'))
        .filter(|word| !is_open(word))
        .collect();
    if let Some(last) = words.iter().position(|word| word.ends_with(';')) {
        words.truncate(last + 1);
        words[last].pop();
    }
    let unknown = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand];
    match help::grouped(Command::command()).try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) =>
        {
            Ok(())
        }
        Err(error) if is_partial && !unknown.contains(&error.kind()) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
