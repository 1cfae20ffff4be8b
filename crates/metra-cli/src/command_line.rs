//! The command as it was called, for reports that say how to get them again.

/// The command as it was called, with quotes where a shell needs them.
pub(crate) fn command_line() -> String {
    let quoted = |argument: String| {
        let plain = |c: char| c.is_alphanumeric() || "-_=./:,@+".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|a| quoted(a.to_string_lossy().into_owned()));
    let all: Vec<String> = std::iter::once("metra".to_owned())
        .chain(arguments)
        .collect();
    all.join(" ")
}
