//! Tests that need a data set, a server or an interpreter which a machine may not have; and damaged files.
//!
//! A test asks [`variable`] for the environment variable that names what it needs. Where it is not set
//! the test is skipped: it says so, and adds a line to the file that `METRA_SKIPPED` names, so that a
//! runner without skipped tests of its own can still count them. What `METRA_REQUIRED` lists (names of
//! variables, separated by blanks) must be there: CI lists what it installs, and then a skipped test
//! fails.

#![expect(clippy::print_stderr, reason = "tests say what they leave out")]

mod mutation;

pub use mutation::mutated;

use std::ffi::OsString;
use std::io::Write;

/// The value of an environment variable that names what a test needs; none, with a message, where it is
/// not set.
///
/// # Panics
///
/// If `METRA_REQUIRED` lists the variable and it is not set.
pub fn variable(name: &str, what: &str) -> Option<String> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    if value.is_none() {
        skip(name, &format!("{name} does not name {what}"));
    }
    value
}

/// The folder of the data sets, `METRA_DATA`.
///
/// # Panics
///
/// As [`variable`].
pub fn data() -> Option<OsString> {
    variable("METRA_DATA", "a folder of data sets").map(OsString::from)
}

/// Say that the current test is skipped, because `part` is missing.
///
/// # Panics
///
/// If `METRA_REQUIRED` lists `part`.
pub fn skip(part: &str, reason: &str) {
    let required = std::env::var("METRA_REQUIRED").unwrap_or_default();
    assert!(
        !required.split_whitespace().any(|name| name == part),
        "{part} is required here, but the test would be skipped: {reason}"
    );
    let thread = std::thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("a test"));
    eprint!("{line}");
    if let Some(path) = std::env::var_os("METRA_SKIPPED") {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(
            written.is_ok(),
            "METRA_SKIPPED: {path:?} cannot be written: {written:?}"
        );
    }
}
