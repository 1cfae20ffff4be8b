//! The names of the measures, as a command line, a file and a table write them.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A measure of one query's ranking; its mean over queries is what tables show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// `map`: average precision, the sum of P@i over the ranks i of relevant items, divided by the
    /// number of relevant items, as trec_eval has it.
    AveragePrecision,
    /// `ndcg`: discounted cumulative gain over the whole ranking, divided by the best possible.
    Ndcg,
    /// `ndcg@k`: the same over the first k ranks.
    NdcgAt(u32),
    /// `p@k`: share of relevant items among the first k.
    PrecisionAt(u32),
    /// `r@k`: share of the relevant items that are among the first k.
    RecallAt(u32),
    /// `cmc@k`, also `rank-k`: whether the first relevant item is among the first k.
    CmcAt(u32),
    /// `cmc-mean@k`: mean of CMC over the ranks 1 to k.
    CmcMean(u32),
    /// `cmc-area`: mean of CMC over all ranks.
    CmcArea,
    /// `mrr`: 1 / rank of the first relevant item.
    ReciprocalRank,
    /// `auc`: probability that a relevant item lies before an irrelevant one, ties counting half.
    Auc,
    /// `minp`: number of relevant items / rank of the last of them (inverse negative penalty, Ye et
    /// al., TPAMI 2021).
    InverseNegativePenalty,
    /// `accuracy`: whether the class found is the query's; of classifiers, not of rankings.
    Accuracy,
    /// `hierarchical`: how far up a class tree the class found and the query's meet, 1 where they
    /// are the same and 0 where only the root joins them ([`super::HierarchicalAccuracy`]); of classifiers.
    HierarchicalAccuracy,
}

impl Measure {
    /// An error if one of them is not a measure of a ranking.
    pub(crate) fn check_ranked(measures: &[Measure]) -> Result<()> {
        let expected = "one of a ranking; accuracy is measured with a classifier (--classifier in the command)";
        Measure::check(measures, expected, |measure| !measure.is_of_classes())
    }

    /// An error if one of them is not a measure of classes found.
    pub(crate) fn check_classes(measures: &[Measure]) -> Result<()> {
        let expected =
            "accuracy or hierarchical, because a classifier finds classes and ranks nothing";
        Measure::check(measures, expected, Measure::is_of_classes)
    }

    fn check(measures: &[Measure], expected: &str, fits: fn(Measure) -> bool) -> Result<()> {
        match measures.iter().find(|measure| !fits(**measure)) {
            None => Ok(()),
            Some(measure) => Err(Error::parameter("measure", expected, measure)),
        }
    }

    /// Whether it judges classes found, and not a ranking.
    pub(crate) fn is_of_classes(self) -> bool {
        matches!(self, Measure::Accuracy | Measure::HierarchicalAccuracy)
    }

    /// What a report shows when nothing was asked for.
    pub const DEFAULT: [Measure; 8] = [
        Measure::AveragePrecision,
        Measure::CmcAt(1),
        Measure::CmcAt(5),
        Measure::CmcAt(10),
        Measure::NdcgAt(10),
        Measure::ReciprocalRank,
        Measure::RecallAt(10),
        Measure::Auc,
    ];
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::AveragePrecision => f.write_str("map"),
            Measure::Ndcg => f.write_str("ndcg"),
            Measure::NdcgAt(k) => write!(f, "ndcg@{k}"),
            Measure::PrecisionAt(k) => write!(f, "p@{k}"),
            Measure::RecallAt(k) => write!(f, "r@{k}"),
            Measure::CmcAt(k) => write!(f, "cmc@{k}"),
            Measure::CmcMean(k) => write!(f, "cmc-mean@{k}"),
            Measure::CmcArea => f.write_str("cmc-area"),
            Measure::ReciprocalRank => f.write_str("mrr"),
            Measure::Auc => f.write_str("auc"),
            Measure::InverseNegativePenalty => f.write_str("minp"),
            Measure::Accuracy => f.write_str("accuracy"),
            Measure::HierarchicalAccuracy => f.write_str("hierarchical"),
        }
    }
}

impl FromStr for Measure {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let unknown = || {
            Error::parameter(
                "measure",
                "one of map, ndcg, ndcg@k, p@k, r@k, cmc@k (rank-k), cmc-mean@k, cmc-area, mrr, \
                 auc, minp, accuracy, hierarchical with a whole number k from 1 on",
                name,
            )
        };
        let lower = name.to_ascii_lowercase();
        let plain = match lower.as_str() {
            "map" => Some(Measure::AveragePrecision),
            "ndcg" => Some(Measure::Ndcg),
            "cmc-area" => Some(Measure::CmcArea),
            "mrr" => Some(Measure::ReciprocalRank),
            "auc" => Some(Measure::Auc),
            "minp" => Some(Measure::InverseNegativePenalty),
            "accuracy" => Some(Measure::Accuracy),
            "hierarchical" => Some(Measure::HierarchicalAccuracy),
            _ => None,
        };
        if let Some(measure) = plain {
            return Ok(measure);
        }
        let (kind, cut) = match lower.strip_prefix("rank-") {
            Some(cut) => ("cmc", cut),
            None => lower.split_once('@').ok_or_else(unknown)?,
        };
        let cut = cut
            .parse::<u32>()
            .ok()
            .filter(|cut| *cut > 0)
            .ok_or_else(unknown)?;
        match kind {
            "ndcg" => Ok(Measure::NdcgAt(cut)),
            "p" | "precision" => Ok(Measure::PrecisionAt(cut)),
            "r" => Ok(Measure::RecallAt(cut)),
            "cmc" | "hit" | "success" => Ok(Measure::CmcAt(cut)),
            // Two fields have one name for two measures.
            "recall" => Err(Error::parameter(
                "measure",
                format!(
                    "r@{cut}, the share of the relevant items that are among the first {cut} (recall in \
                     retrieval), or cmc@{cut}, the share of queries with a relevant item among them \
                     (recall in metric learning)"
                ),
                name,
            )),
            "cmc-mean" => Ok(Measure::CmcMean(cut)),
            _ => Err(unknown()),
        }
    }
}

/// How much an item of a grade is worth to nDCG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GradeGain {
    /// The grade itself, as trec_eval has it.
    #[default]
    Linear,
    /// 2^grade − 1 (Burges et al., ICML 2005).
    Exponential,
}

impl GradeGain {
    /// The gain of a grade.
    pub fn of(self, grade: f32) -> f64 {
        match self {
            GradeGain::Linear => f64::from(grade),
            GradeGain::Exponential => f64::from(grade).exp2() - 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in [
            "map",
            "ndcg",
            "ndcg@10",
            "p@1",
            "r@100",
            "cmc@5",
            "cmc-mean@20",
            "cmc-area",
            "mrr",
            "auc",
            "minp",
            "accuracy",
            "hierarchical",
        ] {
            assert_eq!(name.parse::<Measure>().unwrap().to_string(), name);
        }
        for (other, name) in [
            ("rank-1", "cmc@1"),
            ("hit@5", "cmc@5"),
            ("precision@3", "p@3"),
        ] {
            assert_eq!(other.parse::<Measure>().unwrap().to_string(), name);
        }
        let two = "recall@1".parse::<Measure>().unwrap_err().to_string();
        assert!(two.contains("r@1, the share") && two.contains("cmc@1, the share"));
        assert_eq!("MAP".parse::<Measure>().unwrap(), Measure::AveragePrecision);
        for name in ["", "map@10", "p@0", "p@x", "precision", "rank-"] {
            assert!(name.parse::<Measure>().is_err(), "{name:?}");
        }
    }
}
