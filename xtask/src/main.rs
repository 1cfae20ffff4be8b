//! `cargo xtask tidy`: prints every finding of the tree's checks and fails if there is one.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        _ => bail!("expected `cargo xtask tidy`, but found the arguments {arguments:?}"),
    }
}

fn tidy() -> Result<ExitCode> {
    let findings = xtask::tidy(&xtask::repository_root()?)?;
    let mut out = std::io::stdout().lock();
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    if findings.is_empty() {
        writeln!(out, "tidy: nothing found")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "tidy: {} found", findings.len())?;
    Ok(ExitCode::FAILURE)
}
