//! Exported files, read back by the programs that they are for and held against `metra embed`.
//!
//! These are Python packages (tests/requirements-servers.txt) in an environment whose folder `METRA_EXPORTS`
//! names, with `bin/python` in it; without it the slow tests say so and pass. The C header is compiled
//! by `cc`.

#![allow(
    clippy::print_stderr,
    reason = "tests say what they measured and what they left out"
)]

mod families;

use crate::folder::{Folder, QUICK, digits, text};
use families::{DIM, Family, GROUPS, all, narrowed, values};
use metra::data::Batch;
use metra::linalg::RowBuf;
use metra::model::{Code, Embedding, Int8Scale, Plan, ProductCode, Space};
use serde_json::{Value, json};
use std::process::Command;

const ROWS: usize = 60;
/// Relative to the largest entry.
const CLOSE: f64 = 1e-6;

/// The interpreter that has the packages.
fn python() -> Option<String> {
    let folder = metra_testing::variable("METRA_EXPORTS", "an environment of Python")?;
    Some(format!("{folder}/bin/python"))
}

fn script(python: &str, folder: &Folder, arguments: &[&str]) -> String {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/command/exports/check.py"
    );
    let output = Command::new(python)
        .current_dir(folder.path(""))
        .arg(script)
        .args(arguments)
        .output()
        .unwrap();
    let error = text(&output.stderr);
    assert!(output.status.success(), "{arguments:?}\n{error}");
    text(&output.stdout)
}

/// Every case read back: none may differ by more than [`CLOSE`], or, where `metra embed` itself is
/// farther than that from the same steps in f64, by more than that.
fn check(python: &str, folder: &Folder, cases: &[Value]) {
    folder.write("cases.json", &serde_json::to_string(cases).unwrap());
    let printed = script(python, folder, &["cases.json"]);
    let found: Vec<(f64, f64)> = serde_json::from_str(&printed).unwrap();
    assert_eq!(found.len(), cases.len());
    let mut worst = found.iter().zip(cases).collect::<Vec<_>>();
    worst.sort_by(|a, b| b.0.0.total_cmp(&a.0.0));
    for ((difference, own), case) in worst.iter().take(8) {
        let (kind, file) = (&case["kind"], &case["file"]);
        eprintln!(
            "{difference:.2e} (embed {own:.2e}) {kind} {file} {}",
            case["of"]
        );
    }
    for ((difference, own), case) in worst {
        assert!(*difference <= CLOSE.max(*own), "{difference:e} in {case:#}");
    }
}

/// The vectors `x.npy`, their groups as texts for the command and as numbers for others.
fn data(folder: &Folder) -> RowBuf {
    let rows = RowBuf::from_values(values("rows", ROWS * DIM), DIM).unwrap();
    folder.write_f32("x.npy", &rows);
    let names: Vec<String> = (0..ROWS)
        .map(|row| format!("{}\n", GROUPS[row % 3]))
        .collect();
    folder.write("groups.txt", &names.concat());
    let numbers = (0..ROWS).map(|row| (row % 3) as f32).collect();
    folder.write_f32("groups.npy", &RowBuf::from_values(numbers, 1).unwrap());
    rows
}

fn sides(family: &Family) -> &'static [&'static str] {
    if family.model.chain.has_two_sides() {
        &["query", "item"]
    } else {
        &["query"]
    }
}

/// `metra embed`, for a file of this name.
fn embed(folder: &Folder, model: &str, side: &str, more: &[&str], to: &str) {
    let line = format!("embed {model}.safetensors x.npy --side {side} -o {to}");
    folder.good(&line, &[&["--camera", "groups.txt"], more].concat());
}

#[test]
#[ignore = "slow: reads files with packages of Python"]
fn every_family_comes_back_from_maps_and_faiss() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    data(&folder);
    let mut cases = Vec::new();
    for family in all() {
        let name = &family.name;
        let model = folder.path(&format!("{name}.safetensors"));
        family.model.save(&model).unwrap();
        let cosine = family.model.chain.space() == Space::Cosine;
        for side in sides(&family) {
            let plain = format!("{name}.{side}.npy");
            embed(&folder, name, side, &[], &plain);
            let unit = format!("{name}.{side}.unit.npy");
            embed(&folder, name, side, &["--normalise"], &unit);
            let export = |end: &str, more: &[&str]| {
                let file = format!("{name}.{side}.out.{end}");
                let line = format!("export {name}.safetensors --side {side} -o {file}");
                (folder.json(&line, more), file)
            };
            let mut case = |kind: &str, file: &str, expected: &str, offset: Value| {
                cases.push(json!({
                    "kind": kind, "file": file, "input": "x.npy", "expected": expected,
                    "groups": "groups.npy", "offset": offset,
                }));
            };
            let (done, file) = export("onnx", &[]);
            assert_eq!(done["output_dim"], family.model.chain.output_dim());
            case("onnx", &file, &plain, Value::Null);
            let (_, file) = export("unit.onnx", &["--normalise"]);
            case("onnx", &file, &unit, Value::Null);
            if family.affine {
                let (_, file) = export("faiss", &[]);
                let expected = if cosine { &unit } else { &plain };
                case("faiss_chain", &file, expected, Value::Null);
            } else {
                let line = format!("export {name}.safetensors --side {side} -o no.h");
                let message = folder.refused(&line, &[]);
                assert!(message.contains("a C header cannot hold"), "{message}");
            }
            if family.matrix {
                let (done, file) = export("npy", &[]);
                case("npy", &file, &plain, done["files"][1].clone());
                let (_, file) = export("safetensors", &[]);
                case("safetensors", &file, &plain, Value::Null);
                let (_, file) = export("dense", &["--to", "sentence-transformers"]);
                case("dense", &file, &plain, Value::Null);
            }
        }
    }
    assert!(cases.len() > 150, "{}", cases.len());
    check(&python, &folder, &cases);
}

#[test]
#[ignore = "slow: reads files with packages of Python"]
fn indexes_of_faiss_hold_items_and_are_put_in_front_of() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let rows = data(&folder);
    let mut cases = Vec::new();
    let families = all();
    // An indefinite metric has one plan there: one coordinate more, by inner product.
    let signs = families
        .iter()
        .find(|family| family.name == "indefinite-dot");
    let (signs, model) = (&signs.unwrap().name, &signs.unwrap().model);
    model
        .save(folder.path(&format!("{signs}.safetensors")))
        .unwrap();
    let plan = Plan::all_for_model(model).unwrap().remove(0);
    let batch = Batch::new(rows.rows());
    let mut stored = RowBuf::empty(1);
    plan.map_items(0, &batch, &mut stored).unwrap();
    folder.write_f32("signs.stored.npy", &stored);
    let line = format!("export {signs}.safetensors --items x.npy -o signs.faiss");
    let done = folder.json(&line, &[]);
    assert_eq!(done["way"], "extra-coordinate");
    cases.push(json!({
        "kind": "faiss_items", "file": "signs.faiss", "input": "x.npy",
        "expected": "signs.stored.npy",
    }));
    let low_rank = |space: &str| {
        let name = format!("low-rank-{space}");
        let family = families.iter().find(|family| family.name == name);
        family.unwrap().model.clone()
    };
    for (space, code) in [
        ("euclid", "pq"),
        ("euclid", "int8-columns"),
        ("dot", "f16"),
        ("dot", "pq"),
    ] {
        let mut model = low_rank(space);
        let dim = model.chain.output_dim();
        let mut mapped = RowBuf::empty(1);
        model.chain.embed_items(0, &batch, &mut mapped).unwrap();
        let code_of = match code {
            "pq" => {
                let centroids = mapped.rows().slice(0, 20).values().to_vec();
                let centroids = RowBuf::from_values(centroids, dim).unwrap();
                Code::Product(ProductCode::new(dim, centroids).unwrap())
            }
            "f16" => Code::Float16,
            _ => Code::Int8(Int8Scale::PerDimension(vec![0.02; dim])),
        };
        model.chain = model.chain.with_code(Some(code_of)).unwrap();
        let name = format!("{space}-{code}");
        let path = folder.path(&format!("{name}.safetensors"));
        model.save(path).unwrap();
        let stored = format!("{name}.stored.npy");
        embed(&folder, &name, "item", &["--decoded"], &stored);
        let line = format!("export {name}.safetensors --items x.npy -o {name}.faiss");
        folder.json(&line, &[]);
        let floats = 4 * ROWS * model.chain.output_dim();
        let bytes = folder.bytes(&format!("{name}.faiss"));
        let codes = ROWS * model.chain.item_bytes();
        let kind: &[u8] = if code.contains("pq") {
            b"IxPq"
        } else {
            b"IxSQ"
        };
        assert!(codes < floats && bytes.windows(4).any(|letters| letters == kind));
        cases.push(json!({
            "kind": "faiss_items", "file": format!("{name}.faiss"), "input": "x.npy", "expected": stored,
        }));
    }
    for family in families.into_iter().filter(|family| family.affine) {
        let (name, space) = (&family.name, family.model.chain.space());
        let model = folder.path(&format!("{name}.safetensors"));
        family.model.save(&model).unwrap();
        let normalise: &[&str] = match space {
            Space::Cosine => &["--normalise"],
            _ => &[],
        };
        let stored = format!("{name}.stored.npy");
        embed(&folder, name, "item", normalise, &stored);
        let asked = format!("{name}.asked.npy");
        embed(&folder, name, "query", normalise, &asked);
        let line = format!("export {name}.safetensors --items x.npy -o {name}.full.faiss");
        let done = folder.json(&line, &[]);
        assert_eq!(
            (&done["items"], &done["way"]),
            (&ROWS.into(), &"mapped".into())
        );
        cases.push(json!({
            "kind": "faiss_items", "file": format!("{name}.full.faiss"), "input": "x.npy",
            "expected": stored,
        }));
        let metric = if space == Space::SquaredL2 {
            "l2"
        } else {
            "ip"
        };
        let inner = format!("{name}.inner.faiss");
        script(&python, &folder, &["index", &stored, &inner, metric]);
        let line = format!("export {name}.safetensors --index {inner} -o {name}.wrapped.faiss");
        assert_eq!(folder.json(&line, &[])["items"], ROWS);
        cases.push(json!({
            "kind": "faiss_wrapped", "file": format!("{name}.wrapped.faiss"), "input": "x.npy",
            "inner": inner, "expected": asked,
        }));
    }
    check(&python, &folder, &cases);
}

#[test]
#[ignore = "slow: reads files with packages of Python and starts a PostgreSQL"]
fn queries_are_mapped_in_the_database() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    data(&folder);
    let mut cases = Vec::new();
    for name in [
        "low-rank-euclid",
        "units-cosine",
        "bilinear-dot",
        "plain-dot",
    ] {
        let families = all();
        let family = families.iter().find(|family| family.name == name).unwrap();
        let model = folder.path(&format!("{name}.safetensors"));
        family.model.save(&model).unwrap();
        embed(&folder, name, "item", &[], &format!("{name}.item.npy"));
        embed(&folder, name, "query", &[], &format!("{name}.query.npy"));
        // A name that wants quoting in identifiers and in texts.
        let called = format!("{name}'s");
        let line = format!("export {name}.safetensors -o {name}.sql --name {called}");
        let done = folder.json(&line, &["--table", "my \"docs\""]);
        assert_eq!(done["function"], true);
        cases.push(json!({
            "kind": "sql", "file": format!("{name}.sql"), "input": "x.npy", "name": called,
            "stored": format!("{name}.item.npy"), "expected": format!("{name}.query.npy"),
            "own": matches!(name, "low-rank-euclid" | "units-cosine"),
        }));
    }
    check(&python, &folder, &cases);
}

#[test]
#[ignore = "slow: reads files with packages of Python"]
fn one_matrix_for_queries_serves_items_as_they_are() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    data(&folder);
    let mut cases = Vec::new();
    for family in all().into_iter().filter(|family| family.matrix) {
        let name = &family.name;
        if family.model.chain.space() != Space::InnerProduct {
            continue;
        }
        let model = folder.path(&format!("{name}.safetensors"));
        family.model.save(&model).unwrap();
        embed(&folder, name, "query", &[], &format!("{name}.q.npy"));
        embed(&folder, name, "item", &[], &format!("{name}.i.npy"));
        let line = format!("export {name}.safetensors --way query-only -o {name}.back.npy");
        let done = folder.json(&line, &[]);
        assert_eq!(
            (&done["output_dim"], &done["compare"]),
            (&DIM.into(), &"ip".into())
        );
        cases.push(json!({
            "kind": "order", "file": format!("{name}.back.npy"), "input": "x.npy",
            "offset": done["files"][1], "query": format!("{name}.q.npy"),
            "item": format!("{name}.i.npy"),
        }));
    }
    assert_eq!(cases.len(), 5);
    check(&python, &folder, &cases);
}

#[test]
#[ignore = "slow: reads files with packages of Python"]
fn a_model_that_narrows_takes_f64_in_onnx() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let rows: Vec<Vec<f64>> = values("rows", ROWS * DIM)
        .chunks(DIM)
        .map(|row| {
            let wide = |(at, v): (usize, &f32)| f64::from(*v) + if at == 1 { 1e9 } else { 0.0 };
            row.iter().enumerate().map(wide).collect()
        })
        .collect();
    folder.write_f64("x.npy", &rows);
    narrowed(1e9).save(folder.path("m.safetensors")).unwrap();
    folder.good("embed m.safetensors x.npy -o z.npy", &[]);
    folder.good("export m.safetensors -o m.onnx", &[]);
    let case = json!({"kind": "onnx", "file": "m.onnx", "input": "x.npy", "expected": "z.npy"});
    check(&python, &folder, &[case]);
    let message = folder.refused("export m.safetensors -o m.faiss", &[]);
    assert!(message.contains("the shift of 1 columns"), "{message}");
}

#[test]
#[ignore = "slow: reads files with packages of Python"]
fn what_embed_refuses_is_not_finite_in_onnx() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let mut rows = data(&folder);
    rows.row_mut(1)[7] = -1.0;
    folder.write_f32("negative.npy", &rows);
    rows.row_mut(1).fill(0.0);
    folder.write_f32("zero.npy", &rows);
    let families = all();
    let mut cases = Vec::new();
    for (name, input) in [
        ("sqrt-euclid", "negative.npy"),
        ("log-euclid", "negative.npy"),
        ("chi2-2-euclid", "negative.npy"),
        ("kernel-chi2-dot", "negative.npy"),
        ("kernel-exp-chi2-dot", "negative.npy"),
        ("kernel-intersection-dot", "negative.npy"),
        ("units-cosine", "zero.npy"),
    ] {
        let family = families.iter().find(|family| family.name == name).unwrap();
        let model = folder.path(&format!("{name}.safetensors"));
        family.model.save(&model).unwrap();
        embed(&folder, name, "query", &[], &format!("{name}.npy"));
        let line = format!("embed {name}.safetensors {input} -o no.npy");
        assert!(folder.refused(&line, &[]).contains("row 1"));
        folder.good(&format!("export {name}.safetensors -o {name}.onnx"), &[]);
        cases.push(json!({
            "kind": "onnx_refused", "file": format!("{name}.onnx"), "input": input,
            "expected": format!("{name}.npy"),
        }));
    }
    check(&python, &folder, &cases);
}

/// Models as people train them, on 1,797 pictures of digits.
#[test]
#[ignore = "slow: trains, and reads files with packages of Python"]
fn trained_models_come_back() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let digits = digits();
    let rows = folder_rows(&folder, &digits);
    folder.write_f32("x.npy", &rows);
    let mut cases = Vec::new();
    for (number, line) in [
        "--method lda --rank 8",
        "--method lda --rank 8 --prepare centre+scale+pca:32",
        "--method lda --rank 8 --prepare pca:32+l2 --score cosine",
        "--method pca --rank 16 --prepare whiten:20",
        "--method kissme --rank 8",
        "--method warca --rank 8 --prepare l2",
        "--method warca --rank 8 --prepare sqrt+l2",
        "--method slr",
        "--method slr-adapter",
        "--method kernel-warca --rank 8 --set kernel=rbf --set landmarks=100",
        "--method kernel-warca --rank 8 --set kernel=exp-chi2 --set landmarks=100",
        "--method lda --rank 8 --prepare chi2:2",
        "--method lda --rank 8 --prepare kernel:rbf:100",
    ]
    .iter()
    .enumerate()
    {
        let name = format!("m{number}");
        let train = format!("train {digits} --label label {line} -o {name}.safetensors");
        let quick: &[&str] = if line.contains("warca") { &QUICK } else { &[] };
        folder.good(&train, quick);
        for side in ["query", "item"] {
            let embed =
                format!("embed {name}.safetensors x.npy --side {side} -o {name}.{side}.npy");
            folder.good(&embed, &[]);
            let export = format!("export {name}.safetensors --side {side} -o {name}.{side}");
            folder.good(&format!("{export}.onnx"), &[]);
            cases.push(json!({
                "kind": "onnx", "file": format!("{name}.{side}.onnx"), "input": "x.npy",
                "expected": format!("{name}.{side}.npy"), "of": line, "double": true,
            }));
            if ["kernel", "chi2", "sqrt"]
                .iter()
                .any(|word| line.contains(word))
            {
                continue;
            }
            // FAISS has no cosine: vectors at length 1 there.
            let unit = format!("{name}.{side}.unit.npy");
            let shown = folder.json(&format!("inspect {name}.safetensors"), &[]);
            let cosine = shown["score"] == "cosine";
            let normalise: &[&str] = if cosine { &["--normalise"] } else { &[] };
            let embed = format!("embed {name}.safetensors x.npy --side {side} -o {unit}");
            folder.good(&embed, normalise);
            folder.good(&format!("{export}.faiss"), &[]);
            cases.push(json!({
                "kind": "faiss_chain", "file": format!("{name}.{side}.faiss"), "input": "x.npy",
                "expected": unit, "of": line,
            }));
        }
    }
    check(&python, &folder, &cases);
}

fn folder_rows(folder: &Folder, path: &str) -> RowBuf {
    folder.good(&format!("embed {} {path} -o raw.npy", plain(folder)), &[]);
    folder.read("raw.npy")
}

/// A model that leaves 64 numbers as they are.
fn plain(folder: &Folder) -> &'static str {
    let chain = metra::model::Chain::identity(64, Space::SquaredL2);
    let origin = metra::model::Origin::default();
    let model = metra::model::Model::new(None, chain, origin).unwrap();
    model.save(folder.path("plain.safetensors")).unwrap();
    "plain.safetensors"
}

/// Rows of floats through standard input and output, by the header's function.
const PROGRAM: &str = r#"
#include "model.h"
#include <stdio.h>
int main(void) {
    float input[MODEL_INPUT], output[MODEL_OUTPUT];
    while (fread(input, sizeof(float), MODEL_INPUT, stdin) == MODEL_INPUT) {
        if (model_map(input, output)) return 1;
        fwrite(output, sizeof(float), MODEL_OUTPUT, stdout);
    }
    return 0;
}
"#;

#[test]
fn a_c_program_maps_as_embed_does() {
    let folder = Folder::new();
    data(&folder);
    folder.write("main.c", PROGRAM);
    let rows = folder.read("x.npy");
    let bytes: Vec<u8> = rows.values().iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(folder.path("x.bin"), bytes).unwrap();
    let families = all();
    for name in ["prepared-euclid", "units-cosine"] {
        let family = families.iter().find(|family| family.name == name).unwrap();
        family.model.save(folder.path("m.safetensors")).unwrap();
        embed(&folder, "m", "query", &[], "z.npy");
        folder.good("export m.safetensors -o model.h", &[]);
        let built = Command::new("cc")
            .current_dir(folder.path(""))
            .args(["-Wall", "-Werror", "main.c", "-o", "main", "-lm"])
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", text(&built.stderr));
        let input = std::fs::File::open(folder.path("x.bin")).unwrap();
        let mapped = Command::new(folder.path("main"))
            .stdin(input)
            .output()
            .unwrap();
        assert!(mapped.status.success());
        let expected = folder.read("z.npy");
        let largest = expected
            .values()
            .iter()
            .fold(0.0_f32, |m, v| m.max(v.abs()));
        assert_eq!(mapped.stdout.len(), 4 * expected.values().len());
        for (bytes, value) in mapped.stdout.chunks_exact(4).zip(expected.values()) {
            let found = f32::from_le_bytes(bytes.try_into().unwrap());
            let difference = f64::from((found - value).abs() / largest);
            assert!(difference <= CLOSE, "{found} {value}");
        }
    }
}

#[test]
fn what_export_refuses_is_said_and_leaves_no_file() {
    let folder = Folder::new();
    data(&folder);
    for family in all() {
        let file = format!("{}.safetensors", family.name);
        family.model.save(folder.path(&file)).unwrap();
    }
    let before = folder.names();
    let refused = |line: &str, expected: &str| {
        let message = folder.refused(line, &[]);
        assert!(message.contains(expected), "{line}: {message}");
    };
    refused(
        "export sqrt-euclid.safetensors -o m.faiss",
        "a FAISS index cannot hold step \"sqrt\", which is not affine: use onnx, or map vectors with \
         metra embed and index what it writes",
    );
    refused(
        "export kernel-rbf-dot.safetensors -o m.h",
        "step \"kernel\"",
    );
    refused(
        "export groups-dot.safetensors -o m.npy",
        "step \"centre-groups\"",
    );
    refused("export units-dot.safetensors -o m.npy", "step \"l2\"");
    refused(
        "export bilinear-dot.safetensors -o m.onnx",
        "queries and items are mapped differently: say --side query or --side item",
    );
    refused(
        "export low-rank-dot.safetensors -o m.bin",
        "expected a name that ends in .onnx, ",
    );
    refused(
        "export low-rank-dot.safetensors -o m.onnx --items x.npy",
        "--items and --index are for FAISS",
    );
    refused(
        "export low-rank-euclid.safetensors -o m.npy --way query-only",
        "a query cannot know it",
    );
    refused(
        "export low-rank-euclid.safetensors -o m.faiss --index x.npy",
        "expected an index of FAISS over floats",
    );
    refused(
        "export low-rank-euclid.safetensors -o m.faiss --items x.npy --side item",
        "the map in front is that of queries",
    );
    assert_eq!(folder.names(), before);
    // The format may be said apart from the name, and files are the same every time.
    folder.good("export low-rank-dot.safetensors -o m.bin --to onnx", &[]);
    folder.good("export low-rank-dot.safetensors -o n.onnx", &[]);
    assert!(folder.bytes("m.bin") == folder.bytes("n.onnx"));
    let (out, _) = folder.good("export low-rank-dot.safetensors -o m.sql --table t", &[]);
    assert!(out.contains("mapped in the database"), "{out}");
}
