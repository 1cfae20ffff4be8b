//! Mean and standard deviation of results over several splits.

use super::verdicts::Verdicts;
use crate::evaluate::Measure;
use serde::Serialize;

/// Mean and standard deviation over splits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanAndDeviation {
    /// The mean.
    pub mean: f64,
    /// Standard deviation with n − 1; 0 for a single split.
    pub deviation: f64,
}

impl MeanAndDeviation {
    /// Of these values.
    pub fn over(values: &[f64]) -> Self {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let deviation = (squares / values.len().saturating_sub(1).max(1) as f64).sqrt();
        MeanAndDeviation { mean, deviation }
    }
}

/// One measure over splits.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The measure's name.
    pub measure: String,
    /// The base over splits.
    pub base: MeanAndDeviation,
    /// The learned metric over splits.
    pub learned: MeanAndDeviation,
    /// Splits in which the learned metric was ahead.
    pub ahead: usize,
    /// Number of splits.
    pub splits: usize,
}

/// Sum up splits.
pub fn summarise(splits: &[&Verdicts]) -> Vec<Summary> {
    let Some(first) = splits.first() else {
        return Vec::new();
    };
    let rows = first.rows.iter().enumerate();
    rows.map(|(place, (measure, _))| summarise_one(*measure, splits, place))
        .collect()
}

fn summarise_one(measure: Measure, splits: &[&Verdicts], place: usize) -> Summary {
    let base: Vec<f64> = splits.iter().map(|s| s.rows[place].1.base).collect();
    let learned: Vec<f64> = splits.iter().map(|s| s.rows[place].1.learned).collect();
    Summary {
        measure: measure.to_string(),
        ahead: base.iter().zip(&learned).filter(|(b, l)| l > b).count(),
        base: MeanAndDeviation::over(&base),
        learned: MeanAndDeviation::over(&learned),
        splits: splits.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_by_hand() {
        // 1, 2, 3: mean 2, squares 1 + 0 + 1 over 2.
        let found = MeanAndDeviation::over(&[1.0, 2.0, 3.0]);
        assert_eq!((found.mean, found.deviation), (2.0, 1.0));
        assert_eq!(MeanAndDeviation::over(&[5.0]).deviation, 0.0);
    }
}
