//! `metra pages` as users call it: on drawn pages in the quick suite, and with a real browser on a site that
//! lives in this process (slow).
#![cfg(feature = "images")]

mod browser;
mod drawn;
mod site;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// The command run in a folder.
fn run(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_metra"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .output()
        .unwrap()
}

/// The JSON document of a command that must succeed.
fn json(folder: &Path, line: &str) -> Value {
    let output = run(folder, &format!("{line} --json"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{error}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{line}\n{error}"))
}

/// The message of a command that must fail.
fn refused(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert_eq!(output.status.code(), Some(1), "{line}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A number of a document.
fn number(document: &Value, pointer: &str) -> f64 {
    let found = document.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{pointer} in {document}"))
}
