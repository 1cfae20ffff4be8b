//! The gate, the label budget and click logs, as users call them.

use super::folder::{Folder, digits, example, number, text};

/// A gate's exit code with what it printed.
fn gate(folder: &Folder, line: &str, more: &[&str]) -> (i32, String, String) {
    let output = folder.run(&format!("gate {line}"), more);
    let code = output.status.code().unwrap();
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_good_model_ships_and_others_have_codes_of_their_own() {
    let folder = Folder::new();
    example(&folder);
    let learn = "train data.parquet --label label --where train=true --method lda --rank 4 \
                 -o m.safetensors";
    folder.good(learn, &[]);
    let held_out = "--data data.parquet --label label --where train=false";
    let line = format!("--base euclid --candidate m.safetensors {held_out}");
    let (code, out, error) = gate(&folder, &line, &["--slice", "split", "--min-gain", "0.01"]);
    assert_eq!(code, 0, "{out}\n{error}");
    assert!(out.contains("decision    ship"), "{out}");
    assert!(out.contains("240 held out of 12 classes"), "{out}");
    assert!(!out.contains("WARNING"), "{out}");

    // The other way round the same queries speak for keeping the model.
    let line = format!("--base m.safetensors --candidate euclid {held_out}");
    let (code, out, _) = gate(&folder, &line, &["--json"]);
    assert_eq!(code, 4, "{out}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["decision"], &report["exit_code"]),
        (&"worse".into(), &4.into())
    );
    assert!(number(&report, "/gain/high") < 0.0);
    let fallen = report["regressions"].as_array().unwrap();
    assert_eq!(fallen.len(), 10);
    let fall = |at: usize| number(&fallen[at], "/base") - number(&fallen[at], "/candidate");
    assert!(fall(0) >= fall(9) && fall(9) > 0.0);

    let line = format!("--base euclid --candidate euclid {held_out}");
    let (code, out, _) = gate(&folder, &line, &[]);
    assert_eq!(code, 3, "{out}");
    let line = format!("--base euclid --candidate m.safetensors {held_out} --min-gain 0.9");
    let (code, out, _) = gate(&folder, &line, &[]);
    assert!(code == 5 || code == 6, "{out}");

    let line = format!("gate --base euclid --candidate m.safetensors {held_out} --slice nothing");
    assert!(folder.refused(&line, &[]).contains("nothing"));
    let line = format!("gate --base euclid --candidate no.safetensors {held_out}");
    folder.refused(&line, &[]);
}

#[test]
fn a_gallery_and_a_split_are_asked_alike() {
    let folder = Folder::new();
    example(&folder);
    folder.good(
        "train data.parquet --label label --where train=true --method lda --rank 4 -o m.safetensors",
        &[],
    );
    let line = "--base euclid --candidate m.safetensors --data data.parquet --label label \
                --where split=test --gallery-where split=train --measure p@1 --json";
    let (_, out, error) = gate(&folder, line, &[]);
    let report: serde_json::Value =
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{error}"));
    let line = "eval m.safetensors data.parquet --label label --where split=test \
                --gallery-where split=train --base euclid --measures p@1";
    let evaluated = folder.json(line, &[]);
    let row = &evaluated["comparison"][0];
    for field in ["base", "learned", "difference", "low", "high"] {
        assert_eq!(report["gain"][field], row[field], "{field}");
    }
}

#[test]
fn the_example_of_the_guide() {
    let folder = Folder::new();
    let splits = format!("{}/data/digits.splits.json", env!("CARGO_MANIFEST_DIR"));
    let more = [
        digits(),
        "--splits".into(),
        splits.clone(),
        "--split".into(),
        "0".into(),
    ];
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let (out, _) = folder.good(
        "train --label label --method lda --rank 9 -o m.safetensors",
        &more,
    );
    assert!(
        out.contains("headroom    0.3113 of map above the base"),
        "{out}"
    );
    // Nine directions gain over the whole ranking and lose at its top: both are said.
    assert!(
        out.contains("better on the whole, but look at what it loses"),
        "{out}"
    );
    let digits = digits();
    let data = ["--data", &digits, "--splits", &splits];
    let line = "--base euclid --candidate m.safetensors --label label";
    let (code, out, error) = gate(&folder, &format!("{line} --min-gain 0.01"), &data);
    assert_eq!(code, 9, "{out}\n{error}");
    assert!(out.contains("597 held out of 10 classes"), "{out}");
    assert!(out.contains("; WORSE in p@1, mrr (exit code 9)"), "{out}");
    let (code, out, _) = gate(&folder, &format!("{line} --allow-worse-measures"), &data);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains("ship: the gain is more than chance; WORSE in p@1, mrr"),
        "{out}"
    );
    assert!(
        out.contains("p@10, ndcg@10 fell, which may be chance"),
        "{out}"
    );
    // Euclid finds a digit of the same kind in the top ten nearly always.
    let line = "--base euclid --candidate cosine --label label";
    let (code, out, _) = gate(
        &folder,
        &format!("{line} --measure cmc@10 --min-gain 0.01"),
        &data,
    );
    assert_eq!(code, 6, "{out}");
    assert!(out.contains("your base already has"), "{out}");
}

#[test]
fn labels_are_budgeted() {
    let folder = Folder::new();
    let digits = digits();
    let line = "budget --label label --method lda --rank 9 --halvings 3 --label-draws 2";
    let report = folder.json(line, &[&digits]);
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    let value = |at: usize| number(&points[at], "/value");
    assert!(value(3) > value(0), "{} {}", value(0), value(3));
    assert!(
        report["forecast"]["words"]
            .as_str()
            .unwrap()
            .contains("twice the labels")
    );
    let (out, _) = folder.good(line, &[&digits]);
    assert!(out.contains("1/8") && out.contains("more labels"), "{out}");
    folder.refused("budget --label label --method lda --folds 3", &[&digits]);
}

#[test]
fn clicks_become_judgements() {
    let folder = Folder::new();
    let log = format!("{}/data/clicks.csv", env!("CARGO_MANIFEST_DIR"));
    let report = folder.json("clicks -o judgements.qrels", &[&log]);
    assert_eq!(
        (
            &report["sessions"],
            &report["queries"],
            &report["queries_left_out"]
        ),
        (&481.into(), &13.into(), &1.into())
    );
    assert_eq!(report["looks_from"], "the log");
    // Position 2 is looked at half as often as position 1, position 3 a third as often.
    let looks: Vec<f64> = (report["looks"].as_array().unwrap().iter())
        .map(|look| look.as_f64().unwrap())
        .collect();
    assert!(
        (looks[1] - 0.5).abs() < 0.12 && (looks[2] - 1.0 / 3.0).abs() < 0.1,
        "{looks:?}"
    );
    let written = String::from_utf8(folder.bytes("judgements.qrels")).unwrap();
    let (mut right, mut all) = (0, 0);
    for line in written.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let grade: u32 = fields[3].parse().unwrap();
        assert!(!fields[0].starts_with("q12"), "{line}");
        let wanted = fields[2].ends_with('a') || fields[2].ends_with('d');
        all += usize::from(wanted);
        right += usize::from(wanted && grade >= 2);
    }
    assert!(right * 4 >= all * 3, "{right} of {all}");
    std::fs::write(folder.path("bad.tsv"), "q\ta b\tc\n").unwrap();
    let message = folder.refused("clicks bad.tsv -o out.qrels", &[]);
    assert!(message.contains("line 1: \"c\" was clicked"), "{message}");
    assert!(!folder.names().contains(&"out.qrels".to_owned()));
}
