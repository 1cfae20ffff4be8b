//! One program of libFuzzer for all targets, because each would take minutes to link: the environment variable
//! `METRA_FUZZ_TARGET` names the one to run.
#![no_main]
#![expect(clippy::print_stderr, reason = "a finding has to be seen")]

use metra_fuzz::Target;
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("METRA_FUZZ_TARGET").expect("METRA_FUZZ_TARGET names a target");
    metra_fuzz::find(&name).expect("METRA_FUZZ_TARGET names a target")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(panic) = TARGET.try_run(bytes) {
        eprintln!("{panic}");
        std::process::abort();
    }
});
