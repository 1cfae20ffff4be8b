//! The coordinates of iterative training (the input, exactly reduced ones, or those of a kernel),
//! with the scale of the data, the initial map and the way back.

use super::discriminant::discriminant;
use super::kernel::KernelAxes;
use super::paired_moments::PairedMoments;
use super::parameters::Choice;
use super::principal_axes::{PrincipalAxes, coordinates, principal_axes};
use super::run::Run;
use crate::data::{ColumnRange, Corpus, MemoryCorpus, RowId, Subset};
use crate::dataset::Dataset;
use crate::execute::{fetched, spread};
use crate::linalg::{Eigen, RowBuf, Symmetric, product, vectorized};
use crate::model::{Embedded, LowRank, Map};
use crate::random::Stream;
use crate::supervision::Relevance;
use crate::{Error, Result};
use faer::Mat;
use rayon::prelude::*;

/// Rows that means and starts are worked out from: a sample, so that their cost does not grow with
/// the corpus.
const SAMPLE_ROWS: usize = 1 << 16;
/// Pairs from which the scale of the data is estimated.
const SCALE_PAIRS: usize = 4096;
/// Ridge of the canonical directions that training starts from, relative to the mean variance of a column.
const START_RIDGE: f64 = 0.1;

/// Where training starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// The directions of largest variance.
    Pca,
    /// The discriminant directions; needs labels.
    Lda,
    /// Random directions.
    Random,
}

impl Choice for Start {
    const ALL: &'static [(&'static str, Self)] = &[
        ("pca", Start::Pca),
        ("lda", Start::Lda),
        ("random", Start::Random),
    ];
}

/// The coordinates in which training runs.
pub(crate) struct TrainingSpace<'a> {
    data: &'a Dataset<'a>,
    frame: Frame<'a>,
}

enum Frame<'a> {
    /// The vectors as they are; the mean is taken off when they are fetched.
    Plain { mean: Vec<f64> },
    /// Fewer rows than dimensions: all that there is lies in the span of the centred rows.
    Reduced {
        axes: PrincipalAxes,
        rows: MemoryCorpus,
    },
    /// Coordinates in the span of landmarks in a kernel's feature space.
    Kernel {
        axes: &'a KernelAxes,
        items: Embedded,
        queries: Option<Embedded>,
    },
}

impl<'a> TrainingSpace<'a> {
    /// As they are, or exactly reduced where that is smaller.
    pub(crate) fn new(data: &'a Dataset<'a>) -> Result<Self> {
        let items = data.items();
        let one_corpus = data.supervision().within();
        if !one_corpus || items.len() >= items.dim() as u64 {
            return Self::unreduced(data);
        }
        let axes = principal_axes(items)?;
        let rows = coordinates(items, &axes)?;
        let frame = Frame::Reduced { axes, rows };
        Ok(TrainingSpace { data, frame })
    }

    /// Where training starts from an earlier map, as they are, since it may have learned from directions that these rows
    /// do not have, and about a point that it takes to 0: about another one cosines would not be those of that map.
    pub(crate) fn for_run(data: &'a Dataset<'a>, run: &Run<'_>) -> Result<Self> {
        match run.start {
            None => Self::new(data),
            Some(Map::LowRank(map)) => {
                let mean = spread(&*sample(data.items(), "field mean")?)?.mean;
                Ok(Self::plain(data, zero_near(map, mean)?))
            }
            Some(_) => Self::unreduced(data),
        }
    }

    fn unreduced(data: &'a Dataset<'a>) -> Result<Self> {
        let mean = spread(&*sample(data.items(), "field mean")?)?.mean;
        Ok(Self::plain(data, mean))
    }

    /// As they are, about a mean that is known already.
    pub(crate) fn plain(data: &'a Dataset<'a>, mean: Vec<f64>) -> Self {
        let frame = Frame::Plain { mean };
        TrainingSpace { data, frame }
    }

    /// In the coordinates of a kernel's feature space.
    pub(crate) fn in_kernel_space(data: &'a Dataset<'a>, axes: &'a KernelAxes) -> Result<Self> {
        let items = axes.own_coordinates(data.items())?;
        let queries = if data.supervision().within() {
            None
        } else {
            Some(axes.coordinates(data.queries())?)
        };
        let frame = Frame::Kernel {
            axes,
            items,
            queries,
        };
        Ok(TrainingSpace { data, frame })
    }

    pub(crate) fn items(&self) -> &dyn Corpus {
        match &self.frame {
            Frame::Plain { .. } => self.data.items(),
            Frame::Reduced { rows, .. } => rows,
            Frame::Kernel { items, .. } => items.corpus(),
        }
    }

    pub(crate) fn queries(&self) -> &dyn Corpus {
        match &self.frame {
            Frame::Plain { .. } => self.data.queries(),
            Frame::Reduced { rows, .. } => rows,
            Frame::Kernel { items, queries, .. } => queries.as_ref().unwrap_or(items).corpus(),
        }
    }

    pub(crate) fn dim(&self) -> usize {
        self.items().dim()
    }

    /// What is taken from fetched rows: products of points far from the origin lose their digits.
    pub(crate) fn centre(&self) -> Option<Vec<f32>> {
        match &self.frame {
            Frame::Plain { mean } => Some(mean.iter().map(|m| *m as f32).collect()),
            Frame::Reduced { .. } | Frame::Kernel { .. } => None,
        }
    }

    /// What is taken from fetched rows where a map with or without centring is trained as it will
    /// be used. Reduced rows are centred already: the mean's own coordinates are given back.
    pub(crate) fn origin(&self, centred: bool) -> Option<Vec<f32>> {
        match &self.frame {
            _ if centred => self.centre(),
            Frame::Reduced { axes, .. } => {
                let rows = axes.basis.rows().rows();
                let along = |row: &[f32]| -> f64 {
                    let products = row.iter().zip(&axes.mean).map(|(b, m)| f64::from(*b) * m);
                    products.sum()
                };
                Some(rows.iter().map(|row| -along(row) as f32).collect())
            }
            Frame::Plain { .. } | Frame::Kernel { .. } => None,
        }
    }

    /// A map of these coordinates, multiplied by `factor`, as a map of the problem's vectors.
    /// `centre` tells whether the training mean is to be mapped to 0, which matters for cosine and
    /// dot only; coordinates of a kernel's feature space always are.
    pub(crate) fn carry_back(&self, map: &RowBuf, factor: f32, centre: bool) -> Result<Map> {
        let mut weights = match &self.frame {
            Frame::Plain { .. } => map.clone(),
            Frame::Reduced { axes, .. } => axes.carry_back(map)?,
            Frame::Kernel { axes, .. } => axes.carry_back(map)?,
        };
        for value in weights.values_mut() {
            *value *= factor;
        }
        let mean = match &self.frame {
            Frame::Kernel { axes, .. } => return axes.map(weights),
            Frame::Plain { mean } => mean,
            Frame::Reduced { axes, .. } => &axes.mean,
        };
        Ok(Map::LowRank(if centre {
            LowRank::centred(weights, mean)?
        } else {
            LowRank::new(weights, None)?
        }))
    }

    /// Mean distance of relevant pairs, or another measure of spread where all of them coincide.
    pub(crate) fn pair_scale(&self, relevance: &dyn Relevance, seed: u64) -> Result<f64> {
        let mut random = Stream::new(seed, "pair scale", 0);
        let pairs: Vec<(RowId, RowId)> = (0..SCALE_PAIRS)
            .map(|_| relevance.pair(random.below(relevance.pairs())))
            .collect();
        let (mut left, mut right) = (RowBuf::empty(1), RowBuf::empty(1));
        let mut total = 0.0;
        for chunk in pairs.chunks(512) {
            let (queries, items): (Vec<RowId>, Vec<RowId>) = chunk.iter().copied().unzip();
            self.queries().gather(&queries, &mut left)?;
            self.items().gather(&items, &mut right)?;
            for (a, b) in left.rows().iter().zip(right.rows().iter()) {
                let squares =
                    (a.iter().zip(b)).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
                total += squares.sum::<f64>().sqrt();
            }
        }
        let mean = total / pairs.len() as f64;
        if mean.is_finite() && mean > 0.0 {
            return Ok(mean);
        }
        // All relevant pairs coincide: only irrelevant items can tell a scale.
        let spread = spread(&*sample(self.items(), "field spread")?)?;
        let deviation = spread.deviation.iter().map(|d| d * d).sum::<f64>().sqrt();
        if deviation.is_finite() && deviation > 0.0 {
            return Ok(deviation);
        }
        Err(Error::Data(
            "all vectors are equal: nothing can be learned".into(),
        ))
    }

    /// Where a run starts: the map of its earlier model, for vectors divided by `scale`, or else as `start` says.
    pub(crate) fn start_of(
        &self,
        run: &Run<'_>,
        learner: &str,
        (start, rank, scale): (Start, usize, f64),
    ) -> Result<RowBuf> {
        match run.start {
            Some(map) => earlier_weights(map, (rank, self.dim()), scale),
            None => self.start(learner, start, rank, run.seed),
        }
    }

    /// A map to start from, of this rank and about orthonormal rows.
    pub(crate) fn start(
        &self,
        learner: &str,
        start: Start,
        rank: usize,
        seed: u64,
    ) -> Result<RowBuf> {
        let dim = self.dim();
        let mut map = RowBuf::zeros(rank, dim);
        let mut random = Stream::new(seed, "start", 0);
        match (start, &self.frame) {
            (Start::Random, _) => {
                for value in map.values_mut() {
                    *value = (random.normal() / (dim as f64).sqrt()) as f32;
                }
                return Ok(map);
            }
            (Start::Pca, Frame::Reduced { .. } | Frame::Kernel { .. }) => {
                // These are principal coordinates already.
                for index in 0..rank.min(dim) {
                    map.row_mut(index)[index] = 1.0;
                }
            }
            (Start::Pca, Frame::Plain { .. }) if self.data.stacked().is_some() => {
                self.canonical(&mut map)?;
            }
            (Start::Pca, Frame::Plain { .. }) => {
                let axes = principal_axes(&*sample(self.items(), "field start")?)?;
                let rows = axes.basis.leading_rows(rank.min(axes.rank()));
                map.values_mut()[..rows.values().len()].copy_from_slice(rows.values());
            }
            (Start::Lda, _) => {
                let labels = self
                    .data
                    .training_labels(&format!("{learner} with start=lda"))?;
                let chosen =
                    Stream::new(0, "field start", 0).choose(self.items().len(), SAMPLE_ROWS);
                let labels = labels.select(&chosen)?;
                let rows = part(self.items(), chosen)?;
                let (rows, _) = discriminant(&*rows, &labels, 0.1, rank.min(dim))?;
                // AON wants rows of length 1 on the whole; the directions' relative lengths stay.
                let squares = rows.values().iter().map(|v| f64::from(*v).powi(2));
                let mean = squares.sum::<f64>() / rows.len() as f64;
                let factor = (1.0 / mean.sqrt()) as f32;
                for (target, value) in map.values_mut().iter_mut().zip(rows.values()) {
                    *target = value * factor;
                }
            }
        }
        // Rows that the data could not fill start small and random, so that they can still grow.
        for index in 0..rank {
            if map.row(index).iter().all(|v| *v == 0.0) {
                for value in map.row_mut(index) {
                    *value = (1e-3 * random.normal() / (dim as f64).sqrt()) as f32;
                }
            }
        }
        Ok(map)
    }
}

impl TrainingSpace<'_> {
    /// Canonical directions of stacked queries and items: the axes of largest variance of either side would say nothing of
    /// the other. Their relative lengths stay, and on the whole rows have length 1, as AON wants them.
    fn canonical(&self, map: &mut RowBuf) -> Result<()> {
        let (queries, items) = (self.queries(), self.items());
        let border = self.data.stacked().unwrap_or(0);
        let relevance = self.data.relevance("the start")?;
        let left = ColumnRange::new(queries, 0..border)?;
        let right = ColumnRange::new(items, border..items.dim())?;
        let found = PairedMoments::new(&left, &right, relevance)?;
        let most = map.len().min(left.dim()).min(right.dim());
        let canonical = found.canonical(most, START_RIDGE, &|| items.check_stop())?;
        for (row, correlation) in canonical.correlations.iter().enumerate() {
            let weight = correlation.sqrt() as f32;
            let values = canonical.queries.row(row).iter();
            let values = values.chain(canonical.items.row(row));
            for (target, value) in map.row_mut(row).iter_mut().zip(values) {
                *target = weight * value;
            }
        }
        let squares = map.values().iter().map(|v| f64::from(*v).powi(2));
        let mean = squares.sum::<f64>() / canonical.correlations.len() as f64;
        let factor = (1.0 / mean.sqrt()) as f32;
        (map.values_mut().iter_mut()).for_each(|value| *value *= factor);
        Ok(())
    }
}

/// The point nearest to `mean` that a map takes to 0, if it takes any.
fn zero_near(map: &LowRank, mean: Vec<f64>) -> Result<Vec<f64>> {
    let Some(offset) = map.offset().filter(|_| map.input_dim() == mean.len()) else {
        return Ok(mean);
    };
    let rows = map.weights();
    let weights = Mat::from_fn(rows.len(), rows.dim(), |row, column| {
        f64::from(rows.row(row)[column])
    });
    let missing = Mat::from_fn(rows.len(), 1, |row, _| {
        let products = (0..mean.len()).map(|column| weights[(row, column)] * mean[column]);
        f64::from(offset[row]) - products.sum::<f64>()
    });
    let Eigen { values, vectors } =
        Symmetric::new(product(weights.as_ref(), weights.transpose()))?.eigen()?;
    let mut inside = product(vectors.transpose(), missing.as_ref());
    let least = 1e-10 * values.first().copied().unwrap_or(0.0);
    for (row, value) in values.iter().enumerate() {
        inside[(row, 0)] = if *value > least {
            inside[(row, 0)] / value
        } else {
            0.0
        };
    }
    let along = product(vectors.as_ref(), inside.as_ref());
    let moved = product(weights.transpose(), along.as_ref());
    let moved = mean
        .iter()
        .enumerate()
        .map(|(column, mean)| mean + moved[(column, 0)]);
    Ok(moved.collect())
}

/// The weights of an earlier map, of this shape, for vectors divided by `scale`.
fn earlier_weights(map: &Map, shape: (usize, usize), scale: f64) -> Result<RowBuf> {
    let Map::LowRank(map) = map else {
        let expected = "a model with one linear map for queries and items";
        return Err(Error::parameter("from", expected, "another map"));
    };
    let found = (map.output_dim(), map.input_dim());
    if found != shape {
        let text = |(rank, dim)| format!("a map of {dim} dimensions to {rank}");
        return Err(Error::parameter("from", text(shape), text(found)));
    }
    let scaled = map
        .weights()
        .values()
        .iter()
        .map(|value| value * scale as f32);
    RowBuf::from_values(scaled.collect(), shape.1)
}

fn sample<'a>(corpus: &'a dyn Corpus, purpose: &str) -> Result<Box<dyn Corpus + 'a>> {
    part(
        corpus,
        Stream::new(0, purpose, 0).choose(corpus.len(), SAMPLE_ROWS),
    )
}

/// Some rows; a copy in memory where they lie elsewhere.
fn part<'a>(corpus: &'a dyn Corpus, rows: Vec<RowId>) -> Result<Box<dyn Corpus + 'a>> {
    if corpus.pass_executor().is_some() {
        return Ok(Box::new(MemoryCorpus::new(fetched(corpus, &rows)?)?));
    }
    Ok(Box::new(Subset::new(corpus, rows)?))
}

/// Rows that are fetched at once: few enough to stay near the processor until they are centred.
const FETCH_ROWS: usize = 32;

/// Fetch rows, subtract the centre and multiply.
pub(crate) fn fetch(
    corpus: &dyn Corpus,
    ids: &[RowId],
    centre: Option<&[f32]>,
    factor: f32,
    out: &mut [f32],
) -> Result<()> {
    let dim = corpus.dim();
    let view = corpus.view();
    out.par_chunks_mut(FETCH_ROWS * dim)
        .zip(ids.par_chunks(FETCH_ROWS))
        .try_for_each_init(
            || RowBuf::empty(dim),
            |buffer, (out, ids)| {
                // Rows that lie in memory are read where they lie; others take a copy.
                if view.is_none() {
                    corpus.gather(ids, buffer)?;
                }
                for (place, (id, out)) in ids.iter().zip(out.chunks_exact_mut(dim)).enumerate() {
                    let row = match view {
                        Some(view) => view.row(*id as usize),
                        None => buffer.row(place),
                    };
                    move_and_scale(row, centre, factor, out);
                }
                Ok(())
            },
        )
}

fn move_and_scale(row: &[f32], centre: Option<&[f32]>, factor: f32, out: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || match centre {
            Some(centre) => {
                for ((out, value), centre) in out.iter_mut().zip(row).zip(centre) {
                    *out = (value - centre) * factor;
                }
            }
            None => {
                for (out, value) in out.iter_mut().zip(row) {
                    *out = value * factor;
                }
            }
        },
    );
}
