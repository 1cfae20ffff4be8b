//! Training that starts from the map of an earlier model.

use super::{Pipeline, registry};
use crate::data::synthetic::Nuisance;
use crate::data::{Corpus, MOST_DIGESTS, MemoryCorpus, Storage, Subset};
use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::methods::Warca;
use crate::model::{Model, Side, embed_corpus};
use crate::random::Stream;
use crate::supervision::Labels;
use crate::training::Recipe;
use std::collections::BTreeMap;

const SET: Nuisance = Nuisance {
    classes: 6,
    signal: 3,
    noise: 5,
    seed: 3,
};

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs.iter();
    let owned = owned.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

fn pipeline(method: &str, pairs: &[(&str, &str)]) -> Pipeline {
    Pipeline::named(method, &settings(pairs), &Recipe::default()).unwrap()
}

/// A data set of some rows of the set.
fn with<R>(rows: std::ops::Range<u64>, work: impl FnOnce(&Dataset<'_>) -> R) -> R {
    let all = SET.rows(rows.end as usize);
    let classes: Vec<i64> = rows.clone().map(|row| SET.class(row)).collect();
    let part = Subset::new(&all.corpus, rows.collect()).unwrap();
    let labels = Labels::from_numbers(&classes).unwrap();
    work(&Dataset::builder(&part).labels(labels).build().unwrap())
}

/// How far apart two models map the same queries, relative to how far they map them from 0.
fn apart(left: &Model, right: &Model) -> f64 {
    let all = SET.rows(240);
    let mapped = |model: &Model| {
        let (chain, storage) = (&model.chain, Storage::default());
        let mapped = embed_corpus(chain, Side::Query, &all.corpus, None, &storage).unwrap();
        let (mut rows, ids) = (RowBuf::empty(1), (0..240).collect::<Vec<u64>>());
        mapped.corpus().gather(&ids, &mut rows).unwrap();
        rows.into_values()
    };
    let (left, right) = (mapped(left), mapped(right));
    assert_eq!(left.len(), right.len());
    let length = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let pairs = left.iter().zip(&right);
    length(&mut pairs.map(|(l, r)| f64::from(*l) - f64::from(*r)))
        / length(&mut left.iter().map(|l| f64::from(*l)))
}

/// A rate that moves nothing leaves the earlier map as it was, though the new rows have another scale.
#[test]
fn every_method_that_can_starts_where_the_earlier_model_ended() {
    let able = registry::ENTRIES
        .iter()
        .filter(|entry| entry.starts_from_model);
    let names: Vec<&str> = able.map(|entry| entry.name).collect();
    assert!(
        names.contains(&"warca") && names.contains(&"adapter"),
        "{names:?}"
    );
    for name in names {
        let mut pairs = vec![("steps", "40")];
        if name != "adapter" {
            pairs.push(("rank", "4"));
        }
        if name == "nca" {
            pairs.push(("batch", "60"));
        }
        let first = with(0..240, |data| pipeline(name, &pairs).fit(data).unwrap());
        pairs.retain(|(name, _)| *name != "steps");
        pairs.extend([("steps", "1"), ("rate", "1e-9")]);
        let fitted = |start: Option<&Model>, rows| {
            let pipeline = pipeline(name, &pairs);
            let pipeline = match start {
                Some(model) => pipeline.start_from(model).unwrap(),
                None => pipeline,
            };
            with(rows, |data| pipeline.fit(data).unwrap())
        };
        // Also on fewer rows than dimensions, which span less than the map knows.
        for rows in [240..360, 240..247] {
            let apart = apart(&first, &fitted(Some(&first), rows));
            assert!(apart < 1e-5, "{name}: {apart}");
        }
        let apart = apart(&first, &fitted(None, 240..360));
        assert!(apart > 1e-2, "{name}: {apart}");
    }
}

#[test]
fn the_new_model_knows_the_rows_of_all_before_it() {
    let warca = |start: Option<&Model>, rows| {
        let pipeline = pipeline("warca", &[("rank", "3"), ("steps", "2")]);
        let pipeline = match start {
            Some(model) => pipeline.start_from(model).unwrap(),
            None => pipeline,
        };
        with(rows, |data| pipeline.fit(data).unwrap())
    };
    let first = warca(None, 0..100);
    let second = warca(Some(&first), 90..150);
    let third = warca(Some(&second), 150..200);
    let all = SET.rows(250);
    let seen = |model: &Model| {
        let seen = model.seen_rows(&all.corpus).unwrap().unwrap();
        (seen.recognisable, seen.seen)
    };
    assert_eq!(seen(&first), (250, 100));
    assert_eq!(seen(&second), (250, 150));
    assert_eq!(seen(&third), (250, 200));
    // Ten rows of the second part were known.
    assert_eq!(second.training.as_ref().unwrap().rows(), 150);
    // It lives in files, and points to the file that it started from.
    let read = Model::from_bytes(&third.to_bytes().unwrap()).unwrap();
    assert_eq!(read, third);
    let record = third.origin.started_from.as_ref().unwrap();
    let file = blake3::hash(&second.to_bytes().unwrap()).to_string();
    assert_eq!(
        (&record.file, &record.first_data),
        (&file, &first.origin.data)
    );
    // Of a model that does not say what it learned from nothing can be said.
    let silent = Model {
        training: None,
        ..first
    };
    assert_eq!(warca(Some(&silent), 90..150).training, None);
}

/// Of many rows each list keeps a sample; the sample of both together tells the share of each.
#[test]
fn samples_of_many_rows_are_joined() {
    let mut stream = Stream::new(1, "rows", 0);
    let count = 3 * MOST_DIGESTS;
    let values = (0..2 * count).map(|_| stream.normal() as f32).collect();
    let all = MemoryCorpus::new(RowBuf::from_values(values, 2).unwrap()).unwrap();
    let part = |rows: std::ops::Range<usize>| {
        Subset::new(&all, (rows.start as u64..rows.end as u64).collect()).unwrap()
    };
    let fit = |start: Option<&Model>, rows: &dyn Corpus| {
        let classes: Vec<i64> = (0..rows.len() as i64).map(|row| row % 50).collect();
        let labels = Labels::from_numbers(&classes).unwrap();
        let data = Dataset::builder(rows).labels(labels).build().unwrap();
        let pipeline = pipeline("warca", &[("rank", "1"), ("steps", "1")]);
        match start {
            Some(model) => pipeline.start_from(model).unwrap().fit(&data).unwrap(),
            None => pipeline.fit(&data).unwrap(),
        }
    };
    let first = fit(None, &part(0..2 * MOST_DIGESTS));
    let second = fit(
        Some(&first),
        &part(MOST_DIGESTS..2 * MOST_DIGESTS + MOST_DIGESTS / 2),
    );
    let seen = second.seen_rows(&all).unwrap().unwrap();
    // 2.5 of 3 parts.
    assert!((seen.share() - 2.5 / 3.0).abs() < 0.01, "{seen:?}");
    let rows = second.training.as_ref().unwrap().rows() as f64;
    assert!((rows / MOST_DIGESTS as f64 - 2.5).abs() < 0.05, "{rows}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let first = with(0..100, |data| {
        pipeline("warca", &[("rank", "3"), ("steps", "2")])
            .fit(data)
            .unwrap()
    });
    let refusal = |pipeline: crate::Result<Pipeline>| {
        with(0..100, |data| {
            let fitted = pipeline.and_then(|pipeline| pipeline.fit(data));
            fitted.unwrap_err().to_string()
        })
    };
    let of = |method: &str, pairs: &[(&str, &str)]| pipeline(method, pairs).start_from(&first);
    let text = refusal(of("lda", &[]));
    assert!(text.contains("left out for lda: only nca, warca"), "{text}");
    assert!(refusal(of("kernel-warca", &[])).contains("left out for kernel-warca"));
    let text = refusal(of("warca", &[("rank", "4")]));
    assert!(
        text.contains("a map of 8 dimensions to 4") && text.contains("8 dimensions to 3"),
        "{text}"
    );
    let text = refusal(of("adapter", &[]));
    assert!(text.contains("a model of the adapter"), "{text}");
    let prepared = pipeline("warca", &[("rank", "3")])
        .prepare("centre")
        .unwrap();
    let text = refusal(prepared.start_from(&first));
    assert!(
        text.contains("prepared by centre") && text.contains("none"),
        "{text}"
    );
    // Of another dimension.
    let narrow = SET.rows(50);
    let narrow: Vec<f32> = narrow
        .corpus
        .rows()
        .iter()
        .flat_map(|row| row[..5].to_vec())
        .collect();
    let narrow = MemoryCorpus::new(RowBuf::from_values(narrow, 5).unwrap()).unwrap();
    let classes: Vec<i64> = (0..50).map(|row| SET.class(row)).collect();
    let labels = Labels::from_numbers(&classes).unwrap();
    let data = Dataset::builder(&narrow).labels(labels).build().unwrap();
    let warca = Warca {
        rank: 3,
        ..Warca::default()
    };
    let fitted = Pipeline::new(warca).start_from(&first).unwrap().fit(&data);
    let text = fitted.unwrap_err().to_string();
    assert!(
        text.contains("as the model to start from takes them"),
        "{text}"
    );
}
