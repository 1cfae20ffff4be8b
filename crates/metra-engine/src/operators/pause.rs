//! A pause for tests of faults, which makes a stage last so that a process can be killed in a known one.

/// Wait for as many milliseconds as a variable of the environment says.
pub(super) async fn pause(variable: &str) {
    let pause = std::env::var(variable).ok();
    if let Some(pause) = pause.and_then(|pause| pause.parse().ok()) {
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
    }
}
