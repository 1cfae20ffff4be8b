//! What was said counts as it was said: a listed pair once, whichever row comes first, and items judged
//! irrelevant as the only negatives where that is asked for.

use metra::Dataset;
use metra::data::RowId;
use metra::data::synthetic::{LabelledVectors, Nuisance};
use metra::evaluate::Measure;
use metra::experiment::Protocol;
use metra::model::{Embedding, Model};
use metra::pipeline::Pipeline;
use metra::pipeline::registry::{ENTRIES, Entry, find};
use metra::supervision::{Comparisons, Judgement, Labels, Supervision, SupervisionKind};
use metra::training::Recipe;
use std::collections::BTreeMap;

const SET: Nuisance = Nuisance {
    classes: 8,
    signal: 4,
    noise: 12,
    seed: 1,
};

fn fitted(name: &str, settings: &[(&str, &str)], data: &Dataset<'_>) -> metra::Result<Model> {
    let settings = settings
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
    let settings: BTreeMap<String, String> = settings.collect();
    Pipeline::named(name, &settings, &Recipe::default())?.fit(data)
}

#[test]
fn a_listed_pair_counts_once() {
    let set = SET.rows(120);
    let pair = |row: usize, same: bool| {
        let is_other = |other: &usize| (set.classes[*other] == set.classes[row]) == same;
        let other = (row + 1..120).find(is_other)?;
        Some([row as RowId, other as RowId])
    };
    let pairs = |same| {
        (0..100)
            .filter_map(|row| pair(row, same))
            .collect::<Vec<_>>()
    };
    let (similar, dissimilar) = (pairs(true), pairs(false));
    // The other way round, in another order, and some of them twice.
    let again = |pairs: &[[RowId; 2]]| -> Vec<[RowId; 2]> {
        let turned = pairs.iter().rev().map(|[a, b]| [*b, *a]);
        turned.chain(pairs.iter().step_by(3).copied()).collect()
    };
    let mapped = |name: &str, similar: &[[RowId; 2]], dissimilar: &[[RowId; 2]]| {
        let comparisons = Comparisons::new(120).with_pairs(similar, dissimilar);
        let supervision = Supervision::Comparisons(comparisons.unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let steps = [
            ("steps", "5"),
            ("iterations", "5"),
            ("rounds", "2"),
            ("count", "200"),
        ];
        let mut settings = steps.to_vec();
        settings.retain(|(name_of, _)| find(name).unwrap().has(name_of));
        if name.starts_with("kernel-") {
            settings.push(("kernel", "linear"));
        }
        if find(name).unwrap().has("rank") {
            settings.push(("rank", "4"));
        }
        fitted(name, &settings, &data).unwrap().chain
    };
    let takes_pairs = |entry: &&Entry| entry.needs.contains(&SupervisionKind::SimilarPairs);
    let names: Vec<&str> = ENTRIES
        .iter()
        .filter(takes_pairs)
        .map(|entry| entry.name)
        .collect();
    assert!(
        names.len() > 8 && names.contains(&"itml") && names.contains(&"pcca"),
        "{names:?}"
    );
    for name in names {
        let once = mapped(name, &similar, &dissimilar);
        assert!(
            once == mapped(name, &again(&similar), &again(&dissimilar)),
            "{name}"
        );
    }
}

/// Every row is judged against three others of its class and against some of other classes; that the rest of
/// its class is relevant, too, nobody said.
fn judged_in_part(set: &LabelledVectors, classes: u64) -> Vec<Judgement> {
    let rows = set.classes.len() as u64;
    let line = |query, item, grade| Judgement { query, item, grade };
    let relevant = (0..rows)
        .flat_map(|row| (1..4).map(move |step| line(row, (row + step * classes) % rows, 1.0)));
    let irrelevant = (0..rows).flat_map(|row| {
        (1..25)
            .filter(|step| step % classes != 0)
            .map(move |step| line(row, (row + step) % rows, 0.0))
    });
    relevant.chain(irrelevant).collect()
}

#[test]
fn what_nobody_judged_is_not_pushed_away() {
    // A third of what nobody judged is relevant.
    let few = Nuisance { classes: 3, ..SET };
    let (set, new) = (few.rows(402), few.rows(801));
    let data = Dataset::builder(&set.corpus)
        .qrels(judged_in_part(&set, 3))
        .build()
        .unwrap();
    let labels = Labels::from_numbers(&new.classes).unwrap();
    let truth = Dataset::builder(&new.corpus)
        .labels(labels)
        .build()
        .unwrap();
    for (name, settings) in [
        ("warca", &[("rank", "4"), ("steps", "300")][..]),
        ("oasis", &[("steps", "40")]),
        ("loreta", &[("rank", "4"), ("steps", "40"), ("rate", "0.3")]),
    ] {
        let of = |items: &'static str| {
            let settings = [settings, &[("irrelevant", items)]].concat();
            let model = fitted(name, &settings, &data).unwrap();
            let scores = model.evaluate(&truth, Protocol::LeaveOneOut).unwrap();
            scores.mean(Measure::AveragePrecision)
        };
        let (all, judged) = (of("all"), of("judged"));
        assert!(judged > all + 0.02, "{name}: {judged} judged, {all} all");
    }
}

#[test]
fn where_all_is_judged_the_choice_changes_nothing() {
    let set = SET.rows(60);
    let line = |query: u64, item: u64| Judgement {
        query,
        item,
        grade: f32::from(u8::from(query % SET.classes == item % SET.classes)),
    };
    let all = (0..60).flat_map(|query| (0..60).map(move |item| line(query, item)));
    let data = Dataset::builder(&set.corpus)
        .qrels(all.collect())
        .build()
        .unwrap();
    for name in ["warca", "frml"] {
        let of = |items| {
            let settings = [("rank", "3"), ("steps", "20"), ("irrelevant", items)];
            let settings = [&settings[..], &[("sampling", "exact")]].concat();
            fitted(name, &settings, &data).unwrap().chain
        };
        assert!(of("all") == of("judged"), "{name}");
    }
}

/// Of two judged items no rank reaches the default truncation of FRML, and a share of the variance leaves fewer
/// numbers than the default rank.
#[test]
fn little_is_learned_from_too() {
    let set = SET.rows(60);
    let line = |query: u64, item: u64, grade| Judgement {
        query,
        item: item % 60,
        grade,
    };
    let lines = (0..60).flat_map(|row| {
        let classes = SET.classes;
        [
            line(row, row + classes, 1.0),
            line(row, row + 1, 0.0),
            line(row, row + 3, 0.0),
        ]
    });
    let data = Dataset::builder(&set.corpus)
        .qrels(lines.collect())
        .build()
        .unwrap();
    let of = |steps| {
        let settings = [("rank", "4"), ("steps", steps), ("irrelevant", "judged")];
        fitted("frml", &[&settings[..], &[("lambda", "0")]].concat(), &data)
            .unwrap()
            .chain
    };
    assert!(of("1") != of("30"));

    let recipe: Recipe = "pca:50%".parse().unwrap();
    let pipeline = Pipeline::named("warca", &BTreeMap::new(), &recipe).unwrap();
    let model = pipeline.fit(&data).unwrap();
    let rank = model.chain.output_dim();
    assert!(
        rank < 16 && model.origin.parameters["rank"] == rank.to_string(),
        "{rank}"
    );
}

#[test]
fn judged_negatives_need_some() {
    let set = SET.rows(40);
    let line = |query, item| Judgement {
        query,
        item,
        grade: 1.0,
    };
    let relevant = vec![line(0, 8), line(8, 0)];
    let settings = [("irrelevant", "judged"), ("rank", "2")];
    let labels = Labels::from_numbers(&set.classes).unwrap();
    for data in [
        Dataset::builder(&set.corpus).qrels(relevant).build(),
        Dataset::builder(&set.corpus).labels(labels).build(),
        Dataset::builder(&set.corpus)
            .pairs(vec![[0, 8]], Vec::new())
            .build(),
    ] {
        let refused = fitted("warca", &settings, &data.unwrap()).err().unwrap();
        assert!(
            refused.to_string().contains("irrelevant=judged"),
            "{refused}"
        );
    }
    let listed = Dataset::builder(&set.corpus).pairs(vec![[0, 8], [1, 9]], vec![[0, 9], [8, 1]]);
    assert!(fitted("warca", &settings, &listed.build().unwrap()).is_ok());
}
