//! LFDA: local Fisher discriminant analysis (Sugiyama, JMLR 2007), here and after a kernel.
//!
//! Fisher's ratio with local spreads: pairs of one class that are far apart hardly count, so that a
//! class of several clusters keeps them, and more directions than classes can separate. With two
//! rows a class all affinities are equal, and LFDA is ridge-regularised Fisher analysis.
//!
//! Departs from the paper: a ridge on the local spread within classes, without which it is singular
//! wherever a class has fewer rows than dimensions; scales of a class with fewer than `neighbours`
//! others come from its farthest row. A ratio can be below 0; the weighted scaling ends there.

mod kernel;
mod local;

pub use kernel::KernelLfda;

use crate::dataset::Dataset;
use crate::linalg::{RowBuf, largest_ratios};
use crate::model::Map;
use crate::supervision::{Labels, SupervisionKind};
use crate::training::parameters::{Bound, Choice, parameters, require_rank};
use crate::training::training_space::TrainingSpace;
use crate::training::{Method, Run};
use crate::{Error, Result};
use local::local_spread;

/// Scaling of the directions: plain (unit within-class scatter) or weighted (also by the square
/// root of the eigenvalue).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scaling {
    /// The spread within classes is the same along all of them.
    Plain,
    /// That, times the root of the ratio: what separates most counts most.
    Weighted,
}

impl Choice for Scaling {
    const ALL: &'static [(&'static str, Self)] =
        &[("plain", Scaling::Plain), ("weighted", Scaling::Weighted)];
}

impl Scaling {
    /// Length of a direction with this ratio.
    pub(super) fn factor(self, ratio: f64) -> f64 {
        match self {
            Scaling::Plain => 1.0,
            Scaling::Weighted => ratio.max(0.0).sqrt(),
        }
    }
}

parameters! {
    /// Directions in which classes differ most relative to the spread of near rows inside them.
    /// Needs class labels. O(n·d²) time beside O(Σ n_c²·d) for the distances inside classes, one
    /// decomposition in O(d³); O(d²) memory beside one class's rows (fewer rows than dimensions: n
    /// for d). Use it instead of `lda` where classes have several clusters, or where fewer classes
    /// than useful directions hold `lda` back; with two rows a class both are the same.
    pub struct Lfda {
        /// Dimension of a mapped vector; with the weighted scaling less if fewer directions
        /// separate.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// Ridge added to the local within-class scatter, relative to its mean variance. Search .01
        /// to 3.
        ridge: f64 = 0.1 => Bound::AtLeast(0.0),
        /// The local scale of a row is the distance to its k-th nearest neighbour in its class;
        /// this is k.
        neighbours: usize = 7 => Bound::AtLeast(1.0),
        /// How long the directions are.
        scaling: Scaling = Scaling::Plain,
    }
}

impl Lfda {
    /// The map of the training space's coordinates.
    fn solve(
        &self,
        space: &TrainingSpace<'_>,
        labels: &Labels,
        run: &mut Run<'_>,
    ) -> Result<RowBuf> {
        let spread = local_spread(space.items(), labels, self.neighbours, run)?;
        run.check_stop()?;
        let found = largest_ratios(&spread.between, &spread.within, self.ridge, &|| {
            run.check_stop()
        })?;
        let factors: Vec<f64> = (found.values.iter().take(self.rank))
            .map(|ratio| self.scaling.factor(*ratio))
            .take_while(|factor| *factor > 0.0)
            .collect();
        if factors.is_empty() {
            return Err(Error::Data(
                "classes differ in no direction more than near rows inside them: nothing can be \
                 learned"
                    .into(),
            ));
        }
        run.facts.insert("ridge_added".into(), found.ridge);
        run.facts.insert("rank".into(), factors.len() as f64);
        Ok(found.scaled_rows(&factors))
    }
}

impl Method for Lfda {
    const NAME: &'static str = "lfda";
    const SUMMARY: &'static str =
        "LDA with local scatter: only nearby rows of a class are kept together.";
    const NEEDS: &'static [SupervisionKind] = &[SupervisionKind::Labels];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("ridge", &["0.01", "0.1", "1"])];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        require_rank(self.rank, data.dim())?;
        let labels = classes_of(data, "lfda")?;
        let space = TrainingSpace::new(data)?;
        let map = self.solve(&space, labels, run)?;
        space.carry_back(&map, 1.0, true)
    }
}

/// The labels, of two classes at least.
pub(super) fn classes_of<'a>(data: &'a Dataset<'_>, learner: &str) -> Result<&'a Labels> {
    let labels = data.training_labels(learner)?;
    if labels.classes() < 2 {
        return Err(Error::Data(format!(
            "expected at least 2 classes to tell apart, but found {}",
            labels.classes()
        )));
    }
    Ok(labels)
}

#[cfg(test)]
mod oracle_tests;
