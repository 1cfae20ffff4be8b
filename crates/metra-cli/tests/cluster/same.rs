//! The same pass on this process, on DataFusion and on clusters of one, two and three executors.

use crate::processes::{Executor, Scheduler, metra};
use crate::tables::Made;
use metra::Pipeline;
use metra::data::Corpus;
use metra::data::MemoryCorpus;
use metra::internal::Keys;
use metra::internal::Rounds;
use metra::internal::Symmetric;
use metra::internal::{keyed_sums, moments, within_scatter};
use metra::linalg::RowBuf;
use metra::supervision::Labels;
use metra_engine::{Cut, Engine, Fit, Ranker, Sharding, TableCorpus};
use std::collections::BTreeMap;

/// All that passes give, as bits.
struct Found {
    moments: Vec<u64>,
    sums: Vec<u64>,
    within: Vec<u64>,
    covariance: Symmetric,
    labels: Labels,
}

fn bits(matrix: &Symmetric) -> Vec<u64> {
    let entries = matrix.entries();
    let rows = 0..matrix.dim();
    rows.flat_map(|i| (0..=i).map(move |j| entries[(i, j)].to_bits()))
        .collect()
}

fn passes(engine: &Engine, made: &Made) -> Found {
    let table = engine.open(&made.address(), Cut::Rows(700)).unwrap();
    let mut corpus = TableCorpus::new(engine, table, None).unwrap();
    let labels = corpus.labels("label").unwrap();
    let covariance = moments(&corpus).unwrap().covariance;
    let keys = Keys::Class(labels.of());
    let sums = keyed_sums(&corpus, keys, labels.classes()).unwrap();
    let weights = vec![1.0; labels.classes()];
    let within = within_scatter(&corpus, keys, &sums, &weights).unwrap();
    let of_sums = (0..labels.classes()).flat_map(|class| sums.mean(class));
    Found {
        moments: bits(&covariance),
        sums: of_sums.map(f64::to_bits).collect(),
        within: bits(&within),
        covariance,
        labels,
    }
}

fn settings(method: &str) -> BTreeMap<String, String> {
    let rank = match method {
        "euclid" => BTreeMap::new(),
        _ => BTreeMap::from([("rank".to_owned(), "4".to_owned())]),
    };
    let mut settings = rank;
    if method == "slr" {
        settings.insert("target".into(), "fixed".into());
    }
    if ["warca", "multi-similarity"].contains(&method) {
        settings.insert("steps".into(), "40".into());
        settings.insert("batch".into(), "64".into());
    }
    settings
}

fn pipeline(method: &str) -> Pipeline {
    let recipe = "centre+scale".parse().unwrap();
    Pipeline::named(method, &settings(method), &recipe).unwrap()
}

fn fit(pipeline: &Pipeline) -> Fit<'_> {
    Fit {
        pipeline,
        seed: 5,
        rounds: Rounds {
            rounds: 4,
            common: 200,
        },
        vectors: None,
        label: "label",
        group: None,
        checkpoint: None,
    }
}

fn sharding(folder: &str) -> Sharding<'_> {
    Sharding {
        label: "label",
        shards: 4,
        seed: 3,
        columns: Vec::new(),
        folder,
        replace: false,
    }
}

const METHODS: [&str; 7] = [
    "pca",
    "lda",
    "kissme",
    "xqda",
    "slr",
    "warca",
    "multi-similarity",
];

fn models(engine: &Engine, shards: &str) -> Vec<Vec<u8>> {
    let model = |method: &&str| {
        let table = engine.open(shards, Cut::Files).unwrap();
        let model = engine.train(table, &fit(&pipeline(method)), &mut |_| {});
        model.unwrap().to_bytes().unwrap()
    };
    METHODS.iter().map(model).collect()
}

/// A model trained by the command on one machine, without a hold-out.
fn single(made: &Made, shards: &str, method: &str) -> metra::model::Model {
    let output = made.beside(&format!("{method}.single"));
    let settings = settings(method);
    let settings: String = (settings.iter())
        .map(|(name, value)| format!(" --set {name}={value}"))
        .collect();
    let file = std::path::Path::new(shards).join("all.parquet");
    let line = format!(
        "train {} --label label --method {method}{settings} --prepare centre+scale \
         --validation 0 --test 0 --seed 5 -o {output}",
        file.display()
    );
    let done = metra(&line).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{line}\n{error}");
    metra::model::Model::load(&output).unwrap()
}

#[test]
#[ignore = "slow: starts clusters"]
fn one_two_and_three_executors_give_the_bytes_of_datafusion() {
    let made = Made::new(4, 1500, 24);
    let here = Engine::here(2).unwrap();
    let expected = passes(&here, &made);
    let shards = made.beside("shards");
    let table = here.open(&made.address(), Cut::Rows(700)).unwrap();
    let sharded = here.shard(&table, &sharding(&shards)).unwrap();
    assert_eq!(sharded.rows.iter().sum::<u64>(), 6000);
    let learned = models(&here, &shards);

    // The library's own, over the same rows in memory.
    let corpus = TableCorpus::new(&here, table.clone(), None).unwrap();
    let mut rows = RowBuf::empty(24);
    let scanned = corpus.scan(0..6000, &mut |_, block| {
        rows.extend(block);
        Ok(())
    });
    scanned.unwrap();
    let local = MemoryCorpus::new(rows).unwrap();
    let own = moments(&local).unwrap().covariance;
    let largest = own.entries().norm_max();
    for i in 0..24 {
        for j in 0..=i {
            let difference = own.entries()[(i, j)] - expected.covariance.entries()[(i, j)];
            assert!(
                difference.abs() <= 1e-12 * largest,
                "({i}, {j}): {difference}"
            );
        }
    }
    let keys = Keys::Class(expected.labels.of());
    let sums = keyed_sums(&local, keys, expected.labels.classes()).unwrap();
    let largest = sums.sums.norm_max();
    for (class, mean) in expected.sums.chunks(24).enumerate() {
        for (own, found) in sums.mean(class).iter().zip(mean) {
            assert!((own - f64::from_bits(*found)).abs() <= 1e-12 * largest);
        }
    }

    let scheduler = Scheduler::start("");
    let mut executors = Vec::new();
    for count in 1..=3 {
        executors.push(Executor::start(&scheduler, ""));
        let cluster = Engine::cluster(&scheduler.url()).unwrap();
        let found = passes(&cluster, &made);
        assert!(found.moments == expected.moments, "{count} executors");
        assert!(found.sums == expected.sums, "{count} executors");
        assert!(found.within == expected.within, "{count} executors");
        let again = made.beside(&format!("shards-{count}"));
        let sharded_again = cluster.shard(&table, &sharding(&again)).unwrap();
        assert_eq!(sharded_again, sharded);
        for shard in 0..4 {
            let name = format!("shard-{shard:05}.parquet");
            let read = |folder: &str| std::fs::read(format!("{folder}/{name}")).unwrap();
            assert!(read(&again) == read(&shards), "{name} by {count} executors");
        }
        for (method, (found, expected)) in
            (METHODS.iter()).zip(models(&cluster, &again).into_iter().zip(&learned))
        {
            assert!(found == *expected, "{method} with {count} executors");
        }
    }
    drop(executors);
}

#[test]
#[ignore = "slow: starts a cluster"]
fn a_result_larger_than_a_message_comes_through() {
    // 2,580 × 2,580 numbers are 53 MB, 27 MB of which travel from every shard.
    let made = Made::new(2, 400, 2580);
    let here = Engine::here(2).unwrap();
    let scheduler = Scheduler::start("");
    let _executor = Executor::start(&scheduler, "");
    let cluster = Engine::cluster(&scheduler.url()).unwrap();
    let found = |engine: &Engine| {
        let table = engine.open(&made.address(), Cut::Files).unwrap();
        assert_eq!(table.shards(), 2);
        let corpus = TableCorpus::new(engine, table, None).unwrap();
        bits(&moments(&corpus).unwrap().covariance)
    };
    assert!(found(&cluster) == found(&here));
}

#[test]
#[ignore = "slow: starts a cluster"]
fn tables_are_embedded_and_judged_where_they_lie() {
    let made = Made::new(3, 1200, 16);
    let scheduler = Scheduler::start("");
    let _executors = [
        Executor::start(&scheduler, ""),
        Executor::start(&scheduler, ""),
    ];
    let url = scheduler.url();
    let run = |line: String| {
        let done = metra(&line).output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{line}\n{error}");
        serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap()
    };
    let (table, model) = (made.address(), made.beside("lda.safetensors"));
    // All queries travel to all items: more than a plan should carry.
    let (shards, scratch) = (made.beside("shards"), made.beside("scratch"));
    let url = format!("{url} --scratch {scratch}");
    run(format!(
        "shard {table} --label label --shards 3 --cluster {url} -o {shards} --json"
    ));
    run(format!(
        "train {shards} --label label --method lda --rank 4 --cluster {url} -o {model} --json"
    ));
    let away = run(format!(
        "eval {model} {table} --label label --base euclid --measures map,p@1 --cluster {url} --json"
    ));
    assert_eq!(away["items"], 3600);
    assert_eq!(away["queries"], 3600);
    assert_eq!(away["seen_rows"]["seen"], 3600);
    let gain = away["comparison"][0]["difference"].as_f64().unwrap();
    assert!(gain > 0.05, "{away:#}");

    let embedded = made.beside("embedded");
    let done = run(format!(
        "embed {model} {table} --keep label --cluster {url} -o {embedded} --f16 --json"
    ));
    assert_eq!((&done["rows"], &done["dim"]), (&3600.into(), &4.into()));
    // The embedded vectors, compared as they are, rank as the model does, to half precision.
    let plain = run(format!(
        "eval euclid {embedded} --label label --measures map,p@1 --cluster here --json"
    ));
    let map = |report: &serde_json::Value| report["measures"]["map"].as_f64().unwrap();
    assert!(
        (map(&plain) - map(&away)).abs() < 2e-3,
        "{plain:#} {away:#}"
    );
    // Nearest rows and hard negatives, against the library's search.
    let engine = Engine::cluster(&scheduler.url()).unwrap();
    let engine = engine.with_scratch(&scratch).unwrap();
    let items = engine.open(&table, Cut::Rows(500)).unwrap();
    let judgement = engine.judgement(items, None, None, "label").unwrap();
    let space = metra::model::Space::SquaredL2;
    let nearest = judgement.nearest(Ranker::Plain(space), 5).unwrap();
    let hard = judgement.hard_negatives(Ranker::Plain(space), 3).unwrap();
    let corpus = TableCorpus::new(&engine, engine.open(&table, Cut::Rows(500)).unwrap(), None);
    let corpus = corpus.unwrap();
    let mut rows = RowBuf::empty(16);
    (corpus.scan(0..3600, &mut |_, block| {
        rows.extend(block);
        Ok(())
    }))
    .unwrap();
    let local = MemoryCorpus::new(rows).unwrap();
    let expected = metra::search::top_k(space, &local, &local, 5, true).unwrap();
    let differing = nearest
        .ids
        .iter()
        .zip(&expected.ids)
        .filter(|(a, b)| a != b);
    assert!(differing.count() < 10);
    for query in (0..3600).step_by(97) {
        let class = |row: u64| row % 40;
        assert!(
            hard.ids_of(query)
                .iter()
                .all(|row| class(*row) != class(query as u64))
        );
    }
}

#[test]
#[ignore = "slow: trains by the command and by passes"]
fn learners_by_passes_agree_with_the_command() {
    let made = Made::new(1, 4000, 16);
    let folder = made.path();
    std::fs::rename(folder.join("part-000.parquet"), folder.join("all.parquet")).unwrap();
    let here = Engine::here(2).unwrap();
    let local = {
        let table = here.open(&made.address(), Cut::Files).unwrap();
        let corpus = TableCorpus::new(&here, table, None).unwrap();
        let mut rows = RowBuf::empty(16);
        (corpus.scan(0..4000, &mut |_, block| {
            rows.extend(block);
            Ok(())
        }))
        .unwrap();
        rows
    };
    for method in ["pca", "lda", "kissme", "xqda", "slr"] {
        let table = here.open(&made.address(), Cut::Rows(600)).unwrap();
        let away = here
            .train(table, &fit(&pipeline(method)), &mut |_| {})
            .unwrap();
        let one = single(&made, &made.address(), method);
        let embedded = |model: &metra::model::Model| {
            use metra::model::Embedding;
            let mut out = RowBuf::empty(1);
            let batch = metra::data::Batch::new(local.rows());
            model.chain.embed_items(0, &batch, &mut out).unwrap();
            out
        };
        let (a, b) = (embedded(&away), embedded(&one));
        let largest = b.values().iter().fold(0.0_f32, |m, v| m.max(v.abs()));
        for (a, b) in a.values().iter().zip(b.values()) {
            assert!((a - b).abs() <= 1e-3 * largest, "{method}: {a} {b}");
        }
    }
    let table = here.open(&made.address(), Cut::Rows(600)).unwrap();
    let error = here
        .train(table, &fit(&pipeline("lfda")), &mut |_| {})
        .unwrap_err();
    assert!(error.to_string().contains("lda, "), "{error}");
}
