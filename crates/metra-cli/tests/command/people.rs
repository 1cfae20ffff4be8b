//! Re-identification from a folder of images to a report, with people drawn by a program; and VIPeR from
//! its images, where it is at hand.

#[path = "../../../metra-images/examples/people/figures.rs"]
mod figures;

use crate::folder::{Folder, number};
use metra_files::{TableOptions, read_table};
use metra_images::Limits;
use metra_images::decode::decode;
use metra_images::encode::png;
use serde_json::Value;
use std::path::Path;

fn line<'a>(results: &'a Value, name: &str) -> &'a Value {
    let lines = results["lines"].as_array().unwrap();
    lines.iter().find(|line| line["name"] == name).unwrap()
}

/// Mean of a measure of a line.
fn mean(results: &Value, name: &str, measure: &str) -> f64 {
    let measures = results["protocol"]["measures"].as_array().unwrap();
    let place = measures.iter().position(|m| m == measure).unwrap();
    number(line(results, name), &format!("/measures/{place}/mean"))
}

/// Images of so many people in two cameras, and their features in people.parquet.
fn people(folder: &Folder, count: u64) {
    std::fs::create_dir(folder.path("people")).unwrap();
    for person in 0..count {
        for (camera, name) in figures::CAMERAS.into_iter().enumerate() {
            let bytes = png(&figures::image(1, person, camera)).unwrap();
            let path = format!("people/{person:04}_{name}.png");
            std::fs::write(folder.path(&path), bytes).unwrap();
        }
    }
    folder.good(
        "features stripes people --pattern {label}_{camera} -o people.parquet",
        &[],
    );
}

const HELD_OUT: &str =
    "--label label --camera camera --protocol single-shot --holdout identities --test 0.5";

/// What is learned from half of the people finds more than twice as many of the others at the first place
/// as their histograms do; and the sheets say the same as the measures.
#[test]
fn new_people_are_found_twice_as_often_as_by_their_histograms() {
    let folder = Folder::new();
    people(&folder, 120);
    let trained = folder.json(
        &format!(
            "train people.parquet {HELD_OUT} --validation 0 --method kernel-warca --set steps=60 --set \
             margin=1.4 --set start=lda --score cosine --base euclid -o m.safetensors"
        ),
        &[],
    );
    let rows = trained["splits"][0]["measures"].as_array().unwrap();
    let at_1 = rows.iter().find(|row| row["measure"] == "cmc@1").unwrap();
    let (plain, learned) = (number(at_1, "/base"), number(at_1, "/learned"));
    assert!(learned > 2.0 * plain, "{learned} is not twice {plain}");
    assert!(learned > 0.1, "{learned}");
    for (system, rate) in [("m.safetensors", learned), ("euclid", plain)] {
        let line = format!("sheets {system} people.parquet {HELD_OUT} --worst 2 -o {system}.png");
        let shown = folder.json(&line, &[]);
        assert_eq!(shown["queries"], 120);
        let right = number(&shown, "/first_right_at_1");
        assert!(
            (right / 120.0 - rate).abs() < 1e-9,
            "{system}: {right} of 120"
        );
        let sheet = decode(&folder.path(&format!("{system}.png")), Limits::default()).unwrap();
        assert!(sheet.width() > 600 && sheet.height() > 340, "{system}");
    }
}

/// Folder → features → compare → report, as the guide has it.
#[test]
#[ignore = "slow: compares methods on 400 images"]
fn a_folder_of_images_becomes_a_report_with_sheets() {
    let folder = Folder::new();
    people(&folder, 200);
    folder.good(
        &format!(
            "compare people.parquet {HELD_OUT} --methods euclid,kernel-warca --trials 2 --no-cost \
             --sheets . -o out"
        ),
        &[],
    );
    let results: Value = serde_json::from_slice(&folder.bytes("out/results.json")).unwrap();
    let (plain, learned) = (
        mean(&results, "euclid", "cmc@1"),
        mean(&results, "kernel-warca", "cmc@1"),
    );
    assert!(learned > 2.0 * plain, "{learned} is not twice {plain}");
    let report = String::from_utf8(folder.bytes("out/report.html")).unwrap();
    assert_eq!(report.matches("src=\"data:image/jpeg").count(), 12);
    assert!(report.len() < 5_000_000, "{}", report.len());
    assert!(!report.contains("http://") && !report.contains("https://"));
    for name in ["drawn_01", "worst_06"] {
        let path = folder.path(&format!("out/sheets/{name}.png"));
        decode(&path, Limits::default()).unwrap();
    }
}

/// From the images the experiment on stored features comes out again. The images are listed in the order
/// of the stored rows, because draws go by rows. On one split, since ten take ten minutes.
#[test]
#[ignore = "slow: METRA_DATA with images/viper"]
fn viper_from_its_images_gives_what_the_stored_features_give() {
    let Some(data) = metra_testing::data() else {
        return;
    };
    let data = Path::new(&data);
    let images = data.join("images/viper");
    if !images.is_dir() {
        metra_testing::skip("METRA_DATA", &format!("{} is no folder", images.display()));
        return;
    }
    let folder = Folder::new();
    let stored = data.join("viper_stripes2580.parquet");
    let options = TableOptions {
        columns: vec!["label".into(), "camera".into()],
        ..TableOptions::default()
    };
    let table = read_table(&stored, &options, &mut |_, _| {}).unwrap();
    let (labels, cameras) = (
        table.column("label").unwrap(),
        table.column("camera").unwrap(),
    );
    let mut list = "path,label,camera\n".to_owned();
    for (label, camera) in labels.iter().zip(cameras.iter()) {
        let path = images.join(format!("{label:0>3}_c{camera}.png"));
        list.push_str(&format!("{},{label},{camera}\n", path.display()));
    }
    folder.write("viper.csv", &list);
    folder.good(
        "features stripes --manifest viper.csv -o viper.parquet",
        &[],
    );
    let splits = data.join("viper_stripes2580.splits.json");
    let compare = "compare --label label --camera camera --protocol single-shot --split 0 --methods \
                   euclid,kernel-warca --trials 1 --no-cost";
    let run = |vectors: &str, more: &[&str]| -> Value {
        let arguments = [&["--splits", splits.to_str().unwrap(), vectors][..], more].concat();
        folder.json(compare, &arguments)["results"].clone()
    };
    let ours = run("viper.parquet", &["-o", "ours", "--sheets", "/"]);
    let theirs = run(stored.to_str().unwrap(), &["-o", "theirs"]);
    // One standard deviation over the ten splits of docs/results/viper.md.
    for (name, deviation) in [("euclid", 0.002), ("kernel-warca", 0.0188)] {
        let (ours, theirs) = (mean(&ours, name, "cmc@1"), mean(&theirs, name, "cmc@1"));
        assert!(
            (ours - theirs).abs() < deviation,
            "{name}: {ours} and {theirs}"
        );
    }
    let report = String::from_utf8(folder.bytes("ours/report.html")).unwrap();
    assert_eq!(report.matches("src=\"data:image/jpeg").count(), 12);
}
