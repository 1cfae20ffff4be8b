//! Exact search by the Hamming distance between codes of bits.
//!
//! Codes are cut into words of 64 bits. Of a block of items, the first words lie side by side, then the second ones, and
//! so on: distances of a query to all items of a block are plain loops over neighbours in memory, which wide vector
//! instructions do. A block stays near the processor while several queries look at it.

use super::top_k::Neighbours;
use crate::linalg::vectorized;
use crate::{Error, Result};
use rayon::prelude::*;

/// Items in a block.
const BLOCK: usize = 1024;
/// Queries that look at a block one after the other.
const QUERIES: usize = 32;
/// Distances looked at with one comparison.
const LOOK: usize = 32;
/// What fills up the last block is farther than anything.
const NONE: u64 = u64::MAX;

/// Codes of bits, ready to be searched by Hamming distance.
pub struct HammingItems {
    bytes: usize,
    words: usize,
    len: usize,
    /// Blocks one after the other, each with a row of words for every place in a code.
    blocks: Vec<u64>,
}

impl HammingItems {
    /// Codes of `bytes` bytes each, one after the other.
    pub fn new(bytes: usize, codes: &[u8]) -> Result<Self> {
        let len = count(bytes, codes, "items")?;
        if len == 0 {
            return Err(Error::Data("there is no item to search".into()));
        }
        if len >= u32::MAX as usize {
            return Err(Error::shape("items", "fewer than 2^32 - 1", len));
        }
        let words = bytes.div_ceil(8);
        let mut blocks = vec![0; len.div_ceil(BLOCK) * words * BLOCK];
        blocks
            .par_chunks_exact_mut(words * BLOCK)
            .zip(codes.par_chunks(bytes * BLOCK))
            .for_each(|(block, codes)| {
                for (item, code) in codes.chunks_exact(bytes).enumerate() {
                    for (word, value) in to_words(code).enumerate() {
                        block[word * BLOCK + item] = value;
                    }
                }
            });
        Ok(HammingItems {
            bytes,
            words,
            len,
            blocks,
        })
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no item; there always is one.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `k` items nearest to every query, nearest first and ties by the smaller row number; all where there are
    /// fewer. Scores are numbers of bits that differ.
    pub fn top_k(&self, queries: &[u8], k: usize) -> Result<Neighbours> {
        if k == 0 {
            return Err(Error::parameter("k", "at least 1", 0));
        }
        count(self.bytes, queries, "queries")?;
        let k = k.min(self.len);
        let found: Vec<Vec<u64>> = queries
            .par_chunks(QUERIES * self.bytes)
            .flat_map_iter(|queries| self.search(queries, k))
            .collect();
        let keys = || found.iter().flatten();
        Ok(Neighbours {
            k,
            ids: keys().map(|key| key & 0xffff_ffff).collect(),
            scores: keys().map(|key| (key >> 32) as f32).collect(),
        })
    }

    /// Keys of the nearest items of some queries: distance and then number.
    fn search(&self, queries: &[u8], k: usize) -> Vec<Vec<u64>> {
        let mut nearest: Vec<Nearest> = (queries.chunks_exact(self.bytes))
            .map(|query| Nearest::new(to_words(query).collect(), k))
            .collect();
        let mut distances = vec![NONE; BLOCK];
        for (number, block) in self.blocks.chunks_exact(self.words * BLOCK).enumerate() {
            let first = number * BLOCK;
            let items = BLOCK.min(self.len - first);
            for query in &mut nearest {
                query.look_at(block, &mut distances[..items], first as u64);
            }
        }
        nearest.into_iter().map(Nearest::finish).collect()
    }
}

/// The nearest items of a query so far.
struct Nearest {
    query: Vec<u64>,
    k: usize,
    /// Keys of candidates, `k` and more of them.
    keys: Vec<u64>,
    /// An item counts if it is nearer than this: a later one at the same distance has a larger number.
    limit: u64,
}

impl Nearest {
    fn new(query: Vec<u64>, k: usize) -> Self {
        Nearest {
            query,
            k,
            keys: Vec::with_capacity(2 * k + BLOCK),
            limit: NONE,
        }
    }

    fn look_at(&mut self, block: &[u64], distances: &mut [u64], first: u64) {
        let (query, limit) = (&self.query, self.limit);
        let mut is_near = [false; BLOCK / LOOK];
        vectorized(
            #[inline(always)]
            || {
                distances.fill(0);
                for (word, words) in query.iter().zip(block.chunks_exact(BLOCK)) {
                    for (distance, other) in distances.iter_mut().zip(words) {
                        *distance += u64::from((word ^ other).count_ones());
                    }
                }
                for (near, distances) in is_near.iter_mut().zip(distances.chunks(LOOK)) {
                    let below = |any: bool, distance: &u64| any | (*distance < limit);
                    *near = distances.iter().fold(false, below);
                }
            },
        );
        let chunks = distances.chunks(LOOK).enumerate();
        for (chunk, distances) in chunks.filter(|(chunk, _)| is_near[*chunk]) {
            let first = first + (chunk * LOOK) as u64;
            let near = (first..).zip(distances).filter(|(_, d)| **d < self.limit);
            self.keys.extend(near.map(|(item, d)| d << 32 | item));
        }
        if self.keys.len() >= 2 * self.k {
            self.cut();
        }
    }

    /// Keep the nearest `k`.
    fn cut(&mut self) {
        if self.keys.len() > self.k {
            self.keys.select_nth_unstable(self.k - 1);
            self.keys.truncate(self.k);
        }
        if let (true, Some(last)) = (self.keys.len() == self.k, self.keys.iter().max()) {
            self.limit = last >> 32;
        }
    }

    fn finish(mut self) -> Vec<u64> {
        self.cut();
        self.keys.sort_unstable();
        self.keys
    }
}

/// A code as words; the last one is filled up with zeros.
fn to_words(code: &[u8]) -> impl Iterator<Item = u64> {
    code.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}

/// Number of codes in these bytes.
fn count(bytes: usize, codes: &[u8], what: &str) -> Result<usize> {
    if bytes == 0 || !codes.len().is_multiple_of(bytes) {
        let expected = format!("a multiple of {bytes} (bytes of a code, at least 1)");
        return Err(Error::shape(
            format!("bytes of {what}"),
            expected,
            codes.len(),
        ));
    }
    Ok(codes.len() / bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn random(len: usize, seed: u64) -> Vec<u8> {
        let mut stream = Stream::new(seed, "test", 0);
        (0..len).map(|_| stream.below(256) as u8).collect()
    }

    /// Bit by bit, sorted whole.
    fn slow(items: &[u8], query: &[u8], bytes: usize, k: usize) -> Vec<(u64, f32)> {
        let distance = |item: &[u8]| -> u32 {
            let bits = item
                .iter()
                .zip(query)
                .flat_map(|(a, b)| (0..8).map(move |i| (a ^ b) >> i & 1));
            bits.map(u32::from).sum()
        };
        let mut all: Vec<(u32, u64)> = items.chunks(bytes).map(distance).zip(0..).collect();
        all.sort_unstable();
        all.into_iter()
            .take(k)
            .map(|(d, item)| (item, d as f32))
            .collect()
    }

    #[test]
    fn the_nearest_are_found_with_ties_in_order() {
        for (bytes, count, k) in [(1, 3000, 7), (3, 1024, 20), (16, 2500, 1), (20, 70, 100)] {
            let (items, queries) = (random(bytes * count, 1), random(bytes * 40, 2));
            let index = HammingItems::new(bytes, &items).unwrap();
            let found = index.top_k(&queries, k).unwrap();
            assert_eq!(found.k, k.min(count));
            for (number, query) in queries.chunks(bytes).enumerate() {
                let own = found.ids_of(number).iter().copied();
                let own: Vec<(u64, f32)> =
                    own.zip(found.scores_of(number).iter().copied()).collect();
                assert_eq!(own, slow(&items, query, bytes, k), "{bytes} {count} {k}");
            }
        }
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        assert!(HammingItems::new(0, &[]).is_err());
        assert!(HammingItems::new(2, &[]).is_err());
        assert!(HammingItems::new(2, &[1, 2, 3]).is_err());
        let index = HammingItems::new(2, &[1, 2]).unwrap();
        assert!(index.top_k(&[1], 1).is_err() && index.top_k(&[1, 2], 0).is_err());
        assert!(index.top_k(&[], 3).unwrap().ids.is_empty());
    }
}
