//! PCA and whitening: maps from the data's spread alone.

use super::parameters::{Checked, parameters, require, require_rank};
use super::reduce::{PrincipalAxes, principal_axes};
use super::{Learner, Parameters, Problem, Run};
use crate::metric::{LowRank, Map};
use crate::{Error, Result};
use std::collections::BTreeMap;

parameters! {
    /// Projection onto the directions of largest variance, centred. Uses no supervision. One pass
    /// in O(n·d²) time and O(d²) memory (O(n²) when there are fewer rows than dimensions). Use it
    /// to shrink vectors, or as the base that a learned map of the same rank has to beat.
    pub struct Pca {
        /// Numbers in a mapped vector.
        rank: usize = 64,
    }
}

parameters! {
    /// PCA with every direction divided by its deviation, so that all count alike. Uses no
    /// supervision. Same cost as PCA. Use it where a few loud directions drown the rest.
    pub struct Whitening {
        /// Numbers in a mapped vector.
        rank: usize = 64,
        /// Added to each variance, relative to the mean variance: keeps quiet directions from
        /// being blown up.
        ridge: f64 = 0.01,
    }
}

impl Pca {
    /// Check the parameters.
    pub fn check(self) -> Result<Checked<Self>> {
        require(self.rank >= 1, "rank", "at least 1", self.rank)?;
        Ok(Checked(self))
    }
}

impl Whitening {
    /// Check the parameters.
    pub fn check(self) -> Result<Checked<Self>> {
        require(self.rank >= 1, "rank", "at least 1", self.rank)?;
        require(self.ridge >= 0.0, "ridge", "at least 0", self.ridge)?;
        Ok(Checked(self))
    }
}

impl Learner for Checked<Pca> {
    fn name(&self) -> &'static str {
        "pca"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn by_passes(&self) -> bool {
        true
    }

    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map> {
        let (axes, rank) = axes_of_rank(self.0.rank, problem, run)?;
        let map = LowRank::centred(axes.basis.leading_rows(rank), &axes.mean)?;
        Ok(Map::LowRank(map))
    }
}

impl Learner for Checked<Whitening> {
    fn name(&self) -> &'static str {
        "whitening"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn by_passes(&self) -> bool {
        true
    }

    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map> {
        let (axes, rank) = axes_of_rank(self.0.rank, problem, run)?;
        Ok(Map::LowRank(axes.whitening(rank, self.0.ridge)?))
    }
}

/// The principal axes with the rank that can be had of them, which is recorded.
fn axes_of_rank(
    rank: usize,
    problem: &Problem<'_>,
    run: &mut Run<'_>,
) -> Result<(PrincipalAxes, usize)> {
    require_rank(rank, problem.dim())?;
    let axes = principal_axes(problem.items())?;
    let rank = usable(rank, axes.rank())?;
    run.facts.insert("rank".into(), rank as f64);
    Ok((axes, rank))
}

/// Rank that the data can fill: directions without any spread would be noise of rounding.
pub(super) fn usable(rank: usize, available: usize) -> Result<usize> {
    if available == 0 {
        return Err(Error::Data(
            "all vectors are equal: expected at least one direction in which they differ".into(),
        ));
    }
    Ok(rank.min(available))
}
