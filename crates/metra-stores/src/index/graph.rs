//! The approximate graph of an index: HNSW (Malkov & Yashunin, 2016) as usearch has it, which finds
//! candidates that are then put into the metric's own order.
//!
//! Why usearch is in docs/decisions/local-index.md. The graph keeps a copy of the vectors, in the form
//! that its own distances order as the metric does:
//!
//! * Euclid: unchanged, by squared distance;
//! * cosine: divided by their lengths, by inner product, which is then the cosine;
//! * dot: with one more number that makes all items equally long, then as cosine (Bachrach et al.,
//!   RecSys 2014). A graph by plain inner products links everything to the longest items: of vectors
//!   whose inner product is a distance (z, −½|z|²) it finds 1 %;
//! * blocks: unchanged, by squared distance, which orders otherwise: candidates only.

use super::graph_check::{self, Expected};
use super::manifest::GraphFacts;
use super::settings::{BuildProgress, GraphSettings, Stage};
use crate::{Error, Result};
use metra::data::Corpus;
use metra::linalg::Rows;
use metra::model::Space;
use rayon::prelude::*;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

/// Squared length below which no distance can leave f32. The library is compiled with
/// -ffast-math, so that infinity must never come up inside it.
const SAFE: f64 = 1e36;

/// Rows that are linked between two looks at whether to stop.
const STRETCH: usize = 1024;

/// A graph that lies in a mapped file.
pub(super) struct Graph {
    index: Index,
    space: Space,
    contexts: Contexts,
}

impl Graph {
    /// Link all rows and write the graph to `path`.
    pub(super) fn build(
        path: &Path,
        space: Space,
        items: &dyn Corpus,
        settings: &GraphSettings,
        progress: &mut BuildProgress<'_>,
    ) -> Result<GraphFacts> {
        let total = items.len();
        let form = GraphForm::of(space, items)?;
        let index = new_index(path, space, items.dim(), settings)?;
        // Every thread has a context with a generator of its own: with one, levels are drawn in the
        // order of the rows, and the same rows give the same bytes.
        let threads = match settings.parallel {
            true => rayon::current_num_threads(),
            false => 1,
        };
        index
            .reserve_capacity_and_threads(total as usize, threads)
            .map_err(|e| library(path, &e))?;
        let add = |first: u64, rows: Rows<'_>| -> metra::Result<()> {
            let mut formed = Vec::new();
            for (place, row) in rows.iter().enumerate() {
                let number = first + place as u64;
                let refused = |problem| metra::Error::Row {
                    row: items.origin(number),
                    problem,
                };
                form.item(row, &mut formed).map_err(refused)?;
                index
                    .add(number, &formed)
                    .map_err(|e| metra::Error::Data(format!("{}: {e}", path.display())))?;
            }
            Ok(())
        };
        let mut outcome = Ok(());
        items.scan(0..total, &mut |first, rows| {
            progress(Stage::Link, first, total)?;
            if settings.parallel {
                let per_thread = rows.len().div_ceil(4 * threads).clamp(1, STRETCH);
                let parts: Vec<metra::Result<()>> = (0..rows.len().div_ceil(per_thread))
                    .into_par_iter()
                    .map(|part| {
                        let start = part * per_thread;
                        let end = rows.len().min(start + per_thread);
                        add(first + start as u64, rows.slice(start, end))
                    })
                    .collect();
                outcome = parts.into_iter().collect();
            } else {
                outcome = add(first, rows);
            }
            std::mem::replace(&mut outcome, Ok(()))
        })?;
        progress(Stage::Link, total, total)?;
        index.save(text(path)?).map_err(|e| library(path, &e))?;
        Ok(GraphFacts {
            library: format!("usearch {}", usearch::version()),
            connections: settings.connections,
            build_effort: settings.build_effort,
            parallel: settings.parallel,
        })
    }

    /// Map the graph of so many rows, for `threads` searches at a time. Unless it is `trusted`, all of it
    /// is read first, to see whether it can be walked.
    pub(super) fn open(
        path: &Path,
        space: Space,
        rows: u64,
        dim: usize,
        facts: &GraphFacts,
        threads: usize,
        trusted: bool,
    ) -> Result<Self> {
        let settings = GraphSettings {
            connections: facts.connections,
            build_effort: facts.build_effort,
            parallel: facts.parallel,
        };
        settings.check()?;
        if !trusted {
            let expected = Expected {
                rows,
                dim: graph_dim(space, dim),
                metric: match space {
                    Space::SquaredL2 | Space::Blocks { .. } => b'e',
                    Space::InnerProduct | Space::Cosine => b'i',
                },
                settings: &settings,
                longest: SAFE,
            };
            graph_check::check(path, &expected)?;
        }
        let index = new_index(path, space, dim, &settings)?;
        // The library does not check that there are enough contexts for the threads that come.
        let reserved = index.reserve_capacity_and_threads(0, threads);
        reserved.map_err(|e| library(path, &e))?;
        index.view(text(path)?).map_err(|e| library(path, &e))?;
        let (items, numbers) = (index.size() as u64, index.dimensions());
        let expected = graph_dim(space, dim);
        if (items, numbers) != (rows, expected) {
            return Err(Error::file(
                path,
                format!("expected a graph of {rows} × {expected}, but found {items} × {numbers}"),
            ));
        }
        Ok(Graph {
            index,
            space,
            contexts: Contexts::new(threads),
        })
    }

    /// The `count` items that seem nearest to a query, the nearest first. More of them also means a
    /// more careful walk.
    pub(super) fn candidates(&self, query: &[f32], count: usize) -> Result<Vec<u64>> {
        let mut formed = Vec::new();
        form_query(self.space, query, &mut formed).map_err(metra::Error::Data)?;
        let found = self.contexts.with(|| self.index.search(&formed, count));
        let found = found.map_err(|e| metra::Error::Data(format!("the graph: {e}")))?;
        Ok(found.keys)
    }
}

/// Contexts that are free. More searches at a time than the library has contexts for would be
/// undefined behaviour in it, so that what is too much waits here.
struct Contexts {
    free: Mutex<usize>,
    returned: Condvar,
}

impl Contexts {
    fn new(free: usize) -> Self {
        Contexts {
            free: Mutex::new(free),
            returned: Condvar::new(),
        }
    }

    fn with<R>(&self, work: impl FnOnce() -> R) -> R {
        struct ContextGuard<'a>(&'a Contexts);
        impl Drop for ContextGuard<'_> {
            fn drop(&mut self) {
                *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                self.0.returned.notify_one();
            }
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            let waited = self.returned.wait(free);
            free = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        drop(free);
        let _guard = ContextGuard(self);
        work()
    }
}

fn new_index(path: &Path, space: Space, dim: usize, settings: &GraphSettings) -> Result<Index> {
    let options = IndexOptions {
        dimensions: graph_dim(space, dim),
        metric: match space {
            Space::SquaredL2 | Space::Blocks { .. } => MetricKind::L2sq,
            Space::InnerProduct | Space::Cosine => MetricKind::IP,
        },
        quantization: ScalarKind::F32,
        connectivity: settings.connections,
        expansion_add: settings.build_effort,
        // A search keeps as many candidates as it is asked for, and this many at least: the number
        // asked for is then the one thing that sets the effort, which threads may choose apart.
        expansion_search: 1,
        multi: false,
    };
    Index::new(&options).map_err(|e| library(path, &e))
}

/// Dimension of a vector in the graph.
fn graph_dim(space: Space, dim: usize) -> usize {
    dim + usize::from(space == Space::InnerProduct)
}

/// The form in which items are put into the graph.
struct GraphForm {
    space: Space,
    /// The largest squared length of an item, where items are made equally long.
    longest: f64,
}

impl GraphForm {
    fn of(space: Space, items: &dyn Corpus) -> metra::Result<Self> {
        let mut longest = 0.0_f64;
        if space == Space::InnerProduct {
            items.scan(0..items.len(), &mut |_, rows| {
                longest = rows.iter().map(squared_length).fold(longest, f64::max);
                Ok(())
            })?;
        }
        Ok(GraphForm { space, longest })
    }

    /// An item as the graph compares it, or why it cannot.
    fn item(&self, row: &[f32], formed: &mut Vec<f32>) -> Result<(), String> {
        if self.space != Space::InnerProduct {
            return form_query(self.space, row, formed);
        }
        // Items that are all of length 0 keep the new coordinate alone.
        let length = match self.longest > 0.0 {
            true => self.longest.sqrt(),
            false => 1.0,
        };
        let rest = (length * length - squared_length(row)).max(0.0).sqrt();
        let values = row.iter().map(|value| f64::from(*value)).chain([rest]);
        formed.clear();
        formed.extend(values.map(|value| (value / length) as f32));
        Ok(())
    }
}

/// A query as the graph compares it, or why it cannot. A query's own length moves no order but of
/// distances, and there items and queries take the same form.
fn form_query(space: Space, row: &[f32], formed: &mut Vec<f32>) -> Result<(), String> {
    let squared = squared_length(row);
    formed.clear();
    match space {
        Space::Cosine if squared == 0.0 => {
            return Err("has length 0 after the map: a cosine does not exist".into());
        }
        Space::Cosine | Space::InnerProduct => {
            let length = if squared > 0.0 { squared.sqrt() } else { 1.0 };
            formed.extend(row.iter().map(|v| (f64::from(*v) / length) as f32));
            formed.resize(graph_dim(space, row.len()), 0.0);
        }
        Space::SquaredL2 | Space::Blocks { .. } if squared < SAFE => formed.extend_from_slice(row),
        Space::SquaredL2 | Space::Blocks { .. } => {
            return Err(format!(
                "expected a length below {:e} in an approximate index, but found {:e}: search \
                 exactly",
                SAFE.sqrt(),
                squared.sqrt()
            ));
        }
    }
    Ok(())
}

/// In f64 it is finite for every finite vector of f32.
fn squared_length(row: &[f32]) -> f64 {
    row.iter().map(|v| f64::from(*v) * f64::from(*v)).sum()
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        let problem = "expected a path in UTF-8: the graph's library takes no other";
        Error::file(path, problem)
    })
}

fn library(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::file(path, format!("the graph's library says: {error}"))
}
