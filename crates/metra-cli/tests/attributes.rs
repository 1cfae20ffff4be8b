//! `metra attributes` on pictures whose brightness and size are known: the real binary, from drawn
//! pictures and an ordering of classes to a ranking, answers and what they are worth.

#[allow(dead_code)]
#[path = "../examples/discs.rs"]
mod discs;

use discs::Disc;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn metra(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_metra"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .output()
        .unwrap()
}

fn good(folder: &Path, line: &str) -> String {
    let output = metra(folder, line);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn report(folder: &Path, line: &str) -> Value {
    serde_json::from_str(&good(folder, &format!("{line} --json"))).unwrap()
}

fn refused(folder: &Path, line: &str) -> String {
    let output = metra(folder, line);
    assert!(!output.status.success(), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

const TRAIN: &str = "train discs.csv --vector v --label class --orderings discs.orderings.txt \
                     --method attributes --set lambda=0.01 --score euclid --classifier gaussian:0.5 \
                     --holdout rows";

/// 160 discs and the model learned from 60 % of them.
fn folder() -> (tempfile::TempDir, Vec<Disc>, Value) {
    let place = tempfile::tempdir().unwrap();
    let drawn = discs::write(place.path(), 160, 1).unwrap();
    let found = report(place.path(), &format!("{TRAIN} -o m.safetensors"));
    (place, drawn, found)
}

/// Spearman's correlation of two lists without ties.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |values: &[f64]| -> Vec<f64> {
        let below = |x: &f64| values.iter().filter(|y| *y < x).count() as f64;
        values.iter().map(below).collect()
    };
    let count = a.len() as f64;
    let squares: f64 = (ranks(a).iter().zip(ranks(b)))
        .map(|(a, b)| (a - b) * (a - b))
        .sum();
    1.0 - 6.0 * squares / (count * (count * count - 1.0))
}

/// What is true of a disc.
type Truth = fn(&Disc) -> f64;

/// The number in `disc_017.png`.
fn number(row: &Value) -> usize {
    let name = row["row"].as_str().unwrap();
    name[5..8].parse().unwrap()
}

#[test]
fn discs_are_ranked_by_what_they_are() {
    let (place, drawn, trained) = folder();
    let folder = place.path();
    let listed = report(folder, "attributes list m.safetensors");
    assert_eq!(listed["attributes"], serde_json::json!(["bright", "large"]));
    assert!(good(folder, "inspect m.safetensors").contains("outputs     bright, large"));
    let truth: [(&str, Truth); 2] = [
        ("bright", |disc| disc.brightness),
        ("large", |disc| disc.radius),
    ];
    for (name, of) in truth {
        let line =
            format!("attributes rank m.safetensors discs.csv --vector v --id path --by {name}");
        let ranking = report(folder, &format!("{line} -k 160"));
        let ranked = ranking["ranked"].as_array().unwrap();
        assert_eq!((ranked.len(), &ranking["rows"]), (160, &160.into()));
        let scores: Vec<f64> = ranked
            .iter()
            .map(|r| r["score"].as_f64().unwrap())
            .collect();
        assert!(scores.is_sorted_by(|a, b| a >= b));
        let true_values: Vec<f64> = ranked.iter().map(|r| of(&drawn[number(r)])).collect();
        let correlation = rank_correlation(&scores, &true_values);
        assert!(correlation > 0.9, "{name}: {correlation}");
        // Deviations have mean 0 and mean square 1 by definition.
        let away: Vec<f64> = ranked
            .iter()
            .map(|r| r["deviations"].as_f64().unwrap())
            .collect();
        let (mean, square) = (
            away.iter().sum::<f64>() / 160.0,
            away.iter().map(|d| d * d).sum::<f64>() / 160.0,
        );
        assert!(
            mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-5,
            "{mean} {square}"
        );
        let least = report(folder, &format!("{line} -k 3 --least"));
        assert_eq!(least["ranked"][0]["row"], ranked[159]["row"]);
    }
    // Train says how many pairs of test rows are ordered right, and eval says the same of all.
    let held_out = trained["splits"][0]["ordered"].as_array().unwrap();
    let all = report(
        folder,
        "attributes eval m.safetensors discs.csv --vector v --label class --orderings \
         discs.orderings.txt",
    );
    assert_eq!((&all["rows"], held_out.len()), (&160.into(), 2));
    for row in held_out.iter().chain(all["attributes"].as_array().unwrap()) {
        assert!(row["share"].as_f64().unwrap() > 0.9, "{row}");
        assert!(row["low"].as_f64().unwrap() <= row["share"].as_f64().unwrap());
    }
    // 40 discs a step, 4 steps: 160·120/2 pairs of different steps.
    assert_eq!(all["attributes"][0]["pairs"], 9600);
}

#[test]
fn like_this_but_brighter_is_brighter_and_of_its_size() {
    let (place, drawn, _) = folder();
    let folder = place.path();
    let line = "attributes like m.safetensors discs.csv --vector v --id path --label class";
    // Discs of the second step of brightness and of each size.
    for start in [1, 5, 9, 13] {
        let found = report(
            folder,
            &format!("{line} --row disc_{start:03}.png --more bright -k 5"),
        );
        let answers = found["answers"].as_array().unwrap();
        assert_eq!(answers.len(), 5, "{start}");
        for answer in answers {
            let (from, to) = (&drawn[start], &drawn[number(answer)]);
            // A deviation of brightness is 46 (160 / √12), and scores are not exact.
            assert!(to.brightness > from.brightness + 20.0, "{start}: {answer}");
            assert!((to.radius - from.radius).abs() < 9.0, "{start}: {answer}");
            let bright = |row: &Value| row["attributes"]["bright"].as_f64().unwrap();
            assert!(bright(answer) >= bright(&found["row"]) + 1.0 - 1e-5);
        }
        let distances: Vec<f64> = (answers.iter())
            .map(|answer| answer["distance"].as_f64().unwrap())
            .collect();
        assert!(distances.is_sorted());
    }
    let found = report(
        folder,
        &format!("{line} --row disc_015.png --less bright=0.5 --less large=0.5 -k 3"),
    );
    let answers = found["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 3);
    for answer in answers {
        let (from, to) = (&drawn[15], &drawn[number(answer)]);
        assert!(
            to.brightness < from.brightness && to.radius < from.radius,
            "{answer}"
        );
    }
    let text = good(
        folder,
        &format!("{line} --row disc_003.png --more bright=9"),
    );
    assert!(text.contains("no row has that much"), "{text}");
    let text = good(
        folder,
        &format!("{line} --row disc_005.png --more bright -k 2"),
    );
    assert!(text.contains("more bright: at least"), "{text}");
}

#[cfg(feature = "images")]
#[test]
fn a_strip_goes_from_dark_to_bright() {
    let (place, ..) = folder();
    let folder = place.path();
    let table = "m.safetensors discs.csv --vector v --id path";
    let rank = format!("attributes rank {table} --by bright -k 1 --pictures 5");
    good(folder, &format!("{rank} --strip strip.png"));
    let drawn = image::open(folder.join("strip.png")).unwrap().into_rgb8();
    // Cells of 96 + 2·4 with gaps of 6; a heading of 18, pictures of 96 + 2·4 and a caption of 18.
    assert_eq!(drawn.dimensions(), (6 + 5 * 110, 6 + 18 + 6 + 122 + 6));
    let middle = |picture: u32| -> u32 {
        let (x, y) = (6 + 110 * picture + 52, 6 + 18 + 6 + 52);
        let square = (x - 4..x + 4).flat_map(|x| (y - 4..y + 4).map(move |y| (x, y)));
        square
            .map(|(x, y)| u32::from(drawn.get_pixel(x, y).0[0]))
            .sum::<u32>()
            / 64
    };
    let middles: Vec<u32> = (0..5).map(middle).collect();
    // Least to most is about 90 to 250, so a step of four is 40.
    assert!(
        middles.windows(2).all(|pair| pair[1] > pair[0] + 20),
        "{middles:?}"
    );
    // The row asked for stands first, in a frame, before a line: 26 instead of 6.
    let like = format!("attributes like {table} --row disc_005.png --more bright -k 3");
    good(folder, &format!("{like} --strip like.jpg"));
    let drawn = image::open(folder.join("like.jpg")).unwrap().into_rgb8();
    assert_eq!(drawn.width(), 6 + 4 * 110 + 20);
    // One picture that is gone is a box; none at all, or a name that says nothing, is an error.
    std::fs::remove_file(folder.join("disc_005.png")).unwrap();
    let output = metra(folder, &format!("{like} --strip box.png"));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && error.contains("disc_005.png"),
        "{error}"
    );
    let error = refused(folder, &format!("{rank} --strip x.png --images elsewhere"));
    assert!(error.contains("none could be read"), "{error}");
    let error = refused(folder, &format!("{rank} --strip x.gif"));
    assert!(
        error.contains(".png or .jpg") && !folder.join("x.gif").exists(),
        "{error}"
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let (place, ..) = folder();
    let folder = place.path();
    let rank = "attributes rank m.safetensors discs.csv --vector v --by";
    let error = refused(folder, &format!("{rank} loud"));
    assert!(
        error.contains("bright, large") && error.contains("\"loud\""),
        "{error}"
    );
    let like = "attributes like m.safetensors discs.csv --vector v --id path --row";
    let error = refused(folder, &format!("{like} disc_999.png --more bright"));
    assert!(error.contains("disc_999.png"), "{error}");
    let error = refused(
        folder,
        &format!("{like} disc_001.png --more bright --less bright"),
    );
    assert!(error.contains("changed once"), "{error}");
    // A model whose numbers have no names.
    good(
        folder,
        "train discs.csv --vector v --label class --method lda --rank 3 --holdout none -o l.safetensors",
    );
    let error = refused(folder, "attributes list l.safetensors");
    assert!(
        error.contains("have no names") && error.contains("lda"),
        "{error}"
    );
    std::fs::write(folder.join("o.txt"), "loud: b0s0<b1s1\n").unwrap();
    let error = refused(
        folder,
        "attributes eval m.safetensors discs.csv --vector v --label class --orderings o.txt",
    );
    assert!(
        error.contains("bright, large") && error.contains("loud"),
        "{error}"
    );
}

#[test]
fn mistakes_count_by_the_tree() {
    let (place, ..) = folder();
    let folder = place.path();
    // Classes of one brightness are siblings: height 2, so that a mistake within counts one half.
    let mut tree = String::new();
    for class in (0..4).flat_map(|b| (0..4).map(move |s| (b, s))) {
        tree += &format!("b{}s{} brightness{}\n", class.0, class.1, class.0);
    }
    for step in 0..4 {
        tree += &format!("brightness{step} disc\n");
    }
    std::fs::write(folder.join("tree.tsv"), tree).unwrap();
    let line = "train discs.csv --vector v --label class --method lda --rank 3 --set ridge=1 \
                --score euclid --taxonomy tree.tsv --classifier knn:5 --holdout rows";
    let found = report(folder, line);
    let measures = found["splits"][0]["measures"].as_array().unwrap();
    let names: Vec<&str> = measures
        .iter()
        .map(|m| m["measure"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["accuracy", "hierarchical"]);
    for side in ["base", "learned"] {
        let (plain, tree) = (
            measures[0][side].as_f64().unwrap(),
            measures[1][side].as_f64().unwrap(),
        );
        // Right counts 1, a sibling one half.
        assert!(
            plain < tree && tree <= plain + (1.0 - plain) / 2.0,
            "{side}: {plain} {tree}"
        );
    }
    let text = good(folder, line);
    assert!(text.contains("hierarchical"), "{text}");
    // Eval against a split knows the tree too, and refuses the measure without it.
    let rows = |range: std::ops::Range<u32>| range.map(|r| r + 2).collect::<Vec<_>>();
    let splits = serde_json::json!({"by": "row", "splits": [{"train": rows(0..110), "test": rows(110..160)}]});
    std::fs::write(folder.join("splits.json"), splits.to_string()).unwrap();
    let line =
        "eval euclid discs.csv --vector v --label class --splits splits.json --classifier knn:5";
    let with = report(folder, &format!("{line} --taxonomy tree.tsv"));
    let without = report(folder, line);
    assert_eq!(
        with["measures"]["accuracy"],
        without["measures"]["accuracy"]
    );
    let tree = with["measures"]["hierarchical"].as_f64().unwrap();
    assert!(tree > with["measures"]["accuracy"].as_f64().unwrap());
    assert!(without["measures"].get("hierarchical").is_none());
    let error = refused(folder, &format!("{line} --measures hierarchical"));
    assert!(error.contains("no taxonomy"), "{error}");
}
