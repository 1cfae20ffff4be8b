//! The flag that Ctrl-C sets; long work looks at it and ends without leaving a partial file.

use metra::data::Corpus;
use metra::internal::Interruptible;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first Ctrl-C.
pub(crate) static STOP: AtomicBool = AtomicBool::new(false);

/// Watch for Ctrl-C; the second one ends the process at once.
pub(crate) fn watch() {
    let handled = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    if let Err(error) = handled {
        tracing::warn!("Ctrl-C cannot be handled: {error}");
    }
}

/// Whether Ctrl-C was pressed.
pub(crate) fn is_stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// An error if Ctrl-C was pressed.
pub(crate) fn check() -> Result<(), metra::Error> {
    match is_stopped() {
        true => Err(metra::Error::Interrupted),
        false => Ok(()),
    }
}

/// A corpus that ends every pass over it after Ctrl-C.
pub(crate) fn stoppable(corpus: &dyn Corpus) -> Interruptible<'_> {
    Interruptible::new(corpus, &STOP)
}
