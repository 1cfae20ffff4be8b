//! The loss of one minibatch and its gradient with respect to the embedded rows, as matrix
//! products.
//!
//! For a pair (i, j) of S and pool items k irrelevant to i, with z = W x:
//! loss = L(rank) · mean over violators k of (γ + d_ij − d_ik), where k violates if this is
//! positive and rank ≈ |T|·violators/pool. The gradient by z_i is a sum of unit vectors; with
//! w_ik = weight/d_ik the sums over k become the products w·Z and wᵀ·Z. Where d_ik is small, w_ik
//! is large and such a product would drown the row's other terms in rounding (one duplicate of
//! weight 1e9 once made an error of 73 %), so near points form their difference first. A pair at
//! distance 0 has no gradient and gets none. With squared distances the weights are the same for
//! all violators, and the coefficients are those of WARP's gradient by the metric itself: the
//! gradient of |v|²_M by M is v vᵀ, with no factor 2.

use super::super::codes::straight_through::StraightThrough;
use super::super::descent::Outcome;
use super::{Minibatch, Sampling, Violators, Warp};
use crate::Result;
use crate::linalg::{
    LANES, RowBuf, Rows, cross, map_rows, mix, squared_norms, transposed_product, vectorized,
};
use crate::random::Stream;
use crate::supervision::Relevance;
use faer::{Accum, MatRef};
use rayon::prelude::*;

/// Pairs that one task handles. Fixed, so that results do not depend on the number of threads.
const PAIR_BLOCK: usize = 128;
/// Distances below this (data are scaled to unit distance of relevant pairs) form differences.
const NEAR: f32 = 1e-2;
/// Distances below this have no direction.
const ZERO: f32 = 1e-6;

/// What a minibatch gave.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Violations {
    pub(crate) loss: f64,
    pub(crate) violated: f64,
    pub(crate) rank: f64,
}

impl From<Violations> for Outcome {
    fn from(found: Violations) -> Self {
        Outcome {
            loss: found.loss,
            ranking: Some((found.violated, found.rank)),
            finished: false,
        }
    }
}

/// Buffers that live as long as a fit.
pub(crate) struct Workspace {
    /// z of all queries, then of the relevant items, then of the pool.
    pub(crate) embedded: RowBuf,
    /// Derivative of the loss by each embedded row.
    pub(crate) coefficients: RowBuf,
    pub(crate) gradient: RowBuf,
    /// What items are coded by in this step, and how much of the schedule remains.
    pub(crate) code: Option<(StraightThrough, f64)>,
    norms: Vec<f32>,
    weights: Vec<f32>,
}

impl Default for Workspace {
    fn default() -> Self {
        Workspace {
            embedded: RowBuf::empty(1),
            coefficients: RowBuf::empty(1),
            gradient: RowBuf::empty(1),
            code: None,
            norms: Vec::new(),
            weights: Vec::new(),
        }
    }
}

/// A violator handled by its difference: pair, place in the pool, weight.
type Single = (u32, u32, f32);

impl Workspace {
    /// Loss and gradient by `map` (in `self.gradient`) for the rows of the minibatch.
    pub(crate) fn gradient(
        &mut self,
        warp: &Warp,
        relevance: &dyn Relevance,
        batch: &Minibatch,
        map: &RowBuf,
        rows: Rows<'_>,
        seed_and_step: (u64, u64),
    ) -> Result<Violations> {
        map_rows(rows, map.rows(), &mut self.embedded)?;
        let outcome = self.evaluate(warp, relevance, batch, seed_and_step);
        transposed_product(self.coefficients.rows(), rows, &mut self.gradient)?;
        Ok(outcome)
    }

    /// Loss and coefficients for what is in `self.embedded`.
    pub(crate) fn evaluate(
        &mut self,
        warp: &Warp,
        relevance: &dyn Relevance,
        batch: &Minibatch,
        (seed, step): (u64, u64),
    ) -> Violations {
        let (pairs, pool) = (batch.pairs.len(), batch.pool.items().len());
        let rank = self.embedded.dim();
        if let Some((code, remains)) = self.code {
            let coded = if code.codes_queries() {
                0
            } else {
                pairs * rank
            };
            code.round_vectors(&mut self.embedded.values_mut()[coded..], rank, remains);
        }
        squared_norms(self.embedded.rows(), &mut self.norms);
        self.coefficients.reset(2 * pairs + pool, rank);
        self.weights.resize(pairs * pool, 0.0);

        let embedded = self.embedded.rows();
        let (queries, relevant) = (embedded.slice(0, pairs), embedded.slice(pairs, 2 * pairs));
        let negatives = embedded.slice(2 * pairs, 2 * pairs + pool);
        let (query_norms, pool_norms) = (&self.norms[..pairs], &self.norms[2 * pairs..]);
        let (query_part, rest) = self.coefficients.values_mut().split_at_mut(pairs * rank);
        let (relevant_part, pool_part) = rest.split_at_mut(pairs * rank);

        let blocks: Vec<(Violations, Vec<Single>)> = (
            query_part.par_chunks_mut(PAIR_BLOCK * rank),
            relevant_part.par_chunks_mut(PAIR_BLOCK * rank),
            self.weights.par_chunks_mut(PAIR_BLOCK * pool),
        )
            .into_par_iter()
            .enumerate()
            .map(|(block, (query_out, relevant_out, weights))| {
                let start = block * PAIR_BLOCK;
                let len = weights.len() / pool;
                let mut random = Stream::new(seed, "warca violators", step << 20 | block as u64);
                cross(queries.slice(start, start + len), negatives, -2.0, weights);
                let mut outcome = Violations::default();
                let mut singles = Vec::new();
                let mut totals = [0.0_f32; PAIR_BLOCK];
                for local in 0..len {
                    let pair = start + local;
                    let row = &mut weights[local * pool..(local + 1) * pool];
                    let query = queries.row(pair);
                    let near_distance = distance(query, relevant.row(pair), warp.squared);
                    let row_of = |k| negatives.row(k);
                    distances(
                        row,
                        query,
                        query_norms[pair],
                        pool_norms,
                        row_of,
                        warp.squared,
                    );
                    let asking = batch.pairs[pair].0;
                    let mut usable = pool;
                    let mut exclude = |place: usize| {
                        row[place] = f32::INFINITY;
                        usable -= 1;
                    };
                    match relevance.judged_irrelevant(asking) {
                        Some(judged) => (batch.pool.items().iter().enumerate())
                            .filter(|(_, item)| judged.binary_search(item).is_err())
                            .for_each(|(place, _)| exclude(place)),
                        None => relevance.visit_pool(asking, &batch.pool, &mut exclude),
                    }
                    let limit = near_distance + warp.margin;
                    let irrelevant = relevance.irrelevant_count(asking) as f64;
                    // The paper's gamma lies between 1 and |T|.
                    let truncation = warp.truncation.min(irrelevant.max(1.0));
                    let counted = (usable, irrelevant, truncation);
                    let found = violators(warp, row, limit, counted, &mut random);
                    let share = 1.0 / pairs as f64;
                    let found = found.filter(|f| f.rank >= truncation);
                    let cost = found.map_or(0.0, |f| warp.weights.loss(f.rank, irrelevant));
                    let weight = (cost * share) as f32;
                    if let Some(found) = found {
                        outcome.loss += cost * share * found.mean_excess;
                        outcome.violated += share;
                        outcome.rank += share * found.rank;
                    }
                    // The pull of the relevant item.
                    let pull = by_distance(weight, near_distance, warp.squared);
                    let place = local * rank..(local + 1) * rank;
                    let near = query.iter().zip(relevant.row(pair));
                    for ((out, other), (a, b)) in query_out[place.clone()]
                        .iter_mut()
                        .zip(&mut relevant_out[place])
                        .zip(near)
                    {
                        *out = pull * (a - b);
                        *other = -*out;
                    }
                    // The push of the violators: weights in place of distances.
                    match found {
                        None => row.fill(0.0),
                        Some(Found { one: Some(k), .. }) => {
                            let push = by_distance(weight, row[k], warp.squared);
                            singles.push((pair as u32, k as u32, push));
                            row.fill(0.0);
                        }
                        Some(found) => {
                            let each = weight / found.count as f32;
                            if warp.squared {
                                totals[local] = equal_weights(row, limit, each);
                                continue;
                            }
                            if found.any_near {
                                let near = row
                                    .iter()
                                    .enumerate()
                                    .filter(|(_, d)| **d < NEAR.min(limit) && **d > ZERO);
                                singles
                                    .extend(near.map(|(k, d)| (pair as u32, k as u32, each / d)));
                            }
                            totals[local] = push_weights(row, limit, each);
                        }
                    }
                }
                if warp.violators == Violators::All && warp.sampling != Sampling::Sequential {
                    let block_weights = MatRef::from_row_major_slice(&*weights, len, pool);
                    mix(block_weights, negatives, 1.0, Accum::Add, query_out);
                    for (local, total) in totals[..len].iter().enumerate() {
                        let row = queries.row(start + local);
                        for (out, z) in query_out[local * rank..].iter_mut().zip(row) {
                            *out -= total * z;
                        }
                    }
                }
                (outcome, singles)
            })
            .collect();

        if warp.violators == Violators::All && warp.sampling != Sampling::Sequential {
            let weights = MatRef::from_row_major_slice(&self.weights, pairs, pool);
            pool_part
                .par_chunks_mut(PAIR_BLOCK * rank)
                .enumerate()
                .for_each(|(block, out)| {
                    let start = block * PAIR_BLOCK;
                    let len = out.len() / rank;
                    let columns = weights.subcols(start, len);
                    mix(columns.transpose(), queries, 1.0, Accum::Replace, out);
                    let mut totals = [0.0_f32; PAIR_BLOCK];
                    for pair in 0..pairs {
                        let row = &self.weights[pair * pool + start..][..len];
                        for (total, weight) in totals.iter_mut().zip(row) {
                            *total += weight;
                        }
                    }
                    for (local, total) in totals[..len].iter().enumerate() {
                        let row = negatives.row(start + local);
                        for (out, z) in out[local * rank..].iter_mut().zip(row) {
                            *out -= total * z;
                        }
                    }
                });
        } else {
            pool_part.fill(0.0);
        }

        let mut outcome = Violations::default();
        for (part, singles) in &blocks {
            outcome.loss += part.loss;
            outcome.violated += part.violated;
            outcome.rank += part.rank;
            for (pair, k, weight) in singles {
                let (pair, k) = (*pair as usize, *k as usize);
                let query_out = &mut query_part[pair * rank..(pair + 1) * rank];
                let pool_out = &mut pool_part[k * rank..(k + 1) * rank];
                let difference = queries.row(pair).iter().zip(negatives.row(k));
                for ((q, p), (a, b)) in query_out.iter_mut().zip(pool_out).zip(difference) {
                    let push = weight * (a - b);
                    *q -= push;
                    *p += push;
                }
            }
        }
        outcome
    }
}

/// The violators of one pair.
#[derive(Debug, Clone, Copy)]
struct Found {
    count: usize,
    rank: f64,
    mean_excess: f64,
    /// The only violator to use, where one is drawn.
    one: Option<usize>,
    /// Whether some violator is nearer than [`NEAR`].
    any_near: bool,
}

fn violators(
    warp: &Warp,
    distances: &[f32],
    limit: f32,
    (usable, irrelevant, truncation): (usize, f64, f64),
    random: &mut Stream,
) -> Option<Found> {
    if warp.sampling == Sampling::Sequential {
        // Try one after the other from a random place on; a relevant item is not a try.
        let start = random.below(distances.len() as u64) as usize;
        let mut tries = 0_u64;
        for offset in 0..distances.len() {
            let k = (start + offset) % distances.len();
            if distances[k] == f32::INFINITY {
                continue;
            }
            tries += 1;
            if irrelevant / (tries as f64) < truncation {
                return None;
            }
            if distances[k] < limit {
                return Some(Found {
                    count: 1,
                    rank: (irrelevant / tries as f64).floor().max(1.0),
                    mean_excess: f64::from(limit - distances[k]),
                    one: Some(k),
                    any_near: false,
                });
            }
        }
        return None;
    }
    let (count, excess, any_near) = count_below(distances, limit);
    if count == 0 {
        return None;
    }
    let rank = (irrelevant * count as f64 / usable.max(1) as f64).max(1.0);
    if warp.violators == Violators::All {
        return Some(Found {
            count,
            rank,
            mean_excess: f64::from(excess) / count as f64,
            one: None,
            any_near,
        });
    }
    let chosen = random.below(count as u64) as usize;
    let one = (0..distances.len())
        .filter(|k| distances[*k] < limit)
        .nth(chosen)?;
    Some(Found {
        count: 1,
        rank,
        mean_excess: f64::from(limit - distances[one]),
        one: Some(one),
        any_near,
    })
}

/// The weight of a unit vector's worth of difference: divided by the distance unless it is squared.
/// A pair at distance 0 has no direction.
fn by_distance(weight: f32, distance: f32, squared: bool) -> f32 {
    if squared {
        weight
    } else if distance > ZERO {
        weight / distance
    } else {
        0.0
    }
}

fn distance(a: &[f32], b: &[f32], squared: bool) -> f32 {
    let square = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    if squared { square } else { square.sqrt() }
}

/// Turn −2·z_i·z_k into distances. Those that the expanded square cannot resolve are worked out
/// from the difference.
fn distances<'a>(
    row: &mut [f32],
    query: &[f32],
    query_norm: f32,
    pool_norms: &[f32],
    negative: impl Fn(usize) -> &'a [f32],
    squared: bool,
) {
    let doubtful = |square: f32, norms: f32| square < 1e-3 * norms;
    let any = vectorized(
        #[inline(always)]
        || {
            let mut any = 0_u32;
            for (value, norm) in row.iter_mut().zip(pool_norms) {
                let norms = query_norm + norm;
                let square = *value + norms;
                any |= u32::from(doubtful(square, norms));
                let square = square.max(0.0);
                *value = if squared { square } else { square.sqrt() };
            }
            any
        },
    );
    if any != 0 {
        for (k, (value, norm)) in row.iter_mut().zip(pool_norms).enumerate() {
            // Rounding of the root must not hide a doubtful one, so the bound is a little wider.
            let square = if squared { *value } else { *value * *value };
            if doubtful(square, 1.01 * (query_norm + norm)) {
                *value = distance(query, negative(k), squared);
            }
        }
    }
}

/// Number of distances below the limit, the sum of (limit − distance) over them, and whether one is
/// near.
fn count_below(distances: &[f32], limit: f32) -> (usize, f32, bool) {
    vectorized(
        #[inline(always)]
        || {
            let (mut counts, mut sums, mut near) =
                ([0_u32; LANES], [0.0_f32; LANES], [0_u32; LANES]);
            let (chunks, rest) = distances.as_chunks::<LANES>();
            for chunk in chunks {
                for lane in 0..LANES {
                    let excess = limit - chunk[lane];
                    counts[lane] += u32::from(excess > 0.0);
                    sums[lane] += if excess > 0.0 { excess } else { 0.0 };
                    near[lane] |= u32::from(chunk[lane] < NEAR);
                }
            }
            for value in rest {
                counts[0] += u32::from(limit - value > 0.0);
                sums[0] += (limit - value).max(0.0);
                near[0] |= u32::from(*value < NEAR);
            }
            let any_near = near.iter().any(|n| *n != 0);
            (
                counts.iter().sum::<u32>() as usize,
                sums.iter().sum(),
                any_near,
            )
        },
    )
}

/// Turn distances into weights, `each`/d for violators that are not near and 0 otherwise; returns
/// their sum.
fn push_weights(row: &mut [f32], limit: f32, each: f32) -> f32 {
    vectorized(
        #[inline(always)]
        || {
            let mut sums = [0.0_f32; LANES];
            let (chunks, rest) = row.as_chunks_mut::<LANES>();
            for chunk in chunks {
                for lane in 0..LANES {
                    let value = chunk[lane];
                    let weight = if value < limit && value >= NEAR {
                        each / value
                    } else {
                        0.0
                    };
                    chunk[lane] = weight;
                    sums[lane] += weight;
                }
            }
            for value in rest {
                *value = if *value < limit && *value >= NEAR {
                    each / *value
                } else {
                    0.0
                };
                sums[0] += *value;
            }
            sums.iter().sum()
        },
    )
}

/// Turn squared distances into weights, `each` for violators and 0 otherwise; returns their sum.
fn equal_weights(row: &mut [f32], limit: f32, each: f32) -> f32 {
    let mut count = 0_u32;
    for value in row {
        let violates = *value < limit;
        count += u32::from(violates);
        *value = if violates { each } else { 0.0 };
    }
    count as f32 * each
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::{Labels, Pool};
    use crate::training::warp::RankWeights;

    /// The same loss by the definition, in f64, with its gradient by the paper's formula (factor 1,
    /// erratum 1).
    fn reference(
        warp: &Warp,
        labels: &Labels,
        batch: &Minibatch,
        rows: &[Vec<f64>],
        map: &[Vec<f64>],
    ) -> (f64, Vec<Vec<f64>>) {
        let z: Vec<Vec<f64>> = rows
            .iter()
            .map(|x| {
                map.iter()
                    .map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum())
                    .collect()
            })
            .collect();
        let (pairs, pool) = (batch.pairs.len(), batch.pool.items());
        let gap = |a: usize, b: usize| {
            let squares = z[a].iter().zip(&z[b]).map(|(a, b)| (a - b) * (a - b));
            let square = squares.sum::<f64>();
            if warp.squared { square } else { square.sqrt() }
        };
        let mut loss = 0.0;
        let mut gradient = vec![vec![0.0; rows[0].len()]; map.len()];
        let mut add = |a: usize, b: usize, weight: f64| {
            let unit = if warp.squared { 1.0 } else { gap(a, b) };
            if unit == 0.0 {
                return;
            }
            for (m, row) in gradient.iter_mut().enumerate() {
                for (c, value) in row.iter_mut().enumerate() {
                    *value += weight * (z[a][m] - z[b][m]) * (rows[a][c] - rows[b][c]) / unit;
                }
            }
        };
        for (pair, (i, _)) in batch.pairs.iter().enumerate() {
            let irrelevant: Vec<usize> = (0..pool.len())
                .filter(|k| !labels.is_relevant(*i, pool[*k]) && pool[*k] != *i)
                .collect();
            let limit = f64::from(warp.margin) + gap(pair, pairs + pair);
            let violating: Vec<usize> = irrelevant
                .iter()
                .map(|k| 2 * pairs + k)
                .filter(|k| gap(pair, *k) < limit)
                .collect();
            if violating.is_empty() {
                continue;
            }
            let total = labels.irrelevant_count(*i) as f64;
            let rank = total * violating.len() as f64 / irrelevant.len() as f64;
            let weight = warp.weights.loss(rank.max(1.0), total) / pairs as f64;
            add(pair, pairs + pair, weight);
            for k in &violating {
                loss += weight * (limit - gap(pair, *k)) / violating.len() as f64;
                add(pair, *k, -weight / violating.len() as f64);
            }
        }
        (loss, gradient)
    }

    struct Case {
        warp: Warp,
        labels: Labels,
        batch: Minibatch,
        rows: Vec<Vec<f64>>,
        map: Vec<Vec<f64>>,
    }

    fn case(duplicates: bool) -> Case {
        let labels = Labels::from_numbers(&(0..30).map(|i| i % 5).collect::<Vec<_>>()).unwrap();
        let mut stream = Stream::new(11, "test", 0);
        let all: Vec<Vec<f64>> = (0..30)
            .map(|_| (0..7).map(|_| stream.normal()).collect())
            .collect();
        let pairs: Vec<_> = (0..9)
            .map(|_| labels.pair(stream.below(labels.pairs())))
            .collect();
        let mut pool = Pool::default();
        pool.fill(
            &labels,
            (0..12)
                .map(|_| stream.below(30))
                .collect::<Vec<_>>()
                .into_iter(),
        );
        let ids: Vec<u64> = (pairs.iter().map(|p| p.0))
            .chain(pairs.iter().map(|p| p.1))
            .chain(pool.items().iter().copied())
            .collect();
        let mut rows: Vec<Vec<f64>> = ids.iter().map(|r| all[*r as usize].clone()).collect();
        if duplicates {
            // An irrelevant item exactly on the query, one very near it, and a relevant one on it.
            let irrelevant: Vec<usize> = (0..12)
                .filter(|k| !labels.is_relevant(pairs[0].0, pool.items()[*k]))
                .filter(|k| pool.items()[*k] != pairs[0].0)
                .collect();
            rows[18 + irrelevant[0]] = rows[0].clone();
            rows[18 + irrelevant[1]] = rows[0].iter().map(|v| v + 1e-3).collect();
            rows[9 + 3] = rows[3].clone();
        }
        let map = (0..3)
            .map(|_| (0..7).map(|_| 0.4 * stream.normal()).collect())
            .collect();
        Case {
            warp: Warp {
                margin: 0.5,
                squared: false,
                sampling: Sampling::Pool,
                violators: Violators::All,
                weights: RankWeights::Harmonic,
                truncation: 1.0,
            },
            labels,
            batch: Minibatch { pairs, pool },
            rows,
            map,
        }
    }

    #[test]
    fn gradient_equals_finite_differences() {
        let case = case(false);
        let at =
            |map: &[Vec<f64>]| reference(&case.warp, &case.labels, &case.batch, &case.rows, map);
        let (_, gradient) = at(&case.map);
        for (m, c) in [(0, 0), (1, 3), (2, 6), (0, 5)] {
            let h = 1e-6;
            let mut shifted = case.map.clone();
            shifted[m][c] += h;
            let up = at(&shifted).0;
            shifted[m][c] -= 2.0 * h;
            let difference = (up - at(&shifted).0) / (2.0 * h);
            let found = gradient[m][c];
            assert!(
                (difference - found).abs() < 1e-6 * found.abs().max(1.0),
                "{difference} {found}"
            );
        }
    }

    fn products(case: &Case) -> (Violations, RowBuf) {
        let narrow = |rows: &[Vec<f64>]| {
            let values = rows.iter().flatten().map(|v| *v as f32).collect();
            RowBuf::from_values(values, rows[0].len()).unwrap()
        };
        let mut workspace = Workspace::default();
        let (rows, map) = (narrow(&case.rows), narrow(&case.map));
        let outcome = workspace
            .gradient(
                &case.warp,
                &case.labels,
                &case.batch,
                &map,
                rows.rows(),
                (1, 0),
            )
            .unwrap();
        (outcome, workspace.gradient)
    }

    #[test]
    fn products_equal_the_definition_even_with_duplicates() {
        for (duplicates, squared) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut case = case(duplicates);
            case.warp.squared = squared;
            let (loss, gradient) =
                reference(&case.warp, &case.labels, &case.batch, &case.rows, &case.map);
            let (outcome, found) = products(&case);
            assert!(
                (outcome.loss - loss).abs() < 1e-5 * loss,
                "{} {loss}",
                outcome.loss
            );
            let largest = gradient
                .iter()
                .flatten()
                .fold(0.0_f64, |a, b| a.max(b.abs()));
            for (found, expected) in found.rows().iter().zip(&gradient) {
                for (found, expected) in found.iter().zip(expected) {
                    let difference = (f64::from(*found) - expected).abs();
                    assert!(
                        difference < 2e-5 * largest,
                        "{duplicates} {squared} {difference}"
                    );
                }
            }
        }
    }

    #[test]
    fn one_violator_agrees_with_all_on_average() {
        let mut case = case(false);
        let (_, all) = products(&case);
        let mut mean = vec![0.0_f64; all.values().len()];
        let narrow: Vec<f32> = case.rows.iter().flatten().map(|v| *v as f32).collect();
        let map: Vec<f32> = case.map.iter().flatten().map(|v| *v as f32).collect();
        let map = RowBuf::from_values(map, 7).unwrap();
        case.warp.violators = Violators::One;
        let mut workspace = Workspace::default();
        let rows = RowBuf::from_values(narrow, 7).unwrap();
        let draws = 4000;
        for step in 0..draws {
            workspace
                .gradient(
                    &case.warp,
                    &case.labels,
                    &case.batch,
                    &map,
                    rows.rows(),
                    (1, step),
                )
                .unwrap();
            for (mean, value) in mean.iter_mut().zip(workspace.gradient.values()) {
                *mean += f64::from(*value) / draws as f64;
            }
        }
        let largest = all.values().iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        for (mean, all) in mean.iter().zip(all.values()) {
            assert!((mean - f64::from(*all)).abs() < 0.05 * f64::from(largest));
        }
    }
}
