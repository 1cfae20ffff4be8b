//! Evaluation protocols (leave-one-out, single-shot, cross-camera and others) and the measures to
//! compute.

use super::classifier::Classifier;
use super::new_items::NewItems;
use crate::dataset::Dataset;
use crate::evaluate::{Empty, GradeGain, Measure, Ties};
use crate::model::Chain;
use crate::search::Rerank;
use crate::supervision::Supervision;
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Who is searched for by whom when a part is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Protocol {
    /// Every row of the part against all others of it.
    LeaveOneOut,
    /// Every row of the part against the rows that were learned from.
    AgainstTraining,
    /// One image a person against one (WARCA, Sec. 4.2), repeated; both camera directions.
    SingleShot {
        /// How often images are drawn anew.
        repeats: u32,
    },
    /// Every row against all others, those of the same identity and camera left out (Market-1501).
    CrossCamera,
    /// Queries against items.
    Judged,
    /// Every row of the part is given a class, with the rows that were learned from as reference.
    Classify(Classifier),
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::LeaveOneOut => "leave-one-out",
            Protocol::AgainstTraining => "against-training",
            Protocol::SingleShot { .. } => "single-shot",
            Protocol::CrossCamera => "cross-camera",
            Protocol::Judged => "judged",
            Protocol::Classify(classifier) => return write!(f, "classify ({classifier})"),
        })
    }
}

impl FromStr for Protocol {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "leave-one-out" => Protocol::LeaveOneOut,
            "against-training" => Protocol::AgainstTraining,
            "single-shot" => Protocol::SingleShot { repeats: 1 },
            "cross-camera" => Protocol::CrossCamera,
            "judged" => Protocol::Judged,
            "classify" => Protocol::Classify(Classifier::default()),
            other => {
                let expected = "leave-one-out, against-training, single-shot, cross-camera, \
                                judged or classify";
                return Err(Error::parameter("protocol", expected, format!("{other:?}")));
            }
        })
    }
}

impl Protocol {
    /// What fits the supervision.
    pub fn default_for(supervision: &Supervision) -> Self {
        match supervision {
            Supervision::Judgements(_) => Protocol::Judged,
            _ => Protocol::LeaveOneOut,
        }
    }

    /// Measures worth showing.
    pub fn measures(self) -> Vec<Measure> {
        match self {
            Protocol::SingleShot { .. } | Protocol::CrossCamera => vec![
                Measure::AveragePrecision,
                Measure::CmcAt(1),
                Measure::CmcAt(5),
                Measure::CmcAt(10),
                Measure::CmcAt(20),
                Measure::CmcMean(20),
                Measure::CmcArea,
                Measure::InverseNegativePenalty,
            ],
            Protocol::Judged => vec![
                Measure::NdcgAt(10),
                Measure::AveragePrecision,
                Measure::ReciprocalRank,
                Measure::PrecisionAt(1),
                Measure::RecallAt(10),
                Measure::RecallAt(100),
            ],
            Protocol::Classify(_) => vec![Measure::Accuracy],
            _ => vec![
                Measure::AveragePrecision,
                Measure::PrecisionAt(1),
                Measure::PrecisionAt(10),
                Measure::ReciprocalRank,
                Measure::NdcgAt(10),
                Measure::Auc,
            ],
        }
    }

    /// The same, with what a class tree adds for classes found.
    pub fn measures_for(self, data: &Dataset<'_>) -> Vec<Measure> {
        let mut measures = self.measures();
        if data.tree().is_some() && matches!(self, Protocol::Classify(_)) {
            measures.push(Measure::HierarchicalAccuracy);
        }
        measures
    }

    /// The measure that settings are chosen by unless another is asked for.
    pub fn criterion(self) -> Measure {
        match self {
            Protocol::Judged => Measure::NdcgAt(10),
            Protocol::Classify(_) => Measure::Accuracy,
            _ => Measure::AveragePrecision,
        }
    }
}

/// How a part is judged.
#[derive(Debug, Clone)]
pub struct EvaluationSettings {
    /// Who is searched for by whom.
    pub protocol: Protocol,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// Rule for ties.
    pub ties: Ties,
    /// Order of tied items for [`Ties::Trec`], one number an item.
    pub tie_rank: Option<Vec<u32>>,
    /// GradeGain of a grade.
    pub gain: GradeGain,
    /// Queries with nothing relevant.
    pub empty: Empty,
    /// Seed of the protocol's own draws.
    pub seed: u64,
    /// Re-rank by k-reciprocal neighbours before judging.
    pub rerank: Option<Rerank>,
    /// With judgements: which items settings are chosen for.
    pub new_items: NewItems,
}

impl EvaluationSettings {
    /// By this protocol with these measures, or with those worth showing; and the measure to
    /// choose by, which is among them.
    pub fn new(
        data: &Dataset<'_>,
        protocol: Protocol,
        mut measures: Vec<Measure>,
        criterion: Option<Measure>,
        seed: u64,
    ) -> Result<(Self, Measure)> {
        check_protocol(data, protocol)?;
        if measures.is_empty() {
            measures = protocol.measures_for(data);
        }
        let criterion = criterion.unwrap_or_else(|| protocol.criterion());
        if !measures.contains(&criterion) {
            measures.insert(0, criterion);
        }
        match protocol {
            Protocol::Classify(_) => Measure::check_classes(&measures)?,
            _ => Measure::check_ranked(&measures)?,
        }
        let judging = EvaluationSettings {
            protocol,
            measures,
            ties: Ties::Expected,
            tie_rank: None,
            gain: GradeGain::Linear,
            empty: Empty::Skip,
            seed,
            rerank: None,
            new_items: NewItems::default(),
        };
        Ok((judging, criterion))
    }
}

pub(super) fn no_camera() -> Error {
    Error::parameter(
        "camera",
        "given: the cross-camera protocol needs each row's camera",
        "absent",
    )
}

/// Whether a ranking by this chain can be re-ranked.
pub(super) fn check_rerank(chain: &Chain, protocol: Protocol) -> Result<()> {
    if chain.has_two_sides() {
        let expected =
            "absent for two maps and for coded items: it compares queries with each other";
        return Err(Error::parameter("rerank", expected, "given"));
    }
    if matches!(protocol, Protocol::Classify(_)) {
        let expected = "absent for classes found: it is for rankings";
        return Err(Error::parameter("rerank", expected, "given"));
    }
    Ok(())
}

/// Whether labels and judging fit together.
pub fn check_protocol(data: &Dataset<'_>, protocol: Protocol) -> Result<()> {
    let judged = matches!(data.supervision(), Supervision::Judgements(_));
    if judged != (protocol == Protocol::Judged) {
        let expected = if judged {
            "judged (with qrels)"
        } else {
            "one for labels"
        };
        return Err(Error::parameter("protocol", expected, protocol));
    }
    let has_sets = matches!(data.supervision(), Supervision::LabelSets(_));
    if has_sets && !matches!(protocol, Protocol::LeaveOneOut | Protocol::AgainstTraining) {
        let expected = "leave-one-out or against-training with several labels per row";
        return Err(Error::parameter("protocol", expected, protocol));
    }
    if let Protocol::Classify(classifier) = protocol {
        classifier.check()?;
        if data.labels().is_none() {
            let expected = "one that needs no class labels";
            return Err(Error::parameter("protocol", expected, protocol));
        }
    }
    if protocol == Protocol::CrossCamera && data.item_groups().is_none() {
        return Err(no_camera());
    }
    Ok(())
}
