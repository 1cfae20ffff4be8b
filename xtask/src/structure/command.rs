//! Inside the command, imports point one way: the root knows the verbs, a verb knows the parts that
//! verbs share, and no verb knows another.
//!
//! A verb that takes something from another verb, or a shared part that takes something from the root,
//! shows code that belongs one step down.

use crate::Finding;
use crate::structure::imports::Import;

/// The sources of the command.
const COMMAND: &str = "crates/metra-cli/src/";
/// The folder of its verbs, below its sources.
const VERBS: &str = "commands/";

/// The imports that point the wrong way.
pub(crate) fn findings(imports: &[Import<'_>]) -> Vec<Finding> {
    imports.iter().filter_map(finding).collect()
}

fn finding(import: &Import<'_>) -> Option<Finding> {
    let from = import.from.strip_prefix(COMMAND)?;
    let to = import.to.strip_prefix(COMMAND)?;
    let is_root = |file: &str| matches!(file, "main.rs" | "lib.rs");
    let wrong = if is_root(from) {
        return None;
    } else if is_root(to) {
        "is at the root; expected it in a part that verbs share"
    } else {
        match (verb(from), verb(to)) {
            (None, Some(_)) => "is a verb's; expected shared parts to know no verb",
            (Some(from), Some(to)) if from != to && to != HEAD => {
                "is another verb's; expected it in a part that verbs share"
            }
            _ => return None,
        }
    };
    let message = format!("imports `{}`, which {wrong}", import.name);
    Some(Finding::new(import.from, import.line, message))
}

/// The head of the folder of verbs, which is the parent of each.
const HEAD: &str = "mod";

/// `commands/gate/report.rs` → gate; nothing for a shared part.
fn verb(file: &str) -> Option<&str> {
    let inside = file.strip_prefix(VERBS)?;
    let first = inside.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_wrong(from: &str, to: &str) -> bool {
        let (from, to) = (format!("{COMMAND}{from}"), format!("{COMMAND}{to}"));
        let import = Import {
            from: &from,
            to: &to,
            name: "a".into(),
            line: 1,
        };
        !findings(&[import]).is_empty()
    }

    #[test]
    fn the_root_is_imported_by_nobody() {
        assert!(is_wrong("load.rs", "main.rs"));
        assert!(is_wrong("commands/gate/mod.rs", "main.rs"));
        assert!(!is_wrong("main.rs", "load.rs"));
        assert!(!is_wrong("main.rs", "commands/gate/mod.rs"));
    }

    #[test]
    fn shared_parts_know_no_verb() {
        assert!(is_wrong("load.rs", "commands/mod.rs"));
        assert!(is_wrong("load.rs", "commands/check.rs"));
        assert!(!is_wrong("commands/check.rs", "load.rs"));
        assert!(!is_wrong("load.rs", "args.rs"));
    }

    #[test]
    fn verbs_do_not_know_each_other() {
        assert!(is_wrong("commands/gate/report.rs", "commands/train/mod.rs"));
        assert!(is_wrong("commands/index.rs", "commands/search/mod.rs"));
        assert!(!is_wrong("commands/gate/report.rs", "commands/gate/mod.rs"));
        assert!(!is_wrong("commands/gate/mod.rs", "commands/gate/report.rs"));
        assert!(!is_wrong("commands/gate/mod.rs", "commands/mod.rs"));
    }

    #[test]
    fn other_crates_are_left_alone() {
        let import = Import {
            from: "crates/metra/src/data/mod.rs",
            to: "crates/metra/src/lib.rs",
            name: "a".into(),
            line: 1,
        };
        assert!(findings(&[import]).is_empty());
    }
}
