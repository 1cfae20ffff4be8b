//! Ranked sheets by the command: the pictures read back, and what must never be shown.

use crate::folder::{Folder, SET, rows, texts};
use metra::linalg::RowBuf;
use metra_files::Column;
use metra_images::decode::decode;
use metra_images::encode::png;
use metra_images::{Limits, Picture};
use serde_json::Value;

const GREEN: [u8; 3] = [24, 148, 72];
const RED: [u8; 3] = [206, 50, 50];

/// A picture of one colour, 30 × 60, which a thumbnail of height 60 shows as it is.
fn flat(folder: &Folder, name: &str, colour: [u8; 3]) {
    let bytes = colour.repeat(30 * 60);
    let picture = Picture::from_raw(30, 60, bytes).unwrap();
    std::fs::write(folder.path(name), png(&picture).unwrap()).unwrap();
}

/// Persons 0, 1 and 2 in cameras a and b on a line. In b: 10, 21 and 30. From a, 0 at 11 finds 0 (1) and
/// 1 (100); 1 at 29 finds 2 (1), 1 (64); 2 at 0 finds 0 (100), 1 (441), 2 (900).
fn line(folder: &Folder) {
    let values = vec![11.0, 10.0, 29.0, 21.0, 0.0, 30.0];
    let rows = RowBuf::from_values(values, 1).unwrap();
    let path = |row: usize| format!("{}_{}.png", row / 2, ["a", "b"][row % 2]);
    let columns = [
        ("label", Column::Integers(vec![0, 0, 1, 1, 2, 2])),
        ("camera", texts(6, |row| ["a", "b"][row % 2].to_owned())),
        ("path", texts(6, path)),
    ];
    folder.write_parquet("line.parquet", &rows, &columns);
    std::fs::create_dir(folder.path("images")).unwrap();
    for row in 0..6 {
        let shade = 40 * row as u8;
        flat(folder, &format!("images/{}", path(row)), [shade, 0, 200]);
    }
}

const LINE: &str = "sheets euclid line.parquet --label label --camera camera --protocol single-shot \
                    --holdout none --images images --height 60 -k 3";

#[test]
fn a_sheet_has_the_right_pictures_in_the_right_frames() {
    let folder = Folder::new();
    line(&folder);
    let found = folder.json(LINE, &["--query", "1_a.png", "-o", "one.png"]);
    assert_eq!(found["queries"], 6);
    let shown = &found["sheets"][0];
    assert_eq!(
        (&shown["query"], &shown["first_right"]),
        (&"2".into(), &2.into())
    );
    let answer = |rank: usize| {
        let answer = &shown["answers"][rank];
        (
            answer["path"].as_str().unwrap(),
            answer["dissimilarity"].as_f64().unwrap().round(),
            answer["right"].as_bool().unwrap(),
        )
    };
    assert_eq!(answer(0), ("2_b.png", 1.0, false));
    assert_eq!(answer(1), ("1_b.png", 64.0, true));
    assert_eq!(answer(2), ("0_b.png", 361.0, false));
    // Cells are 49 wide (seven characters, more than 30 + 8), a heading takes 18 + 6, and a picture
    // begins (49 − 30) / 2 right of its cell and 4 below: cells at 6, 6 + 49 + 26 = 81, 136 and 191.
    let sheet = decode(&folder.path("one.png"), Limits::default()).unwrap();
    assert_eq!(sheet.dimensions(), (191 + 49 + 6, 6 + 24 + 60 + 8 + 36 + 6));
    let at = |x: u32, y: u32| sheet.get_pixel(x, y).0;
    let (top, inside) = (6 + 24 + 4, 9);
    for (cell, shade, frame) in [(81, 200, RED), (136, 120, GREEN), (191, 40, RED)] {
        assert_eq!(at(cell + inside, top), [shade, 0, 200]);
        assert_eq!(at(cell + inside + 29, top + 59), [shade, 0, 200]);
        assert_eq!(at(cell + inside - 1, top + 30), frame);
        assert_eq!(at(cell + inside + 30, top + 30), frame);
    }
    assert_eq!(at(6 + inside, top), [80, 0, 200], "the query");
}

#[test]
fn the_worst_come_first_and_broken_pictures_are_boxes() {
    let folder = Folder::new();
    line(&folder);
    std::fs::remove_file(folder.path("images/2_b.png")).unwrap();
    folder.write("images/0_b.png", "no picture");
    let (out, error) = folder.good(LINE, &["--worst", "2", "-o", "many"]);
    assert!(out.contains("of 6 held-out queries"), "{out}");
    assert!(
        error.contains("could not be read and are grey boxes"),
        "{error}"
    );
    assert!(error.contains("0_b.png: expected PNG"), "{error}");
    let mut names: Vec<String> = std::fs::read_dir(folder.path("many"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 2);
    assert_eq!(names[0], "0001_2_a.png");
    // The same queries by the same seed, the same bytes on one thread and on two.
    folder.good(LINE, &["--queries", "3", "-o", "a.png", "--threads", "1"]);
    folder.good(LINE, &["--queries", "3", "-o", "b.png", "--threads", "2"]);
    assert_eq!(folder.bytes("a.png"), folder.bytes("b.png"));
    std::fs::create_dir(folder.path("empty")).unwrap();
    let wrong = LINE.replace("--images images", "--images empty");
    let error = folder.refused(&wrong, &["-o", "c.png"]);
    assert!(error.contains("pictures could be read from"), "{error}");
    let error = folder.refused(LINE, &["--query", "9_a.png", "-o", "c.png"]);
    assert!(
        error.contains("--query 9_a.png: expected the path"),
        "{error}"
    );
    let error = folder.refused(LINE, &["--path", "place", "-o", "c.png"]);
    assert!(error.contains("place"), "{error}");
}

/// Rows of a set with a picture each.
fn pictured(folder: &Folder) {
    let (rows, classes) = rows(SET, 120);
    let columns = [
        ("label", Column::Integers(classes.clone())),
        ("path", texts(120, |row| format!("{row}.png"))),
    ];
    folder.write_parquet("set.parquet", &rows, &columns);
    std::fs::create_dir(folder.path("images")).unwrap();
    for (row, class) in classes.into_iter().enumerate() {
        flat(
            folder,
            &format!("images/{row}.png"),
            [20 * class as u8, 99, 9],
        );
    }
}

#[test]
fn rows_that_were_trained_on_are_not_shown() {
    let folder = Folder::new();
    pictured(&folder);
    let held = "--label label --holdout rows --test 0.3 --seed 4";
    folder.good(
        &format!("train set.parquet {held} --method lda -o m.safetensors"),
        &[],
    );
    let sheets = "sheets m.safetensors set.parquet --label label --images images -o s.png";
    let found = folder.json(&format!("{sheets} --holdout rows --test 0.3 --seed 4"), &[]);
    assert_eq!(found["sheets"].as_array().unwrap().len(), 8);
    // What eval counts on the same rows: a third of 120, all with others of their class.
    assert!((30..=40).contains(&found["queries"].as_u64().unwrap()));
    let error = folder.refused(&format!("{sheets} --holdout none"), &[]);
    assert!(
        error.contains("evaluated rows were learned from"),
        "{error}"
    );
    let error = folder.refused(&format!("{sheets} --holdout rows --seed 5"), &[]);
    assert!(
        error.contains("name its test part as in training"),
        "{error}"
    );
}

#[test]
fn a_comparison_shows_sheets_of_base_and_best_in_its_report() {
    let folder = Folder::new();
    pictured(&folder);
    let line = "compare set.parquet --label label --holdout rows --methods euclid,lda --draws 2 \
                --no-cost --trials 3 --sheets images --sheet-queries 2 -o out";
    folder.good(line, &[]);
    let report = String::from_utf8(folder.bytes("out/report.html")).unwrap();
    assert_eq!(
        report.matches("src=\"data:image/jpeg;base64,/9j/").count(),
        4
    );
    assert!(report.contains("img-src data:") && report.contains("Drawn at random"));
    assert!(
        report.contains("the test part of the first split"),
        "{report}"
    );
    for name in ["drawn_01", "drawn_02", "worst_01", "worst_02"] {
        let path = folder.path(&format!("out/sheets/{name}.png"));
        let sheet = decode(&path, Limits::default()).unwrap();
        // Two methods below each other, a query and ten answers each.
        assert!(
            sheet.width() > 11 * 50 && sheet.height() > 2 * 130,
            "{name}"
        );
    }
    let results: Value = serde_json::from_slice(&folder.bytes("out/results.json")).unwrap();
    assert_eq!(results["best"], "lda");
    assert!(report.contains("lda: right at rank 3"), "{report}");
    // The same again from the log, byte by byte.
    let before = folder.bytes("out/report.html");
    folder.good(line, &[]);
    assert!(before.len() == folder.bytes("out/report.html").len());
    // Without sheets the report has no pictures.
    folder.good(&line.replace("--sheets images --sheet-queries 2", ""), &[]);
    let report = String::from_utf8(folder.bytes("out/report.html")).unwrap();
    assert!(!report.contains("data:image") && !report.contains("img-src"));
}
