//! Names of measures as papers write them, and a sentence on each.

use metra::evaluate::Measure;

/// How a measure is headed; a name that is no measure stays as it is.
pub(crate) fn heading(name: &str) -> String {
    let Ok(measure) = name.parse::<Measure>() else {
        return name.to_owned();
    };
    match measure {
        Measure::AveragePrecision => "mAP".to_owned(),
        Measure::Ndcg => "nDCG".to_owned(),
        Measure::NdcgAt(k) => format!("nDCG@{k}"),
        Measure::PrecisionAt(k) => format!("P@{k}"),
        Measure::RecallAt(k) => format!("R@{k}"),
        Measure::CmcAt(k) => format!("rank-{k}"),
        Measure::CmcMean(k) => format!("mean of ranks 1–{k}"),
        Measure::CmcArea => "area under CMC".to_owned(),
        Measure::ReciprocalRank => "MRR".to_owned(),
        Measure::Auc => "AUC".to_owned(),
        Measure::InverseNegativePenalty => "mINP".to_owned(),
        Measure::Accuracy => "accuracy".to_owned(),
        Measure::HierarchicalAccuracy => "hierarchical accuracy".to_owned(),
    }
}

/// What a measure says, for readers who do not know it; `None` for a name that is no measure.
pub(crate) fn meaning(name: &str) -> Option<String> {
    let text = match name.parse::<Measure>().ok()? {
        Measure::AveragePrecision => {
            "mean over queries of the precision at each relevant item: 1 where all relevant items \
             come first"
        }
        Measure::Ndcg => {
            "gain of the whole ranking, items further down counting less, as a share of the best \
             possible"
        }
        Measure::NdcgAt(k) => &format!(
            "gain of the first {k} items, those further down counting less, as a share of the \
                 best possible"
        ),
        Measure::PrecisionAt(1) | Measure::CmcAt(1) => {
            "share of queries whose first item is relevant"
        }
        Measure::PrecisionAt(k) => &format!("share of the first {k} items that are relevant"),
        Measure::RecallAt(k) => {
            &format!("share of the relevant items that are among the first {k}")
        }
        Measure::CmcAt(k) => &format!("share of queries with a relevant item among the first {k}"),
        Measure::CmcMean(k) => &format!("mean of rank-1 to rank-{k}"),
        Measure::CmcArea => "mean of rank-k over all k",
        Measure::ReciprocalRank => "mean over queries of 1 / rank of the first relevant item",
        Measure::Auc => "probability that a relevant item comes before an irrelevant one",
        Measure::InverseNegativePenalty => "number of relevant items / rank of the last of them",
        Measure::Accuracy => "share of queries whose class is found",
        Measure::HierarchicalAccuracy => {
            "1 where the class is found, 0 where only the root of the tree joins it with the class \
             found, and between by the height of where they meet"
        }
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_papers() {
        let names = ["map", "cmc@1", "rank-5", "ndcg@10", "made-up"];
        let expected = ["mAP", "rank-1", "rank-5", "nDCG@10", "made-up"];
        assert_eq!(names.map(heading), expected);
        assert!(meaning("p@1").is_some());
        assert!(meaning("made-up").is_none());
    }
}
