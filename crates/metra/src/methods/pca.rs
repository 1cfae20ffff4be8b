//! PCA and whitening: maps from the variance of the data alone.

use crate::Result;
use crate::dataset::Dataset;
use crate::model::{LowRank, Map};
use crate::supervision::SupervisionKind;
use crate::training::parameters::{Bound, parameters, require_rank};
use crate::training::principal_axes::{PrincipalAxes, principal_axes, usable};
use crate::training::{Method, Run};

parameters! {
    /// Projection onto the directions of largest variance, centred. Uses no supervision. One pass
    /// in O(n·d²) time and O(d²) memory (O(n²) when there are fewer rows than dimensions). Use it
    /// to shrink vectors, or as the base that a learned map of the same rank has to beat.
    pub struct Pca {
        /// Dimension of a mapped vector.
        rank: usize = 64 => Bound::AtLeast(1.0),
    }
}

parameters! {
    /// PCA with every direction divided by its deviation, so that all count alike. Uses no
    /// supervision. Same cost as PCA. Use it where a few loud directions drown the rest.
    pub struct Whitening {
        /// Dimension of a mapped vector.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// Ridge added to each variance, relative to the mean variance: limits the amplification of
        /// low-variance directions.
        ridge: f64 = 0.01 => Bound::AtLeast(0.0),
    }
}

impl Method for Pca {
    const NAME: &'static str = "pca";
    const SUMMARY: &'static str = "Projection onto the directions of largest variance.";
    const NEEDS: &'static [SupervisionKind] = &[];

    fn runs_by_passes(&self) -> bool {
        true
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let (axes, rank) = axes_of_rank(self.rank, data, run)?;
        let map = LowRank::centred(axes.basis.leading_rows(rank), &axes.mean)?;
        Ok(Map::LowRank(map))
    }
}

impl Method for Whitening {
    const NAME: &'static str = "whitening";
    const SUMMARY: &'static str = "PCA with every component scaled to unit variance.";
    const NEEDS: &'static [SupervisionKind] = &[];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("ridge", &["0.01", "0.1", "1"])];

    fn runs_by_passes(&self) -> bool {
        true
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let (axes, rank) = axes_of_rank(self.rank, data, run)?;
        Ok(Map::LowRank(axes.whitening(rank, self.ridge)?))
    }
}

/// The principal axes with the rank that can be had of them, which is recorded.
fn axes_of_rank(
    rank: usize,
    data: &Dataset<'_>,
    run: &mut Run<'_>,
) -> Result<(PrincipalAxes, usize)> {
    require_rank(rank, data.dim())?;
    let axes = principal_axes(data.items())?;
    let rank = usable(rank, axes.rank())?;
    run.facts.insert("rank".into(), rank as f64);
    Ok((axes, rank))
}
