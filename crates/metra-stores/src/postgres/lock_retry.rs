//! Transactions that are tried again where a lock is not given. Each attempt waits for its lock only briefly,
//! and other sessions work in the pauses between attempts.

use super::failure::{is_transient, server_error};
use crate::{Error, Result};
use postgres::{Client, Transaction};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long attempts are repeated.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);

/// For statements that need a table for themselves: while one waits, everybody who comes later waits behind it,
/// so that it must not wait longer than a user notices.
pub(super) const SHORT_LOCK_WAIT: &str = "SET LOCAL lock_timeout = '200ms'";

/// Repeat an attempt until it gives a value, for at most a minute; then `None`.
pub(super) fn retry<T>(
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
        if begin.elapsed() > LONGEST_WAIT {
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Run a transaction; run it again where a lock was not given or two transactions conflicted.
pub(super) fn in_transaction<T>(
    client: &mut Client,
    place: &str,
    stop: &AtomicBool,
    mut work: impl FnMut(&mut Transaction<'_>) -> Result<T, TransactionError>,
) -> Result<T> {
    let mut last = None;
    let done = retry(stop, || {
        let mut attempt = || -> Result<T, TransactionError> {
            let mut transaction = client.transaction()?;
            let done = work(&mut transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        match attempt() {
            Ok(done) => Ok(Some(done)),
            Err(TransactionError::Server(error)) if is_transient(&error) => {
                last = Some(error);
                Ok(None)
            }
            Err(TransactionError::Server(error)) => Err(server_error(place, &error)),
            Err(TransactionError::Other(error)) => Err(error),
        }
    })?;
    match (done, last) {
        (Some(done), _) => Ok(done),
        (None, Some(error)) => Err(server_error(place, &error)),
        (None, None) => Err(metra::Error::Interrupted.into()),
    }
}

/// What ends a transaction: an error of the server, which may be transient, or another error.
pub(super) enum TransactionError {
    Server(postgres::Error),
    Other(Error),
}

impl From<postgres::Error> for TransactionError {
    fn from(error: postgres::Error) -> Self {
        TransactionError::Server(error)
    }
}

impl From<Error> for TransactionError {
    fn from(error: Error) -> Self {
        TransactionError::Other(error)
    }
}

impl From<metra::Error> for TransactionError {
    fn from(error: metra::Error) -> Self {
        TransactionError::Other(error.into())
    }
}
