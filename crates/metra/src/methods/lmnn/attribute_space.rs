//! LMNN over the scores of attributes: scorers are learned from orderings of classes first, and LMNN
//! then measures in the space of their scores (RA + LMNN and Qwise + LMNN of the Qwise slides). Both
//! maps are linear, so that the result is one low-rank map again.

use super::{Compared, Lmnn};
use crate::data::{Corpus, Storage};
use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::methods::qwise::{Attributes, RankSvm};
use crate::model::{Chain, LowRank, Map, Side, Space, embed_corpus};
use crate::supervision::Supervision;
use crate::training::{AnyMethod, Method, Run};
use crate::{Error, Result};

impl Lmnn {
    /// The learner of the scores that are compared, where there is one.
    pub(super) fn scorer(&self) -> Result<Option<Box<dyn AnyMethod>>> {
        let lambda = self.attribute_lambda;
        Ok(match self.on {
            Compared::Vectors => None,
            Compared::Attributes => {
                let settings = Attributes {
                    lambda,
                    ..Attributes::default()
                };
                Some(Box::new(settings.checked()?))
            }
            Compared::RankSvm => {
                let settings = RankSvm {
                    lambda,
                    ..RankSvm::default()
                };
                Some(Box::new(settings.checked()?))
            }
        })
    }
}

impl Lmnn {
    /// Learn scores, then a map of scores; gives both as one map.
    pub(super) fn fit_on_scores(
        &self,
        scorer: &dyn AnyMethod,
        data: &Dataset<'_>,
        run: &mut Run<'_>,
    ) -> Result<Map> {
        if !matches!(data.supervision(), Supervision::Orderings(_)) {
            return Err(data.unusable("lmnn", "orderings of classes by attributes"));
        }
        let mut first = Run {
            seed: run.seed,
            stop: run.stop,
            ..Run::default()
        };
        let scores = match scorer.fit(data, &mut first)? {
            Map::LowRank(scores) => scores,
            _ => return Err(Error::Data("scorers of attributes are linear".into())),
        };
        let (dim, map) = (data.dim(), Map::LowRank(scores.clone()));
        let chain = Chain::new(dim, Vec::new(), map, Space::SquaredL2)?;
        let storage = Storage::default();
        let scored = embed_corpus(&chain, Side::Item, data.items(), None, &storage)?;
        let mut settings = self.clone();
        settings.rank = settings.rank.min(scores.output_dim());
        let mut validate = run.validate.as_deref_mut().map(|validate| {
            let scores = &scores;
            move |map: &Map| validate(&after(map, scores)?)
        });
        let mut second = Run {
            seed: run.seed,
            stop: run.stop,
            last_step: run.last_step,
            observer: match run.observer.as_deref_mut() {
                Some(observer) => Some(observer),
                None => None,
            },
            validate: match &mut validate {
                Some(validate) => Some(validate),
                None => None,
            },
            ..Run::default()
        };
        let corpus: &dyn Corpus = scored.corpus();
        let data = Dataset::new(corpus, data.supervision())?;
        let map = settings.fit_on_vectors(&data, &mut second)?;
        run.facts.append(&mut second.facts);
        after(&map, &scores)
    }
}

/// The map x ↦ A(Wx − b) − a of a map A z − a of scores Wx − b.
fn after(map: &Map, scores: &LowRank) -> Result<Map> {
    let Map::LowRank(map) = map else {
        return Err(Error::Data("LMNN gives a low-rank map".into()));
    };
    let (weights, offsets) = (map.weights(), map.offset());
    let mut joined = RowBuf::zeros(map.output_dim(), scores.input_dim());
    let mut offset = Vec::with_capacity(map.output_dim());
    for row in 0..map.output_dim() {
        let mut sums = vec![0.0_f64; scores.input_dim()];
        let mut taken = offsets.map_or(0.0, |offsets| f64::from(offsets[row]));
        for (number, weight) in weights.row(row).iter().enumerate() {
            let weight = f64::from(*weight);
            for (sum, value) in sums.iter_mut().zip(scores.weights().row(number)) {
                *sum += weight * f64::from(*value);
            }
            let own = scores.offset().map_or(0.0, |own| f64::from(own[number]));
            taken += weight * own;
        }
        for (target, sum) in joined.row_mut(row).iter_mut().zip(sums) {
            *target = sum as f32;
        }
        offset.push(taken as f32);
    }
    Ok(Map::LowRank(LowRank::new(joined, Some(offset))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::data::synthetic::{LabelledVectors, Nuisance};
    use crate::supervision::{ClassOrdering, Labels, Orderings};
    use crate::training::Schedule;

    const SET: Nuisance = Nuisance {
        classes: 4,
        signal: 3,
        noise: 3,
        seed: 5,
    };

    fn ordered(set: &LabelledVectors) -> Supervision {
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let orderings = [("one", "0<1<2<3"), ("two", "3<1<0~2"), ("three", "2<0<3<1")];
        let orderings = orderings.map(|(name, text)| ClassOrdering::parse(name, text).unwrap());
        Supervision::Orderings(Orderings::new(labels, orderings.to_vec()).unwrap())
    }

    fn settings(on: Compared) -> Lmnn {
        let settings = Lmnn {
            on,
            rank: 2,
            schedule: Schedule::of(20),
            ..Lmnn::default()
        };
        settings.checked().unwrap()
    }

    fn mapped(map: &Map, rows: &MemoryCorpus) -> RowBuf {
        let Map::LowRank(map) = map else {
            panic!("LMNN gives a low-rank map");
        };
        let mut out = RowBuf::empty(1);
        map.apply(rows.rows(), &mut out).unwrap();
        out
    }

    /// The same in two steps by hand: scores first, then LMNN over a corpus of them.
    #[test]
    fn it_is_the_map_of_scores_after_the_scores() {
        let set = SET.rows(80);
        let supervision = ordered(&set);
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        for on in [Compared::Attributes, Compared::RankSvm] {
            let learner = settings(on);
            let found = Method::fit(&learner, &data, &mut Run::new(3)).unwrap();
            let scorer = learner.scorer().unwrap().unwrap();
            let scores = scorer.fit(&data, &mut Run::new(3)).unwrap();
            let scored = MemoryCorpus::new(mapped(&scores, &set.corpus)).unwrap();
            let after = Dataset::new(&scored, &supervision).unwrap();
            let by_hand = settings(Compared::Vectors);
            let by_hand = Method::fit(&by_hand, &after, &mut Run::new(3)).unwrap();
            let (one, other) = (mapped(&found, &set.corpus), mapped(&by_hand, &scored));
            let largest = other.values().iter().fold(0.0_f32, |a, b| a.max(b.abs()));
            for (a, b) in one.values().iter().zip(other.values()) {
                assert!((a - b).abs() < 1e-4 * largest, "{on:?}: {a} {b}");
            }
        }
    }

    #[test]
    fn validation_sees_maps_of_the_vectors() {
        let set = SET.rows(80);
        let supervision = ordered(&set);
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let mut seen = 0;
        let mut validate = |map: &Map| {
            assert_eq!(map.input_dim(crate::model::Side::Item), Some(6));
            seen += 1;
            Ok(f64::from(seen))
        };
        let mut run = Run {
            validate: Some(&mut validate),
            ..Run::new(3)
        };
        let map = Method::fit(&settings(Compared::Attributes), &data, &mut run);
        assert_eq!(map.unwrap().input_dim(crate::model::Side::Item), Some(6));
        assert!(run.facts.contains_key("objective"));
        drop(run);
        assert!(seen > 1);
    }

    #[test]
    fn scores_need_orderings() {
        let set = SET.rows(40);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let found = Method::fit(&settings(Compared::RankSvm), &data, &mut Run::new(3));
        assert!(found.unwrap_err().to_string().contains("orderings"));
    }
}
