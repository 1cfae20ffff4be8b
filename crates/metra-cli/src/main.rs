//! The command `metra`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let program = std::env::current_exe().unwrap_or_else(|_| "metra".into());
    let arguments = std::env::args_os().skip(1).collect();
    metra_cli::run(vec![program.into_os_string()], arguments).into()
}
