//! How a store can serve a model: what is said, verified and refused.

use crate::folder::{Folder, example, number};
use metra::model::{Distance, Model, Plan, Strategy};
use metra_stores::Provenance;

const SAMPLE: &str = "--sample data.parquet --where train=false";

fn trained(folder: &Folder, method: &str) {
    let line =
        format!("train data.parquet --label label --where train=true -o m.safetensors {method}");
    folder.good(&line, &[]);
}

#[test]
fn a_plan_is_chosen_described_and_verified() {
    let folder = Folder::new();
    example(&folder);
    trained(&folder, "--method lda --rank 8 --score euclid");
    let (out, _) = folder.good(
        &format!("plan m.safetensors --store pgvector {SAMPLE}"),
        &[],
    );
    for part in [
        "70 dimensions to 8, compared by euclid",
        "an index of vector takes 2000 dimensions",
        "* mapped           l2            8      32  written  exact",
        "32 bytes an item as vector",
        "verified 1.000000 of the pairs",
        "(50 queries, 190 items)",
    ] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    let found = folder.json(
        &format!("plan m.safetensors --store faiss --distance ip --keep-input {SAMPLE}"),
        &[],
    );
    assert_eq!(found["chosen"]["way"], "extra-coordinate");
    assert_eq!(found["chosen"]["dimensions"], 71);
    let said = found["description"].as_str().unwrap();
    assert!(said.contains("must not be normalised"), "{said}");
    assert!(number(&found, "/agreement/share") > 0.9999);

    let message = folder.refused("plan m.safetensors --keep-items", &[]);
    assert!(
        message.contains("no exact plan for a metric compared by euclid"),
        "{message}"
    );
    assert!(
        message.contains("query-only: every item's own length"),
        "{message}"
    );
    let message = folder.refused("plan m.safetensors --store faiss --distance cosine", &[]);
    assert!(
        message.contains("one of l2, ip for this store"),
        "{message}"
    );
}

#[test]
fn what_is_asked_is_exported_by_the_record_of_what_is_stored() {
    let folder = Folder::new();
    example(&folder);
    trained(&folder, "--method lda --rank 4 --score euclid");
    let model = Model::load(folder.path("m.safetensors")).unwrap();
    let plan = Plan::find(&model, Strategy::Mapped, Distance::SquaredL2, 4).unwrap();
    let plan = plan.with_centre(vec![1.0, -2.0, 0.5, 0.0]).unwrap();
    let record = Provenance::new(&model, &plan, true).unwrap();
    folder.write("record.json", &record.to_text().unwrap());
    folder.good("export m.safetensors -o plain.npy", &[]);
    folder.good(
        "export m.safetensors --record record.json -o asked.npy",
        &[],
    );
    assert_eq!(folder.read("plain.npy"), folder.read("asked.npy"));
    let (plain, asked) = (
        folder.read("plain.offset.npy"),
        folder.read("asked.offset.npy"),
    );
    for (place, centre) in [1.0, -2.0, 0.5, 0.0].into_iter().enumerate() {
        let moved = plain.values()[place] - asked.values()[place];
        assert!((moved - centre).abs() < 1e-4, "{moved} is not {centre}");
    }
    trained(&folder, "--method lda --rank 5 --score euclid");
    let message = folder.refused("export m.safetensors --record record.json -o no.npy", &[]);
    assert!(
        message.contains("record.json: it was written by the model"),
        "{message}"
    );
}

#[test]
fn metrics_that_no_store_has_are_served_too() {
    let folder = Folder::new();
    example(&folder);
    trained(&folder, "--method kissme --rank 20 --set definite=false");
    let (out, _) = folder.good("inspect m.safetensors", &[]);
    assert!(out.contains("indefinite"), "{out}");
    let found = folder.json(&format!("plan m.safetensors {SAMPLE}"), &[]);
    assert_eq!(found["chosen"]["way"], "extra-coordinate");
    assert!(number(&found, "/agreement/share") > 0.9999, "{found:#}");

    trained(&folder, "--method qwise --set form=blocks --set block=10");
    let found = folder.json(&format!("plan m.safetensors {SAMPLE}"), &[]);
    assert_eq!(
        (&found["chosen"]["way"], &found["chosen"]["exact"]),
        (&"candidates".into(), &false.into())
    );
    let share = number(&found, "/agreement/share");
    assert!((0.8..1.0).contains(&share), "{share}");
}
