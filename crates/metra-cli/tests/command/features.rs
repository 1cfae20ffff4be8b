//! `metra features` on folders, lists and names; what it says of what it cannot read.

use crate::folder::{Folder, number};
use metra_files::{Table, TableOptions, read_table};
use metra_images::Picture;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Images of two people by two cameras, in folders of cameras.
fn people(folder: &Folder) {
    for (person, camera) in [(1, 1), (1, 2), (22, 1), (22, 2)] {
        let path = folder.path(&format!("people/camera{camera}/{person:03}.png"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        drawn(30 + 10 * camera, 60, person).save(path).unwrap();
    }
}

/// Some picture that depends on a number.
fn drawn(width: u32, height: u32, number: u32) -> Picture {
    let bytes = (0..3 * width * height).map(|place| ((place / 7 * number) ^ (place >> 4)) as u8);
    Picture::from_raw(width, height, bytes.collect()).unwrap()
}

fn table(folder: &Folder, name: &str, columns: &[&str]) -> Table {
    let options = TableOptions {
        columns: columns.iter().map(|column| column.to_string()).collect(),
        ..TableOptions::default()
    };
    read_table(&folder.path(name), &options, &mut |_, _| {}).unwrap()
}

fn column(table: &Table, name: &str) -> Vec<String> {
    table.columns[name]
        .iter()
        .map(|value| value.into_owned())
        .collect()
}

#[test]
fn a_folder_gives_a_row_an_image_in_the_order_of_paths() {
    let folder = Folder::new();
    people(&folder);
    folder.write("people/camera1/notes.txt", "not an image");
    let line = "features stripes people --pattern camera{camera}/{label:number} -o f.parquet";
    let done = folder.json(line, &[]);
    assert_eq!((&done["images"], &done["dim"]), (&4.into(), &2580.into()));
    assert_eq!(done["passed_over"], 1);
    assert!(number(&done, "/images_per_second") > 0.0);
    let found = table(&folder, "f.parquet", &["path", "camera", "label"]);
    assert_eq!((found.corpus.len(), found.corpus.dim()), (4, 2580));
    let paths = ["1/001", "1/022", "2/001", "2/022"];
    let paths = paths.map(|path| format!("people/camera{path}.png"));
    assert_eq!(column(&found, "path"), paths);
    assert_eq!(column(&found, "camera"), ["1", "1", "2", "2"]);
    assert_eq!(column(&found, "label"), ["1", "22", "1", "22"]);
    let first = folder.bytes("f.parquet");
    folder.good(line, &["--threads", "1"]);
    assert!(first == folder.bytes("f.parquet"), "one thread");
    let (out, _) = folder.good("features gist people --lab 10 -o g.parquet", &[]);
    assert!(
        out.contains("4 images, 542 dimensions each, in g.parquet"),
        "{out}"
    );
    assert_eq!(folder.read("g.parquet").dim(), 542);
    folder.good("features lomo people --stripes -o lomo.parquet", &[]);
    assert_eq!(folder.read("lomo.parquet").dim(), 26_960 + 2_580);
    folder.good(
        "features grid people --cells 2 --blocks 1 -o grid.parquet",
        &[],
    );
    assert_eq!(folder.read("grid.parquet").dim(), 2 * 2 * 32);
}

#[test]
fn a_list_keeps_its_order_and_its_columns() {
    let folder = Folder::new();
    people(&folder);
    let list = "when,path,note\n9,camera2/022.png,late\n10,camera1/001.png,\n";
    folder.write("people/list.csv", list);
    let line =
        "features gist --manifest people/list.csv --pattern camera{camera}/{label} -o f.parquet";
    folder.good(line, &[]);
    let names = ["path", "when", "note", "camera", "label"];
    let found = table(&folder, "f.parquet", &names);
    assert_eq!(
        column(&found, "path"),
        ["people/camera2/022.png", "people/camera1/001.png"]
    );
    assert_eq!(column(&found, "when"), ["9", "10"]);
    assert_eq!(column(&found, "note"), ["late", ""]);
    assert_eq!(column(&found, "label"), ["022", "001"]);
    assert!(matches!(
        found.columns["when"],
        metra_files::Column::Integers(_)
    ));
    // The same image has the same numbers wherever it is listed.
    folder.good("features gist people/camera1 -o again.parquet", &[]);
    assert_eq!(
        folder.read("f.parquet").row(1),
        folder.read("again.parquet").row(0)
    );
}

#[test]
fn a_bad_file_ends_it_or_is_skipped_and_named() {
    let folder = Folder::new();
    people(&folder);
    let whole = folder.bytes("people/camera1/022.png");
    std::fs::write(
        folder.path("people/camera1/010.png"),
        &whole[..whole.len() / 2],
    )
    .unwrap();
    folder.write("people/camera2/000.jpg", "words");
    let line = "features stripes people -o f.parquet";
    let message = folder.refused(line, &[]);
    assert!(message.contains("people/camera1/010.png"), "{message}");
    assert_eq!(folder.names(), ["people"], "no partial file");
    let done = folder.json(line, &["--on-error", "skip"]);
    assert_eq!(done["images"], 4);
    let skipped = done["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 2);
    assert_eq!(skipped[1]["path"], "people/camera2/000.jpg");
    let reason = skipped[1]["reason"].as_str().unwrap();
    assert!(reason.starts_with("expected PNG, JPEG"), "{reason}");
    let found = table(&folder, "f.parquet", &["path"]);
    let paths = column(&found, "path");
    assert_eq!(paths[1], "people/camera1/022.png");
    assert_eq!(paths[2], "people/camera2/001.png");
    let (out, error) = folder.good(line, &["--on-error", "skip"]);
    assert!(out.contains("unreadable  2"), "{out}");
    assert!(
        error.contains("skipped people/camera1/010.png: "),
        "{error}"
    );
    let small = ["--max-pixels", "2400", "--on-error", "skip"];
    let done = folder.json(line, &small);
    assert_eq!(done["skipped"].as_array().unwrap().len(), 4, "{done:#}");
}

#[test]
fn what_is_asked_wrongly_is_named() {
    let folder = Folder::new();
    people(&folder);
    folder.write("empty.txt", "");
    for (line, words) in [
        ("features gist people -o f.npy", "expected .parquet"),
        (
            "features gist people --pattern {label}_c{camera} -o f.parquet",
            "expected a name like",
        ),
        (
            "features gist people --pattern {label -o f.parquet",
            "expected } after {",
        ),
        (
            "features gist people --side 15 -o f.parquet",
            "side must be",
        ),
        (
            "features stripes people --stripes 0 -o f.parquet",
            "stripes must be",
        ),
        (
            "features grid people --cells 0 -o f.parquet",
            "cells must be",
        ),
        ("features gist people --lab 1 -o f.parquet", "bins must be"),
        ("features gist nowhere -o f.parquet", "nowhere"),
        (
            "features gist --manifest empty.txt -o f.parquet",
            "expected a column",
        ),
        (
            "features gist people --max-bytes 10 -o f.parquet",
            "at most 10 bytes",
        ),
        (
            "features gist people --max-bytes 10 --on-error skip -o f.parquet",
            "all 4 were skipped",
        ),
        (
            "features gist people --pattern {a}_{b} --unmatched skip -o f.parquet",
            "4 do not fit",
        ),
    ] {
        let message = folder.refused(line, &[]);
        assert!(message.contains(words), "{line}: {message}");
    }
    assert_eq!(folder.names(), ["empty.txt", "people"]);
}

#[cfg(unix)]
#[test]
fn an_interruption_leaves_nothing() {
    let folder = Folder::new();
    people(&folder);
    // Enough for minutes.
    let list: String = std::iter::repeat_n("people/camera1/001.png\n", 20_000).collect();
    folder.write("list.csv", &format!("path\n{list}"));
    let mut child = folder
        .command(
            "features grid --cells 2 --manifest list.csv -o f.parquet",
            &[],
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let writing = || folder.names().iter().any(|name| name.ends_with(".part"));
    let patience = Instant::now() + Duration::from_secs(60);
    while !writing() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    let process = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &process]).status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.names(), ["list.csv", "people"]);
}

fn correlation(stored: &[f32], made: &[f32]) -> f64 {
    let mean = |row: &[f32]| row.iter().map(|v| f64::from(*v)).sum::<f64>() / row.len() as f64;
    let (a, b) = (mean(stored), mean(made));
    let (mut both, mut one, mut other) = (0.0, 0.0, 0.0);
    for (x, y) in stored.iter().zip(made) {
        let (x, y) = (f64::from(*x) - a, f64::from(*y) - b);
        both += x * y;
        one += x * x;
        other += y * y;
    }
    both / (one * other).sqrt()
}

/// The least correlation over images between features that were stored with a data set and ours. `key` turns
/// a row's columns into the image's name without its ending.
fn least_correlation(
    data: &OsStr,
    kind: &str,
    images: &str,
    stored: &str,
    columns: &[&str],
    key: impl Fn(&[String]) -> String,
) -> (usize, f64) {
    let folder = Folder::new();
    let images = Path::new(data).join("images").join(images);
    let line = format!("features {kind} -o f.parquet");
    folder.good(&line, &[images.to_str().unwrap()]);
    let made = table(&folder, "f.parquet", &["path"]);
    let rows = folder.read("f.parquet");
    let options = TableOptions {
        columns: columns.iter().map(|column| column.to_string()).collect(),
        ..TableOptions::default()
    };
    let stored = read_table(&Path::new(data).join(stored), &options, &mut |_, _| {}).unwrap();
    let names: std::collections::HashMap<String, u64> = (0..stored.corpus.len())
        .map(|row| {
            let values = columns
                .iter()
                .map(|name| stored.columns[*name].get(row as usize));
            let values: Vec<String> = values.map(|value| value.into_owned()).collect();
            (key(&values), row)
        })
        .collect();
    let mut least: f64 = 1.0;
    for (row, path) in column(&made, "path").iter().enumerate() {
        let name = Path::new(path).file_stem().unwrap().to_str().unwrap();
        let place = names
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not stored"));
        let mut found = metra::linalg::RowBuf::empty(1);
        stored.corpus.gather(&[*place], &mut found).unwrap();
        least = least.min(correlation(found.row(0), rows.row(row)));
    }
    (rows.len(), least)
}

#[test]
#[ignore = "needs the data sets of METRA_DATA"]
fn gist_of_scenes_is_that_of_the_published_set() {
    let Some(data) = metra_testing::data() else {
        return;
    };
    let key = |values: &[String]| {
        values[0]
            .replace('/', "_")
            .trim_end_matches(".jpg")
            .to_owned()
    };
    let (images, least) =
        least_correlation(&data, "gist", "scenes", "osr_gist.parquet", &["name"], key);
    println!("{images} images, least correlation {least:.7}");
    assert!(images == 200 && least >= 0.999, "{images} images, {least}");
}

#[test]
#[ignore = "needs the data sets of METRA_DATA"]
fn stripes_of_people_are_those_of_the_stored_set() {
    let Some(data) = metra_testing::data() else {
        return;
    };
    let key = |values: &[String]| {
        let person: u32 = values[0].parse().unwrap();
        format!("{person:03}_c{}", values[1])
    };
    let stored = "viper_stripes2580.parquet";
    let (images, least) =
        least_correlation(&data, "stripes", "viper", stored, &["label", "camera"], key);
    println!("{images} images, least correlation {least:.7}");
    assert!(images == 1264 && least >= 0.99, "{images} images, {least}");
}
