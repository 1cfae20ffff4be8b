//! One program of libFuzzer for all targets, because each would take minutes to link: the environment variable
//! `METRA_FUZZ_TARGET` names the one to run, and `METRA_FUZZ_SEEDS` a folder that its valid inputs are
//! written to first. Without a target it lists them all.
#![no_main]
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a finding has to be seen"
)]

use metra_fuzz::{TARGETS, Target, find, seeds};
use std::path::Path;
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("METRA_FUZZ_TARGET").unwrap_or_default();
    find(&name).unwrap_or_else(|| {
        TARGETS
            .iter()
            .for_each(|target| println!("{}", target.name));
        std::process::exit(i32::from(!name.is_empty()));
    })
});

libfuzzer_sys::fuzz_target!(
    init: {
        if let (name, Some(folder)) = (TARGET.name, std::env::var_os("METRA_FUZZ_SEEDS")) {
            seeds::write(name, Path::new(&folder)).expect("valid inputs are written");
        }
    },
    |bytes: &[u8]| {
        if let Err(panic) = TARGET.try_run(bytes) {
            eprintln!("{panic}");
            std::process::abort();
        }
    }
);
