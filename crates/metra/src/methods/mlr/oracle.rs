//! The separation oracle: the most violated ranking of one query, which is the maximum over all
//! rankings of its loss plus its score.
//!
//! A ranking scores Σ y_ij (s_i − s_j)/(p·n) over its p relevant items i and n irrelevant items j, with
//! y = 1 where i comes first and −1 otherwise. Only how relevant and irrelevant items interleave matters:
//! among themselves they stay in the order of their scores (Joachims, ICML 2005; Yue, Finley, Radlinski &
//! Joachims, SIGIR 2007; Chakrabarti, Khanna, Sawant & Bhattacharyya, KDD 2008).

/// An item as a ranking has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scored {
    pub(super) score: f64,
    pub(super) relevant: bool,
}

/// By 1 − AUC: every pair decides alone, and is turned round where s_i − s_j < ½. Items come best first.
/// Gives the weight of each item in ψ(best) − ψ(violator), and the loss.
pub(super) fn violator_by_area(items: &[Scored]) -> (Vec<f64>, f64) {
    let (p, n) = counts(items);
    if p == 0 || n == 0 {
        return (vec![0.0; items.len()], 0.0);
    }
    let share = 1.0 / (p * n) as f64;
    let side = |relevant: bool| -> Vec<f64> {
        let of = items.iter().filter(|item| item.relevant == relevant);
        of.map(|item| item.score).collect()
    };
    let (near, far) = (side(true), side(false));
    let mut turned = 0.0;
    let weights = (items.iter())
        .map(|item| {
            // Both lists fall: those that are turned round against an item are at one end.
            let count = if item.relevant {
                let count = far.partition_point(|other| item.score - other < 0.5);
                turned += count as f64;
                count as f64
            } else {
                -((near.len() - near.partition_point(|other| other - item.score >= 0.5)) as f64)
            };
            2.0 * count * share
        })
        .collect();
    (weights, turned * share)
}

/// By 1 − average precision: every irrelevant item takes the place among the relevant ones that adds
/// most, which is never before that of a better one. Items come best first.
pub(super) fn violator_by_precision(items: &[Scored]) -> (Vec<f64>, f64) {
    let (p, n) = counts(items);
    if p == 0 || n == 0 {
        return (vec![0.0; items.len()], 0.0);
    }
    let near: Vec<f64> = (items.iter().filter(|item| item.relevant))
        .map(|item| item.score)
        .collect();
    let share = 1.0 / (p * n) as f64;
    // before[j]: how many relevant items come before the j-th irrelevant one.
    let mut before = Vec::with_capacity(n);
    for (j, item) in items.iter().filter(|item| !item.relevant).enumerate() {
        // Moving it up past the i-th relevant item (from 0) costs precision there, (i + 1)/(i + 1 + j)
        // to (i + 1)/(i + 2 + j), and turns one pair round.
        let (mut best, mut most, mut sum) = (p, 0.0, 0.0);
        for i in (0..p).rev() {
            let (hits, above) = ((i + 1) as f64, j as f64);
            let precision = hits / (hits + above) - hits / (hits + above + 1.0);
            sum += precision / p as f64 - 2.0 * share * (near[i] - item.score);
            if sum > most {
                (best, most) = (i, sum);
            }
        }
        before.push(best);
    }
    // A better irrelevant item never comes after a worse one.
    for j in (1..n).rev() {
        before[j - 1] = before[j - 1].min(before[j]);
    }
    let preceding = preceding(p, &before);
    let ranks = preceding.iter().enumerate();
    let precision: f64 = ranks
        .map(|(i, above)| (i + 1) as f64 / (i + 1 + above) as f64)
        .sum();
    let weights = weights(items, &preceding, &before);
    (weights, 1.0 - precision / p as f64)
}

/// By 1 − the reciprocal rank of the first relevant item: so many of the best irrelevant items come before all
/// relevant ones as adds most. The others come after the first relevant one, and are otherwise turned round against a
/// relevant item only where their score is better. Items come best first.
pub(super) fn violator_by_first(items: &[Scored]) -> (Vec<f64>, f64) {
    let (p, n) = counts(items);
    if p == 0 || n == 0 {
        return (vec![0.0; items.len()], 0.0);
    }
    let near: Vec<f64> = (items.iter().filter(|item| item.relevant))
        .map(|item| item.score)
        .collect();
    let share = 1.0 / (p * n) as f64;
    // What the relevant items but the first sum up to, from each of them on.
    let mut sums = vec![0.0; p + 1];
    for i in (0..p).rev() {
        sums[i] = sums[i + 1] + near[i];
    }
    let (mut first, mut most, mut sum) = (0, 0.0, 0.0);
    let mut before = Vec::with_capacity(n);
    for (j, item) in items.iter().filter(|item| !item.relevant).enumerate() {
        let better = near.partition_point(|score| *score > item.score).max(1);
        before.push(better);
        // Moving it before all turns round those relevant items that came before it.
        let turned = sums[0] - sums[better] - better as f64 * item.score;
        sum += 1.0 / (j + 1) as f64 - 1.0 / (j + 2) as f64 - 2.0 * share * turned;
        if sum > most {
            (first, most) = (j + 1, sum);
        }
    }
    before[..first].fill(0);
    let preceding = preceding(p, &before);
    let loss = 1.0 - 1.0 / (first + 1) as f64;
    (weights(items, &preceding, &before), loss)
}

/// How many irrelevant items precede each relevant one, where `before[j]` relevant items precede the j-th
/// irrelevant one.
fn preceding(p: usize, before: &[usize]) -> Vec<usize> {
    (0..p)
        .map(|i| before.partition_point(|before| *before <= i))
        .collect()
}

/// Weights of the items in ψ(best) − ψ(this ranking).
fn weights(items: &[Scored], preceding: &[usize], before: &[usize]) -> Vec<f64> {
    let (p, n) = (preceding.len(), before.len());
    let share = 1.0 / (p * n) as f64;
    let (mut i, mut j) = (0, 0);
    (items.iter())
        .map(|item| {
            let turned = if item.relevant {
                i += 1;
                preceding[i - 1] as f64
            } else {
                j += 1;
                -((p - before[j - 1]) as f64)
            };
            2.0 * turned * share
        })
        .collect()
}

fn counts(items: &[Scored]) -> (usize, usize) {
    let relevant = items.iter().filter(|item| item.relevant).count();
    (relevant, items.len() - relevant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// All interleavings of p relevant and n irrelevant items, as `before`.
    fn interleavings(p: usize, n: usize) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for _ in 0..n {
            all = (all.into_iter())
                .flat_map(|start: Vec<usize>| {
                    let least = start.last().copied().unwrap_or(0);
                    (least..=p).map(move |next| {
                        let mut longer = start.clone();
                        longer.push(next);
                        longer
                    })
                })
                .collect();
        }
        all
    }

    /// Score of a ranking and its losses, by their definitions over the pairs.
    fn judged(near: &[f64], far: &[f64], before: &[usize]) -> (f64, [f64; 3]) {
        let (p, n) = (near.len(), far.len());
        let (mut score, mut turned) = (0.0, 0.0);
        for (i, s) in near.iter().enumerate() {
            for (j, t) in far.iter().enumerate() {
                let first = i < before[j];
                score += if first { s - t } else { t - s };
                turned += f64::from(!first);
            }
        }
        let mut precision = 0.0;
        for i in 0..p {
            let above = before.iter().filter(|before| **before <= i).count();
            precision += (i + 1) as f64 / (i + 1 + above) as f64 / p as f64;
        }
        let pairs = (p * n) as f64;
        let first = before.iter().filter(|before| **before == 0).count();
        let reciprocal = 1.0 / (1 + first) as f64;
        (
            score / pairs,
            [turned / pairs, 1.0 - precision, 1.0 - reciprocal],
        )
    }

    #[test]
    fn no_other_ranking_violates_more() {
        let mut random = Stream::new(7, "test", 0);
        for trial in 0..300 {
            let (p, n) = (1 + random.below(4) as usize, 1 + random.below(4) as usize);
            let scale = [0.1, 1.0, 5.0][trial % 3];
            let mut items: Vec<Scored> = (0..p + n)
                .map(|place| Scored {
                    score: scale * random.normal() / (p * n) as f64,
                    relevant: place < p,
                })
                .collect();
            items.sort_by(|a, b| b.score.total_cmp(&a.score));
            let side = |relevant: bool| -> Vec<f64> {
                let of = items.iter().filter(|item| item.relevant == relevant);
                of.map(|item| item.score).collect()
            };
            let (near, far) = (side(true), side(false));
            let best = judged(&near, &far, &vec![p; n]).0;
            let all: Vec<(f64, [f64; 3])> = (interleavings(p, n).iter())
                .map(|before| judged(&near, &far, before))
                .collect();
            let found = [
                violator_by_area(&items),
                violator_by_precision(&items),
                violator_by_first(&items),
            ];
            for (which, (weights, loss)) in found.iter().enumerate() {
                // Rankings of the area need not be consistent orders, and are at the optimum anyway.
                let most = (all.iter())
                    .map(|(score, losses)| losses[which] + score)
                    .fold(f64::MIN, f64::max);
                let gap: f64 = weights
                    .iter()
                    .zip(&items)
                    .map(|(w, item)| w * item.score)
                    .sum();
                let reached = loss + best - gap;
                assert!((reached - most).abs() < 1e-9, "{which}: {reached} {most}");
            }
        }
    }
}
