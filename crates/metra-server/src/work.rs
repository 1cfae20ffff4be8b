//! Numeric work away from the threads that wait for clients, given up when nobody waits for it any more.

use crate::refusal::Refusal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// Set when the future that waits for the work is dropped: the client has gone or its time is over.
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Do work. The flag that it is given tells it to stop.
///
/// Even little work is handed over: the library spreads it over the pool that it is called in, and outside of one over all processors.
pub(crate) async fn run<T: Send + 'static>(
    pool: &rayon::ThreadPool,
    work: impl FnOnce(&AtomicBool) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let stop = Arc::new(AtomicBool::new(false));
    let _given_up = GivenUp(Arc::clone(&stop));
    let guarded = move || {
        // A mistake in the library must cost one answer and not the server.
        catch_unwind(AssertUnwindSafe(|| work(&stop))).unwrap_or_else(|_| {
            Err(Refusal::internal(
                "the work failed; the server's log says why",
            ))
        })
    };
    let (sender, receiver) = oneshot::channel();
    pool.spawn(move || {
        // Nobody may wait for it any more.
        let _ = sender.send(guarded());
    });
    let lost = |_| Err(Refusal::internal("the work was lost"));
    receiver.await.unwrap_or_else(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap()
    }

    #[tokio::test]
    async fn panics_cost_one_answer() {
        let failed = run::<()>(&pool(), |_| panic!("a mistake")).await;
        assert_eq!(failed.unwrap_err().code, "internal");
        assert_eq!(run(&pool(), |_| Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_told_to_stop() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let pool = pool();
        let work = run(&pool, move |stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            sender.send(()).unwrap();
            Ok(())
        });
        let waited = tokio::time::timeout(std::time::Duration::from_millis(20), work).await;
        assert!(waited.is_err());
        let ended = tokio::task::spawn_blocking(move || receiver.recv());
        ended.await.unwrap().unwrap();
    }
}
