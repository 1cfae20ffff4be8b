//! LDA: linear discriminant analysis with a ridge (Fisher 1936, Rao 1948).
//!
//! A closed form and a first-class method: compared by cosine it is within .02 mAP of the best on
//! several sets. Where there are fewer rows than dimensions it works in exactly reduced
//! coordinates.

use crate::Result;
use crate::dataset::Dataset;
use crate::model::{LowRank, Map};
use crate::supervision::SupervisionKind;
use crate::training::discriminant::discriminant;
use crate::training::parameters::{Bound, parameters, require_rank};
use crate::training::{Method, Run};

parameters! {
    /// Directions in which classes differ most relative to their inner spread, scaled so that the
    /// inner spread is the same everywhere. Needs class labels. Two passes in O(n·d²) time, O(d²)
    /// memory plus one sum a class. Use it first: it is quick, has one setting, and is hard to
    /// beat when classes are shared by training and use.
    pub struct Lda {
        /// Maximum dimension of a mapped vector; never more than the number of classes − 1, beyond
        /// which no direction separates classes.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// Ridge added to the within-class scatter, relative to its mean variance. Search .001 to
        /// 3; use about 100 times more for unseen identities than for known ones.
        ridge: f64 = 0.1 => Bound::AtLeast(0.0),
    }
}

impl Method for Lda {
    const NAME: &'static str = "lda";
    const SUMMARY: &'static str =
        "Directions that maximise between-class relative to within-class scatter.";
    const NEEDS: &'static [SupervisionKind] = &[SupervisionKind::Labels];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("ridge", &["0.01", "0.1", "1"])];

    fn runs_by_passes(&self) -> bool {
        true
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        require_rank(self.rank, data.dim())?;
        let labels = data.training_labels("lda")?;
        // Directions beyond would follow the inner spread alone, as loud as those that tell classes
        // apart: on ten classes of digits they cost .13 mAP.
        let rank = self.rank.min(labels.classes().saturating_sub(1).max(1));
        let (weights, mean) = discriminant(data.items(), labels, self.ridge, rank)?;
        run.facts.insert("rank".into(), weights.len() as f64);
        Ok(Map::LowRank(LowRank::centred(weights, &mean)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::supervision::{Labels, Supervision};

    #[test]
    fn finds_the_signal_among_louder_noise() {
        let set = Nuisance {
            classes: 20,
            signal: 3,
            noise: 9,
            seed: 1,
        }
        .rows(400);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let learner = Lda {
            rank: 3,
            ridge: 0.01,
        }
        .checked()
        .unwrap();
        let Map::LowRank(map) = learner.fit(&data, &mut Run::new(1)).unwrap() else {
            panic!("LDA gives a low-rank map");
        };
        for row in map.weights().iter() {
            let signal: f32 = row[..3].iter().map(|v| v * v).sum();
            let noise: f32 = row[3..].iter().map(|v| v * v).sum();
            assert!(noise < 0.02 * signal, "{noise} {signal}");
        }
    }

    #[test]
    fn no_more_directions_than_tell_the_classes_apart() {
        let set = Nuisance {
            classes: 4,
            signal: 5,
            noise: 5,
            seed: 1,
        }
        .rows(100);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let learner = Lda {
            rank: 8,
            ..Lda::default()
        };
        let mut run = Run::new(1);
        let map = learner.checked().unwrap().fit(&data, &mut run).unwrap();
        assert_eq!((map.output_dim(10), run.facts["rank"]), (3, 3.0));
    }

    #[test]
    fn one_class_and_wrong_supervision_are_errors() {
        let set = Nuisance {
            classes: 1,
            signal: 2,
            noise: 2,
            seed: 1,
        }
        .rows(10);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let learner = Lda {
            rank: 2,
            ..Lda::default()
        }
        .checked()
        .unwrap();
        let error = learner
            .fit(&data, &mut Run::new(1))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "expected at least 2 classes to tell apart, but found 1"
        );
    }
}
