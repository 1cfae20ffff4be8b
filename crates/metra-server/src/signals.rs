//! Signals: SIGTERM and Ctrl-C stop a server, SIGHUP makes it load its files again.

use std::io::Result;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Whether somebody has asked to stop.
pub(crate) struct Stop {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
}

/// Wishes to load files again.
pub(crate) struct Hangups {
    #[cfg(unix)]
    hangups: Signal,
}

#[cfg(unix)]
impl Stop {
    /// From now on SIGTERM and Ctrl-C are noticed, also before anybody waits for them.
    pub(crate) fn new() -> Result<Self> {
        Ok(Stop {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Wait for it.
    pub(crate) async fn wait(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(unix)]
impl Hangups {
    /// From now on SIGHUP is noticed.
    pub(crate) fn new() -> Result<Self> {
        let hangups = signal(SignalKind::hangup())?;
        Ok(Hangups { hangups })
    }

    /// Wait for the next one; false where there can be none.
    pub(crate) async fn next(&mut self) -> bool {
        self.hangups.recv().await.is_some()
    }
}

#[cfg(not(unix))]
impl Stop {
    pub(crate) fn new() -> Result<Self> {
        Ok(Stop {})
    }

    pub(crate) async fn wait(self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(not(unix))]
impl Hangups {
    pub(crate) fn new() -> Result<Self> {
        Ok(Hangups {})
    }

    pub(crate) async fn next(&mut self) -> bool {
        false
    }
}
