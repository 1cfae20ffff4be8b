//! The context of one fit: its seed, a progress observer and a validation callback.

use super::checkpoint::FitCheckpoint;
use super::codes::straight_through::StraightThrough;
use crate::model::Map;
use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a method reports while it works.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Steps planned.
    pub steps: u64,
    /// Mean loss of the latest minibatch, without the regulariser.
    pub loss: f64,
    /// Of methods that learn a ranking: share of the pairs in the minibatch that some irrelevant item
    /// violates, and mean estimated rank of the relevant item.
    pub ranking: Option<(f64, f64)>,
    /// Steps per second so far.
    pub speed: f64,
    /// Value of the validation measure, where this step was validated.
    pub validation: Option<f64>,
}

/// Receives the progress of fits.
pub trait Observer {
    /// Called after every step.
    fn progress(&mut self, progress: &Progress);

    /// A fit begins.
    fn begin(&mut self, _what: &str) {}

    /// Whether the fit under way has gone far enough: it then ends as if it had taken all its steps, with the
    /// best map so far.
    fn is_enough(&self) -> bool {
        false
    }

    /// A result on the way that a person may want to read.
    fn note(&mut self, _what: &str) {}
}

/// Evaluates a map on a validation part; larger is better.
pub type Validate<'a> = dyn FnMut(&Map) -> Result<f64> + 'a;

/// Circumstances of one fit. A fit is stopped by the data set's own flag
/// ([`crate::dataset::DatasetBuilder::stop`]).
#[derive(Default)]
pub struct Run<'a> {
    /// Seed of all random draws.
    pub seed: u64,
    /// Receives progress.
    pub observer: Option<&'a mut dyn Observer>,
    /// Evaluates a map on a validation part (larger is better); used for early stopping.
    pub validate: Option<&'a mut Validate<'a>>,
    /// Stop after this many steps of the schedule, as an earlier run's best step showed.
    pub last_step: Option<u64>,
    /// Where fits are kept, to go on from there.
    pub checkpoint: Option<FitCheckpoint>,
    /// The fit under way, as the checkpoint knows it.
    pub(crate) fit: [u8; 32],
    /// The code that the map is to be trained for.
    pub(crate) code: Option<StraightThrough>,
    /// The map of an earlier model to start from, of vectors prepared as that model prepares them.
    pub start: Option<&'a Map>,
    /// The data set's flag, which a pipeline hands on.
    pub(crate) stop: Option<&'a AtomicBool>,
    /// What the method found worth recording in the model.
    pub facts: BTreeMap<String, f64>,
    /// Names of the dimensions of a mapped vector, from methods whose dimensions have a meaning.
    pub outputs: Vec<String>,
}

impl Run<'_> {
    /// A run that nobody observes.
    pub fn new(seed: u64) -> Self {
        Run {
            seed,
            ..Run::default()
        }
    }

    /// The state in which this fit was ended before.
    pub(crate) fn resumed<S: DeserializeOwned>(&self) -> Result<Option<S>> {
        match &self.checkpoint {
            Some(checkpoint) => checkpoint.underway(&self.fit),
            None => Ok(None),
        }
    }

    /// Keep the state of this fit.
    pub(crate) fn keep(&mut self, state: &impl Serialize) -> Result<()> {
        match &self.checkpoint {
            Some(checkpoint) => checkpoint.keep(self.fit, state),
            None => Ok(()),
        }
    }

    /// Tell whoever observes; whether they call it enough.
    pub(crate) fn tell(&mut self, progress: &Progress) -> bool {
        self.observer.as_deref_mut().is_some_and(|observer| {
            observer.progress(progress);
            observer.is_enough()
        })
    }

    /// An error if somebody asked to stop.
    pub(crate) fn check_stop(&self) -> Result<()> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }
}
