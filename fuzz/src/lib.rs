//! Hostile bytes for everything that reads files and messages of others. A target is given bytes and uses
//! whatever can be read from them, as a program would; it must neither panic nor take memory beyond what
//! the reader promises.
//!
//! libFuzzer runs targets for as long as one likes (`fuzz/run`), `mutate` runs them on files damaged by a
//! seed, and a test replays the kept corpus.

mod addresses;
mod images;
mod index;
mod model;
mod names;
mod passes;
#[cfg(feature = "engine")]
mod plans;
mod report;
pub mod seeds;
mod tables;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// What a target made of its input: a digest of all that was read, or `None` where it was refused.
pub type Outcome = Option<blake3::Hash>;

/// Something that reads bytes of others.
pub struct Target {
    /// Its name, which is that of its folder in the corpus, too.
    pub name: &'static str,
    run: fn(&[u8]) -> Outcome,
    /// Whether every change of a valid input must be noticed, because it carries digests.
    pub notices_damage: bool,
}

const fn target(name: &'static str, run: fn(&[u8]) -> Outcome) -> Target {
    Target {
        name,
        run,
        notices_damage: false,
    }
}

const fn digested(name: &'static str, run: fn(&[u8]) -> Outcome) -> Target {
    Target {
        notices_damage: true,
        ..target(name, run)
    }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    digested("model", model::model),
    target("model_repaired", model::repaired),
    digested("index", index::index),
    target("index_repaired", index::repaired),
    target("parquet", tables::parquet),
    target("feather", tables::feather),
    target("npy", tables::npy),
    target("csv", tables::csv),
    target("json_lines", tables::json_lines),
    target("image", images::image),
    target("pass", passes::pass),
    target("report", report::report),
    target("names", names::names),
    target("postgres_address", addresses::postgres),
    #[cfg(feature = "engine")]
    target("plan", plans::plan),
    #[cfg(feature = "engine")]
    target("cluster_address", plans::cluster_address),
];

/// The target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// Give it bytes; an error where it panicked. Readers catch panics of the decoders under them, and those
    /// are not printed.
    pub fn try_run(&self, bytes: &[u8]) -> Result<Outcome, String> {
        static LISTEN: Once = Once::new();
        LISTEN.call_once(|| {
            let usual = take_hook();
            set_hook(Box::new(move |info| match RUNNING.get() {
                true => LAST.set(info.to_string()),
                false => usual(info),
            }));
        });
        RUNNING.set(true);
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.run)(bytes)));
        RUNNING.set(false);
        outcome.map_err(|_| LAST.take())
    }
}

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    /// What the last panic of a target said.
    static LAST: Cell<String> = const { Cell::new(String::new()) };
}

/// A digest of numbers and texts that were read, in the order in which they come.
#[derive(Default)]
struct Reading(blake3::Hasher);

impl Reading {
    fn text(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    fn numbers(&mut self, values: &[f32]) {
        self.0.update(&(values.len() as u64).to_le_bytes());
        for value in values {
            self.0.update(&value.to_le_bytes());
        }
    }

    fn done(self) -> Outcome {
        Some(self.0.finalize())
    }
}
