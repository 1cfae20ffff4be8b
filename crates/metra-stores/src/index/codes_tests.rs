//! Indexes of models with a code: what codes stand for is what is found, and the vectors before them rescore.

use super::*;
use metra::data::MemoryCorpus;
use metra::data::synthetic::Nuisance;
use metra::linalg::Rows;
use metra::model::{Chain, Code, Embedding, Int8Scale, Origin, ProductCode};
use tempfile::TempDir;

const SET: Nuisance = Nuisance {
    classes: 40,
    signal: 20,
    noise: 0,
    seed: 3,
};
const K: usize = 8;

fn rows(count: usize, offset: usize) -> MemoryCorpus {
    let all = SET.rows(count + offset).corpus;
    let values = all.rows().slice(offset, count + offset).values().to_vec();
    MemoryCorpus::new(RowBuf::from_values(values, SET.dim()).unwrap()).unwrap()
}

fn model(space: Space, code: Code) -> Model {
    let chain = Chain::identity(SET.dim(), space);
    let chain = chain.with_code(Some(code)).unwrap();
    Model::new(None, chain, Origin::default()).unwrap()
}

/// An index of items in two parts, the second one added to the first.
fn indexed(model: &Model, items: &MemoryCorpus, keep: bool) -> (TempDir, LocalIndex) {
    let folder = tempfile::tempdir().unwrap();
    let create = |name: &str| {
        let writer = IndexWriter::create(&folder.path().join(name), model, "m").unwrap();
        match keep {
            true => writer.keep_vectors().unwrap(),
            false => writer,
        }
    };
    let (items, half) = (items.rows(), items.rows().len() / 2);
    let mut writer = create("first");
    writer.push(items.slice(0, half)).unwrap();
    writer.finish(None, &mut |_, _, _| Ok(())).unwrap();
    let first = open(&folder.path().join("first")).unwrap();
    let mut writer = create("both");
    writer.append(&first, &|| Ok(())).unwrap();
    writer.push(items.slice(half, items.len())).unwrap();
    writer.finish(None, &mut |_, _, _| Ok(())).unwrap();
    let both = open(&folder.path().join("both")).unwrap();
    (folder, both)
}

fn open(folder: &Path) -> Result<LocalIndex> {
    LocalIndex::open(folder, Verify::Digests, &mut |_, _, _| Ok(()))
}

fn embedded(model: &Model, rows: Rows<'_>, side: metra::model::Side) -> MemoryCorpus {
    let batch = metra::data::Batch::new(rows);
    let mut out = RowBuf::empty(1);
    match side {
        metra::model::Side::Query => model.chain.embed_queries(0, &batch, &mut out),
        _ => model.chain.embed_items(0, &batch, &mut out),
    }
    .unwrap();
    MemoryCorpus::new(out).unwrap()
}

fn codes() -> Vec<(Space, Code)> {
    let bits = |queries| Code::Bits {
        scale: 0.6,
        queries,
    };
    let centroids = RowBuf::from_values(rows(9, 400).rows().values().to_vec(), SET.dim());
    let product = ProductCode::new(3, centroids.unwrap()).unwrap();
    vec![
        (Space::SquaredL2, bits(false)),
        (Space::Cosine, bits(false)),
        (Space::Cosine, bits(true)),
        (Space::InnerProduct, bits(true)),
        (Space::SquaredL2, Code::Float16),
        (Space::InnerProduct, Code::Int8(Int8Scale::PerVector)),
        (Space::Cosine, Code::Int8(Int8Scale::Direction)),
        (Space::SquaredL2, Code::Product(product)),
    ]
}

#[test]
fn a_search_of_all_finds_what_codes_stand_for() {
    let (items, queries) = (rows(300, 0), rows(25, 300));
    for (space, code) in codes() {
        let model = model(space, code);
        let (folder, index) = indexed(&model, &items, false);
        assert!(index.is_coded() && index.manifest().code.is_some());
        assert!(!folder.path().join("both").join(VECTORS).exists());
        let sides = [metra::model::Side::Query, metra::model::Side::Item];
        let [asked, stood] = [
            embedded(&model, queries.rows(), sides[0]),
            embedded(&model, items.rows(), sides[1]),
        ];
        let truth = top_k(space, &asked, &stood, K, false).unwrap();
        assert_eq!(index.search(&queries, K, Ask::Exact).unwrap(), truth);
        // Enough candidates for the second stage, and nothing is missing.
        let all = Ask::Approximate { effort: 300 };
        assert_eq!(index.search(&queries, K, all).unwrap(), truth);
        let usual = index.search(&queries, K, index.usual(9)).unwrap();
        let hits = |query: usize| {
            let own = truth.ids_of(query);
            let found = usual.ids_of(query).iter();
            found.filter(|id| own.contains(id)).count()
        };
        let found: usize = (0..25).map(hits).sum();
        assert!(
            found as f64 >= 0.9 * truth.ids.len() as f64,
            "{space} {found}"
        );
        assert_eq!(index.search(&queries, 1000, all).unwrap().k, 300);
        let even: Vec<u64> = (0..300).step_by(2).collect();
        let order = top_k(space, &asked, &stood, 300, false).unwrap();
        let among = index.search_among(&queries, K, &even).unwrap();
        for query in 0..25 {
            let own = order.ids_of(query).iter().copied();
            let expected: Vec<u64> = own.filter(|id| id % 2 == 0).take(K).collect();
            assert_eq!(among.ids_of(query), expected, "{space}");
        }
        assert!(index.search(&queries, 0, index.usual(9)).is_err());
    }
}

#[test]
fn vectors_before_their_code_rescore() {
    let (items, queries) = (rows(300, 0), rows(25, 300));
    for (space, code) in codes() {
        let model = model(space, code);
        let (_folder, index) = indexed(&model, &items, true);
        let truth = top_k(space, &queries, &items, K, false).unwrap();
        assert_eq!(index.search(&queries, K, Ask::Exact).unwrap(), truth);
        let all = Ask::Approximate { effort: 300 };
        assert_eq!(index.search(&queries, K, all).unwrap(), truth);
        assert_ne!(index.usual(9), Ask::Exact);
        // Scores are those of the vectors, not of codes.
        let few = index.search(&queries, K, Ask::Approximate { effort: 1 });
        let few = few.unwrap();
        let truth = top_k(space, &queries, &items, 300, false).unwrap();
        for query in 0..25 {
            for (id, score) in few.ids_of(query).iter().zip(few.scores_of(query)) {
                let at = truth.ids_of(query).iter().position(|other| other == id);
                let own = truth.scores_of(query)[at.unwrap()];
                assert!((own - score).abs() <= 1e-5 * own.abs().max(1.0));
            }
        }
    }
}

#[test]
fn damaged_exchanged_and_missing_files_are_refused() {
    let items = rows(60, 0);
    let code = Code::Bits {
        scale: 1.0,
        queries: false,
    };
    let model = model(Space::SquaredL2, code);
    let (folder, _) = indexed(&model, &items, true);
    let path = folder.path().join("both");
    for name in [CODES, CODE, VECTORS] {
        let file = path.join(name);
        let bytes = std::fs::read(&file).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 20) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            std::fs::write(&file, damaged).unwrap();
            let error = open(&path).err().unwrap().to_string();
            assert!(error.contains("digest differs"), "{name} {error}");
        }
        std::fs::write(&file, bytes).unwrap();
    }
    // A manifest of the first layout, without its own digest, that names other files than it needs.
    let text = std::fs::read_to_string(path.join(MANIFEST)).unwrap();
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    for name in [CODES, CODE] {
        let mut manifest = whole.clone();
        manifest["files"].as_object_mut().unwrap().remove(name);
        manifest.as_object_mut().unwrap().remove("digest");
        std::fs::write(path.join(MANIFEST), manifest.to_string()).unwrap();
        let error = open(&path).err().unwrap().to_string();
        assert!(error.contains(CODES), "{error}");
    }
    let mut other = whole;
    other["rows"] = 59.into();
    other.as_object_mut().unwrap().remove("digest");
    std::fs::write(path.join(MANIFEST), other.to_string()).unwrap();
    let error = open(&path).err().unwrap().to_string();
    assert!(error.contains("59 items, but found 60"), "{error}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let items = rows(60, 0);
    let coded = model(Space::SquaredL2, Code::Float16);
    let (folder, index) = indexed(&coded, &items, false);
    let create =
        |name: &str, model| IndexWriter::create(&folder.path().join(name), model, "m").unwrap();
    let mut writer = create("graph", &coded);
    writer.push(items.rows()).unwrap();
    let error = writer.finish(Some(&GraphSettings::default()), &mut |_, _, _| Ok(()));
    assert!(error.unwrap_err().to_string().contains("its own copy"));
    let keeping = create("keeping", &coded)
        .keep_vectors()
        .unwrap()
        .append(&index, &|| Ok(()));
    assert!(
        keeping
            .unwrap_err()
            .to_string()
            .contains("no vectors to rescore by")
    );
    let plain = Model::new(
        None,
        Chain::identity(SET.dim(), Space::SquaredL2),
        Origin::default(),
    );
    let plain = create("plain", &plain.unwrap()).append(&index, &|| Ok(()));
    assert!(plain.unwrap_err().to_string().contains("codes or vectors"));
}
