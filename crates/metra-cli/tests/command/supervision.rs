//! Pairs, triplets, quadruplets, orderings and taxonomies from files.

use crate::folder::{Folder, QUICK, SET, number, rows, texts};
use metra::data::synthetic::Nuisance;
use metra_files::Column;
use std::fmt::Write;
use std::path::Path;

/// 240 rows of 12 classes with ids, of which `use` keeps three quarters, and comparisons that the
/// classes make true, by id and by number.
fn compared(folder: &Folder) -> Vec<i64> {
    let (rows, classes) = rows(SET, 240);
    let columns = [
        ("label", Column::Integers(classes.clone())),
        ("id", texts(240, |row| format!("row {row}"))),
        ("use", texts(240, |row| (row % 4 != 3).to_string())),
    ];
    folder.write_parquet("x.parquet", &rows, &columns);
    // Row r has class r mod 12.
    let name = |row: usize| format!("row {}", row % 240);
    let mut pairs = String::from("# two ids, and whether they belong together\r\n\r\n");
    let (mut triplets, mut numbers) = (String::new(), String::new());
    let mut quadruplets = String::new();
    for row in 0..240 {
        for step in 1..4 {
            let (near, far) = (name(row + 12 * step), name(row + 12 * step + 5));
            writeln!(pairs, "{}\t{near}\t1\r", name(row)).unwrap();
            writeln!(pairs, "{}\t{far}\t0\r", name(row)).unwrap();
            writeln!(triplets, "{}\t{near}\t{far}", name(row)).unwrap();
        }
        let (near, far) = ((row + 12) % 240, (row + 17) % 240);
        writeln!(numbers, "{row} {near} {far}").unwrap();
        let kind = ["", " strict", " light"][row % 3];
        writeln!(quadruplets, "{row} {near} {row} {far}{kind}").unwrap();
    }
    folder.write("pairs.tsv", &pairs);
    folder.write("triplets.tsv", &triplets);
    folder.write("numbers.txt", &numbers);
    folder.write("quadruplets.txt", &quadruplets);
    classes
}

#[test]
fn similar_pairs_alone_teach_a_metric_that_nobody_judged() {
    let folder = Folder::new();
    compared(&folder);
    let train = |threads: u32, name: &str| {
        let line = format!(
            "train x.parquet --pairs pairs.tsv --id id --rank 6 --set steps=300 --threads {threads} \
             -o {name}"
        );
        let (out, _) = folder.good(&line, &QUICK[2..]);
        (out, folder.bytes(name))
    };
    let (out, first) = train(1, "one.model");
    assert!(
        out.contains("240 × 12 f32, 720 similar pairs, 720 dissimilar pairs of 240 rows"),
        "{out}"
    );
    assert!(
        out.contains("held out    nothing: this model is not judged"),
        "{out}"
    );
    assert!(
        out.contains("learned from 1,440 comparisons") && !out.contains("verdict"),
        "{out}"
    );
    assert!(first == train(2, "two.model").1, "two threads");
    let (out, _) = folder.good("inspect one.model", &[]);
    assert!(
        out.contains("nothing: this model was never judged"),
        "{out}"
    );

    // Judged by every kind of comparison, beside Euclid.
    let all = "--triplets triplets.tsv --pairs pairs.tsv --id id";
    let eval = |threads: u32| {
        let line = format!("eval one.model x.parquet {all} --threads {threads}");
        folder.json(&line, &[])
    };
    let report = eval(1);
    assert_eq!(report, eval(2));
    assert_eq!(report["base"], "euclid");
    let kinds: Vec<&str> = (report["agreement"].as_array().unwrap().iter())
        .map(|row| row["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["pairs", "triplets"]);
    for (place, comparisons) in [(0, 1440), (1, 720)] {
        let at = |name: &str| number(&report, &format!("/agreement/{place}/{name}"));
        assert_eq!(at("comparisons") as u64, comparisons);
        assert!(
            at("gain/difference") > 0.05 && at("gain/low") > 0.0,
            "{report:#}"
        );
        assert_eq!(at("value"), at("gain/learned"));
        assert!(at("low") < at("value") && at("value") <= at("high"));
    }
    let (out, _) = folder.good(&format!("eval one.model x.parquet {all}"), &[]);
    assert!(out.contains("ordered right, 95 % interval") && out.contains("agreement      euclid"));
    // Vectors as they are need no base; rows by number, and a second look in `check`.
    let line = "--triplets numbers.txt --quadruplets quadruplets.txt";
    let plain = folder.json(&format!("eval cosine x.parquet {line}"), &[]);
    assert!(plain["base"].is_null() && plain["agreement"][0]["gain"].is_null());
    let value = |place: usize| number(&plain, &format!("/agreement/{place}/value"));
    assert_eq!(value(0), value(1), "the same comparisons in two forms");
    let checked = folder.json(&format!("check x.parquet {line}"), &[]);
    assert_eq!(checked["agreement"][2]["score"], "cosine");
    assert_eq!(number(&checked, "/agreement/2/value"), value(0));
    let (out, _) = folder.good(&format!("check x.parquet {line}"), &[]);
    assert!(out.contains("cosine      triplets: 0."), "{out}");
}

#[test]
fn what_is_said_and_what_judges_may_differ() {
    let folder = Folder::new();
    compared(&folder);
    let line = "train x.parquet --pairs pairs.tsv --triplets triplets.tsv --id id --label label \
                --rank 6 --set steps=300 --test 0.25 -o m.model";
    let report = folder.json(line, &QUICK[2..]);
    assert_eq!(report["holdout"], "rows");
    let split = &report["splits"][0];
    // Rows are held out; comparisons that name one of them are not learned from.
    assert_eq!(split["test"], 60);
    let learned = split["comparisons"].as_u64().unwrap();
    assert!((500..1800).contains(&learned), "{learned} of 2,160");
    assert!(number(split, "/measures/0/difference") > 0.05, "{split:#}");
    assert_eq!(split["measures"][0]["measure"], "map");
    let (out, _) = folder.good(line, &QUICK[2..]);
    assert!(
        out.contains("; 12 classes to judge by") && out.contains("verdict"),
        "{out}"
    );
}

#[test]
fn rows_that_a_filter_left_out_are_counted() {
    let folder = Folder::new();
    compared(&folder);
    let line = "eval euclid x.parquet --triplets triplets.tsv --id id --where use=true";
    let output = folder.run(line, &["--json"]);
    let error = String::from_utf8(output.stderr).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let kept = report["agreement"][0]["comparisons"].as_u64().unwrap();
    // A row is left out where its number is 3 mod 4; 12 is a multiple of 4 and 5 adds 1.
    assert_eq!(kept, 720 / 2);
    assert!(
        error.contains("WARN triplets.tsv: 360 lines left out that speak of rows"),
        "{error}"
    );
    // By number they are named as the whole file counts.
    let line = "eval euclid x.parquet --triplets numbers.txt --where use=true";
    let report = folder.json(line, &[]);
    assert_eq!(report["agreement"][0]["comparisons"], 120);
}

#[test]
fn orderings_and_taxonomies_come_with_labels() {
    let folder = Folder::new();
    let set = Nuisance { classes: 4, ..SET };
    let (rows, classes) = rows(set, 80);
    let names = ["cat", "dog", "oak", "fir"];
    let label = texts(80, |row| names[classes[row] as usize].to_owned());
    let keep = texts(80, |row| {
        (names[classes[row] as usize] != "fir").to_string()
    });
    folder.write_parquet("x.parquet", &rows, &[("label", label), ("keep", keep)]);
    folder.write(
        "orders.txt",
        "# least first\nsize: cat<dog<oak~fir\nspeed:oak ~ fir < cat<dog\n",
    );
    folder.write(
        "tree.tsv",
        "cat\tanimal\ndog\tanimal\noak\ttree\nfir\ttree\nanimal\tlife\ntree\tlife\n",
    );
    for (flag, expected) in [
        (
            "--orderings orders.txt",
            "4 classes ordered by 2 attributes",
        ),
        ("--taxonomy tree.tsv", "4 classes in a tree"),
    ] {
        let line = format!("train x.parquet --label label --method lda --rank 3 {flag}");
        let (out, _) = folder.good(&line, &[]);
        assert!(out.contains(expected) && out.contains("verdict"), "{out}");
        let (out, _) = folder.good(&line, &["--where", "keep=true"]);
        assert!(out.contains("3 classes"), "{out}");
        // clap's own refusal has another code.
        let output = folder.run(&format!("train x.parquet {flag}"), &[]);
        assert_eq!(output.status.code(), Some(2));
    }
    folder.write("bad.txt", "size: cat<dog\nheight: dog<elm\n");
    let line = "train x.parquet --label label --orderings bad.txt";
    let message = folder.refused(line, &[]);
    assert!(
        message.contains("bad.txt: line 2: expected classes among"),
        "{message}"
    );
    folder.write("bad.tsv", "cat\tanimal\ndog\tanimal\noak\tanimal\n");
    let message = folder.refused("train x.parquet --label label --taxonomy bad.tsv", &[]);
    assert!(
        message.contains("bad.tsv") && message.contains("class \"fir\" is none"),
        "{message}"
    );
}

#[test]
fn lines_that_say_nothing_are_named() {
    let folder = Folder::new();
    compared(&folder);
    let refused = |flag: &str, content: &str, parts: &[&str]| {
        folder.write("said.txt", content);
        let line = format!("train x.parquet {flag} said.txt --id id -o m.model");
        let message = folder.refused(&line, &[]);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        assert!(!folder.path("m.model").exists());
    };
    refused(
        "--pairs",
        "row 1\trow 2\t1\nrow 1\trow 900\t1\n",
        &["said.txt: line 2: expected an id that x.parquet has, but found \"row 900\""],
    );
    refused(
        "--pairs",
        "row 1\trow 2\t1\nrow 2\trow 1\t0\n",
        &["line 2: ", "similar in line 1"],
    );
    refused(
        "--triplets",
        "row 1\trow 2\n",
        &["line 1: expected anchor, near and far, but found 2"],
    );
    refused(
        "--quadruplets",
        "row 1\trow 2\trow 3\trow 4\tfirm\n",
        &["strict or light", "\"firm\""],
    );
    refused(
        "--triplets",
        "\n# nothing\n",
        &["said.txt: expected triplets, but found none"],
    );
    // What a method cannot learn from is said in words.
    let message = folder.refused("train x.parquet --triplets triplets.tsv --id id", &[]);
    let expected = "warca needs labels, several labels per row, relevance judgements or similar pairs, but \
                    was given 720 triplets of 240 rows";
    assert!(message.contains(expected), "{message}");
    let message = folder.refused(
        "train x.parquet --triplets triplets.tsv --id id --method lda --rank 4",
        &[],
    );
    assert!(message.contains("lda needs class labels"), "{message}");
    let message = folder.refused(
        "train x.parquet --triplets triplets.tsv --id id --holdout rows --method pca --rank 4",
        &[],
    );
    assert!(
        message.contains("none with pairs, triplets or quadruplets alone"),
        "{message}"
    );
    folder.write("similar.txt", "row 1\trow 2\t1\n");
    let message = folder.refused("eval euclid x.parquet --pairs similar.txt --id id", &[]);
    assert!(
        message.contains("needs similar and dissimilar ones"),
        "{message}"
    );
}

#[test]
fn judgements_between_rows_of_one_file() {
    let folder = Folder::new();
    let classes = compared(&folder);
    let mut qrels = String::new();
    for row in 0..200 {
        for item in (0..240).filter(|item| *item != row && classes[*item] == classes[row]) {
            writeln!(qrels, "{row} 0 {item} 1").unwrap();
        }
    }
    let (rows, _) = rows(SET, 240);
    let ids = Column::Integers((0..240).collect());
    folder.write_parquet("n.parquet", &rows, &[("id", ids)]);
    folder.write("qrels.txt", &qrels);
    let line = "train n.parquet --qrels qrels.txt --id id --rank 6 --set steps=300 -o m.model";
    let report = folder.json(line, &QUICK[2..]);
    let (kind, split) = (&report["holdout"], &report["splits"][0]);
    assert_eq!((kind, &split["test"]), (&"queries".into(), &40.into()));
    assert!(number(split, "/measures/0/difference") > 0.05, "{split:#}");
    // All 240 rows are searched, the query itself left out: every query has 19 of its class.
    let found = folder.json("eval euclid n.parquet --qrels qrels.txt --id id", &[]);
    assert_eq!(found["queries"], 200);
    let labels = "eval euclid x.parquet --label label --measures ndcg@10,map --json --per-query";
    let (by_label, _) = folder.good(labels, &[]);
    let by_label: serde_json::Value = serde_json::from_str(&by_label).unwrap();
    let mean: f64 = (0..200)
        .map(|row| number(&by_label, &format!("/per_query/{row}/map")))
        .sum::<f64>()
        / 200.0;
    assert!((number(&found, "/measures/map") - mean).abs() < 1e-12);
    let message = folder.refused(
        "eval euclid x.parquet --qrels qrels.txt --id id --label label",
        &[],
    );
    assert!(message.contains("give one of them"), "{message}");
}

/// The commands of the guide, on the files of the repository.
#[test]
#[ignore = "slow: trains with the usual number of steps"]
fn the_guide_runs_as_written() {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    folder.good("examples", &[]);
    let guide = std::fs::read_to_string(root.join("docs/guide/supervision.md")).unwrap();
    let mut printed = String::new();
    let commands = guide.lines().filter_map(|line| line.strip_prefix("metra "));
    let count = commands
        .map(|line| printed += &folder.good(line, &[]).0)
        .count();
    assert!(count >= 7, "{count} commands");
    // What the guide shows is what was printed.
    for line in guide.lines().filter(|line| line.contains("ordered right")) {
        assert!(printed.contains(line), "{line}");
    }
}
