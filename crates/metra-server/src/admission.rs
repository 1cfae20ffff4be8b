//! Which requests are worked on, which wait, and which are refused.
//!
//! Work beyond what the processors can do would only make all answers late: so many requests are worked on, as many wait as will have their
//! turn within a short time by what requests have taken of late, and all others are refused without waiting.

use crate::options::RequestLimits;
use crate::refusal::Refusal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Unit of memory that is counted.
const KIB: usize = 1 << 10;

pub(crate) struct Admission {
    running: Arc<Semaphore>,
    concurrency: usize,
    waiting: AtomicUsize,
    queue: usize,
    queue_time: Duration,
    memory: Arc<Semaphore>,
    bytes: usize,
    usual: Arc<UsualTime>,
}

/// A request that may be worked on, until this is dropped.
pub(crate) struct Permit {
    _turn: OwnedSemaphorePermit,
    began: Instant,
    usual: Arc<UsualTime>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.usual.add(self.began.elapsed());
    }
}

/// What requests have taken of late, in nanoseconds: each new one counts a sixteenth.
#[derive(Default)]
struct UsualTime(AtomicU64);

impl UsualTime {
    fn add(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mixed = |usual: u64| Some(usual - usual / 16 + time / 16);
        let _ = (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, mixed);
    }

    fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// Memory for a body, until this is dropped.
pub(crate) struct Reserved(OwnedSemaphorePermit);

impl Admission {
    pub(crate) fn new(limits: &RequestLimits) -> Self {
        Admission {
            running: Arc::new(Semaphore::new(limits.concurrency)),
            concurrency: limits.concurrency,
            waiting: AtomicUsize::new(0),
            queue: limits.queue,
            queue_time: limits.queue_time,
            memory: Arc::new(Semaphore::new(limits.memory.div_ceil(KIB))),
            bytes: limits.memory,
            usual: Arc::default(),
        }
    }

    fn granted(&self, turn: OwnedSemaphorePermit) -> Permit {
        Permit {
            _turn: turn,
            began: Instant::now(),
            usual: Arc::clone(&self.usual),
        }
    }

    /// An error where a request would not be worked on in time: asked before its body is read.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.running.available_permits() > 0 {
            return Ok(());
        }
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting >= self.queue {
            return Err(self.full());
        }
        let turns = (waiting + 1) as f64 / self.concurrency as f64;
        let wait = self.usual.get().as_secs_f64() * turns;
        match wait > self.queue_time.as_secs_f64() {
            true => Err(Refusal::overloaded(format!(
                "the request would wait for about {wait:.1} s, and {} s is the limit",
                self.queue_time.as_secs_f64()
            ))),
            false => Ok(()),
        }
    }

    fn full(&self) -> Refusal {
        let (running, queue) = (self.concurrency, self.queue);
        Refusal::overloaded(format!(
            "{running} requests are worked on and {queue} wait, which is the limit"
        ))
    }

    /// Wait for the turn of a request.
    pub(crate) async fn permit(&self) -> Result<Permit, Refusal> {
        if let Ok(turn) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(self.granted(turn));
        }
        self.check()?;
        let _waits = Waiting::enter(&self.waiting, self.queue).ok_or_else(|| self.full())?;
        let turn = Arc::clone(&self.running).acquire_owned();
        match tokio::time::timeout(self.queue_time, turn).await {
            Ok(Ok(turn)) => Ok(self.granted(turn)),
            // The semaphore is never closed.
            Ok(Err(_)) => Err(Refusal::draining()),
            Err(_) => Err(Refusal::overloaded(format!(
                "the request waited for {} s, which is the limit",
                self.queue_time.as_secs_f64()
            ))),
        }
    }

    /// Reserve memory for a body.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reserved, Refusal> {
        let units = u32::try_from(bytes.div_ceil(KIB)).unwrap_or(u32::MAX);
        let reserved = Arc::clone(&self.memory).try_acquire_many_owned(units);
        reserved.map(Reserved).map_err(|_| {
            let all = self.bytes;
            Refusal::overloaded(format!(
                "bodies and answers of all requests have {all} bytes together, which is the limit"
            ))
        })
    }

    /// Reserve memory for a body that has grown to so many bytes.
    pub(crate) fn reserve_more(
        &self,
        reserved: &mut Reserved,
        bytes: usize,
    ) -> Result<(), Refusal> {
        let missing = bytes.div_ceil(KIB).saturating_sub(reserved.0.num_permits());
        if missing > 0 {
            let Reserved(more) = self.reserve(missing * KIB)?;
            reserved.0.merge(more);
        }
        Ok(())
    }

    /// Wait for the turn of a request that has cost so much already that it is not refused any more.
    pub(crate) async fn permit_for_paid(&self) -> Result<Permit, Refusal> {
        let turn = Arc::clone(&self.running).acquire_owned().await;
        turn.map(|turn| self.granted(turn))
            .map_err(|_| Refusal::draining())
    }

    /// Requests that are worked on, and that wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let running = self.concurrency - self.running.available_permits().min(self.concurrency);
        (running, self.waiting.load(Ordering::Relaxed))
    }
}

/// A place in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(waiting: &'a AtomicUsize, queue: usize) -> Option<Self> {
        let entered = waiting.fetch_add(1, Ordering::Relaxed) < queue;
        let place = Waiting(waiting);
        entered.then_some(place)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> RequestLimits {
        RequestLimits {
            concurrency: 1,
            queue: 1,
            queue_time: Duration::from_millis(50),
            memory: 4 * KIB,
            ..RequestLimits::default()
        }
    }

    #[tokio::test]
    async fn one_works_one_waits_and_the_third_is_refused() {
        let admission = Arc::new(Admission::new(&limits()));
        let first = admission.permit().await.ok().unwrap();
        let other = Arc::clone(&admission);
        let second = tokio::spawn(async move { other.permit().await.is_ok() });
        while admission.load().1 == 0 {
            tokio::task::yield_now().await;
        }
        assert!(admission.check().is_err());
        let third = admission.permit().await.err().unwrap();
        assert!(
            third
                .message
                .contains("1 requests are worked on and 1 wait")
        );
        drop(first);
        assert!(second.await.unwrap());
        assert_eq!(admission.load(), (0, 0));
    }

    #[tokio::test]
    async fn nobody_waits_longer_than_the_limit() {
        let admission = Admission::new(&limits());
        let _first = admission.permit().await.ok().unwrap();
        let late = admission.permit().await.err().unwrap();
        assert!(
            late.message.contains("waited for 0.05 s"),
            "{}",
            late.message
        );
        assert_eq!(admission.load(), (1, 0));
    }

    #[tokio::test]
    async fn a_wait_that_would_be_too_long_is_refused_at_once() {
        let admission = Admission::new(&RequestLimits {
            queue: 1_000,
            ..limits()
        });
        // 100 ms each, and 50 ms is the limit.
        for _ in 0..200 {
            admission.usual.add(Duration::from_millis(100));
        }
        assert!(admission.check().is_ok());
        let _first = admission.permit().await.ok().unwrap();
        let second = admission.check().unwrap_err();
        assert!(second.message.contains("about 0.1 s"), "{}", second.message);
        // Short ones may wait in large numbers.
        for _ in 0..400 {
            admission.usual.add(Duration::from_micros(10));
        }
        assert!(admission.check().is_ok());
    }

    #[test]
    fn memory_is_given_back() {
        let admission = Admission::new(&limits());
        let most = admission.reserve(3 * KIB + 1).ok().unwrap();
        assert!(admission.reserve(1).is_err());
        drop(most);
        let mut growing = admission.reserve(0).ok().unwrap();
        for bytes in [1, KIB, KIB + 1, 4 * KIB] {
            admission.reserve_more(&mut growing, bytes).ok().unwrap();
        }
        assert!(admission.reserve(1).is_err());
        assert!(admission.reserve_more(&mut growing, 4 * KIB + 1).is_err());
        drop(growing);
        assert!(admission.reserve(4 * KIB).is_ok());
    }
}
