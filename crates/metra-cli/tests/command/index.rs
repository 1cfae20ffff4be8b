//! `metra index`, and `metra search` in what it wrote.

use crate::folder::{Folder, QUICK, example};
use serde_json::Value;

const INDEX: &str = "index m.safetensors data.parquet --id id --label label --where train=true";
const ASK: &str = "--query data.parquet --id id --where-queries train=false -k 5";

/// A folder with the example's data and a model of it.
fn trained() -> Folder {
    let folder = Folder::new();
    example(&folder);
    let line =
        "train data.parquet --label label --method warca --rank 8 --score euclid --seed 1 -o";
    folder.good(line, &[&["m.safetensors"], &QUICK[..]].concat());
    folder
}

fn items(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().unwrap();
    items
        .iter()
        .map(|hit| hit["item"].as_str().unwrap())
        .collect()
}

#[test]
fn an_index_answers_as_the_file_does() {
    let folder = trained();
    let done = folder.json(INDEX, &["-o", "exact"]);
    assert_eq!((&done["items"], &done["dim"]), (&480.into(), &8.into()));
    assert!(done["graph"].is_null(), "{done}");
    let file = format!("search m.safetensors data.parquet --label label --where train=true {ASK}");
    let expected = folder.json(&file, &[]);
    assert_eq!(expected.as_array().unwrap().len(), 240);
    let found = folder.json(&format!("search m.safetensors exact {ASK}"), &[]);
    assert_eq!(found, expected);
    let trusted = folder.json(&format!("search m.safetensors exact {ASK} --trusted"), &[]);
    assert_eq!(trusted, expected);
    folder.good(
        &format!("search m.safetensors exact {ASK} --run a.txt"),
        &[],
    );
    folder.good(&format!("{file} --run b.txt"), &[]);
    assert_eq!(folder.bytes("a.txt"), folder.bytes("b.txt"));
    // Without ids an item is named by its number in the file, also where rows were left out.
    folder.good(
        "index m.safetensors data.parquet --where train=true -o plain",
        &[],
    );
    let unnamed = "--query data.parquet --where-queries train=false -k 5";
    let file = format!("search m.safetensors data.parquet --where train=true {unnamed}");
    let found = folder.json(&format!("search m.safetensors plain {unnamed}"), &[]);
    assert_eq!(found, folder.json(&file, &[]));
}

#[test]
fn items_are_added_to_an_index() {
    let folder = trained();
    folder.good(INDEX, &["-o", "all"]);
    folder.good(INDEX, &["--where", "label!=3", "-o", "first"]);
    let before = folder.bytes("first/index.json");
    let more = [INDEX, "--where label=3 --add-to first"].join(" ");
    let done = folder.json(&more, &["-o", "both"]);
    assert_eq!(done["items"], 480);
    let search = |index: &str| folder.json(&format!("search m.safetensors {index} {ASK}"), &[]);
    assert_eq!(search("both"), search("all"));
    assert_ne!(search("first"), search("all"));
    assert_eq!(folder.bytes("first/index.json"), before);
    // The same items again, and items without the names that the others have.
    let again = folder.refused(&more.replace("to first", "to both"), &["-o", "twice"]);
    assert!(
        again.contains("the index has an item") && again.contains("already"),
        "{again}"
    );
    let plain = "index m.safetensors data.parquet --add-to first -o plain";
    assert!(folder.refused(plain, &[]).contains("--id, --label"));
    assert!(!folder.names().contains(&"twice".to_owned()));
}

#[cfg(feature = "index")]
#[test]
fn an_approximate_index_names_the_same_items_in_words_and_in_json() {
    let folder = trained();
    let (out, _) = folder.good(INDEX, &["-o", "near", "--approximate"]);
    let says = "480 items of dimension 8 in near (1 MB), compared by euclid: approximate search by a \
                graph of 16 connections\n";
    assert_eq!(out, says);
    let search = format!("search m.safetensors near {ASK}");
    let (near, exact) = (
        folder.json(&search, &["--effort", "100"]),
        folder.json(&search, &["--exact"]),
    );
    let pairs = near
        .as_array()
        .unwrap()
        .iter()
        .zip(exact.as_array().unwrap());
    let same = pairs
        .filter(|(near, exact)| items(near) == items(exact))
        .count();
    assert!(same >= 230, "{same} of 240 answers are the same");
    // The same items and settings give the same bytes.
    folder.good(INDEX, &["-o", "again", "--approximate", "--threads", "2"]);
    for name in ["index.json", "graph.usearch", "vectors.f32", "ids.text"] {
        let of = |index: &str| folder.bytes(&format!("{index}/{name}"));
        assert!(of("near") == of("again"), "{name}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let folder = trained();
    folder.good(INDEX, &["-o", "exact"]);
    let line = "train data.parquet --label label --method pca --rank 8 --seed 1 -o p.safetensors";
    folder.good(line, &[]);
    let search = |line: &str| folder.refused(line, &[]);
    let other = search(&format!("search p.safetensors exact {ASK}"));
    assert!(
        other.contains("m.safetensors") && other.contains("p.safetensors"),
        "{other}"
    );
    assert!(search("search m.safetensors exact").contains("--query"));
    assert!(
        search(&format!("search m.safetensors exact {ASK} --where label=1")).contains("--where")
    );
    assert!(search(&format!("search m.safetensors exact {ASK} --effort 9")).contains("no graph"));
    let file = search(&format!(
        "search m.safetensors data.parquet {ASK} --effort 9"
    ));
    assert!(file.contains("metra index"), "{file}");
    assert!(
        folder
            .refused(INDEX, &["-o", "exact"])
            .contains("choose another name")
    );
    let names = folder.names();
    let nowhere = folder.refused(INDEX, &["-o", "no/such/folder"]);
    assert!(nowhere.contains("no/such"), "{nowhere}");
    assert_eq!(folder.names(), names, "nothing is left behind");
    let mut bytes = folder.bytes("exact/vectors.f32");
    bytes[100] ^= 1;
    std::fs::write(folder.path("exact/vectors.f32"), bytes).unwrap();
    let damaged = search(&format!("search m.safetensors exact {ASK}"));
    assert!(
        damaged.contains("vectors.f32") && damaged.contains("digest"),
        "{damaged}"
    );
}
