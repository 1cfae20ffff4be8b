//! The loss of relative attributes as a function of the rows' scores s = F w alone.
//!
//! Ψ(i, j) = x_i − x_j makes every constraint a signed sum of two or four scores, so nothing but a
//! number a row is ever needed, and all pairs between two levels of an ordering are counted in one
//! sweep over sorted scores: the pairs of row i that push are a run of the other level's rows, and
//! prefix sums over runs give value, slopes and curvature. Chapelle & Keerthi (2010) list the pairs;
//! here a level pair costs O(n log n) and its n² pairs are never written down.

use super::hinge::Hinge;

/// All pairs of a row of `high` and a row of `low`: s_high − s_low ≥ margin.
#[derive(Debug, Clone)]
pub(super) struct LevelPair {
    pub(super) high: Vec<u32>,
    pub(super) low: Vec<u32>,
    pub(super) margin: f64,
    /// Of each pair.
    pub(super) weight: f64,
}

/// Σ signs·scores ≥ margin for four rows: (s_h − s_e) − (s_g − s_f).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Difference {
    /// Rows that count positively.
    pub(super) plus: [u32; 2],
    /// Rows that count negatively.
    pub(super) minus: [u32; 2],
    pub(super) margin: f64,
    pub(super) weight: f64,
}

/// Weighted mean of hinges over level pairs and listed differences.
pub(super) struct OrderedLoss {
    hinge: Hinge,
    pairs: Vec<LevelPair>,
    differences: Vec<Difference>,
    /// 1 / sum of weights.
    share: f64,
    sweeps: Vec<Sweep>,
    /// The differences on their parabola, with their second derivative: mostly few.
    bends: Vec<(u32, f64)>,
}

/// One level pair at the scores last evaluated.
#[derive(Default)]
struct Sweep {
    /// Rows of the high side by increasing score, with the run of low places that lie on its
    /// parabola; all places after the run lie on the line.
    high: Vec<u32>,
    runs: Vec<(u32, u32)>,
    /// The same from the low side; all places before the run lie on the line.
    low: Vec<u32>,
    low_runs: Vec<(u32, u32)>,
}

impl OrderedLoss {
    pub(super) fn new(hinge: Hinge, pairs: Vec<LevelPair>, differences: Vec<Difference>) -> Self {
        let mut total: f64 = differences.iter().map(|d| d.weight).sum();
        total += (pairs.iter())
            .map(|p| p.weight * p.high.len() as f64 * p.low.len() as f64)
            .sum::<f64>();
        let sweeps = pairs.iter().map(|_| Sweep::default()).collect();
        OrderedLoss {
            hinge,
            pairs,
            differences,
            share: if total > 0.0 { 1.0 / total } else { 0.0 },
            sweeps,
            bends: Vec::new(),
        }
    }

    /// 1 / sum of weights.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Whether there is any constraint.
    pub(super) fn is_empty(&self) -> bool {
        self.share == 0.0
    }

    /// The value at these scores; its derivative by each score replaces what is in `slopes`.
    pub(super) fn evaluate(&mut self, scores: &[f64], slopes: &mut [f64]) -> f64 {
        slopes.fill(0.0);
        let mut value = 0.0;
        for (pair, sweep) in self.pairs.iter().zip(&mut self.sweeps) {
            value += sweep.evaluate(pair, self.hinge, scores, slopes);
        }
        self.bends.clear();
        for (number, d) in self.differences.iter().enumerate() {
            let t = d.of(scores);
            value += d.weight * self.hinge.value(d.margin, t);
            d.scatter(d.weight * self.hinge.slope(d.margin, t), slopes);
            let bend = d.weight * self.hinge.curvature(d.margin, t);
            if bend > 0.0 {
                self.bends.push((number as u32, bend));
            }
        }
        for slope in slopes.iter_mut() {
            *slope *= self.share;
        }
        value * self.share
    }

    /// The second derivative by the scores, at those last evaluated, times `direction`; it
    /// replaces what is in `out`.
    pub(super) fn bend(&self, direction: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (pair, sweep) in self.pairs.iter().zip(&self.sweeps) {
            sweep.bend(2.0 * self.hinge.factor * pair.weight, direction, out);
        }
        for (number, bend) in &self.bends {
            let d = &self.differences[*number as usize];
            d.scatter(bend * d.of(direction), out);
        }
        for value in out.iter_mut() {
            *value *= self.share;
        }
    }
}

impl Difference {
    fn of(&self, scores: &[f64]) -> f64 {
        scores[self.plus[0] as usize] + scores[self.plus[1] as usize]
            - scores[self.minus[0] as usize]
            - scores[self.minus[1] as usize]
    }

    fn scatter(&self, amount: f64, out: &mut [f64]) {
        for row in self.plus {
            out[row as usize] += amount;
        }
        for row in self.minus {
            out[row as usize] -= amount;
        }
    }
}

impl Sweep {
    fn evaluate(
        &mut self,
        pair: &LevelPair,
        hinge: Hinge,
        scores: &[f64],
        slopes: &mut [f64],
    ) -> f64 {
        let (reach, bend) = (hinge.reach, 2.0 * hinge.factor);
        let score = |row: &u32| scores[*row as usize];
        let sorted = |rows: &[u32], into: &mut Vec<u32>| {
            into.clear();
            into.extend_from_slice(rows);
            // By row number where scores tie, so that sums keep one order.
            into.sort_unstable_by(|a, b| score(a).total_cmp(&score(b)).then(a.cmp(b)));
        };
        sorted(&pair.high, &mut self.high);
        sorted(&pair.low, &mut self.low);
        let (high, low) = (&self.high, &self.low);
        if high.is_empty() || low.is_empty() {
            self.runs.clear();
            self.low_runs.clear();
            return 0.0;
        }
        // Sums over runs are differences of prefix sums: about the middle they lose fewest digits.
        let centre = score(&low[low.len() / 2]);
        let (mut first, mut second) = (vec![0.0], vec![0.0]);
        for row in low {
            let s = score(row) - centre;
            first.push(first[first.len() - 1] + s);
            second.push(second[second.len() - 1] + s * s);
        }
        let all = low.len();
        self.runs.clear();
        let (mut start, mut end) = (0, 0);
        let mut value = 0.0;
        for row in high {
            // A low score pushes from `edge` on, and is on the line where the parabola ends.
            let edge = score(row) - pair.margin - reach;
            while start < all && score(&low[start]) < edge {
                start += 1;
            }
            end = end.max(start);
            while end < all && score(&low[end]) <= edge + hinge.width {
                end += 1;
            }
            self.runs.push((start as u32, end as u32));
            let (count, beyond) = ((end - start) as f64, (all - end) as f64);
            let a = edge - centre;
            let (one, two) = (first[end] - first[start], second[end] - second[start]);
            let line = first[all] - first[end];
            value += hinge.factor * (two - 2.0 * a * one + count * a * a);
            value += line - beyond * (a + reach);
            let slope = bend * (one - count * a) + beyond;
            slopes[*row as usize] -= pair.weight * slope;
        }
        // The same runs seen from the low side. They rise with the score on both sides, so that
        // each is found by two pointers, and each pair is in both or in neither.
        let centre = score(&high[high.len() / 2]);
        let mut first = vec![0.0];
        for row in high {
            first.push(first[first.len() - 1] + score(row) - centre);
        }
        self.low_runs.clear();
        let (mut start, mut end) = (0, 0);
        for (place, row) in low.iter().enumerate() {
            while start < high.len() && self.runs[start].1 as usize <= place {
                start += 1;
            }
            while end < high.len() && self.runs[end].0 as usize <= place {
                end += 1;
            }
            self.low_runs.push((start as u32, end as u32));
            let count = (end - start) as f64;
            let b = score(row) + pair.margin + reach - centre;
            let slope = bend * (count * b - (first[end] - first[start])) + start as f64;
            slopes[*row as usize] += pair.weight * slope;
        }
        pair.weight * value
    }

    fn bend(&self, amount: f64, direction: &[f64], out: &mut [f64]) {
        let sides = [
            (&self.high, &self.runs, &self.low),
            (&self.low, &self.low_runs, &self.high),
        ];
        for (rows, runs, others) in sides {
            let mut sums = Vec::with_capacity(others.len() + 1);
            sums.push(0.0);
            for row in others {
                sums.push(sums[sums.len() - 1] + direction[*row as usize]);
            }
            for (row, (start, end)) in rows.iter().zip(runs) {
                let (start, end) = (*start as usize, *end as usize);
                let own = (end - start) as f64 * direction[*row as usize];
                out[*row as usize] += amount * (own - (sums[end] - sums[start]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// Rows with signs, margin, weight.
    type Listed = (Vec<(usize, f64)>, f64, f64);

    /// Every constraint written out.
    fn listed(pairs: &[LevelPair], differences: &[Difference]) -> Vec<Listed> {
        let mut all = Vec::new();
        for p in pairs {
            for i in &p.high {
                for j in &p.low {
                    let rows = vec![(*i as usize, 1.0), (*j as usize, -1.0)];
                    all.push((rows, p.margin, p.weight));
                }
            }
        }
        for d in differences {
            let plus = d.plus.iter().map(|r| (*r as usize, 1.0));
            let minus = d.minus.iter().map(|r| (*r as usize, -1.0));
            all.push((plus.chain(minus).collect(), d.margin, d.weight));
        }
        all
    }

    #[test]
    fn sweeps_equal_the_list_of_all_pairs() {
        // Scores are multiples of 0.1, so that none lies at an end of the parabola, where the second
        // derivative jumps; the squared hinge has its end at the margin, which is moved off instead.
        assert_equal_to_the_list(Hinge::rounded(0.333), 0.0);
        assert_equal_to_the_list(Hinge::squared(), 0.05);
    }

    fn assert_equal_to_the_list(hinge: Hinge, off: f64) {
        let mut random = Stream::new(2, "ordered test", 0);
        let rows: Vec<u32> = (0..30).collect();
        let pair = |high: &[u32], low: &[u32], margin, weight| LevelPair {
            high: high.to_vec(),
            low: low.to_vec(),
            margin: margin + off,
            weight,
        };
        let pairs = vec![
            pair(&rows[..10], &rows[10..18], 1.0, 1.0),
            pair(&rows[..10], &rows[18..], 2.0, 0.5),
            // Light: a level against itself.
            pair(&rows[10..18], &rows[10..18], 0.0, 0.7),
        ];
        let differences: Vec<Difference> = (0..40)
            .map(|_| {
                let mut row = || random.below(30) as u32;
                Difference {
                    plus: [row(), row()],
                    minus: [row(), row()],
                    margin: 1.0 + off,
                    weight: 2.0,
                }
            })
            .collect();
        let all = listed(&pairs, &differences);
        let total: f64 = all.iter().map(|c| c.2).sum();
        let mut loss = OrderedLoss::new(hinge, pairs, differences);
        // Rounded scores make ties, also at the ends of runs.
        let scores: Vec<f64> = (0..30)
            .map(|_| (random.normal() * 10.0).round() / 10.0)
            .collect();
        let mut slopes = vec![0.0; 30];
        let value = loss.evaluate(&scores, &mut slopes);
        let direction: Vec<f64> = (0..30).map(|_| random.normal()).collect();
        let mut bent = vec![0.0; 30];
        loss.bend(&direction, &mut bent);
        let (mut expected, mut gradient) = (0.0, vec![0.0; 30]);
        let mut product = vec![0.0; 30];
        for (rows, margin, weight) in &all {
            let t: f64 = rows.iter().map(|(r, sign)| sign * scores[*r]).sum();
            let d: f64 = rows.iter().map(|(r, sign)| sign * direction[*r]).sum();
            expected += weight / total * hinge.value(*margin, t);
            for (r, sign) in rows {
                gradient[*r] += sign * weight / total * hinge.slope(*margin, t);
                product[*r] += sign * weight / total * hinge.curvature(*margin, t) * d;
            }
        }
        assert!((value - expected).abs() < 1e-12, "{value} {expected}");
        for r in 0..30 {
            assert!((slopes[r] - gradient[r]).abs() < 1e-12);
        }
        for r in 0..30 {
            assert!(
                (bent[r] - product[r]).abs() < 1e-12,
                "{r}: {} {}",
                bent[r],
                product[r]
            );
        }
    }
}
