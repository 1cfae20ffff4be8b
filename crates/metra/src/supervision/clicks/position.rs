//! Estimates the probability that a position is examined, from items that were shown at several
//! positions (intervention harvesting).
//!
//! What stands first is clicked more because it is seen more and because it is better. The two come
//! apart where an item was shown for the same query at two positions: its relevance is the same at
//! both, so the ratio of its click rates is the ratio of looks (intervention harvesting: Agarwal et
//! al., WSDM 2019). Pairs of query and item are strata with a few sessions each; their ratios are
//! put together by Mantel and Haenszel (1959), which needs no estimate for any single pair, where
//! fitting the relevance of every pair beside the looks would have more unknowns than clicks.
//! Logarithms of the looks then follow from all ratios by weighted least squares, position 1 being 1.

use super::ClickCounts;
use std::collections::BTreeMap;

/// Where the chances come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// All from the log.
    Log,
    /// The first so many positions that could be compared from the log, the others by a power of
    /// the position that goes through these.
    LogAndPower {
        /// Positions estimated from the log, the first counted.
        positions: usize,
        /// Looks fall as position^−eta.
        eta: f64,
    },
    /// No item stood at several positions often enough: 1 / position is assumed.
    Assumed,
    /// The caller gave the power.
    Given,
}

/// Chance that each position is looked at, compared with the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Examination {
    looks: Vec<f64>,
    /// Where it comes from.
    pub source: Source,
}

/// Weight, about the clicks that speak for it, below which a position's ratios are not used.
const ENOUGH: f64 = 5.0;
/// Looks are never taken to be rarer: a single click there would outweigh a hundred elsewhere.
const LEAST: f64 = 0.02;

impl Examination {
    /// The chance at a position, counted from 0.
    pub(crate) fn at(&self, position: usize) -> f64 {
        let last = || self.looks.last().copied().unwrap_or(1.0);
        self.looks.get(position).copied().unwrap_or_else(last)
    }

    /// The chances of all positions that were shown.
    pub fn looks(&self) -> &[f64] {
        &self.looks
    }

    pub(super) fn of(counts: &ClickCounts, eta: Option<f64>) -> Self {
        let last = counts.counts.keys().map(|key| key.2 as usize).max();
        let positions = last.unwrap_or(0) + 1;
        let power = |eta: f64| -> Vec<f64> {
            (0..positions)
                .map(|position| ((position + 1) as f64).powf(-eta).max(LEAST))
                .collect()
        };
        if let Some(eta) = eta {
            return Examination {
                looks: power(eta),
                source: Source::Given,
            };
        }
        let ratios = Ratios::of(counts, positions);
        let known = ratios.connected();
        if known.len() < 2 && positions > 1 {
            return Examination {
                looks: power(1.0),
                source: Source::Assumed,
            };
        }
        let logs = ratios.solve(&known);
        // The power that goes through the known positions, each by its weight.
        let (mut product, mut square) = (0.0, 0.0);
        for (position, log) in known.iter().zip(&logs) {
            let x = ((position + 1) as f64).ln();
            let weights = ratios.weights_of(*position);
            let weight: f64 = known.iter().map(|other| weights[*other]).sum();
            product -= weight * x * log;
            square += weight * x * x;
        }
        let eta = if square > 0.0 {
            (product / square).clamp(0.0, 5.0)
        } else {
            1.0
        };
        let mut looks = power(eta);
        for (position, log) in known.iter().zip(&logs) {
            looks[*position] = log.exp().clamp(LEAST, 1.0);
        }
        let source = if known.len() == positions {
            Source::Log
        } else {
            Source::LogAndPower {
                positions: known.len(),
                eta,
            }
        };
        Examination { looks, source }
    }
}

/// For two positions a < b the two sums of Mantel and Haenszel.
struct Ratios {
    positions: usize,
    sums: BTreeMap<(usize, usize), [f64; 2]>,
}

impl Ratios {
    fn of(counts: &ClickCounts, positions: usize) -> Self {
        let mut sums: BTreeMap<(usize, usize), [f64; 2]> = BTreeMap::new();
        // Shown and clicked of the current pair at its positions so far.
        let mut pair = None;
        let mut before: Vec<(usize, f64, f64)> = Vec::new();
        for ((query, item, position), tally) in &counts.counts {
            if pair != Some((query, item)) {
                pair = Some((query, item));
                before.clear();
            }
            let (shown, clicked) = (tally.shown as f64, tally.clicked as f64);
            for (other, other_shown, other_clicked) in &before {
                let sum = sums.entry((*other, *position as usize)).or_default();
                sum[0] += other_clicked * shown / (shown + other_shown);
                sum[1] += clicked * other_shown / (shown + other_shown);
            }
            before.push((*position as usize, shown, clicked));
        }
        Ratios { positions, sums }
    }

    /// About one over the variance of the logarithm of a ratio, with clicks as rare events.
    fn weight([first, second]: [f64; 2]) -> f64 {
        if first > 0.0 && second > 0.0 {
            first * second / (first + second)
        } else {
            0.0
        }
    }

    /// The weights between a position and all others.
    fn weights_of(&self, position: usize) -> Vec<f64> {
        let other = |at: usize| self.sums.get(&(position.min(at), position.max(at)));
        (0..self.positions)
            .map(|at| other(at).map_or(0.0, |sums| Self::weight(*sums)))
            .collect()
    }

    /// Positions that are tied to the first by enough clicks, increasing: each in turn the one with
    /// the largest weight towards those already tied.
    fn connected(&self) -> Vec<usize> {
        let mut known = vec![0];
        let mut towards = self.weights_of(0);
        loop {
            let best = (1..self.positions)
                .filter(|position| !known.contains(position))
                .max_by(|a, b| towards[*a].total_cmp(&towards[*b]).then(b.cmp(a)));
            match best {
                Some(position) if towards[position] >= ENOUGH => {
                    known.push(position);
                    for (sum, more) in towards.iter_mut().zip(self.weights_of(position)) {
                        *sum += more;
                    }
                }
                _ => break,
            }
        }
        known.sort_unstable();
        known
    }

    /// Logarithms of the looks at the known positions, the first being 0: Σ w (x_b − x_a − log
    /// ratio)² is least. The matrix is that of a connected graph without one node, so elimination
    /// needs no pivots.
    fn solve(&self, known: &[usize]) -> Vec<f64> {
        let size = known.len() - 1;
        let mut matrix = vec![vec![0.0; size + 1]; size];
        let place = |position: usize| known.binary_search(&position).ok();
        for ((a, b), sums) in &self.sums {
            let (Some(a), Some(b)) = (place(*a), place(*b)) else {
                continue;
            };
            let weight = Self::weight(*sums);
            if weight == 0.0 {
                continue;
            }
            let log = (sums[1] / sums[0]).ln();
            for (own, other, sign) in [(a, b, -1.0), (b, a, 1.0)] {
                if own > 0 {
                    matrix[own - 1][own - 1] += weight;
                    matrix[own - 1][size] += sign * weight * log;
                    if other > 0 {
                        matrix[own - 1][other - 1] -= weight;
                    }
                }
            }
        }
        for step in 0..size {
            let pivot = matrix[step].clone();
            for row in matrix.iter_mut().skip(step + 1) {
                let factor = row[step] / pivot[step];
                for (value, above) in row.iter_mut().zip(&pivot).skip(step) {
                    *value -= factor * above;
                }
            }
        }
        let mut logs = vec![0.0; size + 1];
        for step in (0..size).rev() {
            let row = &matrix[step];
            let rest: f64 = (step + 1..size).map(|at| row[at] * logs[at + 1]).sum();
            logs[step + 1] = (row[size] - rest) / row[step];
        }
        logs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions of one query that show these items; the first `clicks` of them click the item.
    fn sessions(
        counts: &mut ClickCounts,
        query: &str,
        shown: &[&str],
        item: &str,
        clicks: [u32; 2],
    ) {
        for session in 0..clicks[1] {
            let clicked: &[&str] = if session < clicks[0] { &[item] } else { &[] };
            counts.add(query, shown, clicked).unwrap();
        }
    }

    #[test]
    fn ratios_by_hand() {
        // For query p item a stands first (60 of 100 clicked) and second (30 of 100): half as many
        // looks. For query q item c stands second (40 of 100) and third (20 of 100): half again.
        // No pair ties positions 1 and 3, nor any the fourth, which follows the power: through
        // (ln 2, −ln 2) and (ln 3, −ln 4) it is between 1 and ln 4 / ln 3 = 1.26.
        let mut counts = ClickCounts::default();
        sessions(&mut counts, "p", &["a", "b"], "a", [60, 100]);
        sessions(&mut counts, "p", &["b", "a"], "a", [30, 100]);
        sessions(&mut counts, "q", &["x", "c", "y", "z"], "c", [40, 100]);
        sessions(&mut counts, "q", &["x", "y", "c", "z"], "c", [20, 100]);
        let found = Examination::of(&counts, None);
        let close = |position, expected: f64| (found.at(position) - expected).abs() < 1e-12;
        assert!(
            close(0, 1.0) && close(1, 0.5) && close(2, 0.25),
            "{found:?}"
        );
        let Source::LogAndPower { positions: 3, eta } = found.source else {
            panic!("{found:?}")
        };
        assert!(eta > 1.0 && eta < 1.262, "{eta}");
        assert!(close(3, 4.0_f64.powf(-eta)), "{found:?}");
    }

    #[test]
    fn a_fixed_ranking_cannot_be_corrected_from_itself() {
        let mut counts = ClickCounts::default();
        sessions(&mut counts, "p", &["a", "b"], "a", [60, 100]);
        sessions(&mut counts, "p", &["a", "b"], "b", [10, 100]);
        let found = Examination::of(&counts, None);
        assert_eq!(found.source, Source::Assumed);
        assert_eq!(found.looks(), &[1.0, 0.5]);
        // Five clicks at two positions are no evidence either.
        sessions(&mut counts, "p", &["b", "a"], "a", [5, 5]);
        assert_eq!(Examination::of(&counts, None).source, Source::Assumed);
    }
}
