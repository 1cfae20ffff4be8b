//! How rows are given classes when a metric is judged by classification.

use crate::data::Corpus;
use crate::evaluate::{Gaussians, HierarchicalAccuracy, Measure, knn_classes};
use crate::model::Space;
use crate::search::top_k;
use crate::supervision::{Labels, Orderings, Tree};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A classifier over embedded vectors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Classifier {
    /// A Gaussian for each class, with this share of the pooled covariance in each; the space does
    /// not matter to it.
    Gaussian {
        /// 0 is plain, 1 is one covariance for all classes.
        share: f64,
    },
    /// The same with independent dimensions and with the classes that orderings by attributes name and no reference row
    /// has, placed by them; for maps to attributes.
    ZeroShot {
        /// As of [`Classifier::Gaussian`].
        share: f64,
    },
    /// The majority among the k nearest reference rows.
    Neighbours {
        /// How many vote.
        k: usize,
    },
}

impl Default for Classifier {
    fn default() -> Self {
        Classifier::Neighbours { k: 5 }
    }
}

impl fmt::Display for Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Classifier::Gaussian { share: 0.0 } => f.write_str("gaussian"),
            Classifier::Gaussian { share } => write!(f, "gaussian:{share}"),
            Classifier::ZeroShot { share: 0.0 } => f.write_str("zero-shot"),
            Classifier::ZeroShot { share } => write!(f, "zero-shot:{share}"),
            Classifier::Neighbours { k } => write!(f, "knn:{k}"),
        }
    }
}

impl FromStr for Classifier {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let found = match (name, value) {
            ("gaussian", "") => Some(Classifier::Gaussian { share: 0.0 }),
            ("gaussian", share) => (share.parse().ok()).map(|share| Classifier::Gaussian { share }),
            ("zero-shot", "") => Some(Classifier::ZeroShot { share: 0.0 }),
            ("zero-shot", share) => {
                (share.parse().ok()).map(|share| Classifier::ZeroShot { share })
            }
            ("knn", "") => Some(Classifier::default()),
            ("knn", k) => (k.parse().ok()).map(|k| Classifier::Neighbours { k }),
            _ => None,
        };
        let found = found.filter(|classifier| classifier.check().is_ok());
        found.ok_or_else(|| {
            let expected = "gaussian, zero-shot, either with :SHARE from 0 to 1, or knn:K";
            Error::parameter("classifier", expected, format!("{text:?}"))
        })
    }
}

impl Classifier {
    /// An error if it cannot classify anything.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Classifier::Gaussian { share } | Classifier::ZeroShot { share }
                if !(0.0..=1.0).contains(&share) =>
            {
                Err(Error::parameter("share", "between 0 and 1", share))
            }
            Classifier::Neighbours { k: 0 } => Err(Error::parameter("k", "at least 1", 0)),
            _ => Ok(()),
        }
    }

    /// For every measure the value of every asked row: accuracy is 1 where its class is found and 0
    /// where it is not, and hierarchical accuracy counts a mistake by the tree. Rows of a class that
    /// no known row has cannot be right.
    pub(super) fn judge(
        self,
        space: Space,
        queries: (&dyn Corpus, &Labels),
        known: (&dyn Corpus, &Labels),
        (tree, orderings): (Option<&Tree>, Option<&Orderings>),
        measures: &[Measure],
    ) -> Result<Vec<Vec<f64>>> {
        Measure::check_classes(measures)?;
        let hierarchical = match (tree, measures.contains(&Measure::HierarchicalAccuracy)) {
            (_, false) => None,
            (Some(tree), true) => Some(HierarchicalAccuracy::new(tree, queries.1, known.1)?),
            (None, true) => {
                let expected = "accuracy, where no taxonomy is given";
                let found = Measure::HierarchicalAccuracy;
                return Err(Error::parameter("measure", expected, found));
            }
        };
        let mut names: Vec<String> = (0..known.1.classes() as u32)
            .map(|class| known.1.name(class).to_owned())
            .collect();
        let found = match self {
            Classifier::Gaussian { share } => {
                Gaussians::fit(known.0, known.1, share)?.classify(queries.0)?
            }
            Classifier::ZeroShot { share } => {
                let Some(orderings) = orderings else {
                    let expected = "gaussian or knn, where no orderings of classes are given";
                    return Err(Error::parameter("classifier", expected, self));
                };
                let mut classes = Gaussians::fit_independent(known.0, known.1, share)?;
                names.extend(classes.add_unseen(known.1, orderings.orderings())?);
                classes.classify(queries.0)?
            }
            Classifier::Neighbours { k } => {
                let neighbours = top_k(space, queries.0, known.0, k, false)?;
                knn_classes(&neighbours, known.1.of())?
            }
        };
        let value = |measure: Measure, found: u32, class: u32| match (measure, &hierarchical) {
            (Measure::HierarchicalAccuracy, Some(hierarchical)) => {
                hierarchical.accuracy(class, found)
            }
            _ => {
                // Parts number their classes each for itself: names say which is which.
                let name = names.get(found as usize);
                let is = name.is_some_and(|name| name == queries.1.name(class));
                f64::from(u8::from(is))
            }
        };
        let pairs = || found.iter().zip(queries.1.of());
        let values = measures.iter().map(|measure| {
            let of_rows = pairs().map(|(found, class)| value(*measure, *found, *class));
            of_rows.collect()
        });
        Ok(values.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::linalg::RowBuf;
    use crate::supervision::ClassOrdering;

    #[test]
    fn names_come_back() {
        for text in [
            "gaussian",
            "gaussian:0.5",
            "zero-shot",
            "zero-shot:0.5",
            "knn:7",
        ] {
            assert_eq!(text.parse::<Classifier>().unwrap().to_string(), text);
        }
        assert_eq!("knn".parse::<Classifier>().unwrap(), Classifier::default());
        for text in ["", "knn:0", "gaussian:2", "zero-shot:NaN", "svm", "knn:x"] {
            assert!(text.parse::<Classifier>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn classes_are_matched_by_name() {
        let line = |values: &[f32]| {
            MemoryCorpus::new(RowBuf::from_values(values.to_vec(), 1).unwrap()).unwrap()
        };
        // Known: b around 0, c around 10. QueryBatch: c at 9, a at 0 (unknown), b at 1, c at 2 (wrong).
        let (known, queries) = (line(&[-1.0, 1.0, 9.0, 11.0]), line(&[9.0, 0.0, 1.0, 2.0]));
        let known_labels = Labels::from_names(&["b", "b", "c", "c"]).unwrap();
        let query_labels = Labels::from_names(&["c", "a", "b", "c"]).unwrap();
        for classifier in ["gaussian", "gaussian:1", "knn:1"] {
            let classifier: Classifier = classifier.parse().unwrap();
            let judge = |tree: Option<&Tree>, measures: &[Measure]| {
                classifier.judge(
                    Space::SquaredL2,
                    (&queries, &query_labels),
                    (&known, &known_labels),
                    (tree, None),
                    measures,
                )
            };
            let right = judge(None, &[Measure::Accuracy]).unwrap();
            assert_eq!(right, [[1.0, 0.0, 1.0, 0.0]]);
            assert!(judge(None, &[Measure::Auc]).is_err());
            // root > (pair > (a, b), c), heights 2 and 1: a taken for b loses a half, c for b all.
            let edges = [
                ("a", "pair"),
                ("b", "pair"),
                ("pair", "root"),
                ("c", "root"),
            ];
            let tree = Tree::from_edges(&edges).unwrap();
            let both = [Measure::HierarchicalAccuracy, Measure::Accuracy];
            let values = judge(Some(&tree), &both).unwrap();
            assert_eq!(values, [[1.0, 0.5, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]]);
            let error = judge(None, &both).unwrap_err().to_string();
            assert!(error.contains("no taxonomy"), "{error}");
        }
        // b around 0 and c around 10 by an attribute of which a has less: it lies at −10.
        let ordering = ClassOrdering::parse("size", "a<b<c").unwrap();
        let all_labels = Labels::from_names(&["a", "b", "c"]).unwrap();
        let orderings = Orderings::new(all_labels, vec![ordering]).unwrap();
        let judge = |orderings: Option<&Orderings>| {
            Classifier::ZeroShot { share: 1.0 }.judge(
                Space::SquaredL2,
                (&line(&[9.0, -7.0, 1.0, 2.0]), &query_labels),
                (&known, &known_labels),
                (None, orderings),
                &[Measure::Accuracy],
            )
        };
        let right = judge(Some(&orderings)).unwrap();
        assert_eq!(right, [[1.0, 1.0, 1.0, 0.0]]);
        let error = judge(None).unwrap_err();
        assert!(error.to_string().contains("no orderings"), "{error}");
    }
}
