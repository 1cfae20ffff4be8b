//! Budgets of bytes on made data.

use super::*;
use crate::data::synthetic::Nuisance;
use crate::dataset::Dataset;
use crate::experiment::{EvaluationSettings, HoldOut, Protocol};
use crate::supervision::Labels;
use crate::training::Progress;
use std::sync::atomic::AtomicBool;

struct Silent;
impl Observer for Silent {
    fn progress(&mut self, _: &Progress) {}
}

const SET: Nuisance = Nuisance {
    classes: 10,
    signal: 4,
    noise: 12,
    seed: 3,
};

fn learned(method: &str, settings: &[(&str, &str)]) -> ComparedMethod {
    let settings = settings
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
    ComparedMethod {
        name: method.into(),
        method: method.into(),
        settings: settings.collect(),
        ..baseline(Space::Cosine)
    }
}

fn found(bytes: &[usize]) -> Result<CompressionResult> {
    let set = SET.rows(900);
    let labels = Labels::from_numbers(&set.classes)?;
    let data = Dataset::builder(&set.corpus).labels(labels).build()?;
    let protocol = Protocol::LeaveOneOut;
    let judging = EvaluationSettings::new(&data, protocol, Vec::new(), None, 1)?;
    let units: Vec<u64> = (0..900).collect();
    let parts = Parts::draw(&data, &units, HoldOut::Rows, (0.2, 0.3), 1)?;
    let methods = vec![
        ComparedMethod {
            spaces: Vec::new(),
            ..learned("supcon", &[("steps", "100")])
        },
        ComparedMethod {
            spaces: Vec::new(),
            ..learned("lda", &[])
        },
    ];
    let experiment = Experiment::new(
        &data,
        (vec![(parts, 1)], HoldOut::Rows),
        judging,
        methods,
        1,
    )?;
    let settings = CompressSettings {
        bytes: bytes.to_vec(),
        rescore: 20,
        ..CompressSettings::default()
    };
    experiment.compress(0, &settings, &mut Silent)
}

#[test]
fn fewer_bytes_with_what_was_learned_beat_all_bytes_without() {
    let mut found = found(&[8, 2, 64, 8]).unwrap();
    let budgets: Vec<usize> = found.points.iter().map(|point| point.budget).collect();
    assert_eq!(budgets, [2, 8, 64]);
    assert_eq!(found.base_bytes, 64);
    for point in &found.points {
        let best = &found.found[point.alone.unwrap()];
        assert!(best.item_bytes <= point.budget && best.is_learned);
        assert!(!found.found[point.unlearned.unwrap()].is_learned);
        assert_eq!(best.model.chain.item_bytes(), best.item_bytes);
        let again = &found.found[point.rescored.unwrap()];
        assert!(again.disk_bytes().is_some() && again.item_bytes <= point.budget);
        // What rescores says of itself how it holds its items.
        let rescoring = again.rescoring.as_ref().unwrap();
        assert_eq!(rescoring.origin.parameters["code"], "int8");
        let is_base = ["euclid", "cosine"].contains(&rescoring.origin.method.as_str());
        assert_eq!(is_base, !again.is_learned);
        // The model says of itself what was measured of it.
        let gain = found.gain(best).unwrap();
        let own = &best.model.origin.held_out.as_ref().unwrap().measures["map"];
        assert_eq!((own.learned, own.low), (gain.learned, gain.low));
    }
    // Chosen by validation, larger budgets are not worse there.
    let value = |point: &CompressionPoint| {
        let trial = &found.trials[found.found[point.alone.unwrap()].trial];
        trial.alone.unwrap().criterion
    };
    assert!(
        found
            .points
            .windows(2)
            .all(|pair| value(&pair[1]) >= value(&pair[0]))
    );
    let few = found.recommended().unwrap();
    assert!(few.item_bytes <= 8 && found.gain(few).unwrap().low > 0.0);
    let text = found.recommendation();
    assert!(
        text.contains("over ") && text.contains("on 64 bytes"),
        "{text}"
    );
    // A whole vector fits the largest budget and is tried.
    assert!(found.trials.iter().any(|trial| trial.code == "none"));
    // Where nothing that rescoring gains is worth a second copy of the items, it is not recommended.
    found.tolerance = 1.0;
    assert!(found.recommended().unwrap().rescoring.is_none());
}

#[test]
fn budgets_that_nothing_fits_and_parts_that_are_missing_are_refused() {
    assert!(found(&[]).is_err());
    assert!(found(&[4, 0]).is_err());
    let set = SET.rows(100);
    let labels = Labels::from_numbers(&set.classes).unwrap();
    let data = Dataset::builder(&set.corpus)
        .labels(labels)
        .build()
        .unwrap();
    let judging = EvaluationSettings::new(&data, Protocol::LeaveOneOut, Vec::new(), None, 1);
    let parts = Parts {
        train: (0..100).collect(),
        ..Parts::default()
    };
    let splits = (vec![(parts, 1)], HoldOut::None);
    let experiment = Experiment::new(&data, splits, judging.unwrap(), Vec::new(), 1).unwrap();
    let found = experiment.compress(0, &CompressSettings::default(), &mut Silent);
    assert!(found.err().unwrap().to_string().contains("hold out both"));
}

#[test]
fn without_supervision_neighbours_are_to_be_found() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let set = SET.rows(600);
    let storage = crate::data::Storage::default();
    let data = neighbour_dataset(&set.corpus, Space::Cosine, 1, (storage, &STOP)).unwrap();
    assert_eq!((data.items().len(), data.queries().len()), (480, 120));
    let shares = (0.3, 0.5);
    let experiment = Experiment::of_neighbours(&data, Space::Cosine, Vec::new(), shares, 1);
    let experiment = experiment.unwrap();
    let settings = CompressSettings {
        bytes: vec![2, 16, 64],
        rescore: 50,
        ..CompressSettings::default()
    };
    let found = experiment.compress(0, &settings, &mut Silent).unwrap();
    assert_eq!(found.base_value, 1.0);
    let recall = |place: Option<usize>| found.gain(&found.found[place.unwrap()]).unwrap().learned;
    let alone: Vec<f64> = found.points.iter().map(|p| recall(p.alone)).collect();
    assert!(
        alone[0] < alone[1] && alone[1] > 0.9 && alone[2] > 0.9,
        "{alone:?}"
    );
    // Two bytes find most of the ten among the first fifty, which are put in order from disk.
    assert!(recall(found.points[0].rescored) > alone[0] + 0.1);
    let few = SET.rows(40);
    let storage = crate::data::Storage::default();
    assert!(neighbour_dataset(&few.corpus, Space::Cosine, 1, (storage, &STOP)).is_err());
}
