//! For every family of metric and every plan that it has: pgvector's exact order is the metric's own.

use crate::server::Server;
use crate::tables::{answered, drawn, load, parquet, refused, save, shuffled_ids, text};
use metra::data::{Batch, ElementMap};
use metra::linalg::{Kernel, RowBuf};
use metra::model::{Chain, Indefinite, KernelMap, LowRank, Map, Plan, Signs, Space, Step};
use std::collections::{BTreeMap, BTreeSet};

const DIM: usize = 12;
const ITEMS: usize = 1_000;
const QUERIES: usize = 15;
const K: usize = 100;

fn random(purpose: &str, rank: usize, dim: usize, offset: bool) -> LowRank {
    let offset = offset.then(|| drawn(&format!("{purpose} offset"), 1, rank, 0.0).into_values());
    LowRank::new(drawn(purpose, rank, dim, 0.0), offset).unwrap()
}

fn families() -> Vec<(&'static str, Chain)> {
    let centre = || Step::Centre {
        mean: drawn("mean", 1, DIM, 1.0).into_values(),
    };
    let scale = || Step::Scale {
        factors: drawn("factors", 1, DIM, 1.5).into_values(),
    };
    let chain =
        |steps: Vec<Step>, map: Map, space: Space| Chain::new(DIM, steps, map, space).unwrap();
    let plain = || Map::LowRank(random("plain", 5, DIM, false));
    let shifted = || Map::LowRank(random("shifted", 5, DIM, true));
    let pair = || Map::Bilinear {
        query: random("queries", 5, DIM, true),
        item: random("items", 5, DIM, true),
    };
    let mut identity = RowBuf::zeros(DIM, DIM);
    (0..DIM).for_each(|at| identity.row_mut(at)[at] = 1.0);
    let adapter = Map::Bilinear {
        query: random("adapter", DIM, DIM, false),
        item: LowRank::new(identity, None).unwrap(),
    };
    let landmarks = drawn("landmarks", 9, DIM, 1.0);
    let kernel = Kernel::Rbf { gamma: 0.1 };
    let kernel =
        KernelMap::new(kernel, landmarks, random("over kernel values", 4, 9, true)).unwrap();
    let chi = Step::Element(ElementMap::ChiSquare { order: 1 });
    let indefinite = Indefinite::new(random("indefinite", 6, DIM, false), 4).unwrap();
    let sums = random("sums", 6, DIM, false);
    let sums = Indefinite::with_signs(sums, Signs::new([3, 1], [1, 1])).unwrap();
    vec![
        (
            "euclid",
            chain(vec![centre(), scale()], shifted(), Space::SquaredL2),
        ),
        ("dot", chain(vec![centre()], plain(), Space::InnerProduct)),
        ("cosine", chain(vec![], plain(), Space::Cosine)),
        (
            "cosine with offset",
            chain(vec![centre()], shifted(), Space::Cosine),
        ),
        ("pair by dot", chain(vec![], pair(), Space::InnerProduct)),
        ("pair by euclid", chain(vec![], pair(), Space::SquaredL2)),
        (
            "adapter by dot",
            chain(vec![], adapter.clone(), Space::InnerProduct),
        ),
        ("adapter by cosine", chain(vec![], adapter, Space::Cosine)),
        (
            "diagonal",
            chain(
                vec![],
                Map::Diagonal(drawn("diagonal", 1, DIM, 0.0).into_values()),
                Space::SquaredL2,
            ),
        ),
        (
            "landmarks",
            chain(vec![], Map::Kernel(kernel), Space::SquaredL2),
        ),
        (
            "explicit chi2",
            chain(
                vec![chi],
                Map::LowRank(random("chi2", 5, 3 * DIM, false)),
                Space::SquaredL2,
            ),
        ),
        (
            "sums",
            chain(vec![centre()], Map::Indefinite(sums), Space::InnerProduct),
        ),
        (
            "indefinite",
            chain(
                vec![centre()],
                Map::Indefinite(indefinite),
                Space::InnerProduct,
            ),
        ),
        (
            "blocks",
            chain(
                vec![],
                Map::LowRank(random("blocks", 6, DIM, false)),
                Space::Blocks { size: 2 },
            ),
        ),
    ]
}

#[test]
#[ignore = "slow: starts PostgreSQL"]
fn every_plan_ranks_as_the_metric_does() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let items = drawn("items of the table", ITEMS, DIM, 1.0);
    let queries = drawn("queries", QUERIES, DIM, 1.0);
    let ids = shuffled_ids(ITEMS);
    load(&server, "docs", items.rows(), &ids, 0);
    let query_file = folder.path().join("queries.parquet");
    parquet(
        &query_file,
        queries.rows(),
        &(0..QUERIES as i64).collect::<Vec<_>>(),
    );
    let place: BTreeMap<String, usize> = ids
        .iter()
        .enumerate()
        .map(|(row, id)| (id.to_string(), row))
        .collect();
    let url = server.url();
    let mut seen = BTreeSet::new();
    let (mut plans, mut worst_half) = (0, 1.0_f64);
    for (family, chain) in families() {
        let (model, path) = save(folder.path(), &family.replace(' ', "-"), chain);
        let mut scores = Vec::new();
        let (asking, asked) = (Batch::new(queries.rows()), Batch::new(items.rows()));
        model
            .chain
            .dissimilarity(&asking, &asked, &mut scores)
            .unwrap();
        let mut names = BTreeSet::new();
        for plan in Plan::all_for_model(&model).unwrap() {
            // Of two plans of one name, which a map to as many numbers as it takes has, the record could not say
            // which it was: the second is refused.
            let told_apart = names.insert(plan.name());
            for kind in ["vector", "halfvec"] {
                let column = format!("c{}_{kind}", seen.len());
                let (way, distance) = (plan.way().to_string(), plan.distance().to_string());
                let mut push = vec![
                    "push",
                    text(&path),
                    &url,
                    "--table",
                    "docs",
                    "--from",
                    "embedding",
                    "--way",
                    &way,
                    "--distance",
                    &distance,
                ];
                let searched = if plan.items_stay() {
                    if kind == "halfvec" {
                        continue;
                    }
                    push.push("--keep-items");
                    "embedding"
                } else {
                    push.extend(["--to", &column, "--type", kind]);
                    &column
                };
                if plan.holds_input() && !plan.items_stay() {
                    push.push("--keep-input");
                }
                if !told_apart {
                    assert!(
                        refused(&push).contains("its record tells from others"),
                        "{family}"
                    );
                    continue;
                }
                plans += usize::from(kind == "vector");
                let done = answered(&push);
                assert_eq!(done["record"]["way"], way, "{family}");
                assert_eq!(done["record"]["dimension"], plan.item_dim(), "{family}");
                let agreement = done["agreement"].as_f64().unwrap();
                assert!(
                    agreement > 0.9999 || plan.ranks_again().is_some(),
                    "{family} {way}: {agreement}"
                );
                let number = seen.len();
                seen.insert((family, plan.name(), kind));
                let k = K.to_string();
                let found = answered(&[
                    "search",
                    text(&path),
                    &url,
                    "--table",
                    "docs",
                    "--table-vector",
                    searched,
                    "--query",
                    text(&query_file),
                    "-k",
                    &k,
                    "--exact",
                ]);
                let mut share = 0.0;
                for query in 0..QUERIES {
                    let own = &scores[query * ITEMS..(query + 1) * ITEMS];
                    let given = found[query]["items"].as_array().unwrap();
                    let rows: Vec<usize> = given
                        .iter()
                        .map(|hit| place[hit["item"].as_str().unwrap()])
                        .collect();
                    assert_eq!(rows.len(), K, "{family} {way} {number}");
                    if kind == "vector" {
                        ranked_alike(own, &rows, &format!("{family}: {} as {kind}", plan.name()));
                    }
                    share += overlap(own, &rows) / QUERIES as f64;
                }
                if kind == "halfvec" {
                    worst_half = worst_half.min(share);
                    eprintln!(
                        "halfvec {family}, {}: {:.1} % of the top {K}",
                        plan.name(),
                        100.0 * share
                    );
                }
            }
        }
    }
    eprintln!(
        "{plans} plans in the metric's order; halfvec: at least {:.1} %",
        100.0 * worst_half
    );
    assert!(worst_half > 0.9, "{worst_half}");
    let ways: BTreeSet<&str> = seen
        .iter()
        .map(|(_, name, _)| name.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        ways,
        BTreeSet::from([
            "candidates",
            "extra-coordinate",
            "mapped",
            "query-only",
            "rescaled"
        ])
    );
}

/// The ranking is that of the scores, wherever they differ by more than 1e-5 of their range.
fn ranked_alike(scores: &[f32], rows: &[usize], what: &str) {
    let low = scores.iter().copied().fold(f32::INFINITY, f32::min);
    let high = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let least = (f64::from(high) - f64::from(low)) * 1e-5;
    let given: BTreeSet<usize> = rows.iter().copied().collect();
    assert_eq!(given.len(), rows.len(), "{what}: an item twice");
    let mut highest = f64::NEG_INFINITY;
    for (rank, row) in rows.iter().enumerate() {
        let own = f64::from(scores[*row]);
        assert!(
            own > highest - least,
            "{what}: rank {rank} has {own}, one before it {highest}"
        );
        highest = highest.max(own);
    }
    for (row, score) in scores.iter().enumerate() {
        let score = f64::from(*score);
        assert!(
            given.contains(&row) || score > highest - least,
            "{what}: row {row} with {score} is left out"
        );
    }
}

/// The share of the true top K that was found.
fn overlap(scores: &[f32], rows: &[usize]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    let best: BTreeSet<usize> = order.into_iter().take(K).collect();
    rows.iter().filter(|row| best.contains(row)).count() as f64 / K as f64
}
