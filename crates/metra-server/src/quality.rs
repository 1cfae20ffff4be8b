//! Ranks the judged queries of all models every so often, and says in the metrics what they find.

use crate::canary::{Canary, CanaryReading};
use crate::index::Hit;
use crate::models::ServedModel;
use crate::refusal::Refusal;
use crate::service::Service;
use crate::work;
use std::sync::Arc;

/// Rank the judged queries of all models again and again.
pub(crate) async fn watch(service: Arc<Service>) {
    loop {
        let all: Vec<Arc<ServedModel>> = service.catalogue().all().cloned().collect();
        for served in all {
            match rank(&service, &served).await {
                // A model that was exchanged meanwhile has nothing to say any more.
                Ok(Some(reading)) if service.catalogue().holds(&served) => {
                    service.metrics.show_canary(&served.id, reading);
                }
                Ok(_) => {}
                Err(refusal) => {
                    tracing::error!("judged queries of {}: {}", served.id, refusal.message);
                }
            }
        }
        let pause = tokio::time::sleep(service.options.canary_interval);
        tokio::select! {
            () = pause => {}
            () = service.reloaded.notified() => {}
        }
    }
}

/// Rank a model's judged queries, where it has some.
async fn rank(
    service: &Service,
    served: &Arc<ServedModel>,
) -> Result<Option<CanaryReading>, Refusal> {
    let Some(canary) = &served.canary else {
        return Ok(None);
    };
    let found = search(service, served, canary, false).await?;
    if canary.needs_exact() {
        canary.keep_exact(search(service, served, canary, true).await?);
    }
    Ok(canary.reading(&found))
}

/// The answers to all judged queries: few at once, which wait for their turn as requests do.
async fn search(
    service: &Service,
    served: &Arc<ServedModel>,
    canary: &Canary,
    exact: bool,
) -> Result<Vec<Vec<Hit>>, Refusal> {
    let mut found = Vec::new();
    for part in canary.parts() {
        let permit = service.admission.permit_for_paid().await?;
        let served = Arc::clone(served);
        let searched = work::run(&service.pool, move |stop| {
            let _permit = permit;
            let both = served.canary.as_ref().zip(served.index.as_ref());
            both.map_or(Ok(Vec::new()), |(canary, index)| {
                canary.search(index, part, exact, stop)
            })
        });
        found.extend(searched.await?);
    }
    Ok(found)
}
