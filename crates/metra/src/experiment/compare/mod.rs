//! Comparisons: every method under one protocol, with settings chosen on validation parts only and
//! the same number of trials for each.
//!
//! [`crate::Experiment::run`] works through trials and fits on several threads, writes each to a [`Log`]
//! as it ends, and takes from the log what an earlier run has already done. What it gives does not
//! depend on threads, on interruptions or on the order in which trials end. `schedule` says what is
//! to be done next for a method on a split, `run` does it, `summary` makes [`Results`] of it.

mod contenders;
mod log;
mod results;
mod run;
mod schedule;
mod state;
mod summary;

/// Digest of the library's sources, taken when it was built. Results of builds that differ in it are not mixed.
pub const CODE_DIGEST: &str = env!("METRA_CODE_DIGEST");

pub use log::{Log, Record};
pub use results::{
    ClaimOutcome, Cost, Costs, DataFacts, Evidence, FORMAT, Finding, Gain, Line, MeasureLine,
    PartLine, ProtocolFacts, QueryChange, QueryChanges, Results, Sizes, SplitLine,
};
pub use run::Event;

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
