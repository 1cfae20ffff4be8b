//! `metra methods`: generated from the parameter structs, so that it cannot drift from the code.

use crate::args::Common;
use crate::print;
use anyhow::Result;
use clap::Args;
use metra::pipeline::registry::{ENTRIES, Entry, find};
use metra::supervision::SupervisionKind;
use metra::training::{CODES, RECIPE_WORDS};
use serde::Serialize;
use std::collections::BTreeMap;

/// List the methods with their parameters, defaults and meanings.
#[derive(Args)]
pub(crate) struct Methods {
    /// Show this method only
    method: Option<String>,
}

#[derive(Serialize)]
struct ListedMethod {
    name: &'static str,
    summary: &'static str,
    learns_from: String,
    /// What a comparison tries where nobody says otherwise.
    tries: BTreeMap<&'static str, &'static [&'static str]>,
    /// What `--set preset=paper` sets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    paper: BTreeMap<&'static str, &'static str>,
    parameters: Vec<Parameter>,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    default: String,
    values: String,
    meaning: String,
}

impl Methods {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let entries: Vec<&Entry> = match &self.method {
            Some(name) => vec![find(name)?],
            None => ENTRIES.iter().collect(),
        };
        let methods: Vec<ListedMethod> = entries.iter().map(|entry| describe(entry)).collect();
        if common.json {
            return print::json(&methods);
        }
        for method in &methods {
            print::line(&format!("{}  {}", method.name, method.summary))?;
            print::line(&format!("    supervision: {}", method.learns_from))?;
            if !method.tries.is_empty() {
                let tries = method.tries.iter();
                let tries: Vec<String> = tries
                    .map(|(name, values)| format!("{name}={}", values.join(",")))
                    .collect();
                print::line(&format!("    compare tries {}", tries.join(" ")))?;
            }
            if !method.paper.is_empty() {
                let sets = method.paper.iter();
                let sets: Vec<String> = sets.map(|(name, v)| format!("{name}={v}")).collect();
                print::line(&format!("    preset=paper sets {}", sets.join(" ")))?;
            }
            for parameter in &method.parameters {
                let assignment = format!("{}={}", parameter.name, parameter.default);
                print::line(&format!("    {assignment:<20} {}", parameter.meaning))?;
                if parameter.values.contains(" or ") && parameter.values != "true or false" {
                    print::line(&format!("    {:<20} ({})", "", parameter.values))?;
                }
            }
            print::line("")?;
        }
        print::line("Preprocessing before any method, steps joined by + (--prepare sqrt+centre):")?;
        for (word, meaning) in RECIPE_WORDS {
            print::line(&format!("    {word:<20} {meaning}"))?;
        }
        print::line("")?;
        print::line("Codes that items are stored in, after any method (--code bits):")?;
        for (code, meaning) in CODES {
            print::line(&format!("    {code:<20} {meaning}"))?;
        }
        Ok(())
    }
}

fn describe(entry: &Entry) -> ListedMethod {
    ListedMethod {
        name: entry.name,
        summary: entry.summary,
        learns_from: SupervisionKind::words(entry.needs),
        tries: entry.grid.iter().copied().collect(),
        paper: entry.paper.iter().copied().collect(),
        parameters: (entry.parameters)()
            .into_iter()
            .map(|p| Parameter {
                name: p.name,
                default: p.default,
                values: p.values,
                // Documentation comments are wrapped for the source; here they are one sentence.
                meaning: p.meaning.split_whitespace().collect::<Vec<_>>().join(" "),
            })
            .collect(),
    }
}
