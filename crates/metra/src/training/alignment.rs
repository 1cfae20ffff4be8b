//! A linear map from one embedding space into another, fitted to vectors of the same things in both.
//!
//! Which form (ridge regression, or a rotation: Schönemann 1966) serves best is settled on pairs that were not learned from, by how well
//! mapped vectors find their own true ones: an error of squares or a cosine would not see what a ranking sees.

use super::paired_moments::PairedMoments;
use crate::data::{BorrowedCorpus, Corpus, ElementMap, MemoryCorpus};
use crate::linalg::{Eigen, RowBuf, Symmetric, accumulate_product, product, rows_from};
use crate::model::{Chain, Embedding, LowRank, Map, Side, Space, Step, for_each_embedded};
use crate::random::{Stream, dealt};
use crate::search::top_k;
use crate::{Error, Result};
use faer::Mat;
use serde::Serialize;
use std::fmt;

/// Parts of the pairs, each of which is mapped by what was learned from the others.
const FOLDS: usize = 5;
/// Fewer pairs than this settle nothing.
const FEWEST_PAIRS: u64 = 50;
/// Pairs by which the form is chosen, where there are so many; more would take time and change nothing.
const TESTED_PAIRS: usize = 1000;
/// A square matrix of more has half a gigabyte.
const MOST_DIMENSIONS: usize = 8192;
/// Ridges that are tried, relative to the mean variance of a column.
const RIDGES: [f64; 4] = [0.001, 0.01, 0.1, 1.0];

/// How the map is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlignmentForm {
    /// Least squares with a ridge, relative to the mean variance of a column.
    Ridge(f64),
    /// The nearest rotation (orthogonal Procrustes): lengths and angles stay.
    Rotation,
}

impl fmt::Display for AlignmentForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AlignmentForm::Ridge(ridge) => write!(f, "ridge regression ({ridge})"),
            AlignmentForm::Rotation => f.write_str("rotation"),
        }
    }
}

/// A map that was fitted to all pairs, and to all but each fold of them.
pub struct Alignment {
    /// Of all pairs.
    pub whole: Chain,
    /// Which form it has.
    pub form: AlignmentForm,
    /// How well mapped rows find their own true vectors among those of a fifth of the rows, by a map that was not learned from them:
    /// the mean of one over the place, 0 behind the tenth.
    pub reciprocal_rank: f64,
    /// Every row mapped by what was learned from other rows.
    pub mapped: RowBuf,
}

impl Alignment {
    /// Fit a map to row pairs, as they are compared in `space`: where that is the cosine, vectors count by their direction alone.
    pub fn new(from: &dyn Corpus, to: &dyn Corpus, space: Space, seed: u64) -> Result<Self> {
        if from.len() != to.len() {
            return Err(Error::shape("rows in both spaces", from.len(), to.len()));
        }
        if from.len() < FEWEST_PAIRS {
            let expected = format!("at least {FEWEST_PAIRS}");
            return Err(Error::shape("rows in both spaces", expected, from.len()));
        }
        let widest = from.dim().max(to.dim());
        if widest > MOST_DIMENSIONS {
            let expected = format!("at most {MOST_DIMENSIONS} for a map between spaces");
            return Err(Error::shape("dimension of the vectors", expected, widest));
        }
        let pairs = Pairs::new(from, to, space)?;
        let fold_of = Stream::new(seed, "alignment folds", 0).deal(pairs.from.len(), FOLDS);
        let folds: Vec<Vec<usize>> = (0..FOLDS).map(|fold| dealt(&fold_of, fold, true)).collect();
        let mut all = PairSums::zeros(from.dim(), to.dim());
        folds
            .iter()
            .for_each(|fold| all.add(&pairs.sums(fold), 1.0));
        let check = || from.check_stop();
        let form = best_form(&pairs, &folds, &all, &check)?;
        let mut mapped = RowBuf::zeros(pairs.from.len(), to.dim());
        let mut reciprocal_ranks = 0.0;
        for fold in &folds {
            let map = pairs.fit_without(&all, fold)?.map(form, &check)?;
            let found = applied(&map, &pairs.from, fold)?;
            reciprocal_ranks += pairs.reciprocal_ranks(&found, fold)?;
            for (place, row) in fold.iter().enumerate() {
                mapped.row_mut(*row).copy_from_slice(found.row(place));
            }
        }
        let steps = match space {
            Space::Cosine => vec![Step::Element(ElementMap::Normalise)],
            _ => Vec::new(),
        };
        let map = Map::LowRank(Fit::new(&all, &pairs.means)?.map(form, &check)?);
        Ok(Alignment {
            whole: Chain::new(from.dim(), steps, map, space)?,
            form,
            reciprocal_rank: reciprocal_ranks / from.len() as f64,
            mapped,
        })
    }

    /// Rows that were not learned from, mapped by what was learned from all pairs.
    pub fn map(&self, rows: &dyn Corpus) -> Result<MemoryCorpus> {
        let mut mapped = RowBuf::empty(self.whole.output_dim());
        for_each_embedded(&self.whole, Side::Query, rows, None, &mut |part| {
            mapped.extend(part.rows());
            Ok(())
        })?;
        MemoryCorpus::new(mapped)
    }
}

/// The same rows in two spaces.
struct Pairs {
    from: RowBuf,
    to: RowBuf,
    /// Of both.
    means: [Vec<f64>; 2],
    space: Space,
}

impl Pairs {
    fn new(from: &dyn Corpus, to: &dyn Corpus, space: Space) -> Result<Self> {
        let (from, to) = (prepared(from, space)?, prepared(to, space)?);
        Ok(Pairs {
            means: [from.rows().mean(), to.rows().mean()],
            from,
            to,
            space,
        })
    }

    fn sums(&self, rows: &[usize]) -> PairSums {
        let [from, to] = &self.means;
        let mut sums = PairSums::zeros(from.len(), to.len());
        for block in rows.chunks(BLOCK) {
            let centred = |all: &RowBuf, mean: &[f64], sum: &mut [f64]| {
                Mat::from_fn(block.len(), mean.len(), |row, column| {
                    let value = f64::from(all.row(block[row])[column]) - mean[column];
                    sum[column] += value;
                    value
                })
            };
            let x = centred(&self.from, from, &mut sums.from);
            let y = centred(&self.to, to, &mut sums.to);
            sums.count += block.len() as f64;
            accumulate_product(x.as_ref(), x.as_ref(), sums.within.as_mut());
            accumulate_product(x.as_ref(), y.as_ref(), sums.between.as_mut());
        }
        sums
    }

    fn fit_without(&self, all: &PairSums, fold: &[usize]) -> Result<Fit> {
        let mut rest = all.clone();
        rest.add(&self.sums(fold), -1.0);
        Fit::new(&rest, &self.means)
    }

    /// Of every mapped row of a fold: one over the place of its own true vector among the fold's, 0 behind the tenth; summed.
    fn reciprocal_ranks(&self, mapped: &RowBuf, fold: &[usize]) -> Result<f64> {
        let truth = chosen(&self.to, fold);
        let (asked, truth) = (
            BorrowedCorpus::new(mapped.rows())?,
            BorrowedCorpus::new(truth.rows())?,
        );
        let found = top_k(self.space, &asked, &truth, 10, false)?;
        let of = |row: usize| {
            let own = found.ids_of(row).iter().position(|id| *id == row as u64);
            own.map_or(0.0, |place| 1.0 / (place + 1) as f64)
        };
        Ok((0..fold.len()).map(of).sum())
    }
}

fn prepared(corpus: &dyn Corpus, space: Space) -> Result<RowBuf> {
    let mut all = RowBuf::empty(corpus.dim());
    corpus.scan(0..corpus.len(), &mut |_, rows| {
        all.extend(rows);
        Ok(())
    })?;
    if space == Space::Cosine {
        let normalised = ElementMap::Normalise.apply(0, &mut all);
        normalised.map_err(|e| e.renumbered(|row| corpus.origin(row)))?;
    }
    Ok(all)
}

/// An error where somebody asked to stop.
pub(crate) type Check<'a> = &'a dyn Fn() -> Result<()>;

/// Sums over pairs, about the means of all of them: about 0 they would cancel where the data lies far from the origin.
#[derive(Clone)]
struct PairSums {
    count: f64,
    from: Vec<f64>,
    to: Vec<f64>,
    within: Mat<f64>,
    between: Mat<f64>,
}

/// Rows that are summed at once.
const BLOCK: usize = 512;

impl PairSums {
    fn zeros(from: usize, to: usize) -> Self {
        PairSums {
            count: 0.0,
            from: vec![0.0; from],
            to: vec![0.0; to],
            within: Mat::zeros(from, from),
            between: Mat::zeros(from, to),
        }
    }

    fn add(&mut self, other: &PairSums, factor: f64) {
        let add = |own: &mut [f64], other: &[f64]| {
            own.iter_mut()
                .zip(other)
                .for_each(|(own, other)| *own += factor * other);
        };
        self.count += factor * other.count;
        add(&mut self.from, &other.from);
        add(&mut self.to, &other.to);
        self.within += factor * &other.within;
        self.between += factor * &other.between;
    }
}

/// Axes of what is mapped, and its covariance with the targets along them.
struct Axes {
    eigen: Eigen,
    turned: Mat<f64>,
}

/// What maps of every form are made of.
pub(crate) struct Fit {
    from_mean: Vec<f64>,
    to_mean: Vec<f64>,
    /// Covariance of what is mapped.
    within: Symmetric,
    /// Its mean variance of a column.
    scale: f64,
    /// Covariance with the targets.
    between: Mat<f64>,
}

impl Fit {
    fn new(sums: &PairSums, [from, to]: &[Vec<f64>; 2]) -> Result<Self> {
        let of = |sum: &[f64]| -> Vec<f64> { sum.iter().map(|sum| sum / sums.count).collect() };
        let (x, y) = (of(&sums.from), of(&sums.to));
        let within = Mat::from_fn(x.len(), x.len(), |a, b| {
            sums.within[(a, b)] / sums.count - x[a] * x[b]
        });
        let between = Mat::from_fn(x.len(), y.len(), |a, b| {
            sums.between[(a, b)] / sums.count - x[a] * y[b]
        });
        let within = Symmetric::new(within)?;
        let moved = |mean: &[f64], by: &[f64]| mean.iter().zip(by).map(|(m, b)| m + b).collect();
        Fit::of_covariances(moved(from, &x), moved(to, &y), within, between)
    }

    /// Of queries and the items that are relevant to them.
    pub(crate) fn of_pairs(found: PairedMoments) -> Result<Self> {
        let PairedMoments {
            queries,
            items,
            between,
        } = found;
        Fit::of_covariances(queries.mean, items.mean, queries.covariance, between)
    }

    fn of_covariances(
        from_mean: Vec<f64>,
        to_mean: Vec<f64>,
        within: Symmetric,
        between: Mat<f64>,
    ) -> Result<Self> {
        let scale = within.trace() / from_mean.len() as f64;
        // The comparison is false where it is not a number, too.
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(Error::Data(
                "the vectors to map are all equal, or not finite: nothing can be learned from them"
                    .into(),
            ));
        }
        Ok(Fit {
            from_mean,
            to_mean,
            within,
            scale,
            between,
        })
    }

    /// The map of this form.
    pub(crate) fn map(&self, form: AlignmentForm, check: Check<'_>) -> Result<LowRank> {
        match form {
            AlignmentForm::Ridge(ridge) => self.regression(&self.axes(check)?, ridge),
            AlignmentForm::Rotation => self.rotation(),
        }
    }

    /// What takes longest of a regression, and serves every ridge.
    fn axes(&self, check: Check<'_>) -> Result<Axes> {
        let eigen = self.within.eigen_until(check)?;
        let turned = product(eigen.vectors.transpose(), self.between.as_ref());
        Ok(Axes { eigen, turned })
    }

    fn regression(&self, axes: &Axes, ridge: f64) -> Result<LowRank> {
        let Axes { eigen, turned } = axes;
        let scaled = Mat::from_fn(turned.nrows(), turned.ncols(), |row, column| {
            turned[(row, column)] / (eigen.values[row].max(0.0) + ridge * self.scale)
        });
        self.centred(&product(eigen.vectors.as_ref(), scaled.as_ref()))
    }

    /// With the factor that serves least squares best, so that lengths are those of the targets.
    fn rotation(&self) -> Result<LowRank> {
        let svd = self
            .between
            .thin_svd()
            .map_err(|_| Error::Data("no rotation was found: are all values finite?".into()))?;
        let shared: f64 = svd.S().column_vector().iter().sum();
        let factor = shared / self.within.trace();
        if factor <= 0.0 {
            return Err(Error::Data(
                "the two spaces have nothing in common: a rotation cannot be fitted".into(),
            ));
        }
        let turn = product(svd.U(), svd.V().transpose());
        self.centred(&Mat::from_fn(turn.nrows(), turn.ncols(), |row, column| {
            factor * turn[(row, column)]
        }))
    }

    /// x ↦ W (x − mean of x) + mean of y, where the matrix is Wᵀ.
    fn centred(&self, transposed: &Mat<f64>) -> Result<LowRank> {
        let weights = rows_from(transposed.transpose());
        let offset = |(row, to): (usize, &f64)| {
            let own = weights.row(row).iter().zip(&self.from_mean);
            (own.map(|(w, m)| f64::from(*w) * m).sum::<f64>() - to) as f32
        };
        let offset = self.to_mean.iter().enumerate().map(offset).collect();
        LowRank::new(weights, Some(offset))
    }
}

/// The form by which rows that were not learned from find their own true vectors best.
fn best_form(
    pairs: &Pairs,
    folds: &[Vec<usize>],
    all: &PairSums,
    check: Check<'_>,
) -> Result<AlignmentForm> {
    let mut totals: Vec<(AlignmentForm, f64)> = (RIDGES.map(AlignmentForm::Ridge).into_iter())
        .chain([AlignmentForm::Rotation])
        .map(|form| (form, 0.0))
        .collect();
    let mut tested = 0;
    for fold in folds {
        if tested >= TESTED_PAIRS {
            break;
        }
        tested += fold.len();
        let fit = pairs.fit_without(all, fold)?;
        let axes = fit.axes(check)?;
        for (form, total) in &mut totals {
            check()?;
            let map = match form {
                AlignmentForm::Ridge(ridge) => fit.regression(&axes, *ridge)?,
                AlignmentForm::Rotation => fit.rotation()?,
            };
            *total += pairs.reciprocal_ranks(&applied(&map, &pairs.from, fold)?, fold)?;
        }
    }
    // The first of equal ones.
    let best = totals.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1));
    best.map(|(form, _)| form)
        .ok_or_else(|| Error::shape("rows in both spaces", "at least 1", 0))
}

fn chosen(rows: &RowBuf, wanted: &[usize]) -> RowBuf {
    let mut chosen = RowBuf::zeros(wanted.len(), rows.dim());
    for (place, row) in wanted.iter().enumerate() {
        chosen.row_mut(place).copy_from_slice(rows.row(*row));
    }
    chosen
}

fn applied(map: &LowRank, rows: &RowBuf, wanted: &[usize]) -> Result<RowBuf> {
    let mut mapped = RowBuf::empty(map.output_dim());
    map.apply(chosen(rows, wanted).rows(), &mut mapped)?;
    Ok(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of normal values, and what a map makes of them, with noise.
    fn drawn(rows: usize, map: &[[f64; 3]; 2], noise: f64) -> (MemoryCorpus, MemoryCorpus) {
        let mut stream = Stream::new(4, "alignment test", 0);
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let row: [f64; 3] = std::array::from_fn(|_| stream.normal() + 5.0);
            for weights in map {
                let sum: f64 = weights.iter().zip(&row).map(|(w, x)| w * x).sum();
                to.push((sum - 7.0 + noise * stream.normal()) as f32);
            }
            from.extend(row.map(|value| value as f32));
        }
        let corpus = |values, dim| MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap());
        (corpus(from, 3).unwrap(), corpus(to, 2).unwrap())
    }

    const MAP: [[f64; 3]; 2] = [[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]];

    #[test]
    fn a_linear_map_is_found() {
        let (from, to) = drawn(400, &MAP, 0.0);
        let found = Alignment::new(&from, &to, Space::SquaredL2, 1).unwrap();
        assert_eq!(found.form, AlignmentForm::Ridge(0.001));
        assert!(found.reciprocal_rank > 0.95, "{}", found.reciprocal_rank);
        let mapped = found.map(&from).unwrap();
        for row in 0..400 {
            for (of_others, rows) in [(true, found.mapped.rows()), (false, mapped.rows())] {
                for (mapped, expected) in rows.row(row).iter().zip(to.rows().row(row)) {
                    assert!((mapped - expected).abs() < 0.05, "{of_others} {row}");
                }
            }
        }
    }

    #[test]
    fn a_rotation_keeps_the_lengths_of_the_targets() {
        let mut stream = Stream::new(2, "alignment rotation", 0);
        let (dim, rows) = (6, 60);
        let values: Vec<f32> = (0..rows * dim).map(|_| stream.normal() as f32).collect();
        let from = RowBuf::from_values(values, dim).unwrap();
        let mut to = RowBuf::zeros(rows, dim);
        for row in 0..rows {
            for column in 0..dim {
                to.row_mut(row)[column] = 10.0 * from.row(row)[(column + 5) % dim] + 3.0;
            }
        }
        let corpus = |rows: &RowBuf| MemoryCorpus::new(rows.clone()).unwrap();
        let pairs = Pairs::new(&corpus(&from), &corpus(&to), Space::SquaredL2).unwrap();
        let all: Vec<usize> = (0..rows).collect();
        let rotation = Fit::new(&pairs.sums(&all), &pairs.means)
            .unwrap()
            .rotation();
        let mapped = applied(&rotation.unwrap(), &from, &all).unwrap();
        for (mapped, expected) in mapped.values().iter().zip(to.values()) {
            assert!((mapped - expected).abs() < 1e-3, "{mapped} {expected}");
        }
        assert_eq!(pairs.reciprocal_ranks(&mapped, &all).unwrap(), rows as f64);
    }

    #[test]
    fn no_row_is_mapped_by_what_it_taught() {
        let (from, to) = drawn(60, &MAP, 0.0);
        let before = Alignment::new(&from, &to, Space::SquaredL2, 1).unwrap();
        assert_eq!(before.form, AlignmentForm::Ridge(0.001));
        let mut moved = RowBuf::from_values(to.rows().values().to_vec(), 2).unwrap();
        // Not so far that another form would serve better.
        moved.row_mut(17)[0] += 2.0;
        let moved = MemoryCorpus::new(moved).unwrap();
        let after = Alignment::new(&from, &moved, Space::SquaredL2, 1).unwrap();
        assert_eq!(after.form, before.form);
        let change = |row: usize| -> f32 {
            let pairs = before.mapped.row(row).iter().zip(after.mapped.row(row));
            pairs.map(|(before, after)| (before - after).abs()).sum()
        };
        assert!(change(17) < 1e-3, "{}", change(17));
        assert!((0..60).map(change).sum::<f32>() > 0.1);
    }

    #[test]
    fn pairs_that_settle_nothing_are_errors() {
        let message = |from: &MemoryCorpus, to: &MemoryCorpus| {
            let found = Alignment::new(from, to, Space::SquaredL2, 1);
            found.err().unwrap().to_string()
        };
        let (from, to) = drawn(49, &MAP, 0.0);
        assert_eq!(
            message(&from, &to),
            "rows in both spaces: expected at least 50, but found 49"
        );
        let (longer, _) = drawn(60, &MAP, 0.0);
        assert!(message(&longer, &to).contains("expected 60, but found 49"));
        let equal = MemoryCorpus::new(RowBuf::from_values(vec![1.0; 180], 3).unwrap()).unwrap();
        let (_, to) = drawn(60, &MAP, 0.0);
        assert!(message(&equal, &to).contains("all equal"));
    }
}
