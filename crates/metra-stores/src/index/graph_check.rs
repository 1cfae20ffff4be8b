//! Whether a graph file can be walked: usearch follows the numbers in it without looking, so that a
//! forged one would make it read anywhere. Digests do not help against whoever wrote the folder.
//!
//! The layout is that of usearch 2 (`index_dense.hpp`, `index.hpp`), little endian:
//!
//! ```text
//! u32 rows, u32 bytes a row          the vectors, row after row
//! 64 bytes                           "usearch", 3 × u16 version, kinds of metric, numbers, keys and slots
//! 5 × u64                            nodes, links of a node, links in the lowest layer, highest layer, entry
//! i16 for each node                  its highest layer
//! for each node                      u64 key, i16 layer, then for each layer u32 count and u32 slots
//! ```

use super::settings::GraphSettings;
use crate::{Error, Result};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

/// The version of the layout.
const MAJOR: u16 = 2;
/// Numbers are f32, keys u64 and slots u32, as the library numbers its kinds.
const KINDS: [u8; 3] = [11, 14, 15];
/// More layers than a graph of 2^64 nodes would have.
const MOST_LAYERS: i16 = 64;

/// What a graph file must be.
pub(super) struct Expected<'a> {
    pub(super) rows: u64,
    /// Dimension of its vectors.
    pub(super) dim: usize,
    /// The letter by which usearch knows the metric.
    pub(super) metric: u8,
    pub(super) settings: &'a GraphSettings,
    /// Squared length that no vector may reach.
    pub(super) longest: f64,
}

/// An error unless every number in the file lies where a walk may go.
pub(super) fn check(path: &Path, expected: &Expected<'_>) -> Result<()> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut reader = GraphReader {
        path,
        file: BufReader::with_capacity(1 << 20, file),
    };
    reader.vectors(expected)?;
    let layers = reader.head(expected)?;
    reader.nodes(expected, &layers)?;
    match reader.file.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(reader.wrong("there are bytes after its last node")),
        Err(error) => Err(Error::io(path, error)),
    }
}

struct GraphReader<'a> {
    path: &'a Path,
    file: BufReader<File>,
}

impl GraphReader<'_> {
    fn vectors(&mut self, expected: &Expected<'_>) -> Result<()> {
        let (rows, bytes) = (self.u32()?, self.u32()?);
        if (u64::from(rows), bytes as usize) != (expected.rows, 4 * expected.dim) {
            return Err(self.wrong(&format!(
                "expected {} vectors of dimension {}, but found {rows} of {bytes} bytes",
                expected.rows, expected.dim
            )));
        }
        for row in 0..rows {
            let mut squared = 0.0;
            for _ in 0..expected.dim {
                let value = f64::from(f32::from_le_bytes(self.bytes()?));
                squared += value * value;
            }
            // Not a number is not below, either.
            if squared.partial_cmp(&expected.longest) != Some(std::cmp::Ordering::Less) {
                return Err(self.wrong(&format!("vector {row} cannot be compared")));
            }
        }
        Ok(())
    }

    /// The highest layer of every node.
    fn head(&mut self, expected: &Expected<'_>) -> Result<Vec<i16>> {
        let head: [u8; 64] = self.bytes()?;
        let version = u16::from_le_bytes([head[7], head[8]]);
        let [metric, kinds @ ..] = [head[13], head[14], head[15], head[16]];
        if !head.starts_with(b"usearch") || version != MAJOR || kinds != KINDS {
            return Err(self.wrong("it was not written by usearch 2 as Metra uses it"));
        }
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let (present, deleted, dim, multi) = (number(17), number(25), number(33), head[41]);
        let wanted = (expected.rows, 0, expected.dim as u64, 0, expected.metric);
        if (present, deleted, dim, multi, metric) != wanted {
            return Err(self.wrong("its head is not that of these items"));
        }
        let nodes = self.u64()?;
        let (links, lowest_links) = (self.u64()?, self.u64()?);
        let (highest, entry) = (self.u64()?, self.u64()?);
        let connections = expected.settings.connections as u64;
        if nodes != expected.rows || (links, lowest_links) != (connections, 2 * connections) {
            return Err(self.wrong(&format!(
                "expected {} nodes of {connections} links, but found {nodes} of {links} ({lowest_links} in \
                 the lowest layer)",
                expected.rows
            )));
        }
        // The file has two bytes for each, which lie before it: nothing is reserved that is not there.
        let mut layers = Vec::new();
        for _ in 0..nodes {
            let layer = i16::from_le_bytes(self.bytes()?);
            if !(0..MOST_LAYERS).contains(&layer) {
                return Err(self.wrong(&format!("a node is in layer {layer}")));
            }
            layers.push(layer);
        }
        let top = usize::try_from(entry)
            .ok()
            .and_then(|slot| layers.get(slot));
        if top.map(|layer| *layer as u64) != Some(highest) {
            return Err(self.wrong("its walk begins outside of its highest layer"));
        }
        Ok(layers)
    }

    fn nodes(&mut self, expected: &Expected<'_>, layers: &[i16]) -> Result<()> {
        let mut known = vec![false; layers.len()];
        for (node, layer) in layers.iter().enumerate() {
            let key = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
            match known.get_mut(key) {
                Some(known) if !*known => *known = true,
                _ => return Err(self.wrong(&format!("node {node} is item {key}, or another is"))),
            }
            if i16::from_le_bytes(self.bytes()?) != *layer {
                return Err(self.wrong(&format!("node {node} is in two layers")));
            }
            for level in 0..=*layer {
                let most = match level {
                    0 => 2 * expected.settings.connections,
                    _ => expected.settings.connections,
                };
                self.links(node, level, most, layers)?;
            }
        }
        Ok(())
    }

    /// The links of a node in one layer: of the places there are, so many as it says.
    fn links(&mut self, node: usize, level: i16, most: usize, layers: &[i16]) -> Result<()> {
        let count = self.u32()? as usize;
        if count > most {
            return Err(self.wrong(&format!("node {node} has {count} links, {most} at most")));
        }
        for place in 0..most {
            let slot = self.u32()? as usize;
            let reached = layers.get(slot).is_some_and(|layer| *layer >= level);
            if place < count && !reached {
                return Err(self.wrong(&format!(
                    "node {node} has a link in layer {level} that leads nowhere"
                )));
            }
        }
        Ok(())
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        match self.file.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(self.wrong("it ends too early"))
            }
            Err(error) => Err(Error::io(self.path, error)),
        }
    }

    fn wrong(&self, problem: &str) -> Error {
        let problem =
            format!("expected a graph that can be walked, but {problem}: build the index again");
        Error::file(self.path, problem)
    }
}
