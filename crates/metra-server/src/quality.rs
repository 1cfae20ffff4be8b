//! Ranks the judged queries of all models every so often, and says in the metrics what they find.

use crate::models::ServedModel;
use crate::service::Service;
use crate::work;
use std::sync::Arc;

/// Rank the judged queries of all models again and again.
pub(crate) async fn watch(service: Arc<Service>) {
    loop {
        let judged: Vec<Arc<ServedModel>> = (service.catalogue().all())
            .filter(|served| served.canary.is_some())
            .cloned()
            .collect();
        for served in judged {
            let ranking = Arc::clone(&served);
            let ranked = work::run(&service.pool, move |_| {
                let both = ranking.canary.as_ref().zip(ranking.index.as_ref());
                Ok(both.and_then(|(canary, index)| canary.rank(index)))
            });
            match ranked.await {
                // A model that was exchanged meanwhile has nothing to say any more.
                Ok(Some(reading)) if service.serves(&served) => {
                    service.metrics.show_canary(&served.id, reading);
                }
                Ok(_) => {}
                Err(refusal) => tracing::error!("{}: {}", served.id, refusal.message),
            }
        }
        let pause = tokio::time::sleep(service.options.canary_interval);
        tokio::select! {
            () = pause => {}
            () = service.reloaded.notified() => {}
        }
    }
}
