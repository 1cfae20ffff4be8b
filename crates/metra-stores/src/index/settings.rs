//! How a graph is built, and the callback for its progress.

use crate::Result;

/// A callback for the progress of long work: a stage, how much of it is done, and of how much. An error ends the work.
pub type BuildProgress<'a> = dyn FnMut(Stage, u64, u64) -> metra::Result<()> + 'a;

/// A part of long work on an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Items are linked into the graph.
    Link,
    /// Bytes of files are read to digest them.
    Digest,
}

/// How a graph is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphSettings {
    /// Neighbours that an item is linked to: more find more, and take more room.
    pub connections: usize,
    /// Candidates kept while an item's neighbours are looked for: more find more, and take longer.
    pub build_effort: usize,
    /// Whether all threads of the pool build it. The graph's bytes, and which neighbours it misses,
    /// are then not the same from run to run; with one thread they are.
    pub parallel: bool,
}

impl Default for GraphSettings {
    fn default() -> Self {
        GraphSettings {
            connections: 16,
            build_effort: 128,
            parallel: false,
        }
    }
}

impl GraphSettings {
    pub(super) fn check(&self) -> Result<()> {
        let ranges = [
            ("connections", self.connections, 2..=512),
            ("build effort", self.build_effort, 1..=100_000),
        ];
        for (name, value, range) in ranges {
            if !range.contains(&value) {
                let expected = format!("between {} and {}", range.start(), range.end());
                return Err(metra::Error::parameter(name, expected, value).into());
            }
        }
        Ok(())
    }
}
