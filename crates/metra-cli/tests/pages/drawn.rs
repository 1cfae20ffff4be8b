//! Small drawn pages instead of a browser: what the verbs read, write, print and refuse.

use crate::{json, number, refused, run};
use image::{Rgb, RgbImage};
use metra::internal::Stream;
use std::path::Path;
use tempfile::TempDir;

const VERSIONS: u64 = 24;

/// News that came up to a version: at every fourth.
fn stories(version: u64) -> u64 {
    version / 4
}

/// Versions of 96 × 96 in cells of 24: the second row of cells has news, the last has advertisements.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let shots = folder.path().join("shots");
    std::fs::create_dir(&shots).unwrap();
    let mut labels = String::from("# said by the one who drew them\n");
    for version in 0..VERSIONS {
        let drawn = Stream::new(1, "advertisement", version).below(4);
        // Stripes that turn by half a radian a story never come back within 24 versions.
        let turned = 0.5 * stories(version) as f64;
        let news = [0.8 * turned.cos(), 0.8 * turned.sin()];
        let advertisement = [[0.2, 0.9], [0.9, 0.3], [1.3, 0.0], [0.5, 0.5]][drawn as usize];
        let picture = RgbImage::from_fn(96, 96, |x, y| {
            let [across, down] = match y / 24 {
                1 => news,
                3 => advertisement,
                _ => return Rgb([255; 3]),
            };
            let wave = (f64::from(x) * across + f64::from(y) * down).sin();
            Rgb([(128.0 + 100.0 * wave) as u8; 3])
        });
        picture.save(shots.join(name(version))).unwrap();
        if version > 0 {
            let said = if stories(version) == stories(version - 1) {
                "same"
            } else {
                "changed"
            };
            labels.push_str(&format!(
                "{}\t{}\t{said}\n",
                name(version - 1),
                name(version)
            ));
        }
    }
    std::fs::write(folder.path().join("labels.tsv"), labels).unwrap();
    folder
}

fn name(version: u64) -> String {
    format!(
        "2026-11-{:02}T{:02}-00-00Z.png",
        1 + version / 12,
        2 * (version % 12)
    )
}

#[test]
fn learn_then_watch_the_latest() {
    let folder = folder();
    let folder = folder.path();
    let learned = json(
        folder,
        "pages learn shots -o page.safetensors --grid 4 --heat weights.png",
    );
    assert_eq!(learned["screenshots"], 24);
    let rows = learned["weights"].as_array().unwrap();
    let sum = |row: usize| {
        rows[row]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w.as_f64().unwrap())
            .sum::<f64>()
    };
    let total: f64 = (0..4).map(sum).sum();
    // Nothing ever changes in the first and the third row, advertisements alternate in the fourth.
    assert_eq!((sum(0), sum(2)), (0.0, 0.0));
    assert!(sum(1) > 0.8 * total, "{learned}");
    assert_eq!(
        image::image_dimensions(folder.join("weights.png")).unwrap(),
        (96, 96)
    );

    let found = json(
        folder,
        "pages changes shots --model page.safetensors --labels labels.tsv --heat heat",
    );
    assert_eq!(found["changed"], 5);
    assert_eq!(number(&found, "/judged/learned/map"), 1.0);
    assert!(number(&found, "/judged/euclid/map") < 1.0);
    assert_eq!(
        (
            number(&found, "/judged/found/0"),
            number(&found, "/judged/false_alarms/0")
        ),
        (5.0, 0.0)
    );
    // A map for each change, and the weights.
    assert_eq!(found["heat"].as_array().unwrap().len(), 6);
    assert!(folder.join("heat/2026-11-01T08-00-00Z.heat.png").is_file());

    // Of 24 versions the last pair is quiet: 22 and 23 have the same news; the last five have a change.
    let last = |pairs: u32| {
        let line =
            format!("pages changes shots --model page.safetensors --last {pairs} --exit-code");
        let output = run(folder, &line);
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (code, text) = last(1);
    assert!(code == Some(0) && text.contains("0 of 1 pairs"), "{text}");
    let (code, text) = last(5);
    assert!(code == Some(3) && text.contains("1 of 5 pairs"), "{text}");
    let high = json(
        folder,
        "pages changes shots --model page.safetensors --threshold 1e9 --exit-code",
    );
    assert_eq!(high["changed"], 0);
}

#[test]
fn without_a_model_it_learns_from_what_it_sees() {
    let folder = folder();
    let folder = folder.path();
    let alone = json(folder, "pages changes shots --grid 4");
    json(folder, "pages learn shots -o page.safetensors --grid 4");
    let by_model = json(folder, "pages changes shots --model page.safetensors");
    assert_eq!(alone, by_model);
    // A list says the same in another order.
    let mut list = String::from("path,time\n");
    for version in (0..VERSIONS).rev() {
        list.push_str(&format!("shots/{},{version}\n", name(version)));
    }
    std::fs::write(folder.join("list.csv"), list).unwrap();
    assert_eq!(
        json(folder, "pages changes list.csv --grid 4")["pairs"],
        alone["pairs"]
    );
    // A few labels bring their own threshold, and a word of caution to who judges by them.
    json(
        folder,
        "pages learn shots -o few.safetensors --grid 4 --labels labels.tsv",
    );
    let output = run(
        folder,
        "pages changes shots --model few.safetensors --labels labels.tsv",
    );
    let (out, error) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(
        out.contains("learned from 23 labelled pairs") && out.contains("5 of 5 changes"),
        "{out}"
    );
    assert!(error.contains("looks better than it is"), "{error}");
    let shown = run(folder, "inspect few.safetensors");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("page_threshold"));
}

#[test]
fn what_does_not_fit_is_said() {
    let folder = folder();
    let folder = folder.path();
    let error = refused(folder, "pages changes shots --grid 4 --heat shots");
    assert!(
        error.contains("another folder than that of the screenshots"),
        "{error}"
    );
    assert!(refused(folder, "pages changes nowhere").contains("nowhere"));
    let error = refused(
        folder,
        "pages shoot http://127.0.0.1/ -o out --browser ./none",
    );
    assert!(error.contains("expected a browser at ./none"), "{error}");
    RgbImage::new(80, 96)
        .save(folder.join("shots/2026-12-01.png"))
        .unwrap();
    let error = refused(folder, "pages changes shots --grid 4");
    assert!(
        error.contains("2026-12-01.png: expected a screenshot 96 pixels wide"),
        "{error}"
    );
    other_models_are_refused(folder);
}

fn other_models_are_refused(folder: &Path) {
    std::fs::remove_file(folder.join("shots/2026-12-01.png")).unwrap();
    let rows: String = (0..40)
        .map(|row| format!("{row},{},{}\n", row % 7, row % 2))
        .collect();
    std::fs::write(
        folder.join("rows.csv"),
        format!("vector_0,vector_1,label\n{rows}"),
    )
    .unwrap();
    let made = run(
        folder,
        "train rows.csv --label label --method lda -o other.safetensors --validation 0 --test 0",
    );
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let error = refused(folder, "pages changes shots --model other.safetensors");
    assert!(
        error.contains("expected a model by metra pages learn"),
        "{error}"
    );
}
