//! Computes the measures from counts of ranks, as expected values over all orders of tied items.
//!
//! Items of equal score have no order. A measure is then its expected value over all orders of the
//! tied items, each equally likely (McSherry & Najork, *Computing information retrieval performance
//! measures efficiently in the presence of tied scores*, ECIR 2008), so that a constant score is
//! worth chance and not 1. In one group of n tied items with r relevant ones, behind p items of
//! which m are relevant:
//!
//! * a rank of the group holds a relevant item with probability r/n, so precision, recall and
//!   discounted gain need only the mean gain of the group;
//! * given a relevant item at the i-th place of the group, each of the i−1 places before it holds
//!   one with probability (r−1)/(n−1), so P@(p+i) is on average
//!   (m + 1 + (i−1)(r−1)/(n−1)) / (p+i);
//! * the first relevant item is at place i with probability C(n−i, r−1) / C(n, r), which starts at
//!   r/n and goes on by the factor (n−i−r+1)/(n−i); the last one mirrors it from the end.
//!
//! Without ties (`trec` order) every group has one item and the same formulas are the plain ones.

use super::measure::{GradeGain, Measure};

/// Relevant items of one score, and how many irrelevant items lie before and among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TieGroup {
    /// Irrelevant items strictly nearer than the group.
    pub nearer: u64,
    /// Irrelevant items in the group.
    pub tied: u64,
    /// Relevant items in the group, at least 1.
    pub relevant: u64,
}

/// All that the measures need to know of one query's ranking. Excluded items are in no count.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PlaceCounts {
    /// Groups from near to far.
    pub groups: Vec<TieGroup>,
    /// Grades of the ranked relevant items, group after group.
    pub grades: Vec<f32>,
    /// Grades of relevant items that the ranking does not hold at all. They come after
    /// everything else.
    pub missing: Vec<f32>,
    /// Irrelevant items ranked.
    pub irrelevant: u64,
}

impl PlaceCounts {
    /// Number of relevant items, ranked or not.
    pub(crate) fn relevant(&self) -> usize {
        self.grades.len() + self.missing.len()
    }

    /// Append the value of every measure. There must be a relevant item.
    pub(super) fn values(&self, measures: &[Measure], gain: GradeGain, out: &mut Vec<f64>) {
        out.extend(measures.iter().map(|measure| self.value(*measure, gain)));
    }

    fn value(&self, measure: Measure, gain: GradeGain) -> f64 {
        let relevant = self.relevant() as f64;
        match measure {
            Measure::AveragePrecision => self.average_precision(),
            Measure::Ndcg => self.ndcg(u64::MAX, gain),
            Measure::NdcgAt(cut) => self.ndcg(u64::from(cut), gain),
            Measure::PrecisionAt(cut) => self.relevant_within(u64::from(cut)) / f64::from(cut),
            Measure::RecallAt(cut) => self.relevant_within(u64::from(cut)) / relevant,
            Measure::CmcAt(cut) => {
                let cut = u64::from(cut);
                self.first_rank(|rank| f64::from(u8::from(rank <= cut)), Some(cut))
            }
            Measure::CmcMean(cut) => {
                let cut = u64::from(cut);
                self.first_rank(
                    |rank| (cut + 1).saturating_sub(rank) as f64 / cut as f64,
                    Some(cut),
                )
            }
            Measure::CmcArea => {
                // The area left of the first relevant rank is lost. The expected first of r places
                // among n is (n + 1) / (r + 1), so no sum is needed.
                let ranked = self.irrelevant + self.grades.len() as u64;
                self.groups.first().map_or(0.0, |group| {
                    let size = (group.tied + group.relevant) as f64;
                    let rank = group.nearer as f64 + (size + 1.0) / (group.relevant as f64 + 1.0);
                    (ranked as f64 + 1.0 - rank) / ranked as f64
                })
            }
            Measure::ReciprocalRank => self.first_rank(|rank| 1.0 / rank as f64, None),
            Measure::Auc => self.auc(),
            Measure::InverseNegativePenalty => self.inverse_negative_penalty(),
            // Refused before any ranking is counted: there is no classifier here.
            Measure::Accuracy | Measure::HierarchicalAccuracy => 0.0,
        }
    }

    /// Groups with the number of all items and of relevant items strictly before each.
    fn placed(&self) -> impl Iterator<Item = (u64, u64, &TieGroup)> {
        let mut before = 0;
        self.groups.iter().map(move |group| {
            let relevant_before = before;
            before += group.relevant;
            (group.nearer + relevant_before, relevant_before, group)
        })
    }

    fn average_precision(&self) -> f64 {
        let mut sum = 0.0;
        for (before, relevant_before, group) in self.placed() {
            let size = group.tied + group.relevant;
            let first = relevant_before as f64 + 1.0;
            if size == 1 {
                sum += first / (before + 1) as f64;
                continue;
            }
            let share = group.relevant as f64 / size as f64;
            let slope = (group.relevant - 1) as f64 / (size - 1) as f64;
            let precisions: f64 = (0..size)
                .map(|place| (first + place as f64 * slope) / (before + place + 1) as f64)
                .sum();
            sum += share * precisions;
        }
        sum / self.relevant() as f64
    }

    /// Expected number of relevant items within the first `cut` ranks.
    fn relevant_within(&self, cut: u64) -> f64 {
        let mut sum = 0.0;
        for (before, _, group) in self.placed() {
            if before >= cut {
                break;
            }
            let size = group.tied + group.relevant;
            sum += group.relevant as f64 * (cut - before).min(size) as f64 / size as f64;
        }
        sum
    }

    fn ndcg(&self, cut: u64, gain: GradeGain) -> f64 {
        let discount = |rank: u64| 1.0 / ((rank + 1) as f64).log2();
        let mut found = 0.0;
        let mut grades = self.grades.as_slice();
        for (before, _, group) in self.placed() {
            if before >= cut {
                break;
            }
            let (own, rest) = grades.split_at(group.relevant as usize);
            grades = rest;
            let size = group.tied + group.relevant;
            let mean = own.iter().map(|grade| gain.of(*grade)).sum::<f64>() / size as f64;
            let places = before + 1..=before + size.min(cut - before);
            found += mean * places.map(discount).sum::<f64>();
        }
        let mut ideal: Vec<f64> = self
            .grades
            .iter()
            .chain(&self.missing)
            .map(|grade| gain.of(*grade))
            .collect();
        ideal.sort_unstable_by(|a, b| b.total_cmp(a));
        let best: f64 = ideal
            .iter()
            .take(usize::try_from(cut).unwrap_or(usize::MAX))
            .enumerate()
            .map(|(place, gain)| gain * discount(place as u64 + 1))
            .sum();
        found / best
    }

    /// Expected value of a function of the first relevant rank; ranks above `last` are known to be
    /// worth nothing. Without a ranked relevant item there is no such rank and the value is 0.
    fn first_rank(&self, value: impl Fn(u64) -> f64, last: Option<u64>) -> f64 {
        let Some(group) = self.groups.first() else {
            return 0.0;
        };
        let last = last.unwrap_or(u64::MAX);
        // From 0 and at most 1: the sum of nothing would be −0, and rounded probabilities can add
        // up to more than a certainty.
        first_places(group)
            .map(|(place, probability)| (group.nearer + place, probability))
            .take_while(|(rank, _)| *rank <= last)
            .fold(0.0, |sum, (rank, probability)| {
                sum + probability * value(rank)
            })
            .min(1.0)
    }

    /// Add the probability that the first relevant item has rank k + 1 to `curve[k]`. Summed up
    /// over ranks and divided by the number of queries this is the CMC curve.
    pub(super) fn add_first_rank(&self, curve: &mut [f64]) {
        if let Some(group) = self.groups.first() {
            for (place, probability) in first_places(group) {
                match curve.get_mut((group.nearer + place - 1) as usize) {
                    Some(slot) => *slot += probability,
                    None => break,
                }
            }
        }
    }

    /// Add the precision at every recall level to `levels`: level l of L + 1 is recall l / L, and
    /// its precision the largest at that recall or a greater one (the interpolation of TREC). A
    /// tied item has its expected rank: the j-th of r relevant ones among n is at j (n + 1) / (r + 1).
    pub(super) fn add_precision(&self, levels: &mut [f64]) {
        let Some(last) = levels.len().checked_sub(1) else {
            return;
        };
        let relevant = self.relevant() as u64;
        let mut found = self.grades.len() as u64;
        let (mut best, mut level) = (0.0_f64, last + 1);
        for group in self.groups.iter().rev() {
            let before = found - group.relevant;
            let step = (group.tied + group.relevant + 1) as f64 / (group.relevant + 1) as f64;
            for number in (1..=group.relevant).rev() {
                let rank = (group.nearer + before) as f64 + number as f64 * step;
                best = best.max((before + number) as f64 / rank);
                // Recall below this item's is that of the relevant items before it.
                while level > 0
                    && (level as u64 - 1) * relevant > (before + number - 1) * last as u64
                {
                    level -= 1;
                    if (level as u64) * relevant <= (before + number) * last as u64 {
                        levels[level] += best;
                    }
                }
            }
            found = before;
        }
        // Recall 0 lies before every item.
        levels[0] += best;
    }

    /// Pairs (relevant, irrelevant) in the right order, ties counting half. Missing relevant items
    /// lose every pair. Without an irrelevant item nothing was decided: the value is ½, chance.
    fn auc(&self) -> f64 {
        if self.irrelevant == 0 {
            return 0.5;
        }
        let won: f64 = self
            .groups
            .iter()
            .map(|group| {
                let behind = self.irrelevant - group.nearer - group.tied;
                group.relevant as f64 * (behind as f64 + 0.5 * group.tied as f64)
            })
            .sum();
        won / (self.relevant() as f64 * self.irrelevant as f64)
    }

    /// A relevant item that is not ranked has no rank, so the last rank is infinite: 0.
    fn inverse_negative_penalty(&self) -> f64 {
        let Some(group) = self.groups.last().filter(|_| self.missing.is_empty()) else {
            return 0.0;
        };
        let end = group.nearer + group.tied + self.grades.len() as u64;
        let expected: f64 = first_places(group)
            .map(|(place, probability)| probability / (end + 1 - place) as f64)
            .sum();
        expected * self.relevant() as f64
    }
}

/// Places 1, 2, … within a group with the probability that its first relevant item is there.
fn first_places(group: &TieGroup) -> impl Iterator<Item = (u64, f64)> {
    let (size, relevant) = (group.tied + group.relevant, group.relevant);
    let mut probability = relevant as f64 / size as f64;
    (1..=group.tied + 1).map(move |place| {
        let here = probability;
        if place < size {
            probability *= (size - place + 1 - relevant) as f64 / (size - place) as f64;
        }
        (place, here)
    })
}

#[cfg(test)]
#[path = "measures_tests.rs"]
mod tests;
