//! Same or not the same: calibrating a model and deciding by it.

use crate::folder::{Folder, example, number};

const TRAIN: &str = "train data.parquet --label label --where train=true --method lda --rank 8 \
                     --score euclid -o m.safetensors";
const CALIBRATE: &str = "calibrate m.safetensors data.parquet --label label --where train=false";

/// All pairs of the rows that were not trained on, with what their classes say.
fn all_pairs(folder: &Folder) -> usize {
    // As `example` has it: every third round through the 12 classes is for testing.
    let test: Vec<usize> = (0..720).filter(|row| (row / 12) % 3 == 0).collect();
    let mut lines = String::new();
    for (place, a) in test.iter().enumerate() {
        for b in &test[place + 1..] {
            lines.push_str(&format!(
                "row-{a}\trow-{b}\t{}\n",
                u8::from(a % 12 == b % 12)
            ));
        }
    }
    folder.write("pairs.tsv", &lines);
    test.len() * (test.len() - 1) / 2
}

#[test]
fn a_calibrated_model_decides_as_it_was_calibrated() {
    let folder = Folder::new();
    example(&folder);
    folder.good(TRAIN, &[]);
    let found = folder.json(CALIBRATE, &["--fmr", "0.01", "-o", "c.safetensors"]);
    // 240 rows, 20 of each of 12 classes: 12·190 pairs of one and 240·239/2 − 2280 of two.
    assert_eq!(
        (&found["same"], &found["different"]),
        (&2280.into(), &26400.into())
    );
    let rate = number(&found, "/decision/false_match_rate");
    assert!(rate <= 0.01 && rate > 0.0095, "{rate}");
    let share = number(&found, "/decision/true_match_rate");
    let interval = (
        number(&found, "/decision/low"),
        number(&found, "/decision/high"),
    );
    assert!(
        share > 0.5 && interval.0 <= share && share <= interval.1,
        "{found:#}"
    );
    assert_eq!(found["trained_on"], false);

    let pairs = all_pairs(&folder);
    let decided = folder.json(
        "decide c.safetensors data.parquet --id id --pairs pairs.tsv",
        &[],
    );
    assert_eq!(decided["pairs"].as_array().unwrap().len(), pairs);
    // Single pairs are rounded in another way than blocks of products: one pair may change sides.
    let near = |pointer: &str, share: f64, all: f64| {
        let counted = number(&decided, pointer);
        assert!((counted - share * all).abs() <= 1.0, "{pointer}: {counted}");
    };
    near("/true_matches/0", share, 2280.0);
    near("/false_matches/0", rate, 26400.0);
    assert_eq!(decided["true_matches"][1], 2280);

    let (out, _) = folder.good("inspect c.safetensors", &[]);
    assert!(
        out.contains("same where the dissimilarity is at most"),
        "{out}"
    );
    // Nothing else has changed.
    let maps = |model: &str| {
        let line = format!("embed {model} data.parquet -o z.npy");
        folder.good(&line, &[]);
        folder.bytes("z.npy")
    };
    assert!(maps("m.safetensors") == maps("c.safetensors"));
}

#[test]
fn what_cannot_be_calibrated_or_decided_is_said() {
    let folder = Folder::new();
    example(&folder);
    folder.good(TRAIN, &[]);
    folder.write("pairs.tsv", "row-0\trow-12\n");
    let decide = "decide m.safetensors data.parquet --id id --pairs pairs.tsv";
    let error = folder.refused(decide, &[]);
    assert!(
        error.contains("has no threshold: make one with metra calibrate"),
        "{error}"
    );
    let error = folder.refused(CALIBRATE, &["--fmr", "1"]);
    assert!(error.contains("between 0 and 1"), "{error}");
    let unlabelled = "calibrate m.safetensors data.parquet";
    assert!(folder.refused(unlabelled, &[]).contains("--label"));
    // On the rows it was trained on, and at a rate that so few pairs cannot show.
    let line = "calibrate m.safetensors data.parquet --label label --where train=true";
    let (_, warned) = folder.good(line, &["--fmr", "1e-6"]);
    assert!(
        warned.contains("rows were learned from by the model"),
        "{warned}"
    );
    assert!(
        warned.contains("too few to measure a rate of 1e-6"),
        "{warned}"
    );
}
