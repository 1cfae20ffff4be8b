//! Rank weights: L(r) = Σ_{s ≤ r} α_s, how much it costs that a relevant item stands at rank r + 1.

use crate::training::ParameterValue;

/// The weights α_s of ranks.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum RankWeights {
    /// α_s = 1/s: the top of the ranking counts most (the paper's choice).
    #[default]
    Harmonic,
    /// α_s = 1/|T|: every rank counts alike, as in the area under the ROC curve.
    Uniform,
    /// The caller's α_1, α_2, …; ranks beyond the table add nothing.
    Table(Vec<f64>),
}

impl RankWeights {
    /// L(rank) among `irrelevant` items that could come before.
    pub(crate) fn loss(&self, rank: f64, irrelevant: f64) -> f64 {
        let rank = rank.floor().max(1.0);
        match self {
            RankWeights::Harmonic => harmonic(rank),
            RankWeights::Uniform => rank / irrelevant.max(1.0),
            RankWeights::Table(weights) => weights.iter().take(rank as usize).sum(),
        }
    }
}

/// The harmonic number of a whole number.
fn harmonic(n: f64) -> f64 {
    if n <= 32.0 {
        return (1..=n as u32).map(|s| 1.0 / f64::from(s)).sum();
    }
    // Euler-Maclaurin; the next term is below 1e-8 from 32 on.
    const EULER: f64 = 0.577_215_664_901_532_9;
    n.ln() + EULER + 1.0 / (2.0 * n) - 1.0 / (12.0 * n * n)
}

impl ParameterValue for RankWeights {
    fn expected() -> String {
        "harmonic, uniform or a list such as 1/0.5/0.25".into()
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "harmonic" => Some(RankWeights::Harmonic),
            "uniform" => Some(RankWeights::Uniform),
            list => {
                let weights: Option<Vec<f64>> = list
                    .split('/')
                    .map(|w| w.parse().ok().filter(|w: &f64| w.is_finite() && *w >= 0.0))
                    .collect();
                weights.map(RankWeights::Table)
            }
        }
    }

    fn show(&self) -> String {
        match self {
            RankWeights::Harmonic => "harmonic".into(),
            RankWeights::Uniform => "uniform".into(),
            RankWeights::Table(weights) => {
                let texts: Vec<String> = weights.iter().map(f64::to_string).collect();
                texts.join("/")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_by_hand() {
        let harmonic = RankWeights::Harmonic;
        assert!((harmonic.loss(3.9, 10.0) - (1.0 + 0.5 + 1.0 / 3.0)).abs() < 1e-12);
        let exact: f64 = (1..=5000).map(|s| 1.0 / f64::from(s)).sum();
        assert!((harmonic.loss(5000.0, 1e6) - exact).abs() < 1e-9);
        assert_eq!(RankWeights::Uniform.loss(5.0, 10.0), 0.5);
        let table = RankWeights::parse("1/0.5").unwrap();
        assert_eq!((table.loss(1.0, 9.0), table.loss(7.0, 9.0)), (1.0, 1.5));
        assert_eq!(RankWeights::parse(&table.show()), Some(table));
        assert_eq!(RankWeights::parse("1/-2"), None);
    }
}
