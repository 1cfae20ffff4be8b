//! Queries and items that are vectors of two models, as users give them.

use super::folder::{Folder, SET, number, rows, texts};
use std::fmt::Write;

const QUERIES: usize = 120;
const ITEMS: usize = 240;
const SIDES: &str = "--queries q.parquet --items d.parquet --qrels r.qrels --id id";

/// Items of 12 dimensions, and queries of which another model shows the mean of neighbouring coordinates.
fn towers(folder: &Folder) {
    let (all, classes) = rows(SET, ITEMS + QUERIES);
    let dim = all.dim();
    let mut items = metra::linalg::RowBuf::zeros(ITEMS, dim);
    let mut queries = metra::linalg::RowBuf::zeros(QUERIES, dim - 1);
    for row in 0..ITEMS {
        items.row_mut(row).copy_from_slice(all.row(row));
    }
    for row in 0..QUERIES {
        let from = all.row(ITEMS + row);
        let mixed = from.windows(2).map(|pair| 0.5 * (pair[0] + pair[1]));
        for (value, mixed) in queries.row_mut(row).iter_mut().zip(mixed) {
            *value = mixed;
        }
    }
    let id = |side: &'static str| move |row: usize| format!("{side}{row}");
    folder.write_parquet("d.parquet", &items, &[("id", texts(ITEMS, id("d")))]);
    folder.write_parquet("q.parquet", &queries, &[("id", texts(QUERIES, id("q")))]);
    let mut qrels = String::new();
    for query in 0..QUERIES {
        for item in (0..ITEMS).filter(|item| classes[*item] == classes[ITEMS + query]) {
            writeln!(qrels, "q{query} 0 d{item} 1").unwrap();
        }
    }
    folder.write("r.qrels", &qrels);
}

#[test]
fn a_map_for_each_side_is_trained_planned_and_searched() {
    let folder = Folder::new();
    towers(&folder);
    let line =
        format!("train {SIDES} --method cca --rank 4 --set ridge=0.01 --test 0.4 -o m.model");
    let (out, _) = folder.good(&line, &[]);
    assert!(out.contains("procrustes by cosine"), "{out}");
    assert!(
        out.contains("queries of 11 and items of 12 → 4 dimensions"),
        "{out}"
    );
    let shown = folder.json("inspect m.model", &[]);
    assert_eq!(
        (
            number(&shown, "/input_dim"),
            number(&shown, "/query_input_dim")
        ),
        (12.0, 11.0)
    );
    let found = folder.json(&format!("eval m.model {SIDES} --measures p@1"), &[]);
    assert!(number(&found, "/measures/p@1") > 0.5, "{found}");
    // Each side is mapped by its own map.
    folder.good("embed m.model q.parquet --side query -o zq.npy", &[]);
    folder.good("embed m.model d.parquet --side item -o zd.npy", &[]);
    assert_eq!(
        (folder.read("zq.npy").dim(), folder.read("zd.npy").dim()),
        (4, 4)
    );
    let text = folder.refused("embed m.model q.parquet --side item -o no.npy", &[]);
    assert!(
        text.contains("dimension of the items: expected 12"),
        "{text}"
    );
    let line = "search m.model d.parquet --id id --query q.parquet -k 3 --run found.run";
    folder.good(line, &[]);
    // Plans are verified with queries of their own.
    let text = folder.refused("plan m.model --store qdrant --sample d.parquet", &[]);
    assert!(text.contains("name some with --query"), "{text}");
    let line = "plan m.model --store qdrant --sample d.parquet --query q.parquet";
    let planned = folder.json(line, &[]);
    assert_eq!(number(&planned, "/agreement/share"), 1.0, "{planned}");
    // Exports take the vectors of their side.
    folder.good("export m.model --side query -o q.safetensors", &[]);
    folder.good("export m.model --side item -o d.safetensors", &[]);
    assert!(folder.bytes("q.safetensors") != folder.bytes("d.safetensors"));
}

#[test]
fn methods_are_compared_with_procrustes() {
    let folder = Folder::new();
    towers(&folder);
    let line = format!("compare {SIDES} --methods cca,slr --trials 1 --no-cost -o out");
    let found = folder.json(&line, &[]);
    let names = found["results"]["lines"].as_array().unwrap().iter();
    let mut names: Vec<&str> = names.map(|line| line["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["cca", "procrustes", "slr"]);
    assert_eq!(found["results"]["base"], "procrustes");
}

#[test]
fn what_compares_vectors_as_they_are_is_refused() {
    let folder = Folder::new();
    towers(&folder);
    for (line, expected) in [
        (
            "train {} --method adapter",
            "one that learns a map for each side",
        ),
        (
            "compare {} --methods lda,cca -o out",
            "one that learns a map for each side",
        ),
        ("eval cosine {}", "cosine compares vectors as they are"),
        ("compress {} --bytes 8", "compares vectors as they are"),
        ("train {} --method cca --rank 12", "rank"),
    ] {
        let text = folder.refused(&line.replace("{}", SIDES), &[]);
        assert!(text.contains(expected), "{line}: {text}");
    }
    // Where no method is named, it is one that can.
    let (out, _) = folder.good(&format!("train {SIDES}"), &[]);
    assert!(out.contains("method      cca"), "{out}");
    // Equal dimensions are two models where that is said.
    let equal = "--queries d.parquet --items d.parquet --qrels e.qrels --id id";
    folder.write(
        "e.qrels",
        "d0 0 d12 1\nd1 0 d13 1\nd2 0 d14 1\nd3 0 d15 1\nd4 0 d16 1\n",
    );
    let line =
        format!("train {equal} --two-spaces --method procrustes --holdout none -o two.model");
    folder.good(&line, &[]);
    assert!(folder.json("inspect two.model", &[])["query_input_dim"] == 12);
    let line = format!("train {equal} --method procrustes --holdout none -o one.model");
    folder.good(&line, &[]);
    assert!(folder.json("inspect one.model", &[])["query_input_dim"].is_null());
}
