//! Sums over rows that come and go.

use super::folder::{Folder, SET, number, rows};
use metra::linalg::RowBuf;
use metra_files::Column;

/// Rows of the set from one number to another, in a file.
fn part(folder: &Folder, name: &str, chosen: impl Iterator<Item = usize>) {
    let (all, classes) = rows(SET, 400);
    let chosen: Vec<usize> = chosen.collect();
    let values = chosen.iter().flat_map(|row| all.row(*row).to_vec());
    let part = RowBuf::from_values(values.collect(), all.dim()).unwrap();
    let classes: Vec<i64> = chosen.iter().map(|row| classes[*row]).collect();
    folder.write_parquet(name, &part, &[("y", Column::Integers(classes))]);
}

#[test]
fn deleted_rows_are_forgotten() {
    let folder = Folder::new();
    part(&folder, "first.parquet", 0..300);
    part(&folder, "more.parquet", 300..400);
    part(&folder, "gone.parquet", 250..320);
    part(&folder, "left.parquet", (0..250).chain(320..400));
    let kept = folder.json("sums x.sums --add first.parquet --label y", &[]);
    assert_eq!(
        (number(&kept, "/rows"), number(&kept, "/added")),
        (300.0, 300.0)
    );
    let line = "sums x.sums --add more.parquet --remove gone.parquet --label y --method lda --rank 4 -o sums.model";
    let (out, _) = folder.good(line, &[]);
    assert!(
        out.contains("330 rows of 12 classes, 12 dimensions (100 added, 70 taken away)"),
        "{out}"
    );
    folder.good("train left.parquet --label y --method lda --rank 4 --holdout none --score euclid -o rows.model", &[]);
    let measure = |model: &str| {
        let found = folder.json(
            &format!("eval {model} gone.parquet --label y --measures map"),
            &[],
        );
        number(&found, "/measures/map")
    };
    assert!((measure("sums.model") - measure("rows.model")).abs() < 1e-9);
    // Both know that they are of the same rows.
    folder.good(
        "sums y.sums --add left.parquet --label y --method lda --rank 4 -o again.model",
        &[],
    );
    assert_eq!(
        folder.json("inspect again.model", &[])["origin"]["data"],
        folder.json("inspect sums.model", &[])["origin"]["data"]
    );
}

#[test]
fn a_file_of_sums_is_changed_as_a_whole_or_not_at_all() {
    let folder = Folder::new();
    part(&folder, "first.parquet", 0..100);
    part(&folder, "other.parquet", 90..110);
    let text = folder.refused("sums x.sums --remove first.parquet --label y", &[]);
    assert!(text.contains("name rows with --add"), "{text}");
    folder.good("sums x.sums --add first.parquet --label y", &[]);
    let before = folder.bytes("x.sums");
    for (line, expected) in [
        (
            "sums x.sums --remove other.parquet --label y",
            "row 10: is not among the rows that were added",
        ),
        ("sums x.sums --add other.parquet", "sums are kept by class"),
        (
            "sums x.sums --add other.parquet --label y --prepare l2",
            "--prepare is for a new file",
        ),
        (
            "sums x.sums --add other.parquet --label y --method warca -o m.model",
            "only sums over the rows are kept",
        ),
        (
            "sums new.sums --add first.parquet --label y --prepare pca:3",
            "look at every row by itself",
        ),
        (
            "sums first.parquet --add other.parquet --label y",
            "is no file of sums",
        ),
    ] {
        let text = folder.refused(line, &[]);
        assert!(text.contains(expected), "{line}: {text}");
    }
    // A model that cannot be written leaves the sums alone, and so does one of the same name.
    let line = "sums x.sums --add other.parquet --label y --method lda --rank 4 -o none/m.model";
    folder.refused(line, &[]);
    let text = folder.refused(
        "sums z.sums --add first.parquet --label y --method lda --rank 4 -o ./z.sums",
        &[],
    );
    assert!(text.contains("another file for the model"), "{text}");
    assert!(!folder.path("z.sums").exists());
    assert!(folder.bytes("x.sums") == before);
    // Rows that are there already are counted twice, with a word about it; a few rows alike are taken as the others are.
    let (_, noted) = folder.good("sums x.sums --add other.parquet --label y", &[]);
    assert!(
        noted.contains("10 rows with the same values and label"),
        "{noted}"
    );
    part(&folder, "one.parquet", [95, 95].into_iter());
    folder.good("sums x.sums --remove one.parquet --label y", &[]);
    assert!(!folder.path("m.model").exists() && !folder.path("new.sums").exists());
}
