//! Indexes as they are used: written, opened, searched, damaged.

use super::*;
use metra::data::MemoryCorpus;
use metra::data::synthetic::Nuisance;
use metra::model::{Chain, MatchDecision, Origin, Side, for_each_embedded};
use std::collections::BTreeSet;
use tempfile::TempDir;

const SET: Nuisance = Nuisance {
    classes: 60,
    signal: 8,
    noise: 0,
    seed: 5,
};

/// Every space that an index can have.
fn spaces() -> impl Iterator<Item = Space> {
    Space::ALL.into_iter().chain([Space::Blocks { size: 4 }])
}

fn model(space: Space, seed: u64) -> Model {
    let origin = Origin {
        seed,
        ..Origin::default()
    };
    Model::new(None, Chain::identity(SET.dim(), space), origin).unwrap()
}

/// Items 0.. and, of the same recipe, queries that are not among them.
fn items_and_queries(items: usize, queries: usize) -> (MemoryCorpus, MemoryCorpus) {
    let all = SET.rows(items + queries).corpus;
    let cut = |start, end| {
        let values = all.rows().slice(start, end).values().to_vec();
        MemoryCorpus::new(RowBuf::from_values(values, SET.dim()).unwrap()).unwrap()
    };
    (cut(0, items), cut(items, items + queries))
}

fn quiet() -> impl FnMut(Stage, u64, u64) -> metra::Result<()> {
    |_, _, _| Ok(())
}

fn write(folder: &Path, model: &Model, items: &MemoryCorpus, graph: Option<&GraphSettings>) {
    let mut writer = IndexWriter::create(folder, model, "m.safetensors").unwrap();
    for_each_embedded(&model.chain, Side::Item, items, None, &mut |rows| {
        writer.push(rows.rows())
    })
    .unwrap();
    writer
        .ids((0..items.len()).map(|row| format!("item-{row}")))
        .unwrap();
    let labels = (0..items.len()).map(|row| SET.class(row).to_string());
    writer.labels(labels).unwrap();
    writer.finish(graph, &mut quiet()).unwrap();
}

fn open(folder: &Path) -> Result<LocalIndex> {
    LocalIndex::open(folder, Verify::Digests, &mut quiet())
}

/// A folder with an index `index` in it.
fn indexed(
    space: Space,
    items: &MemoryCorpus,
    graph: Option<&GraphSettings>,
) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    write(&path, &model(space, 1), items, graph);
    (folder, path)
}

#[test]
fn an_exact_index_gives_what_search_over_the_items_gives() {
    let (items, queries) = items_and_queries(700, 30);
    for space in spaces() {
        let (_folder, path) = indexed(space, &items, None);
        let index = open(&path).unwrap();
        assert_eq!(index.usual(9), Ask::Exact);
        let found = index.search(&queries, 9, index.usual(9)).unwrap();
        assert_eq!(found, top_k(space, &queries, &items, 9, false).unwrap());
        assert_eq!(index.id(699).unwrap(), "item-699");
        assert_eq!(index.label(61).unwrap().as_deref(), Some("1"));
        assert!(index.id(700).is_err());
        let ask = Ask::Approximate { effort: 20 };
        let error = index.search(&queries, 9, ask).unwrap_err().to_string();
        assert!(error.contains("--approximate"), "{error}");
    }
}

#[test]
fn a_folder_is_whole_or_not_there() {
    let (items, _) = items_and_queries(50, 1);
    let (folder, path) = indexed(Space::SquaredL2, &items, None);
    let model = model(Space::SquaredL2, 1);
    let entries = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries(), 1, "nothing beside the index");
    let refused = IndexWriter::create(&path, &model, "m").err().unwrap();
    assert!(refused.to_string().contains("choose another name"));

    let other = folder.path().join("other");
    let mut writer = IndexWriter::create(&other, &model, "m").unwrap();
    assert!(writer.ids(["too", "many"]).is_err());
    writer.push(items.rows()).unwrap();
    drop(writer);
    assert_eq!(entries(), 1, "what was not finished is gone");
    let empty = IndexWriter::create(&other, &model, "m").unwrap();
    assert!(empty.finish(None, &mut quiet()).is_err());
    assert_eq!(entries(), 1);
}

#[test]
fn rows_that_cannot_be_compared_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let push = |space, row: Vec<f32>| {
        let path = folder.path().join("index");
        let mut writer = IndexWriter::create(&path, &model(space, 1), "m").unwrap();
        writer.push(SET.rows(3).corpus.rows()).unwrap();
        writer.push(metra::linalg::Rows::new(&row, row.len()).unwrap())
    };
    let error = push(Space::Cosine, vec![0.0; 8]).unwrap_err().to_string();
    assert!(error.starts_with("row 3: has length 0"), "{error}");
    let mut row = vec![1.0; 8];
    row[5] = f32::NAN;
    let error = push(Space::SquaredL2, row).unwrap_err().to_string();
    assert!(error.starts_with("row 3, column 5"), "{error}");
    assert!(push(Space::SquaredL2, vec![1.0; 7]).is_err());
}

#[test]
fn another_model_is_refused_by_name_and_a_calibrated_one_is_not_another() {
    let (items, _) = items_and_queries(50, 1);
    let (_folder, path) = indexed(Space::SquaredL2, &items, None);
    let index = open(&path).unwrap();
    let own = model(Space::SquaredL2, 1);
    index.check_model("renamed.safetensors", &own).unwrap();
    let decision = MatchDecision {
        threshold: 1.0,
        asked: 0.01,
        false_match_rate: 0.01,
        true_match_rate: 0.9,
        low: 0.8,
        high: 0.95,
        same: 100,
        different: 100,
        data: String::new(),
    };
    let calibrated = own.with_decision(decision).unwrap();
    index.check_model("m.safetensors", &calibrated).unwrap();
    let error = index.check_model("n.safetensors", &model(Space::SquaredL2, 2));
    let error = error.unwrap_err().to_string();
    let named = error.contains("\"m.safetensors\"") && error.contains("\"n.safetensors\"");
    assert!(named, "{error}");
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let (items, _) = items_and_queries(200, 1);
    let graph = HAS_GRAPH.then(GraphSettings::default);
    let (_folder, path) = indexed(Space::SquaredL2, &items, graph.as_ref());
    let names: BTreeSet<String> = open(&path)
        .unwrap()
        .manifest()
        .files
        .keys()
        .cloned()
        .collect();
    assert_eq!(names.len(), 3 + usize::from(HAS_GRAPH));
    for name in names {
        let file = path.join(&name);
        let whole = std::fs::read(&file).unwrap();
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        for (bytes, says) in [
            (&changed, "digest"),
            (&whole[1..].to_vec(), "bytes, but found"),
        ] {
            std::fs::write(&file, bytes).unwrap();
            let error = open(&path).err().unwrap().to_string();
            assert!(error.contains(&name) && error.contains(says), "{error}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(open(&path).err().unwrap().to_string().contains(&name));
        std::fs::write(&file, whole).unwrap();
    }
    open(&path).unwrap();
    let manifest = path.join(MANIFEST);
    let whole = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(
        &manifest,
        whole.replacen("m.safetensors", "n.safetensors", 1),
    )
    .unwrap();
    let error = open(&path).err().unwrap().to_string();
    assert!(error.contains("its content is damaged"), "{error}");
    // Somebody who forges a manifest leaves its digest out.
    let mut forged: serde_json::Value = serde_json::from_str(&whole).unwrap();
    forged.as_object_mut().unwrap().remove("digest").unwrap();
    let whole = serde_json::to_string_pretty(&forged).unwrap();
    for (from, to, says) in [
        ("metra-index", "other-index", "mark of an index"),
        ("\"version\": 1", "\"version\": 2", "build the index again"),
        ("\"rows\": 200", "\"rows\": 201", "vectors.f32"),
        (
            "\"rows\": 200",
            "\"rows\": 18446744073709551615",
            "vectors.f32",
        ),
        ("\"dim\": 8", "\"dim\": 0", "vectors.f32"),
        ("\"euclid\"", "\"blocks:3\"", "size of blocks"),
        ("\"euclid\"", "\"manhattan\"", "score"),
        ("\"ids.text\"", "\"../ids.text\"", "outside of the folder"),
        ("\"vectors.f32\"", "\"vectors.other\"", "vectors.other"),
        ("{", "", "no JSON"),
    ] {
        assert!(whole.contains(from), "{from}");
        std::fs::write(&manifest, whole.replacen(from, to, 1)).unwrap();
        let error = open(&path).err().unwrap().to_string();
        assert!(error.contains(says), "{from} → {to}: {error}");
    }
    assert!(LocalIndex::is_at(&path) && !LocalIndex::is_at(&path.join("no")));
}

#[cfg(feature = "index")]
mod approximate {
    use super::*;

    /// Share of the exact neighbours that were found.
    fn recall(found: &Neighbours, exact: &Neighbours) -> f64 {
        let hits: usize = (0..exact.queries())
            .map(|query| {
                let exact = exact.ids_of(query);
                let found = found.ids_of(query).iter();
                found.filter(|id| exact.contains(id)).count()
            })
            .sum();
        hits as f64 / exact.ids.len() as f64
    }

    #[test]
    fn a_graph_finds_nearly_all_and_scores_are_the_metrics_own() {
        let (items, queries) = items_and_queries(3000, 50);
        for space in spaces() {
            let (_folder, path) = indexed(space, &items, Some(&GraphSettings::default()));
            let index = open(&path).unwrap();
            assert!(matches!(index.usual(9), Ask::Approximate { .. }));
            let found = index.search(&queries, 10, index.usual(9)).unwrap();
            let exact = index.search(&queries, 10, Ask::Exact).unwrap();
            let recall = recall(&found, &exact);
            assert!(recall >= 0.95, "{space}: {recall}");
            for query in 0..50 {
                let scores = found.scores_of(query);
                assert!(scores.is_sorted(), "{space}, query {query}");
                for (score, exact) in scores.iter().zip(exact.scores_of(query)) {
                    let missing = 1e-5 * exact.abs().max(1.0);
                    assert!(
                        *score >= exact - missing,
                        "nothing is nearer than the nearest"
                    );
                }
            }
        }
    }

    #[test]
    fn an_inner_product_that_is_a_distance_is_found_as_well() {
        // q · (z, −½|z|²) with q = (z_q, 1) orders as −½|z_q − z|² does: items of large length are
        // the farthest, where plain inner products look first.
        let (items, queries) = items_and_queries(3000, 50);
        let lengthened = |rows: &MemoryCorpus, last: &dyn Fn(&[f32]) -> f32| {
            let rows = rows.rows();
            let rows = rows.iter().flat_map(|row| [row, &[last(row)]].concat());
            let dim = SET.dim() + 1;
            MemoryCorpus::new(RowBuf::from_values(rows.collect(), dim).unwrap()).unwrap()
        };
        let half = |row: &[f32]| -0.5 * row.iter().map(|v| v * v).sum::<f32>();
        let (stored, asked) = (lengthened(&items, &half), lengthened(&queries, &|_| 1.0));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let chain = Chain::identity(SET.dim() + 1, Space::InnerProduct);
        let model = Model::new(None, chain, Origin::default()).unwrap();
        write(&path, &model, &stored, Some(&GraphSettings::default()));
        let index = open(&path).unwrap();
        let found = index.search(&asked, 10, index.usual(9)).unwrap();
        let exact = top_k(Space::SquaredL2, &queries, &items, 10, false).unwrap();
        let recall = recall(&found, &exact);
        assert!(recall >= 0.95, "{recall}");
    }

    #[test]
    fn the_same_items_give_the_same_bytes_on_any_number_of_threads() {
        let (items, _) = items_and_queries(1500, 1);
        let bytes = |threads: usize, graph: &GraphSettings| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(|| {
                let (_folder, path) = indexed(Space::SquaredL2, &items, Some(graph));
                std::fs::read(path.join(GRAPH)).unwrap()
            })
        };
        let usual = GraphSettings::default();
        let first = bytes(1, &usual);
        assert!(first == bytes(1, &usual), "run to run");
        assert!(first == bytes(3, &usual), "three threads");
        let denser = GraphSettings {
            connections: 8,
            ..usual
        };
        assert!(first != bytes(1, &denser), "other settings");
    }

    #[test]
    fn threads_may_build_it_and_more_may_search_than_it_was_opened_for() {
        let (items, queries) = items_and_queries(2000, 200);
        let parallel = GraphSettings {
            parallel: true,
            ..GraphSettings::default()
        };
        let pool = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap()
        };
        let (_folder, path) = pool(4).install(|| indexed(Space::Cosine, &items, Some(&parallel)));
        let index = pool(1).install(|| open(&path).unwrap());
        assert!(index.manifest().graph.as_ref().unwrap().parallel);
        let ask = index.usual(9);
        let alone = pool(1).install(|| index.search(&queries, 5, ask).unwrap());
        let together = pool(8).install(|| index.search(&queries, 5, ask).unwrap());
        assert_eq!(alone, together);
        let exact = index.search(&queries, 5, Ask::Exact).unwrap();
        assert!(recall(&alone, &exact) >= 0.95);
    }

    #[test]
    fn a_build_can_be_stopped_and_leaves_nothing() {
        let (items, _) = items_and_queries(3000, 1);
        let folder = tempfile::tempdir().unwrap();
        let model = model(Space::SquaredL2, 1);
        let path = folder.path().join("index");
        let mut writer = IndexWriter::create(&path, &model, "m").unwrap();
        writer.push(items.rows()).unwrap();
        let mut linked = 0;
        let stopped = writer.finish(Some(&GraphSettings::default()), &mut |_, done, total| {
            linked = done;
            match done * 2 < total {
                true => Ok(()),
                false => Err(metra::Error::Interrupted),
            }
        });
        let error = stopped.unwrap_err();
        assert!(matches!(error, Error::Library(metra::Error::Interrupted)));
        assert!(linked < 3000);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_asked_is_an_error_that_names_the_query() {
        let (items, _) = items_and_queries(400, 1);
        let (_folder, path) = indexed(Space::Cosine, &items, Some(&GraphSettings::default()));
        let index = open(&path).unwrap();
        let ask = |values: Vec<f32>, k| {
            let queries = RowBuf::from_values(values, 8).unwrap();
            index.search(&MemoryCorpus::new(queries).unwrap(), k, index.usual(9))
        };
        let mut values = vec![1.0; 16];
        values[8..].fill(0.0);
        let error = ask(values, 3).unwrap_err().to_string();
        assert!(error.starts_with("row 1: has length 0"), "{error}");
        assert!(ask(vec![1.0; 8], 0).is_err());
        assert_eq!(
            ask(vec![1.0; 8], 1000).unwrap().k,
            400,
            "all that there are"
        );
        let narrow = MemoryCorpus::new(RowBuf::from_values(vec![1.0; 7], 7).unwrap()).unwrap();
        assert!(index.search(&narrow, 3, index.usual(9)).is_err());

        let (_folder, path) = indexed(Space::SquaredL2, &items, Some(&GraphSettings::default()));
        let index = open(&path).unwrap();
        let far = MemoryCorpus::new(RowBuf::from_values(vec![1e30; 8], 8).unwrap()).unwrap();
        let error = index
            .search(&far, 3, index.usual(9))
            .unwrap_err()
            .to_string();
        assert!(error.contains("search exactly"), "{error}");
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let (items, _) = items_and_queries(50, 1);
        for (connections, build_effort) in [(1, 128), (513, 128), (16, 0)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("index");
            let mut writer = IndexWriter::create(&path, &model(Space::SquaredL2, 1), "m").unwrap();
            writer.push(items.rows()).unwrap();
            let settings = GraphSettings {
                connections,
                build_effort,
                parallel: false,
            };
            let error = writer.finish(Some(&settings), &mut quiet()).unwrap_err();
            assert!(error.to_string().contains("must be between"), "{error}");
        }
    }

    /// Change the graph's bytes, and its mark so that the digests agree.
    fn forge(path: &Path, whole: &[u8], change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = whole.to_vec();
        change(&mut bytes);
        std::fs::write(path.join(GRAPH), &bytes).unwrap();
        let mut manifest = Manifest::read(path).unwrap();
        let mark = manifest::digest_file(&path.join(GRAPH), &mut |_| Ok(())).unwrap();
        manifest.files.insert(GRAPH.to_owned(), mark);
        manifest.write(path).unwrap();
    }

    /// Open and walk whatever lies there; a crash would end the test.
    fn walk(path: &Path, queries: &MemoryCorpus) -> Result<Neighbours> {
        let index = open(path)?;
        index.search(queries, 3, Ask::Approximate { effort: 20 })
    }

    #[test]
    fn a_forged_graph_is_refused_or_walked_and_exact_search_never_opens_it() {
        let (items, queries) = items_and_queries(300, 4);
        let settings = GraphSettings::default();
        let (_folder, path) = indexed(Space::SquaredL2, &items, Some(&settings));
        let whole = std::fs::read(path.join(GRAPH)).unwrap();
        let exact = open(&path)
            .unwrap()
            .search(&queries, 3, Ask::Exact)
            .unwrap();
        let vectors = 8 + 300 * 4 * SET.dim();
        let (head, levels) = (vectors + 64, vectors + 64 + 40);
        let nodes = levels + 2 * 300;
        // Places: rows, bytes a row, a vector, version, kinds, items, links, highest layer, entry,
        // a layer, a key, a node's layer, its count, its first link.
        let places = [
            0,
            4,
            8,
            vectors + 7,
            vectors + 13,
            vectors + 17,
            head + 8,
            head + 24,
            head + 32,
        ];
        let in_nodes = [levels, nodes, nodes + 8, nodes + 10, nodes + 14];
        for place in places.into_iter().chain(in_nodes) {
            for value in [[0xff, 0xff], [0xff, 0x7f]] {
                forge(&path, &whole, |bytes| {
                    bytes[place..place + 2].copy_from_slice(&value)
                });
                let error = walk(&path, &queries).err();
                // A vector of other values is still a vector, unless it is not a number.
                assert!(error.is_some() || place == 8, "{place}");
                assert_eq!(
                    open(&path)
                        .unwrap()
                        .search(&queries, 3, Ask::Exact)
                        .unwrap(),
                    exact
                );
            }
        }
        forge(&path, &whole, |bytes| bytes.push(0));
        assert!(
            walk(&path, &queries)
                .err()
                .unwrap()
                .to_string()
                .contains("after its last node")
        );
        forge(&path, &whole, |bytes| bytes.truncate(bytes.len() - 1));
        assert!(
            walk(&path, &queries)
                .err()
                .unwrap()
                .to_string()
                .contains("too early")
        );
        let mut state = 7_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize
        };
        for _ in 0..200 {
            let (place, value) = (vectors + next() % (whole.len() - vectors), next() as u8);
            forge(&path, &whole, |bytes| bytes[place] = value);
            _ = walk(&path, &queries);
        }
        forge(&path, &whole, |_| {});
        walk(&path, &queries).unwrap();
    }
}
