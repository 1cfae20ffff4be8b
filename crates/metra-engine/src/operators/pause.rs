//! Operators that wait, so that tests of faults can act at a known moment. Only tests set the variables.

use std::path::Path;
use std::time::Duration;

/// Wait for as many milliseconds as a variable of the environment says.
pub(super) async fn pause(variable: &str) {
    let pause = std::env::var(variable).ok();
    if let Some(pause) = pause.and_then(|pause| pause.parse().ok()) {
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

/// Wait while the folder `METRA_TEST_HOLD` has a file of this name.
pub(super) async fn hold(name: &str) {
    if let Some(folder) = std::env::var_os("METRA_TEST_HOLD") {
        let held = Path::new(&folder).join(name);
        while held.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
