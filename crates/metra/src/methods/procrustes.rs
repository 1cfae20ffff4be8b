//! Alignment of queries with the space of the items, which stay as they are: the nearest rotation (orthogonal Procrustes:
//! Schönemann, "A generalized solution of the orthogonal Procrustes problem", Psychometrika 1966) or a least-squares
//! regression with a ridge, in either case over relevant pairs.
//!
//! Departs from the textbook as [`super::Cca`] does: means and the queries' covariance are those of all vectors and not of those in
//! pairs, of which there may be few.

use crate::Result;
use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::model::{LowRank, Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::alignment::Fit;
use crate::training::paired_moments::PairedMoments;
use crate::training::parameters::{Bound, Choice, parameters};
use crate::training::warp::check_relevance;
use crate::training::{AlignmentForm, Method, Run, TwoModels};

/// The form of the map of queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueryMap {
    /// A rotation, and one factor for all lengths.
    Rotation,
    /// Any linear map, by least squares with a ridge.
    Regression,
}

impl Choice for QueryMap {
    const ALL: &'static [(&'static str, Self)] = &[
        ("rotation", QueryMap::Rotation),
        ("regression", QueryMap::Regression),
    ];
}

parameters! {
    /// A linear map of queries into the space of the items, so that stored items and their index stay as
    /// they are. Learns from relevance judgements between vectors of two models, which may have
    /// different dimensions, or from labels. One pass over the relevant pairs in O(pairs·d + n·d²) and
    /// one decomposition in O(d³), O(d²) memory. Use it as the baseline where queries and items are of
    /// two models; `metra train` compares with it there.
    pub struct Procrustes {
        /// Map of queries: rotation (orthogonal Procrustes) or regression (least squares).
        form: QueryMap = QueryMap::Rotation,
        /// Ridge of the regression, relative to the mean variance of a column of the queries.
        ridge: f64 = 0.1 => Bound::AtLeast(0.0),
    }
}

impl Method for Procrustes {
    const NAME: &'static str = "procrustes";
    const SUMMARY: &'static str =
        "Rotation or regression of queries into the space of the items, in closed form.";
    const NEEDS: &'static [SupervisionKind] = &[
        SupervisionKind::Labels,
        SupervisionKind::LabelSets,
        SupervisionKind::Judgements,
    ];
    const GRID: &'static [(&'static str, &'static [&'static str])] = &[
        ("form", &["rotation", "regression"]),
        ("ridge", &["0.1", "1"]),
    ];
    const TWO_MODELS: TwoModels = TwoModels::MapEach;

    fn spaces(&self) -> &'static [Space] {
        &[Space::Cosine, Space::SquaredL2, Space::InnerProduct]
    }

    fn own_spaces(&self) -> &'static [Space] {
        &[Space::Cosine, Space::SquaredL2]
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let relevance = data.relevance(Self::NAME)?;
        check_relevance(relevance)?;
        let fit = Fit::of_pairs(PairedMoments::of(data, relevance)?)?;
        let form = match self.form {
            QueryMap::Rotation => AlignmentForm::Rotation,
            QueryMap::Regression => AlignmentForm::Ridge(self.ridge),
        };
        Ok(Map::Bilinear {
            query: fit.map(form, &|| run.check_stop())?,
            item: LowRank::new(RowBuf::identity(data.dim()), None)?,
        })
    }
}
