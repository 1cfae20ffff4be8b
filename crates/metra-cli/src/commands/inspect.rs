//! `metra inspect`: what is in a model file.

use crate::args::Common;
use crate::print;
use anyhow::Result;
use clap::Args;
use metra::model::{Code, Embedding, Map, MatchDecision, Model, Origin, TrainingRows};
use serde::Serialize;
use std::path::PathBuf;

/// Show what is in a model file.
#[derive(Args)]
pub(crate) struct Inspect {
    /// The model file
    model: PathBuf,
}

#[derive(Serialize)]
struct Shown<'a> {
    input_dim: usize,
    /// Where queries are vectors of another model than items.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_input_dim: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query_steps: Option<Vec<&'static str>>,
    output_dim: usize,
    score: String,
    steps: Vec<&'static str>,
    map: String,
    /// How items are held.
    code: String,
    /// Bytes of an item.
    item_bytes: usize,
    narrowed: bool,
    groups: Option<&'a [String]>,
    origin: &'a Origin,
    decision: Option<&'a MatchDecision>,
    /// Rows that it learned from, where it keeps what recognises them.
    training_rows: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    outputs: &'a [String],
}

impl Inspect {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let model = Model::load(&self.model)?;
        let chain = &model.chain;
        let shown = Shown {
            input_dim: Embedding::input_dim(chain),
            query_input_dim: chain.query_preprocessing().map(|own| own.input_dim),
            query_steps: (chain.query_preprocessing())
                .map(|own| own.steps.iter().map(|s| s.name()).collect()),
            output_dim: chain.output_dim(),
            score: chain.space().to_string(),
            steps: chain.steps().iter().map(|s| s.name()).collect(),
            map: match chain.map() {
                Map::Identity => "identity".into(),
                Map::LowRank(_) => "low-rank, the same for queries and items".into(),
                Map::Diagonal(_) => "a factor for every column".into(),
                Map::Bilinear { .. } => "bilinear: one map for queries, another for items".into(),
                Map::Indefinite(map) => {
                    let ([near, far], [more, less]) =
                        (map.signs().differences(), map.signs().sums());
                    let sums = match more + less {
                        0 => String::new(),
                        _ => format!("; {more} sums for it, {less} against it"),
                    };
                    format!(
                        "indefinite: {near} directions count for the distance, {far} against it{sums}"
                    )
                }
                Map::Kernel(map) => format!(
                    "{} kernel with {} landmarks; the file holds these training vectors",
                    map.kernel(),
                    map.landmarks().len()
                ),
            },
            code: chain.code().map_or("f32", Code::name).to_owned(),
            item_bytes: chain.item_bytes(),
            narrowed: model.narrowing.is_some(),
            groups: chain.group_names(),
            origin: &model.origin,
            decision: model.decision.as_ref(),
            training_rows: model.training.as_ref().map(TrainingRows::rows),
            outputs: &model.outputs,
        };
        if common.json {
            return print::json(&shown);
        }
        let origin = &model.origin;
        print::fact("method", &origin.method)?;
        print::fact("vectors", &print::dimensions(chain))?;
        print::fact("score", &shown.score)?;
        print::fact("prepare", &origin.prepare)?;
        if let Some(earlier) = &origin.started_from {
            print::fact(
                "from",
                &format!("a model whose file has the BLAKE3 hash {}", earlier.file),
            )?;
        }
        print::fact("map", &shown.map)?;
        let bytes = print::plural(shown.item_bytes as u64, "byte");
        print::fact("items", &format!("{} of {}", bytes, shown.code))?;
        if let Some(groups) = shown.groups {
            print::fact("groups", &groups.join(", "))?;
        }
        if !shown.outputs.is_empty() {
            print::fact("outputs", &shown.outputs.join(", "))?;
        }
        if shown.narrowed {
            print::fact(
                "narrowing",
                "values are shifted and scaled in f64 before they become f32",
            )?;
        }
        for (name, value) in &origin.parameters {
            print::fact("parameter", &format!("{name}={value}"))?;
        }
        for (name, value) in &origin.facts {
            print::fact("fact", &format!("{name} = {value}"))?;
        }
        print::fact("seed", &origin.seed.to_string())?;
        print::fact("data", &origin.data)?;
        print::fact("supervision", &origin.supervision)?;
        let rows = match shown.training_rows {
            Some(rows) => format!("{} rows, which evaluations recognise", print::count(rows)),
            None => "rows that it does not keep digests of: no evaluation recognises them".into(),
        };
        print::fact("trained on", &rows)?;
        if origin.refit {
            let text = "the test part too (--refit), after what is held out here was measured";
            print::fact("refit on", text)?;
        }
        if let Some(decision) = shown.decision {
            for text in print::decision(decision) {
                print::fact("decision", &text)?;
            }
        }
        match &origin.held_out {
            None => print::fact("held out", "nothing: this model was never judged"),
            Some(held) => {
                let queries = print::count(held.queries);
                print::fact("held out", &format!("{} ({queries} queries)", held.kind))?;
                for (part, measures) in [
                    ("", &held.measures),
                    ("seen", &held.seen_items),
                    ("unseen", &held.unseen_items),
                ] {
                    for (measure, gain) in measures {
                        print::fact(
                            part,
                            &format!(
                                "{measure:<10} {:.4} → {:.4}  gain within [{:+.4}, {:+.4}]",
                                gain.base, gain.learned, gain.low, gain.high
                            ),
                        )?;
                    }
                }
                Ok(())
            }
        }
    }
}
