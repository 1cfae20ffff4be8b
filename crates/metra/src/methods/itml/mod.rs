//! ITML: the Mahalanobis matrix nearest to a prior by LogDet divergence that keeps similar pairs within a
//! bound and dissimilar ones beyond another, up to slack. Davis, Kulis, Jain, Sra & Dhillon,
//! "Information-theoretic metric learning", ICML 2007, Alg. 1, and its online form of Sec. 4.2.
//!
//! A projection onto one constraint is a rank-one update of the matrix, O(d²), and keeps it positive
//! definite. Departs from the paper's code and others: pairs of equal vectors are left out and counted
//! (their distance is 0 whatever the matrix, and the update divides by it), bounds that coincide are an
//! error, and the prior may be whitening.

use crate::data::RowId;
use crate::dataset::Dataset;
use crate::execute::moments;
use crate::linalg::{RowBuf, Symmetric, rows_from};
use crate::model::Map;
use crate::random::Stream;
use crate::supervision::{Relevance, Supervision, SupervisionKind};
use crate::training::differences::{irrelevant_pairs, relevant_pairs};
use crate::training::parameters::{Bound, Choice, parameters, rank_or_all, require};
use crate::training::training_space::{TrainingSpace, fetch};
use crate::training::warp::check_relevance;
use crate::training::{Method, Progress, Run};
use crate::{Error, Result};
use faer::Mat;

/// Prior matrix: identity or the inverse covariance (whitening).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prior {
    /// Euclid.
    Identity,
    /// The inverse covariance.
    Whitening,
}

impl Choice for Prior {
    const ALL: &'static [(&'static str, Self)] = &[
        ("identity", Prior::Identity),
        ("whitening", Prior::Whitening),
    ];
}

/// Solver: batch (cyclic Bregman projections) or online (one pass).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Projections {
    /// Cycles of Bregman projections over all pairs, to the optimum.
    Batch,
    /// One look at each pair, with a rate.
    Online,
}

impl Choice for Projections {
    const ALL: &'static [(&'static str, Self)] = &[
        ("batch", Projections::Batch),
        ("online", Projections::Online),
    ];
}

parameters! {
    /// Information-theoretic metric learning: near a prior, with bounds on the distances of pairs. Learns
    /// from labels, relevance judgements or pairs. A cycle costs O(pairs·d²), the end O(d³); memory O(d² +
    /// pairs). Use it where few pairs are known and the prior is good; prepare with pca above some
    /// hundred dimensions.
    pub struct Itml {
        /// Maximum dimension of a mapped vector; 0 for full rank.
        rank: usize = 0,
        /// Slack parameter γ: larger values enforce the bounds more strictly.
        gamma: f64 = 1.0 => Bound::Above(0.0),
        /// The matrix to stay near to.
        prior: Prior = Prior::Identity,
        /// How constraints are met.
        projections: Projections = Projections::Batch,
        /// Learning rate of the online solver.
        rate: f64 = 0.1 => Bound::Above(0.0),
        /// Maximum number of pairs of each kind; a random sample is used if there are more.
        pairs: usize = 2000 => Bound::AtLeast(1.0),
        /// Upper bound of the distance of similar pairs, as a quantile of all pair distances.
        near: f64 = 0.05 => Bound::BetweenZeroAndOne,
        /// Lower bound of the distance of dissimilar pairs, as a quantile of all pair distances.
        far: f64 = 0.95,
        /// Maximum number of cycles over all pairs.
        cycles: u64 = 200,
        /// Stop when one cycle changes the multipliers by less than this fraction.
        tolerance: f64 = 1e-3 => Bound::BetweenZeroAndOne,
    }
}

impl Method for Itml {
    const NAME: &'static str = "itml";
    const SUMMARY: &'static str =
        "Mahalanobis matrix closest to a prior (LogDet) that meets distance bounds on pairs.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("gamma", &["0.1", "1", "10"])];

    fn check(&self) -> Result<()> {
        let inside = |share: f64| share > 0.0 && share < 1.0;
        let above = inside(self.far) && self.far > self.near;
        require(above, "far", "above `near` and below 1", self.far)?;
        Ok(())
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        let rank = rank_or_all(settings.rank, data.dim())?;
        let relevance = data.relevance("itml")?;
        check_relevance(relevance)?;
        let space = TrainingSpace::new(data)?;
        let scale = space.pair_scale(relevance, run.seed)?;
        let inverse = 1.0 / scale;
        let pairs = settings.listed(data.supervision(), relevance, run.seed);
        let pairs = Constraints::new(&space, pairs, inverse as f32)?;
        run.facts
            .insert("coincident".into(), pairs.coincident as f64);
        let bounds = pairs.bounds(settings.near, settings.far)?;
        let prior = prior(&space, settings.prior, inverse)?;
        let matrix = match settings.projections {
            Projections::Batch => batch(settings, &pairs, bounds, prior, run)?,
            Projections::Online => online(settings, &pairs, bounds, prior, run)?,
        };
        let root = Symmetric::new(matrix)?.eigen()?.factor(rank);
        space.carry_back(&rows_from(root.as_ref()), inverse as f32, true)
    }
}

impl Itml {
    /// The pairs that bounds are set on, and whether they are similar.
    fn listed(
        &self,
        supervision: &Supervision,
        relevance: &dyn Relevance,
        seed: u64,
    ) -> Vec<((RowId, RowId), bool)> {
        let near = relevant_pairs(relevance, self.pairs, seed);
        let far = irrelevant_pairs(supervision, relevance, self.pairs, seed);
        let similar = near.into_iter().map(|pair| (pair, true));
        similar
            .chain(far.into_iter().map(|pair| (pair, false)))
            .collect()
    }
}

/// Differences of pairs, those that coincide left out.
struct Constraints {
    differences: RowBuf,
    similar: Vec<bool>,
    coincident: usize,
}

impl Constraints {
    fn new(
        space: &TrainingSpace<'_>,
        pairs: Vec<((RowId, RowId), bool)>,
        inverse: f32,
    ) -> Result<Self> {
        let dim = space.dim();
        let centre = space.centre();
        let mut found = Constraints {
            differences: RowBuf::empty(dim),
            similar: Vec::new(),
            coincident: 0,
        };
        let (mut left, mut right) = (RowBuf::empty(dim), RowBuf::empty(dim));
        for pairs in pairs.chunks(512) {
            let queries: Vec<RowId> = pairs.iter().map(|((query, _), _)| *query).collect();
            let items: Vec<RowId> = pairs.iter().map(|((_, item), _)| *item).collect();
            left.reset(pairs.len(), dim);
            right.reset(pairs.len(), dim);
            let centre = centre.as_deref();
            fetch(
                space.queries(),
                &queries,
                centre,
                inverse,
                left.values_mut(),
            )?;
            fetch(space.items(), &items, centre, inverse, right.values_mut())?;
            for (a, b) in left.values_mut().iter_mut().zip(right.values()) {
                *a -= b;
            }
            for (row, (_, similar)) in left.rows().iter().zip(pairs) {
                if row.iter().all(|value| *value == 0.0) {
                    found.coincident += 1;
                    continue;
                }
                found
                    .differences
                    .extend(crate::linalg::Rows::new(row, dim)?);
                found.similar.push(*similar);
            }
        }
        let alike = found.similar.iter().filter(|similar| **similar).count();
        if alike == 0 || alike == found.similar.len() {
            return Err(Error::Data(format!(
                "itml needs similar and dissimilar pairs of different vectors: of {} pairs {} \
                 coincide, and of the others {alike} are similar",
                pairs.len(),
                found.coincident,
            )));
        }
        Ok(found)
    }

    fn len(&self) -> usize {
        self.similar.len()
    }

    /// The distance that similar pairs may have at most, and dissimilar ones at least.
    fn bounds(&self, near: f64, far: f64) -> Result<(f64, f64)> {
        let mut lengths: Vec<f64> = (self.differences.rows().iter())
            .map(|row| row.iter().map(|v| f64::from(*v).powi(2)).sum())
            .collect();
        if !lengths.iter().all(|length| length.is_finite()) {
            return Err(Error::Data("distances of pairs are not finite".into()));
        }
        lengths.sort_by(f64::total_cmp);
        let at = |share: f64| lengths[((lengths.len() - 1) as f64 * share).round() as usize];
        let (near, far) = (at(near), at(far));
        if far > near && near > 0.0 && far.is_finite() {
            return Ok((near, far));
        }
        Err(Error::Data(format!(
            "itml needs a smaller bound for similar pairs than for dissimilar ones, found {near:.4} \
             and {far:.4}: all pairs are equally far apart"
        )))
    }
}

/// The matrix to start from.
fn prior(space: &TrainingSpace<'_>, prior: Prior, inverse: f64) -> Result<Mat<f64>> {
    let dim = space.dim();
    match prior {
        Prior::Identity => Ok(Mat::identity(dim, dim)),
        Prior::Whitening => {
            let eigen = moments(space.items())?.covariance.eigen()?;
            let factor = inverse * inverse;
            let most = eigen.values.first().copied().unwrap_or(0.0) * factor;
            // Directions without variance would get an infinite weight.
            let floor = (1e-6 * most).max(f64::MIN_POSITIVE);
            let scaled = Mat::from_fn(dim, dim, |i, j| {
                eigen.vectors[(i, j)] / (eigen.values[j] * factor).max(floor)
            });
            Ok(&scaled * eigen.vectors.transpose())
        }
    }
}

/// A rank-one update: matrix += factor · (A v)(A v)ᵀ.
fn update(matrix: &mut Mat<f64>, mapped: &[f64], factor: f64) {
    for (column, value) in mapped.iter().enumerate() {
        let factor = factor * value;
        for (target, other) in matrix.col_mut(column).iter_mut().zip(mapped) {
            *target += factor * other;
        }
    }
}

/// A v and vᵀ A v.
fn mapped(matrix: &Mat<f64>, v: &[f32], out: &mut Vec<f64>) -> f64 {
    out.clear();
    out.resize(v.len(), 0.0);
    for (column, value) in matrix.col_iter().zip(v) {
        let value = f64::from(*value);
        if value != 0.0 {
            for (out, entry) in out.iter_mut().zip(column.iter()) {
                *out += value * entry;
            }
        }
    }
    out.iter().zip(v).map(|(a, b)| a * f64::from(*b)).sum()
}

/// Multipliers and bounds as they give way, one of each a pair.
struct Dual {
    multipliers: Vec<f64>,
    bounds: Vec<f64>,
}

fn batch(
    settings: &Itml,
    pairs: &Constraints,
    (near, far): (f64, f64),
    mut matrix: Mat<f64>,
    run: &mut Run<'_>,
) -> Result<Mat<f64>> {
    let bound = |similar: &bool| if *similar { near } else { far };
    let mut dual = Dual {
        multipliers: vec![0.0; pairs.len()],
        bounds: pairs.similar.iter().map(bound).collect(),
    };
    let began = std::time::Instant::now();
    let mut product = Vec::new();
    let mut change = f64::INFINITY;
    let mut cycles = 0;
    while cycles < settings.cycles && change > settings.tolerance {
        run.check_stop()?;
        let before = dual.multipliers.clone();
        for (number, v) in pairs.differences.rows().iter().enumerate() {
            // Of many columns a hundred pairs take a tenth of a second.
            if number.is_multiple_of(128) {
                run.check_stop()?;
            }
            let distance = mapped(&matrix, v, &mut product);
            let similar = pairs.similar[number];
            let factor = project(&mut dual, number, similar, distance, settings.gamma);
            if factor != 0.0 {
                update(&mut matrix, &product, factor);
            }
        }
        cycles += 1;
        let size: f64 = dual.multipliers.iter().map(|m| m.abs()).sum();
        let moved: f64 = dual
            .multipliers
            .iter()
            .zip(&before)
            .map(|(a, b)| (a - b).abs())
            .sum();
        change = if size > 0.0 { moved / size } else { 0.0 };
        if !change.is_finite() {
            return Err(Error::Diverged {
                step: cycles,
                problem: "the matrix is not finite".into(),
            });
        }
        let is_enough = run.tell(&Progress {
            step: cycles,
            steps: settings.cycles,
            loss: change,
            ranking: None,
            speed: cycles as f64 / began.elapsed().as_secs_f64().max(1e-9),
            validation: None,
        });
        if is_enough {
            break;
        }
    }
    run.facts.insert("cycles".into(), cycles as f64);
    run.facts.insert("change".into(), change);
    Ok(matrix)
}

/// One projection: moves the pair's multiplier and bound and gives the factor of the update.
fn project(dual: &mut Dual, number: usize, similar: bool, distance: f64, gamma: f64) -> f64 {
    let (multiplier, bound) = (&mut dual.multipliers[number], &mut dual.bounds[number]);
    let share = gamma / (gamma + 1.0);
    let sign = if similar { 1.0 } else { -1.0 };
    let alpha = multiplier.min(sign * share * (1.0 / distance - 1.0 / *bound));
    *multiplier -= alpha;
    *bound = 1.0 / (1.0 / *bound + sign * alpha / gamma);
    sign * alpha / (1.0 - sign * alpha * distance)
}

/// One look at every pair in a random order: the LogDet-nearest matrix that lessens the squared error of
/// the pair's distance, where it is on the wrong side of its bound.
fn online(
    settings: &Itml,
    pairs: &Constraints,
    (near, far): (f64, f64),
    mut matrix: Mat<f64>,
    run: &Run<'_>,
) -> Result<Mat<f64>> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    Stream::new(run.seed, "itml order", 0).shuffle(&mut order);
    let mut product = Vec::new();
    for number in order {
        run.check_stop()?;
        let distance = mapped(&matrix, pairs.differences.row(number), &mut product);
        let wanted = if pairs.similar[number] { near } else { far };
        if pairs.similar[number] == (distance <= wanted) {
            continue;
        }
        // The distance that it will have: eq. 4.4 of the paper.
        let middle = settings.rate * wanted * distance - 1.0;
        let root = (middle * middle + 4.0 * settings.rate * distance * distance).sqrt();
        let reached = (middle + root) / (2.0 * settings.rate * distance);
        let pull = settings.rate * (reached - wanted);
        update(&mut matrix, &product, -pull / (1.0 + pull * distance));
    }
    Ok(matrix)
}

#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod tests;
