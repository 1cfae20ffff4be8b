//! Canonical correlation analysis: a map for queries and one for items, whose dimensions correlate most over relevant pairs.
//! Hotelling, "Relations between two sets of variates", Biometrika 1936; with a ridge: Vinod, Journal of Econometrics 1976.
//!
//! With the covariances C_x and C_y, each with a ridge, and C_xy over relevant pairs, the directions are the singular vectors
//! of C_x^(-1/2) C_xy C_y^(-1/2), and the singular values ρ are their correlations. Dimensions are weighted by powers of ρ,
//! as Gong, Ke, Isard & Lazebnik do ("A multi-view embedding space for modeling Internet images, tags, and their
//! semantics", IJCV 2014): without weights the last direction counts as much as the first.
//!
//! Departs from the textbook: a query may have several relevant items, weighted by their grades, and the covariances of
//! each side are over all of its vectors and not over those in pairs.

use crate::Result;
use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::model::{LowRank, Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::paired_moments::PairedMoments;
use crate::training::parameters::{Bound, parameters, require_rank};
use crate::training::warp::check_relevance;
use crate::training::{Method, Run, TwoModels};

parameters! {
    /// Two linear maps into a space in which relevant pairs correlate most. Learns from relevance
    /// judgements between vectors of two models, which may have different dimensions, or from labels.
    /// One pass over the relevant pairs in O(pairs·d + n·d²), two decompositions in O(d³), O(d²)
    /// memory. Use it as the closed-form baseline where queries and items are of two models.
    pub struct Cca {
        /// Maximum dimension of a mapped vector.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// Ridge added to the variances of each side, relative to their mean. Use more where pairs are
        /// few; search .01 to 10.
        ridge: f64 = 0.1 => Bound::AtLeast(0.0),
        /// Power of its correlation by which a dimension counts in a comparison; 0 counts all alike.
        power: f64 = 1.0 => Bound::AtLeast(0.0),
    }
}

impl Method for Cca {
    const NAME: &'static str = "cca";
    const SUMMARY: &'static str =
        "Canonical correlations: a map for queries and one for items, in closed form.";
    const NEEDS: &'static [SupervisionKind] = &[
        SupervisionKind::Labels,
        SupervisionKind::LabelSets,
        SupervisionKind::Judgements,
    ];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("ridge", &["0.1", "1", "10"]), ("power", &["1", "4"])];
    const TWO_MODELS: TwoModels = TwoModels::MapEach;

    fn spaces(&self) -> &'static [Space] {
        &[Space::Cosine, Space::InnerProduct]
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        require_rank(self.rank, data.dim().min(data.queries().dim()))?;
        let relevance = data.relevance(Self::NAME)?;
        check_relevance(relevance)?;
        let found = PairedMoments::of(data, relevance)?;
        let canonical = found.canonical(self.rank, self.ridge, &|| run.check_stop())?;
        let correlations = &canonical.correlations;
        run.facts
            .insert("first_correlation".into(), correlations[0]);
        run.facts.insert("rank".into(), correlations.len() as f64);
        let weighted = |mut rows: RowBuf, mean: &[f64]| {
            for (row, correlation) in correlations.iter().enumerate() {
                let weight = correlation.powf(self.power / 2.0) as f32;
                (rows.row_mut(row).iter_mut()).for_each(|value| *value *= weight);
            }
            LowRank::centred(rows, mean)
        };
        Ok(Map::Bilinear {
            query: weighted(canonical.queries, &found.queries.mean)?,
            item: weighted(canonical.items, &found.items.mean)?,
        })
    }
}
