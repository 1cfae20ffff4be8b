//! SLR: similarity learning by regression. Qian, Baytas, Jin, Jain & Zhu, "Similarity Learning via
//! Adaptive Regression and Its Application to Image Retrieval", AAAI; equation and algorithm
//! numbers are the paper's.
//!
//! A bilinear similarity xᵀMy is fitted to a target Y over all pairs at once. The fixed target of
//! eq. 2 has a closed form; the adaptive one of Alg. 1 is clipped from the current similarities, so
//! that only pairs on the wrong side of their threshold pull, which is the squared hinge loss of
//! eq. 4 minimised by regressions.
//!
//! Departs from the paper: the Gram matrix, singular on real data, gets a ridge or is truncated;
//! rows are centred and a constant is appended (without it the adaptive target hardly gains); a
//! fixed target is summed over classes, X̃ᵀYX̃ = Σ_c s_c s_cᵀ, in O(n·d²) and never n²; the best
//! similarity of a given rank for it is a truncated singular value decomposition, from which the
//! adaptive target starts (`start=identity` is that of Alg. 1 and 2, `start=subset` that of Alg. 3, read as
//! L and R of sampled rows); the adaptive target
//! is exact and blockwise (`blockwise`); eq. 5 has B = Xᵀ, Alg. 2 returns M_T, and column sampling
//! has no guarantee from Lemma 1, which needs more columns than rows.

mod adapter;
mod blockwise;
pub(crate) mod distributed;
mod factors;
mod search;
mod side;
mod sketch;
mod target;
#[cfg(test)]
mod tests;

pub use adapter::SlrAdapter;
pub use search::Ridges;
pub use side::Inversion;
pub use sketch::Compression;

use crate::data::{Keys, RowId};
use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::model::{Map, Space};
use crate::random::Stream;
use crate::supervision::{Supervision, SupervisionKind};
use crate::training::parameters::{Bound, Choice, parameters, require, require_rank};
use crate::training::{Method, Run, TwoModels};
use crate::{Error, Result};
use blockwise::clipped_product;
use distributed::clipped_sums;
use factors::Factors;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use search::{Path, search};
use side::{Inverse, Side};
use sketch::{Draw, Sketch};
use target::{Target, Thresholds};

/// Regression target: fixed (1 for relevant pairs, 0 for others) or adaptive (clipped at the
/// thresholds).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Targets {
    /// 1 for relevant pairs and 0 for others, eq. 2.
    Fixed,
    /// The current similarity where it is on its side of the threshold, Alg. 1.
    Adaptive,
}

impl Choice for Targets {
    const ALL: &'static [(&'static str, Self)] =
        &[("fixed", Targets::Fixed), ("adaptive", Targets::Adaptive)];
}

/// The unknown of the adaptive target: factors (M = LRᵀ, Alg. 3) or whole (all of M, then truncated
/// to the rank; Alg. 1 and 2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// M = LRᵀ, one factor after the other: Alg. 3.
    Factors,
    /// All of M, cut down to the rank in the end: Alg. 1, and Alg. 2 when compressed.
    Whole,
}

impl Choice for Form {
    const ALL: &'static [(&'static str, Self)] =
        &[("factors", Form::Factors), ("whole", Form::Whole)];
}

/// Start of the adaptive target: regression (the best similarity for the fixed target), identity (Alg. 1 and 2)
/// or subset (Alg. 3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SimilarityStart {
    /// The best similarity of the rank for the fixed target.
    Regression,
    /// M = I: the inner product of the vectors, or its best approximation of the rank.
    Identity,
    /// Columns of L and R are rows drawn at random, scaled so that a drawn row is at similarity 1 with itself in
    /// the mean.
    Subset,
}

impl Choice for SimilarityStart {
    const ALL: &'static [(&'static str, Self)] = &[
        ("regression", SimilarityStart::Regression),
        ("identity", SimilarityStart::Identity),
        ("subset", SimilarityStart::Subset),
    ];
}

/// Whether queries and items share a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sides {
    /// One map where queries and items are one corpus, two otherwise.
    Auto,
    /// One: the positive semi-definite part of M.
    One,
    /// Two: M itself.
    Two,
}

impl Choice for Sides {
    const ALL: &'static [(&'static str, Self)] = &[
        ("auto", Sides::Auto),
        ("one", Sides::One),
        ("two", Sides::Two),
    ];
}

parameters! {
    /// Bilinear similarity by regression over all pairs. Learns from labels or relevance
    /// judgements, also between two corpora. A fixed target costs one pass in O(n·d²) and O(d³);
    /// the adaptive one O(n²·rank) an iteration (O(n²·d) with form=whole), for queries × items
    /// pairs; memory is O(n·rank + d²) beside the vectors, never n². Use it where classes are
    /// shared by training and use: it takes seconds and is mostly best by cosine. With fewer rows
    /// than dimensions prepare with pca first: it works on d × d matrices.
    pub struct Slr {
        /// Maximum dimension of a mapped vector; a fixed target of few classes gives less.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// What similarities are regressed to.
        target: Targets = Targets::Adaptive,
        /// The unknown of the adaptive target: factors (M = LRᵀ, Alg. 3) or whole (all of M, then
        /// truncated to the rank; Alg. 1 and 2).
        form: Form = Form::Factors,
        /// Where the adaptive target starts.
        start: SimilarityStart = SimilarityStart::Regression,
        /// Added to the eigenvalues of the Gram matrix, relative to their mean. Several are tried
        /// on the validation part in one fit, at the cost of one decomposition. Search .001 to 3.
        ridge: Ridges = Ridges::one(0.1),
        /// Inversion of the Gram matrix: ridge, or truncated (drop the eigenvalues below the
        /// ridge).
        inverse: Inversion = Inversion::Ridge,
        /// Maximum number of iterations of the adaptive target; the validation part may stop it
        /// earlier.
        iterations: u64 = 10,
        /// Similarity that relevant pairs should exceed, for the adaptive target.
        above: f64 = 1.0,
        /// Similarity that other pairs should stay below, for the adaptive target.
        below: f64 = 0.0,
        /// Scale the target of a relevant pair with its grade.
        grades: bool = true,
        /// Subtract the mean; set it to false for text embeddings, where it reduced quality.
        centre: bool = true,
        /// Append a constant to every vector.
        bias: bool = true,
        /// Maps: one (shared, for every score), two (separate for queries and items, by dot
        /// product, as in the paper) or auto.
        sides: Sides = Sides::Auto,
        /// Compression of rows: none, columns (random sample, SLR-C) or gaussian (random
        /// projection, SLR-G).
        compression: Compression = Compression::None,
        /// Number of rows (or dimensions) that compression keeps; 0 for as many as Theorem 1 asks for, with an
        /// error ε of 1/2 and probability 0.95 (at most all rows).
        samples: usize = 2000,
    }
}

impl Method for Slr {
    const NAME: &'static str = "slr";
    const SUMMARY: &'static str =
        "Bilinear similarity by least-squares regression onto the relevance of all pairs.";
    const NEEDS: &'static [SupervisionKind] = &[
        SupervisionKind::Labels,
        SupervisionKind::LabelSets,
        SupervisionKind::Judgements,
    ];
    const TWO_MODELS: TwoModels = TwoModels::MapEach;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("ridge", &["0.01", "0.1", "1"])];
    // Sec. Experiments, and Alg. 3, which has no ridge, no mean and no constant.
    const PAPER: &'static [(&'static str, &'static str)] = &[
        ("rank", "100"),
        ("target", "adaptive"),
        ("iterations", "10"),
        ("start", "subset"),
        ("above", "1"),
        ("below", "0"),
        ("inverse", "truncated"),
        ("ridge", "0.000001"),
        ("centre", "false"),
        ("bias", "false"),
        ("sides", "two"),
    ];

    fn check(&self) -> Result<()> {
        self.ridge.check()?;
        let expected = format!("above {} (below)", self.below);
        require(self.above > self.below, "above", &expected, self.above)?;
        Ok(())
    }

    fn spaces(&self) -> &'static [Space] {
        match self.sides {
            // Two maps share no origin: distances between their results mean nothing.
            Sides::Two => &[Space::InnerProduct, Space::Cosine],
            // The inner product is what was regressed, so it comes first.
            Sides::Auto | Sides::One => &[Space::InnerProduct, Space::Cosine, Space::SquaredL2],
        }
    }

    fn runs_by_passes(&self) -> bool {
        let exact = self.compression == Compression::None && self.form == Form::Factors;
        self.target == Targets::Fixed || exact
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        require_rank(settings.rank, data.dim().min(data.queries().dim()))?;
        data.relevance("slr")?;
        if settings.start == SimilarityStart::Identity && data.queries().dim() != data.dim() {
            let expected = "regression or subset where queries have another dimension than items";
            return Err(Error::parameter("start", expected, "identity"));
        }
        let within = data.supervision().within();
        if settings.sides == Sides::One && !within {
            return Err(Error::parameter(
                "sides",
                "auto or two where queries and items are two corpora",
                "one",
            ));
        }
        let target = Target::new(data.supervision(), settings.grades)?;
        let left = Side::new(data.queries(), settings.centre, settings.bias)?;
        let other = if within {
            None
        } else {
            let items = data.items();
            Some(Side::new(items, settings.centre, settings.bias)?)
        };
        let right = other.as_ref().unwrap_or(&left);
        let iterations = match settings.target {
            Targets::Fixed => 0,
            Targets::Adaptive => settings.iterations,
        };
        let transposed = match (settings.form, iterations) {
            (Form::Factors, 1..) => Some(target.transposed()),
            _ => None,
        };
        let regression = Regression {
            settings,
            sums: Sums::new(data.supervision(), &left, right, &target)?,
            one: settings.sides == Sides::One || (settings.sides == Sides::Auto && within),
            left: &left,
            right,
            target,
            transposed,
            seed: run.seed,
        };
        if settings.compression != Compression::None {
            run.facts
                .insert("samples".into(), regression.samples(&left) as f64);
        }
        let map = search(&regression, &settings.ridge, iterations, run)?;
        let rank = map.output_dim(data.dim());
        run.facts.insert("rank".into(), rank as f64);
        Ok(map)
    }
}

/// X̃ᵀYX̃ of the fixed target.
enum Sums {
    /// S with X̃ᵀYX̃ = SSᵀ: one sum a class.
    Classes(Mat<f64>),
    /// The matrix itself.
    Dense(Mat<f64>),
}

impl Sums {
    fn new(
        supervision: &Supervision,
        left: &Side<'_>,
        right: &Side<'_>,
        target: &Target,
    ) -> Result<Self> {
        match supervision.as_labels() {
            Some(labels) => Ok(Sums::Classes(
                left.sums(Keys::Class(labels.of()), labels.classes())?,
            )),
            None => Ok(Sums::Dense(sparse_sums(left, right, target)?)),
        }
    }
}

/// X̃_Lᵀ Y X̃_R of a sparse target, from the sum of the relevant columns of every row.
fn sparse_sums(left: &Side<'_>, right: &Side<'_>, target: &Target) -> Result<Mat<f64>> {
    let mut total = Mat::zeros(left.width(), right.width());
    let mut gathered = RowBuf::empty(1);
    let corpus = left.corpus();
    corpus.scan(0..corpus.len(), &mut |first, rows| {
        let mut sums = Mat::<f64>::zeros(rows.len(), right.width());
        for row in 0..rows.len() {
            let (relevant, grades) = target.relevant(first as usize + row);
            let ids: Vec<RowId> = relevant.iter().map(|c| RowId::from(*c)).collect();
            right.corpus().gather(&ids, &mut gathered)?;
            let prepared = right.prepared(gathered.rows());
            for column in 0..right.width() {
                let values = prepared.col_as_slice(column).iter().enumerate();
                sums[(row, column)] = values
                    .map(|(place, value)| grades.map_or(1.0, |g| f64::from(g[place])) * value)
                    .sum();
            }
        }
        let prepared = left.prepared(rows);
        let (a, b) = (prepared.transpose(), sums.as_ref());
        matmul(total.as_mut(), Accum::Add, a, b, 1.0, Par::Seq);
        Ok(())
    })?;
    Ok(total)
}

/// The problem with everything that does not depend on the ridge.
struct Regression<'a> {
    settings: &'a Slr,
    left: &'a Side<'a>,
    right: &'a Side<'a>,
    target: Target,
    /// The target with rows and columns swapped, where the right factor is solved for.
    transposed: Option<Target>,
    sums: Sums,
    one: bool,
    seed: u64,
}

impl Regression<'_> {
    fn inverses(&self, ridge: f64) -> (Inverse<'_>, Inverse<'_>) {
        let (of_left, of_right) = (self.left.ridge(ridge), self.right.ridge(ridge));
        let inversion = self.settings.inverse;
        (
            Inverse::new(self.left.eigen(), of_left, inversion),
            Inverse::new(self.right.eigen(), of_right, inversion),
        )
    }

    /// N = P^(1/2) X̃ᵀYX̃ P^(1/2) of a dense sum.
    fn whitened(sums: &Mat<f64>, left: &Inverse<'_>, right: &Inverse<'_>) -> Mat<f64> {
        let half = left.whiten(sums.as_ref());
        right.whiten(half.transpose()).transpose().to_owned()
    }

    fn thresholds(&self) -> Thresholds {
        Thresholds {
            above: self.settings.above as f32,
            below: self.settings.below as f32,
        }
    }

    /// Rows or dimensions that compression keeps of a side.
    fn samples(&self, side: &Side<'_>) -> usize {
        match self.settings.samples {
            0 => sketch::sufficient_samples(side.eigen().numerical_rank()).min(side.len() as usize),
            samples => samples,
        }
    }

    fn draw(&self, side: &Side<'_>, seed: u64, counter: u64) -> Draw {
        Draw {
            compression: self.settings.compression,
            samples: self.samples(side),
            seed,
            counter,
        }
    }

    /// M = I in whitened coordinates, P^(-1/2) M P^(-1/2); the appended constant has no part in it.
    fn identity(&self, left: &Inverse<'_>, right: &Inverse<'_>) -> Mat<f64> {
        let dim = self.left.corpus().dim();
        let of = |side: &Side<'_>, other: &Side<'_>| {
            Mat::from_fn(side.width(), other.width(), |i, j| {
                f64::from(u8::from(i == j && i < dim))
            })
        };
        let half = right.coordinates(of(self.right, self.left).as_ref());
        left.coordinates(half.transpose())
    }

    /// Rows of a side drawn at random, in whitened coordinates.
    fn subset(&self, side: &Side<'_>, inverse: &Inverse<'_>) -> Result<Mat<f64>> {
        let mut random = Stream::new(self.seed, "slr subset", 0);
        let rows = random.choose(side.len(), self.settings.rank);
        let mut gathered = RowBuf::empty(1);
        side.corpus().gather(&rows, &mut gathered)?;
        let prepared = side.prepared(gathered.rows());
        let similar = side::product(prepared.as_ref(), prepared.transpose());
        let scale = similar.norm_l2() / (rows.len() as f64).sqrt();
        let factor = faer::Scale(1.0 / scale.max(f64::MIN_POSITIVE)) * prepared.transpose();
        Ok(inverse.coordinates(factor.as_ref()))
    }

    /// Solve for the left factor with the right one held (step 6 of Alg. 3).
    fn solve_left(
        &self,
        factors: &mut Factors,
        (left, left_inverse): (&Side<'_>, &Inverse<'_>),
        (right, right_inverse): (&Side<'_>, &Inverse<'_>),
        target: &Target,
        ridge: f64,
        draw: Draw,
    ) -> Result<f64> {
        factors.orthonormal_right();
        let Some(held) = &factors.right else {
            return Err(Error::Data(
                "expected factors, but found the whole M".into(),
            ));
        };
        if let (true, Some(classes)) = (
            left.corpus().pass_executor().is_some(),
            target.row_classes(),
        ) {
            let of_left = left_inverse.factor(factors.left.as_ref());
            let of_right = right_inverse.factor(held.as_ref());
            let maps = (of_left.as_ref(), of_right.as_ref());
            let (sums, loss) = clipped_sums(left, classes, maps, self.thresholds())?;
            factors.left = left_inverse.whiten(sums.as_ref());
            return Ok(loss);
        }
        let rule = (left.ridge(ridge), self.settings.inverse);
        let sketch = Sketch::new(left, left_inverse, rule, draw)?;
        let factor = left_inverse.factor(factors.left.as_ref());
        let z_left = left.embed(factor.as_ref(), sketch.rows())?;
        let factor = right_inverse.factor(held.as_ref());
        let z_right = right.embed(factor.as_ref(), None)?;
        let (a, b) = (z_left.rows(), z_right.rows());
        let mut out = RowBuf::empty(1);
        let loss = match sketch.rows() {
            None => clipped_product(a, b, b, target, self.thresholds(), &mut out)?,
            Some(rows) => {
                let part = target.select(Some(rows), None);
                clipped_product(a, b, b, &part, self.thresholds(), &mut out)?
            }
        };
        factors.left = sketch.solve(out.rows())?;
        Ok(loss)
    }

    /// Solve for all of M (step 6 of Alg. 1, step 7 of Alg. 2).
    fn solve_whole(
        &self,
        factors: &mut Factors,
        (left_inverse, right_inverse): (&Inverse<'_>, &Inverse<'_>),
        ridge: f64,
        (draw, other_draw): (Draw, Draw),
    ) -> Result<f64> {
        let inversion = self.settings.inverse;
        let rule = (self.left.ridge(ridge), inversion);
        let sketch = Sketch::new(self.left, left_inverse, rule, draw)?;
        let rule = (self.right.ridge(ridge), inversion);
        let other = Sketch::new(self.right, right_inverse, rule, other_draw)?;
        let factor = left_inverse.factor(factors.left.as_ref());
        let z_left = self.left.embed(factor.as_ref(), sketch.rows())?;
        let fold = other.fold()?;
        let exact = draw.compression == Compression::None;
        let similar = if exact {
            // The whitened rows serve twice.
            None
        } else {
            let width = self.right.width();
            let factor = right_inverse.factor(Mat::identity(width, width).as_ref());
            Some(self.right.embed(factor.as_ref(), other.rows())?)
        };
        let z_right = similar.as_ref().unwrap_or(&fold);
        let part = (!exact).then(|| self.target.select(sketch.rows(), other.rows()));
        let mut out = RowBuf::empty(1);
        let loss = clipped_product(
            z_left.rows(),
            z_right.rows(),
            fold.rows(),
            part.as_ref().unwrap_or(&self.target),
            self.thresholds(),
            &mut out,
        )?;
        factors.left = sketch.solve(out.rows())?;
        Ok(loss)
    }
}

impl Path for Regression<'_> {
    type State = Factors;

    fn begin(&self, ridge: f64) -> Result<Factors> {
        let (left, right) = self.inverses(ridge);
        let rank = self.settings.rank;
        let adaptive = self.settings.target == Targets::Adaptive;
        let whole = adaptive && self.settings.form == Form::Whole;
        let start = match adaptive {
            true => self.settings.start,
            false => SimilarityStart::Regression,
        };
        match start {
            SimilarityStart::Regression => {}
            SimilarityStart::Identity => {
                let identity = self.identity(&left, &right);
                return match whole {
                    true => Ok(Factors::whole(identity)),
                    false => Ok(Factors::of(identity.as_ref(), rank)?.widened(rank)),
                };
            }
            SimilarityStart::Subset => {
                let (l, r) = (
                    self.subset(self.left, &left)?,
                    self.subset(self.right, &right)?,
                );
                return Ok(match whole {
                    true => Factors::whole(side::product(l.as_ref(), r.transpose())),
                    false => Factors {
                        left: l,
                        right: Some(r),
                    }
                    .widened(rank),
                });
            }
        }
        if whole {
            let whole = match &self.sums {
                Sums::Classes(sums) => {
                    let root = left.whiten(sums.as_ref());
                    side::product(root.as_ref(), root.transpose())
                }
                Sums::Dense(sums) => Self::whitened(sums, &left, &right),
            };
            return Ok(Factors::whole(whole));
        }
        let best = match &self.sums {
            Sums::Classes(sums) => Factors::of_square(left.whiten(sums.as_ref()).as_ref(), rank)?,
            Sums::Dense(sums) => Factors::of(Self::whitened(sums, &left, &right).as_ref(), rank)?,
        };
        Ok(if adaptive { best.widened(rank) } else { best })
    }

    fn advance(&self, ridge: f64, factors: &mut Factors, iteration: u64, seed: u64) -> Result<f64> {
        let (left, right) = self.inverses(ridge);
        let draws = (
            self.draw(self.left, seed, 2 * iteration),
            self.draw(self.right, seed, 2 * iteration + 1),
        );
        let pairs = (self.left.len() * self.right.len()) as f64;
        let Some(transposed) = &self.transposed else {
            let loss = self.solve_whole(factors, (&left, &right), ridge, draws)?;
            return Ok(loss / pairs);
        };
        let (a, b) = ((self.left, &left), (self.right, &right));
        self.solve_left(factors, a, b, &self.target, ridge, draws.0)?;
        factors.swap();
        let loss = self.solve_left(factors, b, a, transposed, ridge, draws.1)?;
        factors.swap();
        Ok(loss / pairs)
    }

    fn map(&self, ridge: f64, factors: &Factors) -> Result<Map> {
        let (left, right) = self.inverses(ridge);
        let rank = self.settings.rank;
        if self.one {
            let whitened = factors.symmetric(rank)?;
            let factor = left.factor(whitened.as_ref());
            return Ok(Map::LowRank(self.left.map(factor.as_ref())?));
        }
        let (query, item) = factors.balanced(rank)?;
        Ok(Map::Bilinear {
            query: self.left.map(left.factor(query.as_ref()).as_ref())?,
            item: self.right.map(right.factor(item.as_ref()).as_ref())?,
        })
    }
}
