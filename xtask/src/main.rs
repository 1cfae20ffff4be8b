//! `cargo xtask tidy` prints every finding of the tree's checks and fails if there is one;
//! `cargo xtask dependencies` does so for licences and sources of crates;
//! `cargo xtask structure` prints counts of the tree, such as circles of imports, and never fails;
//! `cargo xtask golden` compares what the command makes of small fixed sets with a committed table;
//! `cargo xtask reproduce NAME|all` runs experiments again, `cargo xtask codes NAME|all` measures quality by bytes of an
//! item, and `cargo xtask bench` runs the benches: each writes its results in docs/results/data, and the pages;
//! `cargo xtask docs` writes all pages and quotations of results from that folder; with `--check` it fails where a page
//! differs from it or has a figure that is nowhere;
//! `cargo xtask dist` makes all files of a release in target/dist (`--command PATH` packs a program that is built already),
//! and `cargo xtask release-check [TAG]` fails while something stands in the way of publishing them;
//! `cargo xtask site MDBOOK METRA` builds the documentation as a web site in target/site with these two programs.

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use xtask::{Finding, Golden};

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => report("tidy", &xtask::tidy(&xtask::repository_root()?)?),
        ["dependencies"] => {
            let findings = xtask::dependencies(&xtask::repository_root()?)?;
            report("dependencies", &findings)
        }
        ["structure"] => {
            let counts = xtask::structure(&xtask::repository_root()?)?;
            write!(std::io::stdout().lock(), "{counts}")?;
            Ok(ExitCode::SUCCESS)
        }
        ["golden", ref options @ ..] => golden(options),
        ["bench"] => bench(false, None),
        ["bench", "--check"] => bench(true, None),
        ["bench", "--python", python] => bench(false, Some(python)),
        ["bench", "--check", "--python", python] => bench(true, Some(python)),
        ["codes", name] => codes(name, None),
        ["codes", name, "--command", path] => codes(name, Some(path)),
        ["dist"] => dist(None),
        ["dist", "--command", path] => dist(Some(path)),
        ["site", mdbook, metra] => site(mdbook, metra),
        ["release-check"] => release_check(None),
        ["release-check", tag] => release_check(Some(tag)),
        ["docs"] => report("docs", &xtask::docs(&xtask::repository_root()?, false)?),
        ["docs", "--check"] => report("docs", &xtask::docs(&xtask::repository_root()?, true)?),
        ["reproduce", name] => reproduce(name, None),
        ["reproduce", name, "--command", path] => reproduce(name, Some(path)),
        _ => bail!(
            "expected `cargo xtask tidy`, `dependencies`, `structure`, `golden [--write|--models] \
             [--command PATH]`, `docs [--check]`, `reproduce NAME|all [--command PATH]`, `codes NAME|all [--command PATH]`, \
             `bench [--check] [--python PATH]`, `dist [--command PATH]`, `site MDBOOK METRA` or `release-check [TAG]`, but found the arguments {arguments:?}"
        ),
    }
}

fn golden(options: &[&str]) -> Result<ExitCode> {
    let (mut what, mut command) = (Golden::Check, None);
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--write" => what = Golden::Write,
            "--models" => what = Golden::Models,
            "--command" => command = rest.next().map(PathBuf::from),
            other => bail!("expected --write, --models or --command PATH, but found {other:?}"),
        }
    }
    let differences = xtask::golden(&xtask::repository_root()?, what, command)?;
    let summary = format!("golden: {} differences", differences.len());
    list(&differences, &summary)
}

fn dist(built: Option<&str>) -> Result<ExitCode> {
    let root = xtask::repository_root()?;
    let built = built.map(std::path::absolute).transpose()?;
    let sums = xtask::dist(&root, &root.join("target/dist"), built.as_deref())?;
    write!(std::io::stdout().lock(), "{sums}")?;
    Ok(ExitCode::SUCCESS)
}

fn site(mdbook: &str, metra: &str) -> Result<ExitCode> {
    let root = xtask::repository_root()?;
    let [mdbook, metra] = [mdbook, metra].map(PathBuf::from);
    let findings = xtask::site(&root, &root.join("target/site"), &mdbook, &metra)?;
    report("site", &findings)
}

fn release_check(tag: Option<&str>) -> Result<ExitCode> {
    let findings = xtask::release_check(&xtask::repository_root()?, tag)?;
    report("release-check", &findings)
}

fn codes(name: &str, command: Option<&str>) -> Result<ExitCode> {
    let root = xtask::repository_root()?;
    xtask::codes(&root, name, command)?;
    report("docs", &xtask::docs(&root, false)?)
}

fn reproduce(name: &str, command: Option<&str>) -> Result<ExitCode> {
    let root = xtask::repository_root()?;
    xtask::reproduce(&root, name, command)?;
    report("docs", &xtask::docs(&root, false)?)
}

fn bench(check: bool, python: Option<&str>) -> Result<ExitCode> {
    let worse = xtask::bench(&xtask::repository_root()?, check, python)?;
    let summary = format!("bench: {} worse than recorded", worse.len());
    list(&worse, &summary)
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
