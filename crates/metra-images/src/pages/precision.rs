//! How well scores tell pairs that changed from pairs that did not: AP_S, AP_D and MAP of the slides.
//!
//! AP_S is the average precision of the similar pairs where the lowest score comes first, AP_D that of the
//! dissimilar ones where the highest does, MAP the mean of the two. Ties count by expectation, as
//! everywhere in Metra.

use crate::Result;
use metra::evaluate::{EvaluationOptions, Measure, RankedItem, RankedQuery, evaluate_ranking};

/// Average precisions of one scoring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Of the pairs said to be the same.
    pub same: f64,
    /// Of the pairs said to have changed.
    pub changed: f64,
}

impl Precision {
    /// Judge scores (larger is more changed) against what was said; `None` where only one of both was said.
    pub fn of(scores: &[f64], changed: &[bool]) -> Result<Option<Self>> {
        let ranking = |wanted: bool, sign: f32| RankedQuery {
            cluster: u64::from(wanted),
            items: (scores.iter().zip(changed))
                .map(|(score, changed)| RankedItem {
                    score: sign * *score as f32,
                    grade: (*changed == wanted).then_some(1.0),
                    tie_rank: 0,
                })
                .collect(),
            missing: Vec::new(),
        };
        let options = EvaluationOptions {
            measures: vec![Measure::AveragePrecision],
            ..EvaluationOptions::default()
        };
        let judged = evaluate_ranking(&[ranking(false, 1.0), ranking(true, -1.0)], &options)?;
        Ok(match judged.of(Measure::AveragePrecision) {
            Some([same, changed]) => Some(Precision {
                same: *same,
                changed: *changed,
            }),
            _ => None,
        })
    }

    /// The mean of the two.
    pub fn mean(&self) -> f64 {
        (self.same + self.changed) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn average_precision_by_hand() {
        // From the lowest: same, changed, same, changed. Same at 1 and 3: (1/1 + 2/3)/2. From the
        // highest: changed, same, changed, same. Changed at 1 and 3: the same.
        let found = Precision::of(&[1.0, 2.0, 3.0, 4.0], &[false, true, false, true])
            .unwrap()
            .unwrap();
        assert!(
            (found.same - 5.0 / 6.0).abs() < 1e-12 && (found.changed - 5.0 / 6.0).abs() < 1e-12
        );
        // Three changed and one same in the wrong order: same at 4: 1/4; changed at 2, 3, 4 from the
        // highest: (1/2 + 2/3 + 3/4)/3 = 23/36. MAP = (9/36 + 23/36)/2 = 4/9.
        let wrong = Precision::of(&[1.0, 2.0, 3.0, 4.0], &[true, true, true, false])
            .unwrap()
            .unwrap();
        assert!((wrong.same - 0.25).abs() < 1e-12 && (wrong.changed - 23.0 / 36.0).abs() < 1e-12);
        assert!((wrong.mean() - 4.0 / 9.0).abs() < 1e-12);
        assert_eq!(Precision::of(&[1.0], &[true]).unwrap(), None);
        assert!(Precision::of(&[f64::NAN, 1.0], &[true, false]).is_err());
    }
}
