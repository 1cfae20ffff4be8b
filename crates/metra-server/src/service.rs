//! What all requests share.

use crate::admission::{Admission, Reserved};
use crate::feedback::FeedbackLog;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::models::{Catalogue, ServedModel};
use crate::options::{RequestLimits, ServerOptions};
use crate::refusal::Refusal;
use crate::tls::TlsSlot;
use crate::upstream::Upstream;
use crate::{Error, Result, list, work};
use axum::body::Body;
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use metra_stores::index::Verify;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use tokio::sync::Notify;

/// Models, limits, keys and counters of a server.
pub(crate) struct Service {
    pub(crate) options: ServerOptions,
    /// Threads of numeric work.
    pub(crate) pool: rayon::ThreadPool,
    pub(crate) admission: Admission,
    pub(crate) metrics: Metrics,
    pub(crate) upstream: Option<Upstream>,
    pub(crate) feedback: Option<Arc<FeedbackLog>>,
    pub(crate) tls: Option<TlsSlot>,
    catalogue: RwLock<Arc<Catalogue>>,
    /// One reload at a time.
    reloading: Mutex<()>,
    keys: RwLock<Arc<Option<Keys>>>,
    draining: AtomicBool,
    requests: AtomicU64,
    /// Told after every change of what is served.
    pub(crate) reloaded: Notify,
}

/// Why nothing was loaded again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    /// Another one is not done yet.
    #[error("a reload is under way")]
    UnderWay,
    /// Some of what there is now cannot be served.
    #[error("what could not be loaded stays as it was before: {0}")]
    Failed(Error),
}

/// What a lock holds, whatever became of the thread that had it: only whole values are ever stored.
fn current<T>(lock: &RwLock<Arc<T>>) -> Arc<T> {
    let guard = lock.read().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(&guard)
}

fn replace<T>(lock: &RwLock<Arc<T>>, value: T) {
    *lock.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
}

impl Service {
    /// Load everything that is served.
    pub(crate) fn start(options: ServerOptions) -> Result<Self> {
        options.check()?;
        let threads = options.threads.unwrap_or(0);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build();
        let service = Service {
            pool: pool.map_err(|e| Error::setting("--threads", e.to_string()))?,
            admission: Admission::new(&options.limits),
            metrics: Metrics::new(),
            upstream: (options.upstream.as_ref())
                .map(|upstream| Upstream::new(upstream, &options.limits))
                .transpose()?,
            feedback: options
                .feedback
                .as_ref()
                .map(|feedback| FeedbackLog::open(feedback).map(Arc::new))
                .transpose()?,
            tls: options.tls.as_ref().map(TlsSlot::load).transpose()?,
            catalogue: RwLock::default(),
            reloading: Mutex::new(()),
            keys: RwLock::new(Arc::new(Keys::of(&options)?)),
            draining: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            reloaded: Notify::new(),
            options,
        };
        let catalogue = service.load()?;
        service
            .metrics
            .show_models(&catalogue, &Catalogue::default());
        replace(&service.catalogue, catalogue);
        Ok(service)
    }

    /// Load models. Those whose files have not changed stay as they are.
    fn load(&self) -> Result<Catalogue> {
        let verify = match self.options.trusted {
            true => Verify::Lengths,
            false => Verify::Digests,
        };
        let entries = list::entries(&self.options.models)?;
        let earlier = self.catalogue();
        // Not in the pool of requests, which would wait; as large, because a graph is opened for so many threads.
        let threads = self.pool.current_num_threads();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| Error::setting("--threads", e.to_string()))?;
        pool.install(|| Catalogue::load(entries, verify, &earlier))
    }

    /// Load keys, certificates and models again, each by itself: a key that was taken back must not stay good because a model does not
    /// load, or as long as a large one takes. What does not load never replaces what serves.
    pub(crate) fn reload(&self) -> Result<(), ReloadError> {
        let _alone = match self.reloading.try_lock() {
            Ok(alone) => alone,
            // Whatever failed there has ended, and only whole values were exchanged.
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(ReloadError::UnderWay),
        };
        let keys = Keys::of(&self.options).map(|keys| replace(&self.keys, keys));
        let tls = self.tls.as_ref().map_or(Ok(()), |slot| {
            slot.read().map(|config| slot.replace(config))
        });
        // A mistake in the library must be seen as what it is: a reload that failed.
        let models = catch_unwind(AssertUnwindSafe(|| self.load()));
        let models = models.unwrap_or_else(|_| {
            let problem = "loading them ended by a mistake, which the log shows";
            Err(Error::setting("the models", problem))
        });
        let models = models.map(|catalogue| {
            let earlier = self.catalogue();
            replace(&self.catalogue, catalogue);
            self.metrics.show_models(&self.catalogue(), &earlier);
            self.reloaded.notify_one();
        });
        let outcome = keys.and(tls).and(models);
        self.metrics.count_reload(outcome.is_ok());
        outcome.map_err(ReloadError::Failed)
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        current(&self.catalogue)
    }

    /// The model of a request.
    pub(crate) fn model(&self, name: Option<&str>) -> Result<Arc<ServedModel>, Refusal> {
        self.catalogue().find(name)
    }

    pub(crate) fn keys(&self) -> Arc<Option<Keys>> {
        current(&self.keys)
    }

    pub(crate) fn limits(&self) -> &RequestLimits {
        &self.options.limits
    }

    /// From now on requests are answered with a wish to close their connection.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// The number of the next request.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// Read a body within all limits. Where the server is full, what comes is thrown away: a connection that is closed before it
    /// was read would take the answer with it.
    pub(crate) async fn body(
        &self,
        headers: &HeaderMap,
        body: Body,
        most: usize,
    ) -> Result<HeldBody, Refusal> {
        if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
            && encoding != "identity"
        {
            return Err(Refusal::media_type(
                "expected a body without Content-Encoding",
            ));
        }
        let length = headers.get(header::CONTENT_LENGTH);
        let length: Option<usize> = length.and_then(|text| text.to_str().ok()?.parse().ok());
        if length.is_some_and(|length| length > most) {
            return Err(too_large(most));
        }
        let time = self.limits().client_time;
        let read = tokio::time::timeout(time, self.read(body, most)).await;
        read.unwrap_or_else(|_| Err(Refusal::slow(time.as_secs_f64())))
    }

    /// Read a body. Memory is reserved as it comes: a promise of much costs nothing.
    async fn read(&self, mut body: Body, most: usize) -> Result<HeldBody, Refusal> {
        let mut held = self.admission.check().and_then(|()| {
            Ok(HeldBody {
                bytes: Vec::new(),
                reserved: self.admission.reserve(0)?,
            })
        });
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            // The client has gone, and no answer reaches it.
            let frame = frame.map_err(|_| Refusal::bad("the body broke off"))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            bytes += data.len();
            if bytes > most {
                return Err(too_large(most));
            }
            held = held.and_then(|mut held| {
                self.admission.reserve_more(&mut held.reserved, bytes)?;
                held.bytes.extend_from_slice(&data);
                Ok(held)
            });
        }
        held
    }

    /// An error where a request has more rows than it may have.
    pub(crate) fn check_rows(&self, rows: usize, what: &str) -> Result<(), Refusal> {
        let most = self.limits().rows;
        match rows > most {
            true => Err(Refusal::too_large(format!(
                "expected at most {most} {what} in a request, but found {rows}"
            ))),
            false => Ok(()),
        }
    }

    /// Answer a request: read its body, wait for its turn, and do the work.
    pub(crate) async fn answer<T: Send + 'static>(
        self: &Arc<Self>,
        (headers, body): (&HeaderMap, Body),
        work: impl FnOnce(&Service, &[u8], &AtomicBool) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let held = self.body(headers, body, self.limits().body).await?;
        let permit = self.admission.permit().await?;
        let service = Arc::clone(self);
        work::run(&self.pool, move |stop| {
            // Both end with the work, not with whoever waits for it.
            let (held, _permit) = (held, permit);
            work(&service, &held.bytes, stop)
        })
        .await
    }
}

fn too_large(most: usize) -> Refusal {
    Refusal::too_large(format!("expected a body of at most {most} bytes"))
}

/// A body, which counts as held until this is dropped.
pub(crate) struct HeldBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) reserved: Reserved,
}
