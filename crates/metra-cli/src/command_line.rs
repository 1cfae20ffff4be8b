//! The command as it was called: for reports that say how to get them again, and for work in a process of
//! its own.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

/// How the command was started, and the arguments behind that.
static CALL: OnceLock<(Vec<OsString>, Vec<OsString>)> = OnceLock::new();

/// Note it, before all else.
pub(crate) fn note(program: Vec<OsString>, arguments: Vec<OsString>) {
    // One process is one call of the command.
    _ = CALL.set((program, arguments));
}

fn call() -> &'static (Vec<OsString>, Vec<OsString>) {
    CALL.get_or_init(Default::default)
}

/// The same call, to be made once more.
pub(crate) fn again() -> Command {
    let (program, arguments) = call();
    let mut words = program.iter().chain(arguments);
    let first = words.next().map_or_else(|| "metra".into(), Clone::clone);
    let mut command = Command::new(first);
    command.args(words);
    command
}

/// The call in words, with quotes where a shell needs them.
pub(crate) fn text() -> String {
    let quoted = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        let plain = |c: char| c.is_alphanumeric() || "-_=./:,@+".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument.into_owned()
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    let arguments = call().1.iter().map(quoted);
    let words: Vec<String> = std::iter::once("metra".to_owned())
        .chain(arguments)
        .collect();
    words.join(" ")
}
