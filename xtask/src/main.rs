//! Tasks of the repository that cargo has no command for: `cargo xtask --help`.

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{DistPart, Finding, Golden};

/// Checks, results, documents and releases of this repository
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Print every finding of the tree's checks, and fail if there is one
    Tidy,
    /// Do so for licences and sources of crates
    Dependencies,
    /// Print counts of the tree, such as circles of imports; never fails
    Structure,
    /// Compare what the command makes of small fixed sets with a committed table
    Golden {
        /// Write the table instead
        #[arg(long, conflicts_with = "models")]
        write: bool,
        /// Write the models of this version
        #[arg(long)]
        models: bool,
        /// The program, where it is built already
        #[arg(long, value_name = "PATH")]
        command: Option<PathBuf>,
    },
    /// Write all pages and quotations of results from docs/results/data
    Docs {
        /// Fail where a page differs, or has a figure that is nowhere
        #[arg(long)]
        check: bool,
    },
    /// Run an experiment again, or `all`, and write its results and pages
    Reproduce {
        name: String,
        /// The program, where it is built already
        #[arg(long, value_name = "PATH")]
        command: Option<String>,
    },
    /// Measure quality by bytes of an item for one set, or `all`
    Codes {
        name: String,
        /// The program, where it is built already
        #[arg(long, value_name = "PATH")]
        command: Option<String>,
    },
    /// Run the benches and write their results
    Bench {
        /// Compare with the recorded results instead, and fail if they are worse
        #[arg(long)]
        check: bool,
        /// A Python that has the peers
        #[arg(long, value_name = "PATH")]
        python: Option<String>,
    },
    /// Make the files of a release in target/dist, from the commit that is checked out
    Dist {
        /// Make these parts alone; may be given several times
        #[arg(long, value_enum)]
        only: Vec<DistPart>,
        /// Pack this program, which is built already, as the part `metra`
        #[arg(long, value_name = "PATH", conflicts_with = "only")]
        command: Option<PathBuf>,
    },
    /// Print the licences of everything that a part of a release holds
    Notices {
        #[arg(value_enum)]
        part: DistPart,
        /// Rust's name of the target
        target: String,
    },
    /// Build the documentation as a web site in target/site
    Site {
        /// The program mdbook
        mdbook: PathBuf,
        /// The program metra, whose help becomes a page
        metra: PathBuf,
        /// A Python that has the package metra, whose docstrings become pages
        python: PathBuf,
    },
    /// Fail while something stands in the way of publishing, such as an address that is not filled in
    ReleaseCheck {
        /// The tag, which names the version
        tag: Option<String>,
    },
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let root = xtask::repository_root()?;
    match arguments.task {
        Task::Tidy => report("tidy", &xtask::tidy(&root)?),
        Task::Dependencies => report("dependencies", &xtask::dependencies(&root)?),
        Task::Structure => {
            let counts = xtask::structure(&root)?;
            write!(std::io::stdout().lock(), "{counts}")?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Golden {
            write,
            models,
            command,
        } => {
            let what = match (write, models) {
                (true, _) => Golden::Write,
                (_, true) => Golden::Models,
                _ => Golden::Check,
            };
            let differences = xtask::golden(&root, what, command)?;
            let summary = format!("golden: {} differences", differences.len());
            list(&differences, &summary)
        }
        Task::Docs { check } => report("docs", &xtask::docs(&root, check)?),
        Task::Reproduce { name, command } => {
            xtask::reproduce(&root, &name, command.as_deref())?;
            report("docs", &xtask::docs(&root, false)?)
        }
        Task::Codes { name, command } => {
            xtask::codes(&root, &name, command.as_deref())?;
            report("docs", &xtask::docs(&root, false)?)
        }
        Task::Bench { check, python } => {
            let worse = xtask::bench(&root, check, python.as_deref())?;
            let summary = format!("bench: {} worse than recorded", worse.len());
            list(&worse, &summary)
        }
        Task::Dist { only, command } => {
            let built = command.map(std::path::absolute).transpose()?;
            let sums = xtask::dist(&root, &root.join("target/dist"), &only, built.as_deref())?;
            write!(std::io::stdout().lock(), "{sums}")?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Notices { part, target } => {
            let text = xtask::notices(&root, part, &target)?;
            write!(std::io::stdout().lock(), "{text}")?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Site {
            mdbook,
            metra,
            python,
        } => {
            let output = root.join("target/site");
            let findings = xtask::site(&root, &output, &mdbook, &metra, &python)?;
            report("site", &findings)
        }
        Task::ReleaseCheck { tag } => {
            let findings = xtask::release_check(&root, tag.as_deref())?;
            report("release-check", &findings)
        }
    }
}

fn report(check: &str, findings: &[Finding]) -> Result<ExitCode> {
    let summary = match findings.len() {
        0 => format!("{check}: nothing found"),
        count => format!("{check}: {count} found"),
    };
    list(findings, &summary)
}

/// Print what is wrong and how much of it there is; nothing is a success.
fn list(wrong: &[impl Display], summary: &str) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for line in wrong {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{summary}")?;
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
