//! A guard against change: what the command makes of small fixed sets, as digests.
//!
//! Every method of the registry learns from every kind of supervision that it takes; the table holds the
//! digest of the model file, of mapped rows and of the JSON answer, and the JSON answer of the other verbs.
//! Bytes are promised for one level of CPU features, so the table says for which one it was made and is not
//! compared on another.

mod cases;
mod fixtures;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the table lies, from the root of the repository.
const TABLE: &str = "tests/golden/table.tsv";
/// Models of the format's first version, which must load for ever.
const MODELS: &str = "tests/golden/v0.1";
/// What a case that the command refuses has in place of digests.
const REFUSED: &str = "refused";

/// What a clock or a machine decides.
const VOLATILE: [&str; 12] = [
    "code_digest",
    "cpu_seconds",
    "fit_cpu_seconds",
    "images_per_second",
    "import_seconds",
    "product_seconds",
    "rows_per_second",
    "seconds",
    "steps_per_second",
    "timing",
    "version",
    "wall_seconds",
];

/// What the golden run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Golden {
    /// Compare with the table.
    Check,
    /// Write the table anew.
    Write,
    /// Write the models that later versions must load.
    Models,
}

/// Runs every case with a command (built here if none is named) and compares the outcome with the table, or
/// writes it. Returns the lines that differ.
pub fn golden(root: &Path, what: Golden, command: Option<PathBuf>) -> Result<Vec<String>> {
    let command = match command {
        Some(command) => command.canonicalize().context("the command")?,
        None => build(root)?,
    };
    let folder = root.join("target/golden");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    fixtures::write(&folder)?;
    let bench = Bench { command, folder };
    if what == Golden::Models {
        write_models(&bench, &root.join(MODELS))?;
        return Ok(Vec::new());
    }
    let found = bench.table()?;
    let path = root.join(TABLE);
    if what == Golden::Write {
        fs::create_dir_all(root.join("tests/golden"))?;
        let text: String = found.iter().map(|(k, v)| format!("{k}\t{v}\n")).collect();
        fs::write(&path, format!("cpu\t{}\n{text}", cpu()))?;
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&path).context(TABLE)?;
    differences(&text, &found)
}

fn differences(table: &str, found: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let mut expected = BTreeMap::new();
    for line in table.lines() {
        let (name, value) = line.split_once('\t').context("a line of the table")?;
        expected.insert(name.to_owned(), value.to_owned());
    }
    let level = expected.remove("cpu").context("the table's cpu")?;
    // Bytes are promised for one level of CPU features alone.
    if level != cpu() {
        return Ok(Vec::new());
    }
    let mut lines = Vec::new();
    for (name, value) in &expected {
        match found.get(name) {
            Some(now) if now == value => {}
            Some(now) => lines.push(format!("{name}: expected {value}, found {now}")),
            // A build without a feature lacks the cases that need it.
            None if name.starts_with("cluster/") => {}
            None => lines.push(format!("{name}: is no longer there")),
        }
    }
    for name in found.keys().filter(|name| !expected.contains_key(*name)) {
        lines.push(format!("{name}: is not in the table"));
    }
    Ok(lines)
}

/// The level that decides which instructions sums are taken with.
fn cpu() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "x86-64-v4";
        }
        if is_x86_feature_detected!("avx2") {
            return "x86-64-v3";
        }
    }
    std::env::consts::ARCH
}

fn build(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--quiet", "--package", "metra-cli"];
    let status = Command::new(cargo)
        .current_dir(root)
        .args(arguments)
        .status()?;
    ensure!(status.success(), "the command could not be built");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(target.join("debug/metra"))
}

/// A command and the folder in which it runs.
struct Bench {
    command: PathBuf,
    folder: PathBuf,
}

impl Bench {
    fn run(&self, line: &str) -> Result<Option<Value>> {
        let output = Command::new(&self.command)
            .current_dir(&self.folder)
            .args(line.split_whitespace())
            .args(["--json", "--threads", "2"])
            .output()
            .with_context(|| self.command.display().to_string())?;
        match output.status.code() {
            // 3 is the answer of a decision or of a comparison in which a method failed.
            Some(0 | 3) => {
                // Some verbs answer in a format of their own.
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let mut value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                settle(&mut value);
                Ok(Some(value))
            }
            Some(1 | 2) => {
                let path = self.folder.join("refused.txt");
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                let so_far = fs::read_to_string(&path).unwrap_or_default();
                fs::write(path, format!("{so_far}{line}\n  {error}"))?;
                Ok(None)
            }
            _ => bail!(
                "{line}: {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    fn digest_of(&self, name: &str) -> Result<String> {
        let bytes = fs::read(self.folder.join(name)).context(name.to_owned())?;
        if name.ends_with(".json") {
            let mut value = serde_json::from_slice(&bytes).context(name.to_owned())?;
            settle(&mut value);
            return Ok(digest(value.to_string().as_bytes()));
        }
        Ok(digest(&bytes))
    }

    fn methods(&self) -> Result<Vec<(String, Vec<String>)>> {
        let listed = self.run("methods")?.context("metra methods")?;
        let list = listed.as_array().or_else(|| listed["methods"].as_array());
        let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
        let methods = list.context("the list of methods")?.iter().map(|method| {
            let parameters = method["parameters"].as_array().into_iter().flatten();
            (name(method), parameters.map(name).collect())
        });
        Ok(methods.collect())
    }

    /// Every case with its outcome.
    fn table(&self) -> Result<BTreeMap<String, String>> {
        let mut table = BTreeMap::new();
        for (method, parameters) in self.methods()? {
            for (kind, arguments) in cases::SUPERVISION {
                let quick = cases::quick(&method, &parameters);
                let line = format!("train {arguments} --method {method} {quick} -o m.safetensors");
                let Some(answer) = self.run(&line)? else {
                    table.insert(format!("train/{kind}/{method}"), REFUSED.to_owned());
                    continue;
                };
                let mut outcome = vec![
                    format!("model={}", self.digest_of("m.safetensors")?),
                    format!("json={}", digest(answer.to_string().as_bytes())),
                ];
                for side in ["item", "query"] {
                    let line =
                        format!("embed m.safetensors {} -o z.npy --side {side}", cases::ROWS);
                    let done = self.run(&line)?;
                    outcome.push(match done {
                        Some(_) => format!("{side}={}", self.digest_of("z.npy")?),
                        None => format!("{side}={REFUSED}"),
                    });
                }
                table.insert(format!("train/{kind}/{method}"), outcome.join(" "));
            }
        }
        for (name, line, files) in cases::VERBS {
            let answer = self.run(line)?;
            if answer.is_none() && name.starts_with("cluster/") {
                continue;
            }
            let mut outcome = match answer {
                Some(answer) => {
                    let text = serde_json::to_string_pretty(&answer)?;
                    let path = self
                        .folder
                        .join(format!("{}.answer", name.replace('/', "_")));
                    fs::write(path, &text)?;
                    vec![format!("json={}", digest(answer.to_string().as_bytes()))]
                }
                None => vec![REFUSED.to_owned()],
            };
            if outcome[0] != REFUSED {
                for file in *files {
                    outcome.push(format!("{file}={}", self.digest_of(file)?));
                }
            }
            table.insert((*name).to_owned(), outcome.join(" "));
        }
        Ok(table)
    }
}

/// Take out what differs from run to run.
fn settle(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !VOLATILE.contains(&key.as_str()));
            map.values_mut().for_each(settle);
        }
        Value::Array(list) => list.iter_mut().for_each(settle),
        _ => {}
    }
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

/// One model a method, with the rows that it maps and what it makes of them.
fn write_models(bench: &Bench, target: &Path) -> Result<()> {
    fs::create_dir_all(target)?;
    fs::copy(bench.folder.join("items.csv"), target.join("items.csv"))?;
    for (method, parameters) in bench.methods()? {
        let quick = cases::quick(&method, &parameters);
        for (_, arguments) in cases::SUPERVISION {
            let line = format!("train {arguments} --method {method} {quick} -o m.safetensors");
            if bench.run(&line)?.is_none() {
                continue;
            }
            fs::copy(
                bench.folder.join("m.safetensors"),
                target.join(format!("{method}.safetensors")),
            )?;
            for side in ["item", "query"] {
                let line = format!("embed m.safetensors {} -o z.npy --side {side}", cases::ROWS);
                if bench.run(&line)?.is_some() {
                    fs::copy(
                        bench.folder.join("z.npy"),
                        target.join(format!("{method}.{side}.npy")),
                    )?;
                }
            }
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_taken_out() {
        let mut value = serde_json::json!({"a": [{"seconds": 1, "map": 0.5}], "timing": null});
        settle(&mut value);
        assert_eq!(value.to_string(), r#"{"a":[{"map":0.5}]}"#);
    }

    #[test]
    fn what_differs_is_named() {
        let table = format!("cpu\t{}\na\t1\nb\t2\ncluster/c\t3\n", cpu());
        let found = BTreeMap::from([("a", "1"), ("b", "9"), ("d", "4")]);
        let found = found
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect();
        let lines = differences(&table, &found).unwrap();
        assert_eq!(lines, ["b: expected 2, found 9", "d: is not in the table"]);
        assert!(
            differences("cpu\tabacus\na\t9\n", &found)
                .unwrap()
                .is_empty()
        );
    }
}
