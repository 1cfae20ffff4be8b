//! What a push says: the plan before it, what was done after it.

use crate::args::Common;
use crate::print;
use anyhow::Result;
use metra_stores::Provenance;
use metra_stores::postgres::{self, Push, PushTarget, Swapped};
use serde::Serialize;
use std::time::Duration;

/// What would be done.
#[derive(Serialize)]
pub(super) struct Outline {
    plan: String,
    record: Provenance,
    column: String,
    #[serde(rename = "type")]
    kind: String,
    target: &'static str,
    agreement: Option<f64>,
    rows: u64,
    without_vector: u64,
    bytes: u64,
    statements: Vec<String>,
}

impl Outline {
    pub(super) fn new(push: &mut Push<'_>) -> Result<Self> {
        let (all, with) = push.count()?;
        let each = if *push.target() == PushTarget::Stays {
            0
        } else {
            push.kind().bytes(push.plan().item_dim())
        };
        Ok(Outline {
            plan: describe(push),
            record: push.record().clone(),
            column: push.column().to_owned(),
            kind: push.kind().to_string(),
            target: target(push.target()),
            agreement: push.agreement(),
            rows: with,
            without_vector: all - with,
            bytes: with * each as u64,
            statements: push.statements()?,
        })
    }

    pub(super) fn show(&self, common: &Common) -> Result<()> {
        if common.json {
            return print::json(self);
        }
        print::line(&self.plan)?;
        agreement(self.agreement)?;
        fact(
            "column",
            &format!("{} ({}), {}", self.column, self.kind, self.target),
        )?;
        fact(
            "rows",
            &format!(
                "{} to write, {:.0} MB; {} have no input vector",
                print::count(self.rows),
                self.bytes as f64 / f64::from(1 << 20),
                print::count(self.without_vector)
            ),
        )?;
        print::line("\nThis would run, the fill batch by batch:\n")?;
        for statement in &self.statements {
            print::line(&format!("{statement};\n"))?;
        }
        Ok(())
    }

    /// The plan of a push that is about to run.
    pub(super) fn head(push: &Push<'_>, common: &Common) -> Result<()> {
        if common.json {
            return Ok(());
        }
        print::line(&describe(push))?;
        agreement(push.agreement())?;
        let text = format!(
            "{} ({}), {}",
            push.column(),
            push.kind(),
            target(push.target())
        );
        fact("column", &text)
    }
}

/// What was done.
#[derive(Serialize)]
pub(super) struct Done {
    written: u64,
    without_vector: u64,
    left: u64,
    indexed: bool,
    column: String,
    record: Provenance,
    agreement: Option<f64>,
    seconds: f64,
}

impl Done {
    pub(super) fn new(push: &Push<'_>, done: postgres::PushSummary, took: Duration) -> Self {
        Done {
            written: done.written,
            without_vector: done.without_vector,
            left: done.left,
            indexed: done.indexed,
            column: push.column().to_owned(),
            record: push.record().clone(),
            agreement: push.agreement(),
            seconds: took.as_secs_f64(),
        }
    }

    pub(super) fn show(&self, common: &Common) -> Result<()> {
        if self.left > 0 {
            tracing::warn!(
                "{} rows have an input vector and none in {:?}: others hold them, they came just now, \
                 or they have no id; repeat the command",
                print::count(self.left),
                self.column
            );
        }
        if common.json {
            return print::json(self);
        }
        let mut text = format!(
            "{} rows in {:.1} s",
            print::count(self.written),
            self.seconds
        );
        if self.without_vector > 0 {
            text += &format!(
                "; {} have no input vector",
                print::count(self.without_vector)
            );
        }
        fact("written", &text)?;
        if self.indexed {
            fact("index", "made")?;
        }
        Ok(())
    }
}

/// What an exchange did.
#[derive(Serialize)]
pub(super) struct Exchanged {
    action: &'static str,
    renamed: Vec<(String, String)>,
    missing: u64,
}

impl Exchanged {
    pub(super) fn new(back: bool, swapped: Swapped) -> Self {
        let (renamed, missing) = match swapped {
            Swapped::Already => (Vec::new(), 0),
            Swapped::Renamed { names, missing } => (names, missing),
        };
        Exchanged {
            action: if back { "rollback" } else { "swap" },
            renamed,
            missing,
        }
    }

    pub(super) fn show(&self, common: &Common) -> Result<()> {
        if common.json {
            return print::json(self);
        }
        if self.renamed.is_empty() {
            return print::line(match self.action {
                "swap" => "nothing to do: applications search this model's column already",
                _ => "nothing to do: no swap of this model is in place",
            });
        }
        for (before, after) in &self.renamed {
            fact("renamed", &format!("{before} to {after}"))?;
        }
        Ok(())
    }
}

fn describe(push: &Push<'_>) -> String {
    push.plan().describe_as(&push.kind().element())
}

fn target(target: &PushTarget) -> &'static str {
    match target {
        PushTarget::Stays => "which stays as it is",
        PushTarget::New => "which is new",
        PushTarget::Adopted => "which is there and empty",
        PushTarget::Continued => "which is continued",
    }
}

fn agreement(share: Option<f64>) -> Result<()> {
    match share {
        Some(share) => fact(
            "checked",
            &format!(
                "{:.4} % of pairs of a sample in the metric's order",
                100.0 * share
            ),
        ),
        None => Ok(()),
    }
}

/// In the columns of a plan's description.
fn fact(name: &str, value: &str) -> Result<()> {
    print::line(&format!("{name:<9}{value}"))
}
