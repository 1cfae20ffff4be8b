//! How far a score agrees with an ordering: of two rows whose classes have different levels of an
//! attribute, does the one of the higher level score higher?
//!
//! All such pairs are counted in one sweep over sorted scores, never listed. For two levels this is
//! the area under the curve; for more it is the share of ordered pairs over all of them, which
//! weighs two levels by the pairs they have.

use super::agreement::NORMAL_95;
use crate::{Error, Result};
use serde::Serialize;

/// Pairs of rows of different levels, and how many a score orders right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairwiseOrderAccuracy {
    /// Number of pairs.
    pub pairs: u64,
    /// Share of them that the score orders as the levels are; a tie counts half.
    pub share: f64,
    /// Lower end of the share's 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl PairwiseOrderAccuracy {
    /// Count for one score and one level a row; rows without a level take no part. `None` where no
    /// two rows have different levels. O(n log n) time, O(n) memory.
    ///
    /// The interval is DeLong's (Biometrics 1988) carried over to more than two levels: of the two
    /// rows of a pair each is a draw of its own, so the share's error is twice that of a mean over
    /// rows. It speaks of other rows of these classes, not of other classes.
    pub(crate) fn of(scores: &[f32], levels: &[Option<u32>]) -> Result<Option<Self>> {
        if scores.len() != levels.len() {
            return Err(Error::shape("levels of rows", scores.len(), levels.len()));
        }
        let mut rows: Vec<(f32, usize)> = Vec::new();
        for (row, (score, level)) in scores.iter().zip(levels).enumerate() {
            if !score.is_finite() {
                return Err(Error::Row {
                    row: row as u64,
                    problem: format!("expected a finite score, but found {score}"),
                });
            }
            rows.extend(level.map(|level| (*score, level as usize)));
        }
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let highest = rows.iter().map(|(_, level)| *level).max().unwrap_or(0);
        let mut all = Tally::new(highest + 1);
        rows.iter().for_each(|(_, level)| all.add(*level));
        let mut seen = Tally::new(highest + 1);
        // For each row the pairs it stands in that are right, and all of them.
        let mut counted: Vec<(f64, f64)> = Vec::with_capacity(rows.len());
        let count = rows.len() as u64;
        // Equal scores are one group, −0 and 0 too.
        for tied in rows.chunk_by(|a, b| a.0 == b.0) {
            let before: Vec<(u64, u64)> =
                tied.iter().map(|(_, level)| seen.beside(*level)).collect();
            tied.iter().for_each(|(_, level)| seen.add(*level));
            for ((_, level), (lower_before, higher_before)) in tied.iter().zip(before) {
                let (lower, higher) = seen.beside(*level);
                let (all_lower, all_higher) = all.beside(*level);
                let ties = (lower - lower_before) + (higher - higher_before);
                let right = lower_before + (all_higher - higher);
                counted.push((
                    right as f64 + 0.5 * ties as f64,
                    (all_lower + all_higher) as f64,
                ));
            }
        }
        // Every pair was counted from both of its rows.
        let sum: f64 = counted.iter().map(|(right, _)| right).sum();
        let total: f64 = counted.iter().map(|(_, pairs)| pairs).sum();
        if total == 0.0 {
            return Ok(None);
        }
        let share = sum / total;
        let squares: f64 = (counted.iter())
            .map(|(right, pairs)| (right - share * pairs).powi(2))
            .sum();
        let unbiased = count as f64 / (count as f64 - 1.0);
        let reach = NORMAL_95 * 2.0 * (unbiased * squares).sqrt() / total;
        Ok(Some(PairwiseOrderAccuracy {
            pairs: (total / 2.0) as u64,
            share,
            low: (share - reach).max(0.0),
            high: (share + reach).min(1.0),
        }))
    }
}

/// Numbers of rows a level, with sums over lower levels in O(log levels) (Fenwick 1994).
struct Tally {
    sums: Vec<u64>,
    total: u64,
}

impl Tally {
    fn new(levels: usize) -> Self {
        Tally {
            sums: vec![0; levels + 1],
            total: 0,
        }
    }

    fn add(&mut self, level: usize) {
        let mut place = level + 1;
        while place < self.sums.len() {
            self.sums[place] += 1;
            place += place & place.wrapping_neg();
        }
        self.total += 1;
    }

    fn below(&self, level: usize) -> u64 {
        let (mut place, mut sum) = (level, 0);
        while place > 0 {
            sum += self.sums[place];
            place -= place & place.wrapping_neg();
        }
        sum
    }

    /// Rows of lower and of higher levels.
    fn beside(&self, level: usize) -> (u64, u64) {
        (self.below(level), self.total - self.below(level + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn pairs_by_hand() {
        // Levels 0, 1, 1, 2 and one that was not said. Pairs: (0,1) twice, (0,2), (1,2) twice.
        let levels = [Some(0), Some(1), Some(1), Some(2), None];
        let share = |scores: [f32; 5]| {
            let found = PairwiseOrderAccuracy::of(&scores, &levels)
                .unwrap()
                .unwrap();
            assert_eq!(found.pairs, 5);
            assert!(found.low <= found.share && found.share <= found.high);
            found.share
        };
        assert_eq!(share([1.0, 2.0, 3.0, 4.0, -9.0]), 1.0);
        assert_eq!(share([4.0, 2.0, 3.0, 1.0, 9.0]), 0.0);
        // The second row ties with the first and lies below the last: 0.5 + 1 + 1 + 1 + 1.
        assert_eq!(share([2.0, 2.0, 3.0, 4.0, 0.0]), 0.9);
        // A constant scorer is right half the time.
        assert_eq!(share([0.0, -0.0, 0.0, 0.0, 0.0]), 0.5);
        let none = PairwiseOrderAccuracy::of(&[1.0, 2.0], &[Some(3), Some(3)]).unwrap();
        assert_eq!(none, None);
        assert!(PairwiseOrderAccuracy::of(&[f32::NAN], &[Some(1)]).is_err());
        assert!(PairwiseOrderAccuracy::of(&[1.0], &[]).is_err());
    }

    #[test]
    fn the_sweep_counts_what_listing_counts_and_the_interval_covers() {
        let mut stream = Stream::new(7, "test", 0);
        let mut covered = 0;
        // Normal scores a level apart by 1/2. Chances that one pair is right: Φ(.5/√2) = .6382 for
        // neighbours and Φ(1/√2) = .7602 two levels apart; mean .6789 with equal numbers of rows.
        let truth = (2.0 * 0.638_163_195 + 0.760_249_939) / 3.0;
        for _ in 0..200 {
            let levels: Vec<Option<u32>> = (0..90).map(|row| Some(row % 3)).collect();
            let scores: Vec<f32> = (levels.iter())
                .map(|level| {
                    let score = f64::from(level.unwrap()) * 0.5 + stream.normal();
                    ((score * 20.0).round() / 20.0) as f32
                })
                .collect();
            let found = PairwiseOrderAccuracy::of(&scores, &levels)
                .unwrap()
                .unwrap();
            let (mut right, mut pairs) = (0.0, 0);
            for a in 0..90 {
                for b in 0..90 {
                    if levels[a] < levels[b] {
                        pairs += 1;
                        right += f64::from(u8::from(scores[a] < scores[b]));
                        right += 0.5 * f64::from(u8::from(scores[a] == scores[b]));
                    }
                }
            }
            assert_eq!(found.pairs, pairs);
            assert!((found.share - right / pairs as f64).abs() < 1e-12);
            covered += u32::from(found.low <= truth && truth <= found.high);
        }
        // 95 % of 200 is 190, with a standard deviation of 3.
        assert!((180..=199).contains(&covered), "{covered} of 200");
    }
}
