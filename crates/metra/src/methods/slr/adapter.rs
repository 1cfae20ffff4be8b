//! SLR towards the identity: M = I + D with the ridge on D, on the side of queries only, so that
//! items stay as they are in their index and without evidence nothing changes.
//!
//! D is regressed on what the similarities as they are leave over of the adaptive target (Alg. 1),
//! with ridges on both sides: D = P_Q Qᵀ(Y − QXᵀ)X P_X. On Cranfield a weaker ridge on the side of
//! items was better, where there are more rows.
//!
//! Departs from the paper, which has no such form: thresholds are on a scale on which the mean
//! similarity of all pairs is 0 and that of relevant pairs is 1, so that they need not be known in
//! the units of an embedding model.

use super::blockwise::clipped_product;
use super::search::{Path, Ridges, search};
use super::side::{Inverse, Inversion, Side, product};
use super::sparse_sums;
use super::target::{Target, Thresholds};
use crate::Result;
use crate::data::Keys;
use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::model::{LowRank, Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::parameters::{Bound, parameters, require};
use crate::training::{Method, Run};
use faer::Mat;

parameters! {
    /// A map of queries alone that stays near the identity, for vectors of text that already work:
    /// items need not be embedded again. Learns from relevance judgements or labels. Compare by
    /// dot over unit vectors (prepare with l2) or by cosine. An iteration costs
    /// O(queries·items·d), the start O((queries + items)·d² + d³); memory is one more copy of the
    /// items.
    pub struct SlrAdapter {
        /// Ridge penalty on the deviation of the query map from the identity, relative to the mean
        /// eigenvalue of the Gram matrix. Several are tried on the validation part in one fit.
        /// Search .1 to 10.
        ridge: Ridges = Ridges::one(0.3),
        /// The ridge penalty of items, as a multiple of `ridge`.
        item_ridge: f64 = 0.1 => Bound::Above(0.0),
        /// Maximum number of iterations; the validation part may stop it earlier.
        iterations: u64 = 10,
        /// Similarity that relevant pairs should exceed, on a scale where relevant pairs have mean
        /// 1 before training and all pairs mean 0.
        above: f64 = 1.7,
        /// Similarity that other pairs should stay below, on the same scale.
        below: f64 = 0.3,
        /// Scale the target of relevant pairs with their grade.
        grades: bool = true,
    }
}

/// The least unit of similarity, in mean squared lengths: where relevant pairs are no more similar
/// than others their difference is none.
const LEAST_UNIT: f64 = 0.01;

impl Method for SlrAdapter {
    const NAME: &'static str = "slr-adapter";
    const SUMMARY: &'static str =
        "Linear map for queries only, regularised towards the identity; items are unchanged.";
    const NEEDS: &'static [SupervisionKind] = &[
        SupervisionKind::Labels,
        SupervisionKind::LabelSets,
        SupervisionKind::Judgements,
    ];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("ridge", &["0.1", "0.3", "1"])];

    fn check(&self) -> Result<()> {
        self.ridge.check()?;
        let positive = self.ridge.0.iter().all(|ridge| *ridge > 0.0);
        require(positive, "ridge", "above 0", "0")?;
        let expected = format!("above {} (below)", self.below);
        require(self.above > self.below, "above", &expected, self.above)?;
        Ok(())
    }

    fn spaces(&self) -> &'static [Space] {
        &[Space::Cosine, Space::InnerProduct]
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        data.relevance("slr-adapter")?;
        let target = Target::new(data.supervision(), self.grades)?;
        let queries = Side::new(data.queries(), false, false)?;
        let other = if data.supervision().within() {
            None
        } else {
            Some(Side::new(data.items(), false, false)?)
        };
        let items = other.as_ref().unwrap_or(&queries);
        let scale = Scale::new(data, &queries, items, &target)?;
        run.facts.insert("mean_similarity".into(), scale.all);
        run.facts
            .insert("relevant_similarity".into(), scale.relevant);
        let adaptation = Adaptation {
            settings: self,
            rotation: product(
                queries.eigen().vectors.transpose(),
                items.eigen().vectors.as_ref(),
            ),
            thresholds: Thresholds {
                above: scale.at(self.above),
                below: scale.at(self.below),
            },
            unit: scale.unit,
            queries: &queries,
            items,
            target,
        };
        search(&adaptation, &self.ridge, self.iterations, run)
    }
}

/// Mean similarities before anything is learned.
struct Scale {
    all: f64,
    relevant: f64,
    /// Their difference: what similarities are counted in, so that vectors of any length are alike.
    unit: f64,
}

impl Scale {
    fn new(
        data: &Dataset<'_>,
        queries: &Side<'_>,
        items: &Side<'_>,
        target: &Target,
    ) -> Result<Self> {
        let mean = |side: &Side<'_>| -> Result<Vec<f64>> {
            let keys = vec![0; side.len() as usize];
            let sums = side.sums(Keys::Class(&keys), 1)?;
            Ok((0..side.width())
                .map(|i| sums[(i, 0)] / side.len() as f64)
                .collect())
        };
        let all: f64 = (mean(queries)?.iter().zip(mean(items)?))
            .map(|(a, b)| a * b)
            .sum();
        // The trace of XᵀYX is the sum of the relevant pairs' similarities, weighted by grade.
        let labels = data.supervision().as_labels();
        let (mut sum, mut weight) = match labels {
            Some(labels) => {
                let sums = queries.sums(Keys::Class(labels.of()), labels.classes())?;
                let pairs: f64 = (0..labels.classes() as u32)
                    .map(|class| (labels.members(class).len() as f64).powi(2))
                    .sum();
                (sums.squared_norm_l2(), pairs)
            }
            None => {
                let sums = sparse_sums(queries, items, target)?;
                let trace = (0..sums.nrows()).map(|i| sums[(i, i)]).sum();
                let grades = (0..target.rows()).map(|row| {
                    let (relevant, grades) = target.relevant(row);
                    grades.map_or(relevant.len() as f64, |grades| {
                        grades.iter().map(|grade| f64::from(*grade)).sum()
                    })
                });
                (trace, grades.sum())
            }
        };
        if data.supervision().within() {
            // A row's similarity to itself says nothing about relevant pairs.
            sum -= queries.eigen().values.iter().sum::<f64>();
            weight -= queries.len() as f64;
        }
        let length = |side: &Side<'_>| side.eigen().values.iter().sum::<f64>() / side.len() as f64;
        let length = (length(queries) * length(items)).sqrt();
        let relevant = sum / weight;
        Ok(Scale {
            all,
            relevant,
            unit: (relevant - all).max(LEAST_UNIT * length),
        })
    }

    /// A place on the scale, in this unit.
    fn at(&self, position: f64) -> f32 {
        (self.all / self.unit + position) as f32
    }
}

struct Adaptation<'a> {
    settings: &'a SlrAdapter,
    queries: &'a Side<'a>,
    items: &'a Side<'a>,
    target: Target,
    thresholds: Thresholds,
    /// What similarities are divided by.
    unit: f64,
    /// U_Qᵀ U_X of the two sides' eigenvectors.
    rotation: Mat<f64>,
}

impl Adaptation<'_> {
    fn inverses(&self, ridge: f64) -> (Inverse<'_>, Inverse<'_>) {
        let of_queries = self.queries.ridge(ridge);
        let of_items = self.items.ridge(ridge * self.settings.item_ridge);
        (
            Inverse::new(self.queries.eigen(), of_queries, Inversion::Ridge),
            Inverse::new(self.items.eigen(), of_items, Inversion::Ridge),
        )
    }

    /// M · U_X diag(1/√p) for D in whitened coordinates.
    fn half(
        &self,
        whitened: &Mat<f64>,
        of_queries: &Inverse<'_>,
        of_items: &Inverse<'_>,
    ) -> Mat<f64> {
        let mut half = of_queries.factor(whitened.as_ref());
        let vectors = &self.items.eigen().vectors;
        for (column, root) in of_items.roots().iter().enumerate() {
            for row in 0..half.nrows() {
                half[(row, column)] += vectors[(row, column)] / root;
            }
        }
        half
    }
}

impl Path for Adaptation<'_> {
    /// D in whitened coordinates of both sides.
    type State = Mat<f64>;

    fn begin(&self, _: f64) -> Result<Mat<f64>> {
        Ok(Mat::zeros(self.queries.width(), self.items.width()))
    }

    fn advance(&self, ridge: f64, whitened: &mut Mat<f64>, _: u64, _: u64) -> Result<f64> {
        let (of_queries, of_items) = self.inverses(ridge);
        let width = self.items.width();
        let factor = of_items.factor(Mat::identity(width, width).as_ref());
        let z_items = self.items.embed(factor.as_ref(), None)?;
        let mut half = self.half(whitened, &of_queries, &of_items);
        half *= faer::Scale(1.0 / self.unit);
        let z_queries = self.queries.embed(half.as_ref(), None)?;
        let (a, b) = (z_queries.rows(), z_items.rows());
        let mut out = RowBuf::empty(1);
        let loss = clipped_product(a, b, b, &self.target, self.thresholds, &mut out)?;
        let mut sums = self.queries.transposed(out.rows())?;
        sums *= faer::Scale(self.unit);
        *whitened = of_queries.whiten(sums.as_ref());
        // What the identity explains of the target: Qᵀ(QXᵀ)X in the same coordinates.
        let explained = |inverse: &Inverse<'_>, side: &Side<'_>| -> Vec<f64> {
            let values = side.eigen().values.iter();
            values
                .zip(inverse.roots())
                .map(|(v, root)| v.max(0.0) * root)
                .collect()
        };
        let rows = explained(&of_queries, self.queries);
        let columns = explained(&of_items, self.items);
        for column in 0..width {
            for row in 0..rows.len() {
                whitened[(row, column)] -=
                    rows[row] * self.rotation[(row, column)] * columns[column];
            }
        }
        Ok(loss / (self.queries.len() * self.items.len()) as f64)
    }

    fn map(&self, ridge: f64, whitened: &Mat<f64>) -> Result<Map> {
        let (of_queries, of_items) = self.inverses(ridge);
        let half = of_queries.factor(whitened.as_ref());
        let difference = of_items.factor(half.transpose()).transpose().to_owned();
        let dim = self.items.width();
        let matrix = Mat::from_fn(dim, dim, |i, j| {
            difference[(i, j)] + f64::from(u8::from(i == j))
        });
        Ok(Map::Bilinear {
            query: self.queries.map(matrix.as_ref())?,
            item: LowRank::new(RowBuf::identity(dim), None)?,
        })
    }
}
