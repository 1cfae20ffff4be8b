//! No command loses a file of its user's.

use super::folder::{Folder, example, rows, texts};

#[test]
fn no_verb_overwrites_its_input_or_a_file_of_another_kind() {
    let folder = Folder::new();
    example(&folder);
    folder.good(
        "train data.parquet --label label --method lda --rank 4 -o m.safetensors",
        &[],
    );
    let (data, model) = (folder.bytes("data.parquet"), folder.bytes("m.safetensors"));
    let lines = [
        "train data.parquet --label label --method lda -o data.parquet",
        "embed m.safetensors data.parquet -o data.parquet",
        "export m.safetensors -o m.safetensors",
        "calibrate m.safetensors data.parquet --label label -o m.safetensors",
    ];
    for line in &lines {
        let error = folder.refused(line, &[]);
        assert!(
            error.contains("read by this command") && error.contains("--force"),
            "{error}"
        );
    }
    // A file of another kind that the command does not read.
    folder.write("notes.txt", "remember the milk");
    for line in [
        "train data.parquet --label label --method lda -o notes.txt",
        "train data.parquet --label label --method lda --report m.safetensors",
        "embed m.safetensors data.parquet -o out.npy",
    ] {
        if line.ends_with("out.npy") {
            std::fs::copy(folder.path("data.parquet"), folder.path("out.npy")).unwrap();
        }
        let error = folder.refused(line, &[]);
        assert!(error.contains("of another kind"), "{error}");
    }
    assert!(folder.bytes("data.parquet") == data && folder.bytes("m.safetensors") == model);
    assert_eq!(folder.bytes("notes.txt"), b"remember the milk");
    folder.good(
        "train data.parquet --label label --method lda --force -o notes.txt",
        &[],
    );
    assert_ne!(folder.bytes("notes.txt"), b"remember the milk");
    // The same output again is what people do all day.
    folder.good(
        "train data.parquet --label label --method lda -o m.safetensors",
        &[],
    );
}

#[test]
fn what_cannot_be_written_is_refused_before_the_work() {
    let folder = Folder::new();
    example(&folder);
    // Training would take minutes.
    let line =
        "train data.parquet --label label --set steps=1000000 -o /proc/nothing/m.safetensors";
    let began = std::time::Instant::now();
    let error = folder.refused(line, &[]);
    assert!(error.contains("there is no folder"), "{error}");
    let error = folder.refused(
        "train data.parquet --label label -o /proc/m.safetensors",
        &[],
    );
    assert!(error.contains("nothing can be written to"), "{error}");
    let line = "train data.parquet --label label -o same.out --report same.out";
    assert!(
        folder
            .refused(line, &[])
            .contains("another file for each output")
    );
    assert!(began.elapsed().as_secs() < 30);
    let error = folder.refused("train data.parquet --label label -o /dev/null", &[]);
    assert!(error.contains("a device or a pipe"), "{error}");
}

#[cfg(unix)]
#[test]
fn files_are_as_open_as_the_user_wants_them() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    example(&folder);
    let line = "train data.parquet --label label --method lda -o m.safetensors --report r.html";
    let command = folder.command(line, &[]);
    let mut shell = std::process::Command::new("sh");
    shell
        .current_dir(folder.path("."))
        .arg("-c")
        .arg("umask 027; exec \"$0\" \"$@\"");
    shell.arg(command.get_program()).args(command.get_args());
    assert!(shell.output().unwrap().status.success());
    for name in ["m.safetensors", "r.html"] {
        let mode = std::fs::metadata(folder.path(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
}

#[test]
fn ids_are_used_or_refused() {
    let folder = Folder::new();
    let (rows, _) = rows(super::folder::SET, 60);
    let twice = |row: usize| format!("id-{}", row / 2);
    folder.write_parquet("twice.parquet", &rows, &[("id", texts(60, twice))]);
    folder.write_parquet(
        "once.parquet",
        &rows,
        &[("id", texts(60, |row| format!("id-{row}")))],
    );
    let learn =
        "train once.parquet --label id --method pca --holdout none --rank 3 -o m.safetensors";
    folder.good(learn, &[]);
    let search = |data: &str| format!("search m.safetensors {data}.parquet --id id -k 2");
    let error = folder.refused(&search("twice"), &[]);
    assert!(error.contains("expected every id once"), "{error}");
    let answer = folder.json(&format!("{} --run out.run", search("once")), &[]);
    folder.write("qrels.tsv", "q1 0 d1 1\n");
    let lost = folder.refused(&format!("{} --run qrels.tsv", search("once")), &[]);
    assert!(lost.contains("of another kind"), "{lost}");
    assert_eq!(
        (&answer["queries"], &answer["run"]),
        (&60.into(), &"out.run".into())
    );

    let embed = "embed m.safetensors once.parquet --id id";
    let error = folder.refused(&format!("{embed} -o e.npy"), &[]);
    assert!(error.contains("need a .parquet output"), "{error}");
    folder.good(&format!("{embed} -o e.parquet"), &[]);
    folder.good("check e.parquet --label id", &[]);
}

#[test]
fn inputs_in_many_forms_give_the_same_model() {
    let folder = Folder::new();
    example(&folder);
    let (rows, classes) = rows(super::folder::SET, 120);
    let mut csv = String::from("kind;age;price");
    (2..rows.dim()).for_each(|column| csv.push_str(&format!(";f{column}")));
    let mut json = String::new();
    for (row, class) in rows.rows().iter().zip(&classes) {
        let values: Vec<String> = row.iter().map(f32::to_string).collect();
        csv.push_str(&format!("\nc{class};{}", values.join(";")));
        json.push_str(&format!(
            "{{\"kind\": \"c{class}\", \"v\": [{}]}}\n",
            values.join(", ")
        ));
    }
    folder.write("x.csv", &csv);
    folder.write("x.jsonl", &json);
    let train = "--label kind --method lda --rank 3 --holdout none";
    let names: Vec<String> = (2..rows.dim()).map(|column| format!("f{column}")).collect();
    let listed = format!("age,price,{}", names.join(","));
    folder.good(
        &format!("train x.csv {train} -o a.safetensors --vector"),
        &[&listed],
    );
    folder.good(
        &format!("train x.csv {train} -o b.safetensors --vector *"),
        &[],
    );
    folder.good(&format!("train x.jsonl {train} -o c.safetensors"), &[]);
    let mut piped = folder.command(&format!("train - {train} -o d.safetensors"), &[]);
    piped.stdin(std::fs::File::open(folder.path("x.jsonl")).unwrap());
    assert!(piped.output().unwrap().status.success());
    let model = folder.bytes("a.safetensors");
    for name in ["b", "c", "d"] {
        assert!(
            folder.bytes(&format!("{name}.safetensors")) == model,
            "{name}"
        );
    }
    let error = folder.refused("inspect data.parquet", &[]);
    assert!(
        error.contains("data.parquet") && error.contains("wrong order"),
        "{error}"
    );
    let error = folder.refused("eval euclid a.safetensors --label kind", &[]);
    assert!(
        error.contains("a.safetensors") && error.contains("wrong order"),
        "{error}"
    );
    let error = folder.refused("train x.csv --label kind --method warka", &[]);
    assert!(error.contains("did you mean warca?"), "{error}");
    let error = folder.refused("train x.csv --vector * --label kind --set lamda=1", &[]);
    assert!(error.contains("did you mean lambda?"), "{error}");
    let error = folder.refused(
        "train x.csv --vector * --label kind --measures accuracy",
        &[],
    );
    assert!(error.contains("--classifier"), "{error}");
    let error = folder.refused("export a.safetensors --id kind -o a.onnx", &[]);
    assert!(error.contains("--id is for items of FAISS"), "{error}");
}

#[test]
fn rows_with_missing_values_are_skipped_on_request() {
    let folder = Folder::new();
    let (rows, classes) = rows(super::folder::SET, 120);
    let mut csv = String::from("kind");
    (0..rows.dim()).for_each(|column| csv.push_str(&format!(",f{column}")));
    for (number, (row, class)) in rows.rows().iter().zip(&classes).enumerate() {
        let mut values: Vec<String> = row.iter().map(f32::to_string).collect();
        if number % 10 == 3 {
            values[2] = ["", "NaN", "NA", "null"][number / 10 % 4].to_owned();
        }
        let class = if number == 5 {
            String::new()
        } else {
            format!("c{class}")
        };
        csv.push_str(&format!("\n{class},{}", values.join(",")));
    }
    folder.write("x.csv", &csv);
    let train = "train x.csv --vector f* --label kind --method lda --rank 3 --holdout none";
    let error = folder.refused(train, &[]);
    assert!(
        error.contains("line 5") && error.contains("--missing skip"),
        "{error}"
    );
    let (out, error) = folder.good(&format!("{train} --missing skip"), &[]);
    assert!(error.contains("13 of 120 rows left out"), "{error}");
    assert!(out.contains("107 × 12"), "{out}");
}

#[test]
fn a_check_of_judgements_says_what_is_missing() {
    let folder = Folder::new();
    let (rows, _) = rows(super::folder::SET, 40);
    folder.write_parquet(
        "q.parquet",
        &rows,
        &[("id", texts(40, |row| format!("q{row}")))],
    );
    folder.write_parquet(
        "d.parquet",
        &rows,
        &[("id", texts(40, |row| format!("d{row}")))],
    );
    folder.write(
        "qrels.txt",
        "q0 0 d0 1\nq1 0 d1 1\nq1 0 lost 1\nq2 0 lost 1\nq3 0 d1 2\nq4 0 d4 0\nstranger 0 d5 1\n",
    );
    let line = "check --queries q.parquet --items d.parquet --qrels qrels.txt --id id";
    let found = folder.json(line, &[]);
    let of = |name: &str| found[name].as_u64().unwrap();
    assert_eq!(
        (
            of("judged_queries"),
            of("known_queries"),
            of("usable_queries")
        ),
        (6, 5, 3)
    );
    assert_eq!(
        (
            of("queries_with_missing_items"),
            of("queries_without_items")
        ),
        (2, 1)
    );
    assert_eq!(
        (
            of("relevant_pairs"),
            of("relevant_items"),
            of("shared_items")
        ),
        (3, 2, 1)
    );
    // Queries and items are the same vectors: q0 and q1 find theirs first.
    let found = &found["headroom"][0];
    assert_eq!(
        (&found["score"], &found["queries"]),
        (&"euclid".into(), &3.into())
    );
    let (out, _) = folder.good(line, &[]);
    assert!(
        out.contains("2 queries (40.0 %) lack relevant items"),
        "{out}"
    );
}
