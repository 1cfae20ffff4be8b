//! Queries and items that are vectors of two models.

use super::{Pipeline, registry};
use crate::data::{Batch, Corpus, Groups, MemoryCorpus};
use crate::dataset::Dataset;
use crate::evaluate::Measure;
use crate::experiment::{EvaluationSettings, Protocol};
use crate::linalg::RowBuf;
use crate::model::{
    Chain, Embedding, LowRank, Map, Model, Plan, Preprocessing, Space, Step, agreement,
};
use crate::random::Stream;
use crate::supervision::Judgement;
use crate::training::Recipe;
use std::collections::BTreeMap;

const CLASSES: u64 = 10;
const QUERY_DIM: usize = 6;
const ITEM_DIM: usize = 9;

/// Points about the centres of classes in four hidden dimensions, as a model shows them: A z + noise, far from the origin.
fn shown(rows: u64, dim: usize, model: &str) -> RowBuf {
    let mut weights = Stream::new(5, model, 0);
    let weights: Vec<f64> = (0..dim * 4).map(|_| weights.normal()).collect();
    let mut out = RowBuf::zeros(rows as usize, dim);
    for row in 0..rows {
        let mut centre = Stream::new(5, "centre", row % CLASSES);
        let mut noise = Stream::new(5, &format!("{model} noise"), row);
        let hidden: Vec<f64> = (0..4)
            .map(|_| 3.0 * centre.normal() + 0.5 * noise.normal())
            .collect();
        for (column, value) in out.row_mut(row as usize).iter_mut().enumerate() {
            let along = weights[4 * column..4 * column + 4].iter().zip(&hidden);
            *value = (along.map(|(w, z)| w * z).sum::<f64>() + noise.normal() + 20.0) as f32;
        }
    }
    out
}

struct Towers {
    queries: MemoryCorpus,
    items: MemoryCorpus,
    judgements: Vec<Judgement>,
}

fn towers(query_dim: usize) -> Towers {
    let (queries, items) = (80, 120);
    let pairs = (0..queries).flat_map(|query| (0..items).map(move |item| (query, item)));
    let relevant = pairs.filter(|(query, item)| query % CLASSES == item % CLASSES);
    Towers {
        queries: MemoryCorpus::new(shown(queries, query_dim, "queries")).unwrap(),
        items: MemoryCorpus::new(shown(items, ITEM_DIM, "items")).unwrap(),
        judgements: relevant
            .map(|(query, item)| Judgement {
                query,
                item,
                grade: 1.0,
            })
            .collect(),
    }
}

impl Towers {
    fn data(&self) -> Dataset<'_> {
        let builder = Dataset::builder(&self.items).queries(&self.queries);
        let builder = builder.qrels(self.judgements.clone());
        (builder.two_spaces(self.queries.dim() == ITEM_DIM).build()).unwrap()
    }
}

fn pipeline(method: &str, pairs: &[(&str, &str)], recipe: &str) -> Pipeline {
    let settings: BTreeMap<String, String> = (pairs.iter())
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let recipe: Recipe = recipe.parse().unwrap();
    Pipeline::named(method, &settings, &recipe).unwrap()
}

/// Settings that make a method quick on this set.
fn settings(method: &str) -> Vec<(&'static str, &'static str)> {
    match method {
        "procrustes" => Vec::new(),
        "oasis" => vec![("steps", "20")],
        "loreta" => vec![("rank", "4"), ("steps", "10"), ("rate", "0.1")],
        "slr" | "cca" => vec![("rank", "4")],
        _ => vec![("rank", "4"), ("steps", "60")],
    }
}

/// The share of held-out queries whose first answer is right.
fn held_out(model: &Model, data: &Dataset<'_>) -> f64 {
    let rest: Vec<u64> = (40..80).collect();
    let first = Measure::CmcAt(1);
    let settings = EvaluationSettings::new(data, Protocol::Judged, vec![first], None, 1).unwrap();
    let space = [model.chain.space()];
    let scores = data.evaluate_part(&model.chain, &space, &rest, &[], &settings.0);
    scores.unwrap().remove(0).unwrap().mean(first)
}

#[test]
fn every_method_that_can_finds_items_of_another_model() {
    let towers = towers(QUERY_DIM);
    let data = towers.data();
    let train = data.select(&(0..40).collect::<Vec<u64>>()).unwrap();
    let able: Vec<&str> = (registry::ENTRIES.iter())
        .filter(|entry| entry.two_spaces)
        .map(|entry| entry.name)
        .collect();
    assert_eq!(
        able,
        [
            "cca",
            "procrustes",
            "oasis",
            "loreta",
            "warca",
            "frml",
            "multi-similarity",
            "supcon",
            "slr"
        ]
    );
    for name in able {
        for recipe in ["none", "centre+scale"] {
            let pipeline = pipeline(name, &settings(name), recipe);
            let model = pipeline.fit(&train).unwrap();
            // One in ten by chance.
            let right = held_out(&model, &data);
            assert!(right > 0.5, "{name} after {recipe}: {right}");
            assert_eq!(
                (model.query_input_dim(), model.input_dim()),
                (QUERY_DIM, ITEM_DIM)
            );
            let bytes = model.to_bytes().unwrap();
            assert_eq!(Model::from_bytes(&bytes).unwrap(), model, "{name}");
            assert_eq!(
                pipeline.fit(&train).unwrap().to_bytes().unwrap(),
                bytes,
                "{name}"
            );
            // Every plan orders items as the metric does.
            let queries = Batch::new(towers.queries.rows().slice(40, 80));
            let items = Batch::new(towers.items.rows());
            let plans = Plan::all_for_model(&model).unwrap();
            assert!(!plans.is_empty());
            for plan in plans {
                let alike = agreement(&model.chain, &plan, &queries, &items).unwrap();
                assert!(alike > 0.9999, "{name}: {}: {alike}", plan.name());
            }
        }
    }
}

/// Items stay what they are where queries alone are mapped.
#[test]
fn procrustes_leaves_the_index_as_it_is() {
    let towers = towers(QUERY_DIM);
    let model = pipeline("procrustes", &[], "none")
        .fit(&towers.data())
        .unwrap();
    let mapped = model.embed_items(&towers.items).unwrap();
    let mut rows = RowBuf::empty(1);
    let all: Vec<u64> = (0..120).collect();
    mapped.corpus().gather(&all, &mut rows).unwrap();
    assert_eq!(rows.values(), towers.items.rows().values());
    let plans = Plan::all_for_model(&model).unwrap();
    assert!(plans[0].items_stay(), "{}", plans[0].name());
}

/// Each side keeps its own map where preprocessing brings both to one dimension.
#[test]
fn preprocessing_to_one_dimension_makes_no_one_space() {
    let towers = towers(QUERY_DIM);
    let model = pipeline("supcon", &[("rank", "4"), ("steps", "2")], "pca:5").fit(&towers.data());
    assert!(matches!(model.unwrap().chain.map(), Map::Bilinear { .. }));
}

/// Oasis over stacked vectors fills no dimension but those of the items.
#[test]
fn dimensions_of_one_side_alone_are_left_out() {
    let towers = towers(QUERY_DIM);
    let model = pipeline("oasis", &[("steps", "2")], "none").fit(&towers.data());
    assert_eq!(model.unwrap().output_dim(), ITEM_DIM);
}

#[test]
fn equal_dimensions_can_be_of_two_models() {
    let towers = towers(ITEM_DIM);
    let data = towers.data();
    assert!(data.has_two_spaces());
    let model = pipeline("cca", &[("rank", "4")], "pca:5")
        .fit(&data)
        .unwrap();
    // Each side has its own axes.
    let own = &model.chain.query_preprocessing().unwrap().steps;
    assert!(own[..] != *model.chain.steps());
    assert!(held_out(&model, &data) > 0.8);
    // A step to one dimension does not make one space of them.
    let error = pipeline("lda", &[], "pca:5").fit(&data).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("vectors of two models: cca, procrustes"),
        "{error}"
    );
}

#[test]
fn what_needs_one_space_says_so() {
    let towers = towers(QUERY_DIM);
    let data = towers.data();
    let error = pipeline("adapter", &[], "none").fit(&data).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("queries (6 dimensions) and items (9)"),
        "{text}"
    );
    let error = data.one_space("euclid").unwrap_err().to_string();
    assert!(
        error.starts_with("euclid compares vectors as they are"),
        "{error}"
    );
    let slr = pipeline("slr", &[("rank", "4"), ("start", "identity")], "none");
    assert!(slr.fit(&data).unwrap_err().to_string().contains("start"));
    let wide = pipeline("cca", &[("rank", "7")], "none").fit(&data);
    assert!(wide.unwrap_err().to_string().contains("rank"));
    // A side takes its own vectors alone.
    let model = pipeline("cca", &[("rank", "4")], "none")
        .fit(&data)
        .unwrap();
    let swapped = model
        .embed_queries(&towers.items)
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        swapped,
        "dimension of the queries: expected 6 (what the metric was made for), but found 9"
    );
    let swapped = model
        .embed_items(&towers.queries)
        .err()
        .unwrap()
        .to_string();
    assert!(
        swapped.starts_with("dimension of the items: expected 9"),
        "{swapped}"
    );
    let alone = Dataset::builder(&towers.items).two_spaces(true);
    let alone = alone.labels(crate::supervision::Labels::from_numbers(&[0; 120]).unwrap());
    assert!(
        alone
            .build()
            .err()
            .unwrap()
            .to_string()
            .contains("separate queries")
    );
}

#[test]
fn parts_of_both_sides_must_fit() {
    let low_rank = |rank: usize, dim: usize| {
        let weights = RowBuf::from_values(vec![1.0; rank * dim], dim).unwrap();
        LowRank::new(weights, None).unwrap()
    };
    let side = |input_dim: usize, steps: Vec<Step>| Preprocessing { input_dim, steps };
    let bilinear = |query: (usize, usize), item: (usize, usize)| Map::Bilinear {
        query: low_rank(query.0, query.1),
        item: low_rank(item.0, item.1),
    };
    let chain = |queries, map| Chain::between(Some(queries), side(3, vec![]), map, Space::Cosine);
    assert!(chain(side(2, vec![]), bilinear((4, 2), (4, 3))).is_ok());
    let refused = |queries, map| chain(queries, map).unwrap_err().to_string();
    let text = refused(side(5, vec![]), bilinear((4, 2), (4, 3)));
    assert_eq!(
        text,
        "dimension of the queries before the map: expected 2, but found 5"
    );
    assert!(refused(side(2, vec![]), bilinear((3, 2), (4, 3))).contains("output"));
    let shared = refused(side(2, vec![]), Map::LowRank(low_rank(4, 3)));
    assert!(shared.contains("share a map"), "{shared}");
    // Groups are found by number: both sides must number the same ones.
    let names = Groups::new(&["a", "b"]).names().to_vec();
    let means = RowBuf::zeros(2, 2);
    let grouped = side(2, vec![Step::CentreGroups { names, means }]);
    let text = refused(grouped, bilinear((4, 2), (4, 3)));
    assert!(text.contains("groups whose means"), "{text}");
}
