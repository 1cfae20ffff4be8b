//! Verification (do two rows show the same identity?): points of the ROC curve, and the threshold
//! at a given false match rate.
//!
//! All pairs of rows of a part are judged: those of one identity should match, those of two should
//! not. For a rate f the threshold is the largest at which the share of false matches does not exceed
//! f, so that no other has more true matches. It is exact: the score it depends on is selected by its
//! bits in two counting passes over blocks of products, the first by the upper half of the bits and
//! the second by the lower half within the parts that matter. Memory does not grow with the pairs;
//! time is two passes of O(n²·m) for n rows of m numbers, and one over the pairs of each identity.
//!
//! Pairs of one identity rise and fall together, so the interval of the true-match rate resamples
//! identities; it holds for the threshold as found (Bolle, Ratha & Pankanti, "Error analysis of
//! pattern recognition systems: the subsets bootstrap", CVIU 2004).

use super::significance::{Bootstrap, resampled_interval};
use crate::data::{Corpus, RowId};
use crate::linalg::RowBuf;
use crate::model::Space;
use crate::search::scores::{Items, QueryBlock, TILE, ordered};
use crate::supervision::Labels;
use crate::{Error, Result};
use rayon::prelude::*;

/// Queries in a block. Fixed, so that scores do not depend on the number of threads.
const QUERIES: usize = 64;
/// Values of one half of a score's bits.
const HALF: usize = 1 << 16;

/// How a metric tells pairs of one identity from pairs of two.
#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    /// One for every rate asked for, in that order.
    pub points: Vec<RocPoint>,
    /// Pairs of one identity.
    pub same: u64,
    /// Pairs of two identities.
    pub different: u64,
    /// Identities of at least two rows.
    pub identities: usize,
}

/// One threshold with what it does: a point of the receiver operating characteristic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RocPoint {
    /// The rate of false matches that was asked for: at most so many.
    pub asked: f64,
    /// A pair matches where its dissimilarity is not above this.
    pub threshold: f32,
    /// Pairs of two identities that match.
    pub false_matches: u64,
    /// Their share.
    pub false_match_rate: f64,
    /// Share of the pairs of one identity that match.
    pub true_match_rate: f64,
    /// Lower end of the interval of the true-match rate at this threshold.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Measure all pairs of embedded rows. `queries` are the same rows mapped as queries, where these
/// have a map of their own: then a pair counts in both directions.
pub fn verification(
    space: Space,
    queries: Option<&dyn Corpus>,
    items: &dyn Corpus,
    labels: &Labels,
    rates: &[f64],
    bootstrap: &Bootstrap,
) -> Result<Verification> {
    for corpus in queries.into_iter().chain([items]) {
        if labels.len() as u64 != corpus.len() {
            let found = corpus.len();
            return Err(Error::shape("rows with an identity", labels.len(), found));
        }
    }
    if let Some(rate) = rates.iter().find(|rate| !(**rate > 0.0 && **rate < 1.0)) {
        return Err(Error::parameter(
            "a rate of false matches",
            "between 0 and 1",
            rate,
        ));
    }
    let prepared = Items::prepare(space, items)?;
    let pass = Pass {
        both: queries.is_some(),
        queries: queries.unwrap_or(items),
        items: &prepared,
        labels,
    };
    let coarse = pass.histogram(&|key, counts| counts[key >> 16] += 1, 1)?;
    let different: u64 = coarse.iter().sum();
    let same = pass.same_pairs();
    if different == 0 || same == 0 {
        return Err(Error::Data(format!(
            "expected pairs of one identity and of two, but there are {same} and {different}"
        )));
    }
    // The score at which one false match too many would come in: its place from near to far.
    let places: Vec<u64> = rates
        .iter()
        .map(|rate| ((rate * different as f64).floor() as u64).min(different - 1))
        .collect();
    let first = places.iter().map(|place| part_of(&coarse, *place));
    let first: Vec<(usize, u64)> = first.collect();
    let mut wanted: Vec<usize> = first.iter().map(|(part, _)| *part).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let slot = |part: usize| wanted.binary_search(&part).ok();
    let count = |key: usize, counts: &mut [u64]| {
        if let Some(slot) = slot(key >> 16) {
            counts[slot * HALF + (key & (HALF - 1))] += 1;
        }
    };
    let fine = pass.histogram(&count, wanted.len())?;
    let mut points = Vec::with_capacity(rates.len());
    for ((asked, place), (part, before)) in rates.iter().zip(&places).zip(&first) {
        let slot = slot(*part).unwrap_or(0);
        let (low_half, inside) = part_of(&fine[slot * HALF..(slot + 1) * HALF], place - before);
        let false_matches = before + inside;
        points.push(RocPoint {
            asked: *asked,
            // Just below it: what ties with it does not match either.
            threshold: score((part << 16 | low_half) as u32).next_down(),
            false_matches,
            false_match_rate: false_matches as f64 / different as f64,
            true_match_rate: 0.0,
            low: 0.0,
            high: 0.0,
        });
    }
    let identities = pass.true_matches(&mut points, bootstrap)?;
    Ok(Verification {
        points,
        same,
        different,
        identities,
    })
}

/// The part that holds this place when parts are counted in order, and what lies before the part.
fn part_of(counts: &[u64], place: u64) -> (usize, u64) {
    let mut before = 0;
    for (part, count) in counts.iter().enumerate() {
        if before + count > place {
            return (part, before);
        }
        before += count;
    }
    (counts.len() - 1, before)
}

/// The score with this key.
fn score(key: u32) -> f32 {
    let flip = !((key as i32 >> 31) as u32) | 0x8000_0000;
    f32::from_bits(key ^ flip)
}

/// All pairs of rows with identities.
struct Pass<'a> {
    /// Whether a pair has two scores, one in each direction.
    both: bool,
    queries: &'a dyn Corpus,
    items: &'a Items<'a>,
    labels: &'a Labels,
}

impl Pass<'_> {
    fn same_pairs(&self) -> u64 {
        let classes = 0..self.labels.classes() as u32;
        let pairs = classes.map(|class| {
            let size = self.labels.members(class).len() as u64;
            size * size.saturating_sub(1)
        });
        pairs.sum::<u64>() / if self.both { 1 } else { 2 }
    }

    /// Let `count` see the key of every pair of two identities. Counts are whole numbers, so that
    /// the order in which parts are added does not matter.
    fn histogram(
        &self,
        count: &(dyn Fn(usize, &mut [u64]) + Sync),
        parts: usize,
    ) -> Result<Vec<u64>> {
        let blocks = self.items.len().div_ceil(QUERIES);
        let start = || (vec![0_u64; parts.max(1) * HALF], Work::default());
        (0..blocks)
            .into_par_iter()
            .try_fold(start, |(mut counts, mut work), block| {
                self.count_block(block, count, &mut counts, &mut work)?;
                Ok((counts, work))
            })
            .map(|result| result.map(|(counts, _)| counts))
            .try_reduce(
                || vec![0; parts.max(1) * HALF],
                |mut sum, other| {
                    for (sum, other) in sum.iter_mut().zip(other) {
                        *sum += other;
                    }
                    Ok(sum)
                },
            )
    }

    fn count_block(
        &self,
        block: usize,
        count: &(dyn Fn(usize, &mut [u64]) + Sync),
        counts: &mut [u64],
        work: &mut Work,
    ) -> Result<()> {
        let (start, len) = (block * QUERIES, self.items.len());
        let ids = start as RowId..len.min(start + QUERIES) as RowId;
        let queries = self.items.queries(self.queries, ids.collect())?;
        let of = self.labels.of();
        let first_tile = if self.both { 0 } else { start / TILE };
        for tile in first_tile..self.items.tiles() {
            let Work { buffer, products } = work;
            (self.items).products(&queries, tile..tile + 1, buffer, products)?;
            let begin = tile * TILE;
            let end = len.min(begin + TILE);
            let offsets = self.items.offsets(begin..end);
            for (place, row) in products.chunks_exact(TILE).enumerate() {
                let Some(id) = queries.ids().get(place) else {
                    break;
                };
                let (id, own) = (*id as usize, of[*id as usize]);
                let squared = queries.squared(place);
                // In one direction a row meets those after it.
                let from = if self.both {
                    0
                } else {
                    (id + 1).saturating_sub(begin)
                };
                let columns = row.iter().zip(offsets).zip(&of[begin..end]);
                for ((product, offset), other) in columns.skip(from) {
                    if *other != own {
                        let value = self.items.reported(product + offset, squared);
                        count(ordered(value) as usize, counts);
                    }
                }
            }
        }
        Ok(())
    }

    /// Fill in the true-match rates; returns the number of identities with a pair.
    fn true_matches(&self, points: &mut [RocPoint], bootstrap: &Bootstrap) -> Result<usize> {
        let classes: Vec<u32> = (0..self.labels.classes() as u32)
            .filter(|class| self.labels.members(*class).len() >= 2)
            .collect();
        let thresholds: Vec<f32> = points.iter().map(|point| point.threshold).collect();
        let counted: Vec<Result<Vec<u64>>> = classes
            .par_iter()
            .map(|class| self.matches_of(*class, &thresholds))
            .collect();
        let counted: Vec<Vec<u64>> = counted.into_iter().collect::<Result<_>>()?;
        for (number, point) in points.iter_mut().enumerate() {
            let sums: Vec<(f64, f64)> = (classes.iter().zip(&counted))
                .map(|(class, matches)| {
                    let size = self.labels.members(*class).len() as f64;
                    let pairs = size * (size - 1.0) / if self.both { 1.0 } else { 2.0 };
                    (matches[number] as f64, pairs)
                })
                .collect();
            let (matches, pairs) = sums.iter().fold((0.0, 0.0), |s, c| (s.0 + c.0, s.1 + c.1));
            point.true_match_rate = matches / pairs;
            (point.low, point.high) = resampled_interval(&sums, bootstrap)?;
        }
        Ok(classes.len())
    }

    /// Pairs of one identity that match, for every threshold.
    fn matches_of(&self, class: u32, thresholds: &[f32]) -> Result<Vec<u64>> {
        let members: Vec<RowId> = (self.labels.members(class).iter())
            .map(|row| RowId::from(*row))
            .collect();
        let mut matches = vec![0; thresholds.len()];
        let (mut rows, mut products) = (RowBuf::empty(1), Vec::new());
        for (block, ids) in members.chunks(QUERIES).enumerate() {
            let queries = self.items.queries(self.queries, ids.to_vec())?;
            for (tile, others) in members.chunks(TILE).enumerate() {
                self.items.gather(others, &mut rows)?;
                (self.items).products_with(&queries, rows.rows(), &mut products);
                self.count_matches(
                    &queries,
                    (block * QUERIES, tile * TILE),
                    others,
                    &products,
                    thresholds,
                    &mut matches,
                );
            }
        }
        Ok(matches)
    }

    fn count_matches(
        &self,
        queries: &QueryBlock,
        (first_query, first_item): (usize, usize),
        items: &[RowId],
        products: &[f32],
        thresholds: &[f32],
        matches: &mut [u64],
    ) {
        for (place, row) in products.chunks_exact(items.len()).enumerate() {
            if place >= queries.ids().len() {
                break;
            }
            let squared = queries.squared(place);
            for (column, (product, item)) in row.iter().zip(items).enumerate() {
                let (query, other) = (first_query + place, first_item + column);
                if query == other || (!self.both && other < query) {
                    continue;
                }
                let value = self
                    .items
                    .reported(product + self.items.offset(*item), squared);
                for (count, threshold) in matches.iter_mut().zip(thresholds) {
                    *count += u64::from(value <= *threshold);
                }
            }
        }
    }
}

struct Work {
    buffer: RowBuf,
    products: Vec<f32>,
}

impl Default for Work {
    fn default() -> Self {
        Work {
            buffer: RowBuf::empty(1),
            products: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::random::Stream;

    fn corpus(values: Vec<f32>, dim: usize) -> MemoryCorpus {
        MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap()).unwrap()
    }

    /// On a line: a at 0 and 1, b at 3 and 5, c at 6; their mean is 3, so that f32 is exact.
    /// Squared, of one identity: a 1, b 4. Of two, from near to far: 1 (5–6), 4 (1–3), 9 (0–3), 9
    /// (3–6), 16 (1–5), 25 (0–5), 25 (1–6), 36 (0–6).
    #[test]
    fn thresholds_by_hand() {
        let rows = corpus(vec![0.0, 1.0, 3.0, 5.0, 6.0], 1);
        let labels = Labels::from_names(&["a", "a", "b", "b", "c"]).unwrap();
        // Of 8 pairs: at most 0, 1, 3 and 4 false matches. With 3 the next one is the second 9, with
        // which the first ties, so that both stay out and 2 are left.
        let rates = [0.1, 0.125, 0.375, 0.5];
        let options = Bootstrap::default();
        let found = verification(Space::SquaredL2, None, &rows, &labels, &rates, &options).unwrap();
        assert_eq!((found.same, found.different, found.identities), (2, 8, 2));
        let close = |a: f32, b: f32| (a - b).abs() < 1e-4;
        let thresholds = [1.0, 4.0, 9.0, 16.0];
        let matches = [0, 1, 2, 4];
        // a's pair is at 1 and b's at 4: neither is below 1, only a's is below 4.
        let shares = [0.0, 0.5, 1.0, 1.0];
        for (number, point) in found.points.iter().enumerate() {
            assert!(close(point.threshold, thresholds[number]), "{point:?}");
            assert_eq!(point.false_matches, matches[number], "{point:?}");
            assert_eq!(point.false_match_rate, matches[number] as f64 / 8.0);
            assert_eq!(point.true_match_rate, shares[number], "{point:?}");
        }
        // Two identities, one of which matches: resampled shares are 0, ½ or 1.
        assert_eq!((found.points[1].low, found.points[1].high), (0.0, 1.0));
        // Both directions double every count and change no rate.
        let queries: &dyn Corpus = &rows;
        let both = verification(
            Space::SquaredL2,
            Some(queries),
            &rows,
            &labels,
            &rates,
            &options,
        );
        let both = both.unwrap();
        assert_eq!((both.same, both.different), (4, 16));
        assert_eq!(both.points[1].false_match_rate, 0.125);
        assert_eq!(both.points[1].true_match_rate, 0.5);
    }

    /// Every pair listed and sorted.
    fn by_sorting(rows: &MemoryCorpus, labels: &Labels, rate: f64) -> (f64, f64) {
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for i in 0..labels.len() {
            for j in i + 1..labels.len() {
                let pairs = rows.rows().row(i).iter().zip(rows.rows().row(j));
                let squares = pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
                let target = if labels.of()[i] == labels.of()[j] {
                    &mut near
                } else {
                    &mut far
                };
                target.push(squares.sum::<f64>());
            }
        }
        far.sort_by(f64::total_cmp);
        let limit = far[(rate * far.len() as f64).floor() as usize];
        let matches = near.iter().filter(|d| **d < limit).count();
        (limit, matches as f64 / near.len() as f64)
    }

    #[test]
    fn counting_equals_sorting_on_any_number_of_threads() {
        let mut random = Stream::new(4, "test", 0);
        // More rows than a tile of items and than many blocks of queries.
        let classes: Vec<i64> = (0..1300).map(|_| random.below(70) as i64).collect();
        let values = classes.iter().flat_map(|class| {
            let mut centre = Stream::new(1, "test centre", *class as u64);
            (0..5)
                .map(|_| (2.0 * centre.normal() + random.normal()) as f32)
                .collect::<Vec<_>>()
        });
        let rows = corpus(values.collect(), 5);
        let labels = Labels::from_numbers(&classes).unwrap();
        let rates = [1e-4, 1e-2, 0.3];
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let options = Bootstrap::default();
                verification(Space::SquaredL2, None, &rows, &labels, &rates, &options).unwrap()
            })
        };
        let found = run(1);
        assert_eq!(found, run(2));
        assert_eq!(found.same + found.different, 1300 * 1299 / 2);
        for (point, rate) in found.points.iter().zip(rates) {
            let (limit, share) = by_sorting(&rows, &labels, rate);
            let relative = f64::from(point.threshold) / limit - 1.0;
            assert!(relative.abs() < 1e-5, "{point:?} {limit}");
            assert!(
                (point.true_match_rate - share).abs() < 1e-4,
                "{point:?} {share}"
            );
            assert!(point.false_match_rate <= rate && point.false_match_rate > 0.99 * rate - 1e-6);
            assert!(point.low <= point.true_match_rate && point.true_match_rate <= point.high);
        }
    }

    #[test]
    fn what_cannot_be_measured_is_named() {
        let rows = corpus(vec![0.0, 1.0, 3.0], 1);
        let check = |names: &[&str], rates: &[f64]| {
            let labels = Labels::from_names(names).unwrap();
            let options = Bootstrap::default();
            let found = verification(Space::SquaredL2, None, &rows, &labels, rates, &options);
            found.unwrap_err().to_string()
        };
        let none = check(&["a", "b", "c"], &[0.1]);
        assert!(none.contains("there are 0 and 3"), "{none}");
        let one = check(&["a", "a", "a"], &[0.1]);
        assert!(one.contains("there are 3 and 0"), "{one}");
        let few = check(&["a", "b"], &[0.1]);
        assert!(few.contains("expected 2, but found 3"), "{few}");
        let rate = check(&["a", "a", "b"], &[0.0]);
        assert!(rate.contains("between 0 and 1"), "{rate}");
        // Equal rows of two identities: at no threshold do the others match without them.
        let rows = corpus(vec![1.0, 1.0, 1.0], 1);
        let labels = Labels::from_names(&["a", "a", "b"]).unwrap();
        let options = Bootstrap::default();
        let found = verification(Space::SquaredL2, None, &rows, &labels, &[0.3], &options);
        let point = found.unwrap().points[0];
        assert!(point.threshold < 0.0 && point.true_match_rate == 0.0);
    }
}
