//! Experiment files: what is compared, on what and how, in TOML. docs/formats/experiment.md says
//! what each key means; unknown keys are errors.

use crate::evaluation_args::EvaluationArgs;
use crate::inputs::{Columns, ComparisonArgs, DataArgs, QrelsArgs};
use crate::split_args::SplitArgs;
use anyhow::{Context, Result, anyhow, ensure};
use metra::evaluate::Measure;
use metra::experiment::{Claim, ComparedMethod};
use metra::pipeline::registry;
use metra::supervision::SharedLabels;
use metra::training::Recipe;
use metra_files::MissingValues;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Most settings that a method may try on each split unless the file says otherwise.
pub(super) const TRIALS: usize = 8;

/// An experiment: methods compared on one set of data under one protocol.
#[derive(Deserialize, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ExperimentFile {
    /// Another experiment file, whose values hold for what this one leaves out: whole keys and sections of the top.
    #[serde(default)]
    extends: Option<String>,
    /// Its name, which the folder of results gets too.
    pub(super) name: String,
    /// What it is about, in a few sentences.
    #[serde(default)]
    pub(super) about: String,
    /// Seed of all draws (default 1).
    #[serde(default = "one")]
    seed: u64,
    /// Most settings that a method may try on each split (default 8). Of a larger grid so many are
    /// drawn by the seed.
    #[serde(default = "trials")]
    pub(super) trials: usize,
    /// Factor of successive halving for learners that work in steps (default: none).
    pub(super) halving: Option<u32>,
    /// Facts that learners report and that tables are to show, such as WARCA's `condition`.
    #[serde(default)]
    facts: Vec<String>,
    #[serde(default)]
    data: DataSection,
    #[serde(default)]
    split: SplitSection,
    #[serde(default)]
    judge: JudgeSection,
    /// Of the methods below, or of the file extended, only those of these names.
    #[serde(default)]
    methods: Vec<String>,
    /// The methods.
    #[serde(default)]
    method: Vec<MethodSection>,
    /// What was said beforehand about the order of methods.
    #[serde(default)]
    claim: Vec<ClaimSection>,
}

/// Files are looked for beside the experiment file; `${NAME}` is an environment variable.
#[derive(Deserialize, Debug, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct DataSection {
    /// File of vectors (.parquet, .npy, .csv, .jsonl, …); or `queries`, `items` and `qrels`.
    vectors: Option<String>,
    /// Column of vectors.
    vector: Option<String>,
    /// Column of class labels. Several per row: a column of lists, or several columns, comma-separated.
    label: Option<String>,
    /// What stands between the labels of a row in a column of texts.
    label_separator: Option<String>,
    /// How relevant rows are that share labels: number (default) or share.
    label_grade: Option<String>,
    /// Column of cameras or sessions.
    camera: Option<String>,
    /// Column of ids.
    id: Option<String>,
    /// Rows with a missing value: error (default) or skip.
    missing: Option<String>,
    /// Keep only rows with these values (`column=value` or `column!=value`).
    #[serde(default, rename = "where")]
    filters: Vec<String>,
    /// File of query vectors.
    queries: Option<String>,
    /// File of item vectors.
    items: Option<String>,
    /// TREC judgements.
    qrels: Option<String>,
    /// Column of vectors in the file of queries, where it is not `vector`.
    query_vector: Option<String>,
    /// Whether queries and items are vectors of two models; known where their dimensions differ.
    #[serde(default)]
    two_spaces: bool,
    /// As `where`, for queries.
    #[serde(default)]
    where_queries: Vec<String>,
    /// As `where`, for items.
    #[serde(default)]
    where_items: Vec<String>,
    /// File of pairs.
    pairs: Option<String>,
    /// File of triplets.
    triplets: Option<String>,
    /// File of quadruplets.
    quadruplets: Option<String>,
    /// File of class orderings.
    orderings: Option<String>,
    /// File of a class tree.
    taxonomy: Option<String>,
}

/// Held-out parts: one of `file`, `test-where`, `folds` and `draws`.
#[derive(Deserialize, Debug, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SplitSection {
    /// File of splits.
    file: Option<String>,
    /// Only the first so many splits of the file.
    first: Option<usize>,
    /// Only this split of the file, counted from 0.
    number: Option<usize>,
    /// Add rows that a split of the file names in neither part to its test part (distractors).
    #[serde(default)]
    distractors: bool,
    /// Test on rows or queries with this value (`column=value`).
    test_where: Option<String>,
    /// So many folds, every unit tested once.
    folds: Option<usize>,
    /// So many random test parts.
    draws: Option<u64>,
    /// What is new at use: identities, rows, queries or items.
    holdout: Option<String>,
    /// Share held out for validation (default 0.2).
    validation: Option<f64>,
    /// Share held out for test, with `draws` (default 0.2).
    test: Option<f64>,
    /// So many classes, drawn for every split, are only in its test part (zero-shot classes).
    #[serde(default)]
    unseen_classes: usize,
}

/// How held-out parts are judged.
#[derive(Deserialize, Debug, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct JudgeSection {
    /// leave-one-out, against-training, single-shot or cross-camera.
    protocol: Option<String>,
    /// gaussian, zero-shot (either with :SHARE) or knn:K instead of a ranking.
    classifier: Option<String>,
    /// How often the single-shot protocol draws images (default 1).
    repeats: Option<u32>,
    /// Measures to show.
    #[serde(default)]
    measures: Vec<String>,
    /// Measure to choose by.
    criterion: Option<String>,
    /// With qrels, settings are chosen for items that no training query names: yes, no or both (default).
    new_items: Option<String>,
    /// Name of the method that all are compared with.
    base: Option<String>,
    /// Re-ranking by k-reciprocal neighbours, such as `k1=20,k2=6,lambda=0.3`.
    rerank: Option<String>,
}

/// One method.
#[derive(Deserialize, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MethodSection {
    /// The learner; `metra methods` lists them.
    method: String,
    /// Its name in tables (default: the learner's).
    name: Option<String>,
    /// Preparation of vectors (default none).
    prepare: Option<String>,
    /// Scores after the map to choose among (default: those that the objective of the method is about).
    #[serde(default)]
    score: Vec<String>,
    /// Fixed parameters.
    #[serde(default)]
    set: BTreeMap<String, Value>,
    /// Values to try, of parameters and of `prepare` (default: those of `metra methods`).
    grid: Option<BTreeMap<String, Vec<Value>>>,
    /// What a publication states, by measure, from 0 to 1.
    #[serde(default)]
    published: BTreeMap<String, f64>,
}

/// Something said about two methods.
#[derive(Deserialize, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClaimSection {
    /// Name of the method said to be better.
    better: String,
    /// Name of the method said to be worse.
    worse: String,
    /// By this measure.
    measure: String,
    /// Who says so.
    #[serde(default)]
    source: String,
    /// A sentence on what came of it.
    #[serde(default)]
    remark: String,
}

/// A parameter's value.
#[derive(Deserialize, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Value {
    Truth(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Truth(value) => value.to_string(),
            Value::Whole(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            Value::Text(value) => value.clone(),
        }
    }
}

fn one() -> u64 {
    1
}

fn trials() -> usize {
    TRIALS
}

/// A file that was read, in the terms of the command's arguments.
pub(super) struct ComparisonPlan {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) subject: DataArgs,
    pub(super) splitting: SplitArgs,
    pub(super) evaluation: EvaluationArgs,
    pub(super) base: Option<String>,
    pub(super) trials: usize,
    pub(super) halving: Option<u32>,
    pub(super) methods: Vec<ComparedMethod>,
    pub(super) claims: Vec<Claim>,
    pub(super) facts: Vec<String>,
}

/// Read an experiment file.
pub(super) fn read(path: &Path) -> Result<ComparisonPlan> {
    let shown = path.display();
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = ExperimentFile::extended(&text_of(path)?, folder)
        .map_err(|error| anyhow!("{shown}: {error:#}"))?;
    file.plan(folder).with_context(|| shown.to_string())
}

fn text_of(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

impl ExperimentFile {
    /// From text, with what it leaves out taken from the file that it extends.
    fn extended(text: &str, folder: &Path) -> Result<Self> {
        let file: ExperimentFile = toml::from_str(text)?;
        let Some(other) = &file.extends else {
            return Ok(file);
        };
        let path = place(other, folder).context("extends")?;
        let mut whole: toml::Table =
            toml::from_str(&text_of(&path)?).with_context(|| path.display().to_string())?;
        ensure!(
            !whole.contains_key("extends"),
            "{} extends another file itself, which is one file too many",
            path.display()
        );
        let own: toml::Table = toml::from_str(text)?;
        if own.contains_key("data") {
            // What was published and claimed was so of the other data.
            whole.remove("claim");
            let methods = whole.get_mut("method").and_then(toml::Value::as_array_mut);
            for method in methods.into_iter().flatten() {
                method
                    .as_table_mut()
                    .map(|method| method.remove("published"));
            }
        }
        whole.extend(own);
        whole
            .try_into()
            .with_context(|| format!("with what {} adds", path.display()))
    }

    fn plan(self, folder: &Path) -> Result<ComparisonPlan> {
        ensure!(
            !["", ".", ".."].contains(&self.name.as_str())
                && !self
                    .name
                    .contains(|c: char| "/\\".contains(c) || c.is_control()),
            "name must be usable as a folder's name, but is {:?}",
            self.name
        );
        ensure!(!self.method.is_empty(), "expected [[method]] sections");
        let methods = (self.method.into_iter())
            .enumerate()
            .map(|(number, section)| {
                let name = section
                    .name
                    .clone()
                    .unwrap_or_else(|| section.method.clone());
                (section.read()).with_context(|| format!("method {} ({name})", number + 1))
            })
            .collect::<Result<_>>()?;
        let claims = (self.claim.into_iter())
            .map(|claim| {
                Ok(Claim {
                    measure: parsed("measure of a claim", &claim.measure)?,
                    better: claim.better,
                    worse: claim.worse,
                    source: claim.source,
                    remark: claim.remark,
                })
            })
            .collect::<Result<_>>()?;
        let mut plan = ComparisonPlan {
            subject: self.data.read(folder).context("data")?,
            splitting: self.split.read(folder, self.seed).context("split")?,
            base: self.judge.base.clone(),
            evaluation: self.judge.read().context("judge")?,
            name: self.name,
            about: self.about,
            trials: self.trials,
            halving: self.halving,
            methods,
            claims,
            facts: self.facts,
        };
        plan.keep(&self.methods).context("methods")?;
        Ok(plan)
    }
}

impl ComparisonPlan {
    /// Keep the methods of these names and what is claimed about them; all, where there is no name.
    pub(super) fn keep(&mut self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let known: Vec<&str> = self.methods.iter().map(|m| m.name.as_str()).collect();
        for name in names {
            ensure!(
                known.contains(&name.as_str()),
                "expected names of the experiment's methods ({}), but found {name:?}",
                known.join(", ")
            );
        }
        let kept = |name: &String| names.contains(name);
        self.methods.retain(|m| kept(&m.name));
        self.claims.retain(|c| kept(&c.better) && kept(&c.worse));
        Ok(())
    }
}

impl DataSection {
    fn read(self, folder: &Path) -> Result<DataArgs> {
        let apart = [&self.queries, &self.items].into_iter().flatten().count();
        ensure!(
            (self.vectors.is_some() && apart == 0)
                || (self.vectors.is_none() && apart == 2 && self.qrels.is_some()),
            "expected either vectors, or queries, items and qrels"
        );
        let file = |given: &Option<String>| given.as_deref().map(|g| place(g, folder)).transpose();
        let filters = |given: &[String]| {
            let each = given.iter().map(|text| parsed("where", text));
            each.collect::<Result<Vec<_>>>()
        };
        Ok(DataArgs {
            data: file(&self.vectors)?,
            qrels: QrelsArgs {
                queries: file(&self.queries)?,
                items: file(&self.items)?,
                qrels: file(&self.qrels)?,
                query_vector: self.query_vector,
                two_spaces: self.two_spaces,
                where_queries: filters(&self.where_queries)?,
                where_items: filters(&self.where_items)?,
            },
            comparisons: ComparisonArgs {
                pairs: file(&self.pairs)?,
                triplets: file(&self.triplets)?,
                quadruplets: file(&self.quadruplets)?,
            },
            orderings: file(&self.orderings)?,
            taxonomy: file(&self.taxonomy)?,
            filters: filters(&self.filters)?,
            columns: Columns {
                vector: self.vector,
                label: self.label,
                label_separator: self.label_separator,
                label_grade: match &self.label_grade {
                    Some(text) => parsed("label-grade", text)?,
                    None => SharedLabels::default(),
                },
                camera: self.camera,
                id: self.id,
                missing: match &self.missing {
                    Some(text) => parsed("missing", text)?,
                    None => MissingValues::default(),
                },
            },
        })
    }
}

impl SplitSection {
    fn read(self, folder: &Path, seed: u64) -> Result<SplitArgs> {
        let ways = [
            self.file.is_some(),
            self.test_where.is_some(),
            self.folds.is_some(),
            self.draws.is_some(),
        ];
        ensure!(
            ways.into_iter().filter(|way| *way).count() <= 1,
            "expected one of file, test-where, folds and draws"
        );
        ensure!(
            self.file.is_some()
                || (self.first.is_none() && self.number.is_none() && !self.distractors),
            "first, number and distractors speak of the splits of a file, and there is none"
        );
        ensure!(
            self.first.is_none() || self.number.is_none(),
            "expected first or number, not both"
        );
        let usual = SplitArgs::default();
        Ok(SplitArgs {
            holdout: optional("holdout", self.holdout.as_ref())?,
            validation: self.validation.unwrap_or(usual.validation),
            test: self.test.unwrap_or(usual.test),
            splits: self.file.as_deref().map(|f| place(f, folder)).transpose()?,
            split: self.number,
            first: self.first,
            distractors: self.distractors,
            test_where: optional("test-where", self.test_where.as_ref())?,
            draws: self.draws.unwrap_or(usual.draws),
            folds: self.folds,
            unseen_classes: self.unseen_classes,
            seed,
        })
    }
}

impl JudgeSection {
    fn read(self) -> Result<EvaluationArgs> {
        ensure!(
            self.protocol.is_none() || self.classifier.is_none(),
            "expected protocol or classifier, not both"
        );
        let measures = self.measures.iter().map(|m| parsed("measures", m));
        Ok(EvaluationArgs {
            protocol: optional("protocol", self.protocol.as_ref())?,
            classifier: optional("classifier", self.classifier.as_ref())?,
            repeats: self.repeats.unwrap_or(1),
            measures: measures.collect::<Result<_>>()?,
            criterion: optional("criterion", self.criterion.as_ref())?,
            new_items: optional("new-items", self.new_items.as_ref())?.unwrap_or_default(),
            rerank: optional("rerank", self.rerank.as_ref())?,
        })
    }
}

impl MethodSection {
    fn read(self) -> Result<ComparedMethod> {
        let settings = (self.set.iter())
            .map(|(name, value)| (name.clone(), value.text()))
            .collect();
        let grid = match self.grid {
            None => registry::find(&self.method)?.open_grid(&settings),
            Some(grid) => (grid.into_iter())
                .map(|(name, values)| (name, values.iter().map(Value::text).collect()))
                .collect(),
        };
        let published = (self.published.into_iter())
            .map(|(measure, value)| Ok((parsed::<Measure>("published", &measure)?, value)))
            .collect::<Result<_>>()?;
        let scores = self.score.iter().map(|score| parsed("score", score));
        Ok(ComparedMethod {
            name: self.name.unwrap_or_else(|| self.method.clone()),
            method: self.method,
            settings,
            recipe: match &self.prepare {
                Some(prepare) => parsed("prepare", prepare)?,
                None => Recipe::default(),
            },
            grid,
            spaces: scores.collect::<Result<_>>()?,
            published,
        })
    }
}

fn parsed<T>(key: &str, text: &str) -> Result<T>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    text.parse().with_context(|| key.to_owned())
}

fn optional<T>(key: &str, text: Option<&String>) -> Result<Option<T>>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    text.map(|text| parsed(key, text)).transpose()
}

/// A file beside the experiment file, with environment variables in place.
fn place(given: &str, folder: &Path) -> Result<PathBuf> {
    let mut out = String::new();
    let mut rest = given;
    while let Some(start) = rest.find("${") {
        let end = rest[start..].find('}').map(|end| start + end);
        let end = end.with_context(|| format!("{given:?}: expected }} after ${{"))?;
        let name = &rest[start + 2..end];
        let value = std::env::var(name)
            .map_err(|_| anyhow!("{given}: the environment variable {name} is not set"))?;
        out.push_str(&rest[..start]);
        out.push_str(&value);
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok(folder.join(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        name = "small"
        [data]
        vectors = "v.npy"
        label = "l.npy"
        [[method]]
        method = "lda"
        set = { rank = 5 }
        grid = { ridge = [0.01, 1], prepare = ["none", "l2"] }
        published = { map = 0.5 }
    "#;

    fn plan(text: &str) -> Result<ComparisonPlan> {
        ExperimentFile::extended(text, Path::new("folder"))?.plan(Path::new("folder"))
    }

    #[test]
    fn what_is_said_arrives_and_what_is_not_has_defaults() {
        let plan = plan(SMALL).unwrap();
        assert_eq!(plan.subject.data, Some(PathBuf::from("folder/v.npy")));
        assert_eq!((plan.trials, plan.splitting.seed), (TRIALS, 1));
        let method = &plan.methods[0];
        assert_eq!(method.settings["rank"], "5");
        let expected =
            |name: &str, values: [&str; 2]| (name.to_owned(), values.map(String::from).to_vec());
        assert_eq!(method.grid[0], expected("prepare", ["none", "l2"]));
        assert_eq!(method.grid[1], expected("ridge", ["0.01", "1"]));
        assert_eq!(method.published[&Measure::AveragePrecision], 0.5);
    }

    #[test]
    fn what_a_file_leaves_out_comes_from_the_one_it_extends() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let other = SMALL.to_owned() + "[[method]]\nmethod = \"euclid\"\n";
        file("small.toml", &other);
        let text = "extends = \"small.toml\"\nname = \"fresh\"\nseed = 7\n[split]\ndraws = 3\n";
        let plan = read(&file("fresh.toml", text)).unwrap();
        assert_eq!((plan.name.as_str(), plan.methods.len()), ("fresh", 2));
        assert_eq!((plan.splitting.draws, plan.splitting.seed), (3, 7));
        assert_eq!(plan.subject.data, Some(folder.path().join("v.npy")));
        assert!(!plan.methods[0].published.is_empty());
        let other = format!("{text}[data]\nvectors = \"w.npy\"\nlabel = \"l.npy\"\n");
        let plan = read(&file("other.toml", &other)).unwrap();
        assert!(plan.methods[0].published.is_empty());
        let fewer = format!("methods = [\"euclid\"]\n{text}");
        let plan = read(&file("fewer.toml", &fewer)).unwrap();
        assert_eq!(plan.methods[0].method, "euclid");
        for (text, expected) in [
            (
                "extends = \"fresh.toml\"\nname = \"a\"",
                "one file too many",
            ),
            ("extends = \"none.toml\"\nname = \"a\"", "none.toml"),
            ("name = \"a\"", "[[method]]"),
            (
                "extends = \"small.toml\"\nname = \"a\"\nmethods = [\"slr\"]",
                "lda, euclid",
            ),
        ] {
            let error = read(&file("wrong.toml", text)).err().unwrap();
            let error = format!("{error:#}");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (change, with, expected) in [
            ("label =", "lable =", "unknown field `lable`"),
            ("\"lda\"", "\"ldaa\"", "one of"),
            (
                "\"v.npy\"",
                "\"${NO_SUCH_VARIABLE}/v.npy\"",
                "NO_SUCH_VARIABLE is not set",
            ),
            ("map =", "mapp =", "measure"),
            ("vectors", "queries", "either vectors, or queries"),
            ("name = \"small\"", "name = \"a/b\"", "folder's name"),
            ("\"l2\"", "\"l3\"", "prepare"),
        ] {
            let text = SMALL.replace(change, with);
            let error = plan(&text).and_then(|plan| {
                // Parameters are checked by the experiment; here by what it will do.
                for method in &plan.methods {
                    registry::find(&method.method)?;
                    for (_, values) in method.grid.iter().filter(|(name, _)| name == "prepare") {
                        for value in values {
                            parsed::<Recipe>("prepare", value)?;
                        }
                    }
                }
                Ok(())
            });
            let error = format!("{:#}", error.unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }

    /// Editors check files by the schema, so it must be that of the code. With METRA_WRITE_SCHEMA
    /// set, it is written anew.
    #[test]
    fn the_schema_in_the_docs_is_that_of_the_code() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/formats/experiment.schema.json"
        );
        let schema = schemars::schema_for!(ExperimentFile);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("METRA_WRITE_SCHEMA").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap();
        assert!(kept == text, "write it anew with METRA_WRITE_SCHEMA=1");
    }

    /// Damaged experiment files are refused or read, whatever their bytes.
    #[test]
    fn damage_is_survived() {
        let count = std::env::var("METRA_MUTATIONS").map_or(500, |count| count.parse().unwrap());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let files = std::fs::read_dir(&folder).unwrap().flatten();
        let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
        paths.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        });
        paths.sort();
        let mut valid: Vec<Vec<u8>> = paths.iter().map(|p| std::fs::read(p).unwrap()).collect();
        valid.push(SMALL.into());
        let (mut read, mut refused) = (0, 0);
        for case in 0..count {
            let mut random = metra::internal::Stream::new(1, "experiment files", case);
            let mut place = || random.below(valid.len() as u64) as usize;
            let (one, other) = (&valid[place()], &valid[place()]);
            let bytes = metra_testing::mutated(one, other, &mut |n| random.below(n));
            let file: Result<ExperimentFile, _> = toml::from_str(&String::from_utf8_lossy(&bytes));
            match file.map(|file| file.plan(&folder)) {
                Ok(Ok(_)) => read += 1,
                _ => refused += 1,
            }
        }
        println!("{count} damaged experiment files: {read} read, {refused} refused");
        assert!(read > 0 && refused > 0);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        for name in ["", ".", "..", "a/b", "a\\\\b", "a\\u0007"] {
            let text = SMALL.replace("\"small\"", &format!("\"{name}\""));
            let file: ExperimentFile = toml::from_str(&text).unwrap();
            let error = file.plan(Path::new("")).err().unwrap().to_string();
            assert!(
                error.contains("usable as a folder's name"),
                "{name}: {error}"
            );
        }
    }
}
