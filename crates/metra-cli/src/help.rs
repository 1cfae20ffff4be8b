//! The command's help: its verbs in groups, in the order in which they are met.

use std::fmt::Write;

/// Headings with their verbs.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Learn",
        &[
            "check", "train", "sums", "compare", "budget", "compress", "fuse", "clicks", "methods",
        ],
    ),
    (
        "Evaluate",
        &["eval", "gate", "migrate", "calibrate", "decide", "inspect"],
    ),
    (
        "Deploy",
        &[
            "embed", "search", "shorten", "plan", "index", "export", "push", "pull", "models",
            "serve",
        ],
    ),
    ("Images", &["features", "sheets", "attributes", "pages"]),
    ("Cluster", &["shard", "cluster"]),
    (
        "This command",
        &["examples", "doctor", "completions", "man"],
    ),
];

/// A command with its verbs grouped in its help.
pub(crate) fn grouped(command: clap::Command) -> clap::Command {
    let mut verbs = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(verbs, "{heading}:");
        for name in *names {
            let about = command
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map_or_else(String::new, ToString::to_string);
            let _ = writeln!(verbs, "  {name:<12} {about}");
        }
        verbs.push('\n');
    }
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{verbs}Options:\n{{options}}\n\n\
         `metra COMMAND -h` shows the common options, `metra COMMAND --help` all of them."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn every_verb_is_in_one_group() {
        let command = Command::command();
        let verbs: BTreeSet<&str> = command
            .get_subcommands()
            .map(|verb| verb.get_name())
            .collect();
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), verbs);
        assert_eq!(listed.len(), verbs.len());
    }

    #[test]
    fn short_help_of_train_fits_a_screen() {
        let mut command = grouped(Command::command());
        let train = command.find_subcommand_mut("train").unwrap();
        let short = train.render_help().to_string();
        let long = train.render_long_help().to_string();
        assert!(
            short.lines().count() <= 45,
            "{} lines",
            short.lines().count()
        );
        for heading in [
            "Data",
            "Supervision",
            "Method",
            "Held-out parts",
            "Evaluation",
            "Cluster",
        ] {
            assert!(
                long.contains(&format!("\n{heading}:\n")),
                "{heading} in\n{long}"
            );
        }
    }

    #[test]
    fn arguments_are_well_formed() {
        grouped(Command::command()).debug_assert();
    }
}
