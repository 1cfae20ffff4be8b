//! Exact search by the Hamming distance between codes of bits.
//!
//! Items stand in groups of 64: of a group, the first bytes lie side by side, then the second ones, and so on. Distances of
//! a query to a group are sums of bytes in 64 lanes, which wide vector instructions do. A block of groups stays near
//! the processor while several queries look at it.

use super::top_k::Neighbours;
use crate::linalg::vectorized;
use crate::{Error, Result};
use rayon::prelude::*;

/// Items in a group.
const LANES: usize = 64;
/// Groups in a block.
const GROUPS: usize = 16;
/// Queries that look at a block one after the other.
const QUERIES: usize = 32;
/// Bytes whose differing bits are counted in one byte.
const COUNTED: usize = 31;

/// Codes of bits, ready to be searched by Hamming distance.
pub struct HammingItems {
    bytes: usize,
    len: usize,
    /// Groups one after the other, each with a row of 64 bytes for every place in a code.
    groups: Vec<[u8; LANES]>,
}

impl HammingItems {
    /// The longest codes: their distances are numbers of 16 bits.
    pub const MOST_BYTES: usize = u16::MAX as usize / 8;

    /// Codes of `bytes` bytes each, one after the other.
    pub fn new(bytes: usize, codes: &[u8]) -> Result<Self> {
        let len = count(bytes, codes, "items")?;
        if len == 0 {
            return Err(Error::Data("there is no item to search".into()));
        }
        if len >= u32::MAX as usize || bytes > Self::MOST_BYTES {
            let expected = format!("fewer than 2^32 - 1 of at most {} bytes", Self::MOST_BYTES);
            return Err(Error::shape("items", expected, format!("{len} × {bytes}")));
        }
        let mut groups = vec![[0; LANES]; len.div_ceil(LANES) * bytes];
        groups
            .par_chunks_exact_mut(bytes)
            .zip(codes.par_chunks(bytes * LANES))
            .for_each(|(group, codes)| {
                for (lane, code) in codes.chunks_exact(bytes).enumerate() {
                    for (row, byte) in group.iter_mut().zip(code) {
                        row[lane] = *byte;
                    }
                }
            });
        Ok(HammingItems { bytes, len, groups })
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
        let mut nearest: Vec<Nearest<'_>> = (queries.chunks_exact(self.bytes))
            .map(|query| Nearest::new(query, k))
            .collect();
        let mut distances = [[0; LANES]; GROUPS];
        for (number, block) in self.groups.chunks(GROUPS * self.bytes).enumerate() {
            let first = number * GROUPS * LANES;
            let items = (GROUPS * LANES).min(self.len - first);
            for query in &mut nearest {
                query.look_at(block, &mut distances, (first as u64, items));
            }
        }
        nearest.into_iter().map(Nearest::finish).collect()
    }
}

/// The nearest items of a query so far.
struct Nearest<'q> {
    query: &'q [u8],
    k: usize,
    /// Keys of candidates, `k` and more of them.
    keys: Vec<u64>,
    /// An item counts if it is nearer than this: a later one at the same distance has a larger number.
    limit: u16,
}

impl<'q> Nearest<'q> {
    fn new(query: &'q [u8], k: usize) -> Self {
        Nearest {
            query,
            k,
            keys: Vec::with_capacity(2 * k + GROUPS * LANES),
            limit: u16::MAX,
        }
    }

    fn look_at(
        &mut self,
        block: &[[u8; LANES]],
        distances: &mut [[u16; LANES]; GROUPS],
        (first, items): (u64, usize),
    ) {
        let (query, limit) = (self.query, self.limit);
        let mut is_near = [false; GROUPS];
        vectorized(
            #[inline(always)]
            || {
                let groups = block.chunks_exact(query.len()).zip(distances.iter_mut());
                for ((group, distances), is_near) in groups.zip(&mut is_near) {
                    let mut sums = [0_u16; LANES];
                    for (bytes, rows) in query.chunks(COUNTED).zip(group.chunks(COUNTED)) {
                        let mut counts = [0_u8; LANES];
                        for (byte, row) in bytes.iter().zip(rows) {
                            for lane in 0..LANES {
                                counts[lane] += (byte ^ row[lane]).count_ones() as u8;
                            }
                        }
                        for lane in 0..LANES {
                            sums[lane] += u16::from(counts[lane]);
                        }
                    }
                    *is_near = sums.iter().fold(false, |any, sum| any | (*sum < limit));
                    *distances = sums;
                }
            },
        );
        let near = (0..GROUPS).filter(|group| is_near[*group]);
        for group in near {
            // What fills up the last group is no item.
            let lanes = items.saturating_sub(group * LANES).min(LANES);
            let from = first + (group * LANES) as u64;
            let all = (from..).zip(&distances[group][..lanes]);
            let near = all.filter(|(_, distance)| **distance < self.limit);
            (self.keys).extend(near.map(|(item, distance)| u64::from(*distance) << 32 | item));
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
            self.limit = (last >> 32) as u16;
        }
    }

    fn finish(mut self) -> Vec<u64> {
        self.cut();
        self.keys.sort_unstable();
        self.keys
    }
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
        for (bytes, count, k) in [
            (1, 3000, 7),
            (3, 1024, 20),
            (16, 2500, 1),
            (20, 70, 100),
            (70, 1100, 9),
        ] {
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
