//! Loads models, keys and certificates again when their files have changed.
//!
//! Files are looked at every few seconds rather than watched by the system: that works on network file systems, and with the links that
//! Kubernetes exchanges.

use crate::marks::{Mark, marks};
use crate::service::{ReloadError, Service};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After this, what could not be loaded is tried again although nothing has changed since: the cause may lie elsewhere.
const AGAIN: Duration = Duration::from_secs(30);

/// Load everything again, and say what came of it.
pub(crate) fn reload(service: &Service) -> Result<(), ReloadError> {
    let outcome = service.reload();
    match &outcome {
        Ok(()) => tracing::info!("reloaded"),
        Err(error) => tracing::error!("{error}"),
    }
    outcome
}

/// Reload whenever files have changed and have been left alone for one look. `served` are the marks of what was loaded first.
pub(crate) async fn watch(service: Arc<Service>, mut served: Vec<Mark>) {
    let mut before = served.clone();
    let mut failed: Option<(Vec<Mark>, Instant)> = None;
    loop {
        tokio::time::sleep(service.options.reload_interval).await;
        let looking = Arc::clone(&service);
        let looked = tokio::task::spawn_blocking(move || marks(&looking.options)).await;
        let Ok(now) = looked else {
            continue;
        };
        let has_failed = failed
            .as_ref()
            .is_some_and(|(with, when)| *with == now && when.elapsed() < AGAIN);
        // Whoever writes several files needs a moment: what still changes is looked at again.
        if now != served && now == before && !has_failed {
            let loading = Arc::clone(&service);
            let loaded = tokio::task::spawn_blocking(move || reload(&loading)).await;
            match loaded {
                Ok(Ok(())) => {
                    served.clone_from(&now);
                    failed = None;
                }
                Ok(Err(ReloadError::UnderWay)) => {}
                Ok(Err(ReloadError::Failed(_))) => failed = Some((now.clone(), Instant::now())),
                Err(error) => {
                    tracing::error!("a reload failed: {error}");
                    failed = Some((now.clone(), Instant::now()));
                }
            }
        }
        before = now;
    }
}
