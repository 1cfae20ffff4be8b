//! Waiting for locks without making others wait: short tries with pauses between them, in which everybody
//! else gets on with their work.

use super::failure::{failed, passing};
use crate::{Error, Result};
use postgres::{Client, Transaction};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long is tried.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);

/// For statements that need a table for themselves: while one waits, everybody who comes later waits behind it,
/// so that it must not wait longer than a user notices.
pub(super) const BRIEFLY: &str = "SET LOCAL lock_timeout = '200ms'";

/// Try until there is something, for a minute; none after it.
pub(super) fn patiently<T>(
    stop: &AtomicBool,
    mut attempt: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let begin = Instant::now();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(metra::Error::Interrupted.into());
        }
        if let Some(got) = attempt()? {
            return Ok(Some(got));
        }
        if begin.elapsed() > PATIENCE {
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Run a transaction, again where a lock was not given or transactions met.
pub(super) fn in_transaction<T>(
    client: &mut Client,
    place: &str,
    stop: &AtomicBool,
    mut work: impl FnMut(&mut Transaction<'_>) -> Result<T, Stumble>,
) -> Result<T> {
    let mut last = None;
    let done = patiently(stop, || {
        let mut attempt = || -> Result<T, Stumble> {
            let mut transaction = client.transaction()?;
            let done = work(&mut transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        match attempt() {
            Ok(done) => Ok(Some(done)),
            Err(Stumble::Server(error)) if passing(&error) => {
                last = Some(error);
                Ok(None)
            }
            Err(Stumble::Server(error)) => Err(failed(place, &error)),
            Err(Stumble::Other(error)) => Err(error),
        }
    })?;
    match (done, last) {
        (Some(done), _) => Ok(done),
        (None, Some(error)) => Err(failed(place, &error)),
        (None, None) => Err(metra::Error::Interrupted.into()),
    }
}

/// What stops a transaction: the server, whose reason may pass, or something else.
pub(super) enum Stumble {
    Server(postgres::Error),
    Other(Error),
}

impl From<postgres::Error> for Stumble {
    fn from(error: postgres::Error) -> Self {
        Stumble::Server(error)
    }
}

impl From<Error> for Stumble {
    fn from(error: Error) -> Self {
        Stumble::Other(error)
    }
}

impl From<metra::Error> for Stumble {
    fn from(error: metra::Error) -> Self {
        Stumble::Other(error.into())
    }
}
