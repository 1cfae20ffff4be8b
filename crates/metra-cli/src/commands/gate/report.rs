//! What the gate found, as JSON and in words for the log of a CI run.

use super::Gate;
use crate::args::Common;
use crate::print;
use anyhow::Result;
use metra::evaluate::Measure;
use metra::experiment::{Decision, Gate as Found, Scores};
use metra::model::SeenRows;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Report {
    decision: String,
    exit_code: u8,
    words: String,
    base: String,
    candidate: String,
    measure: String,
    min_gain: f64,
    queries: usize,
    clusters: usize,
    skipped_queries: u64,
    trained_on: bool,
    /// Whether it can be told that the candidate has not learned from them.
    #[serde(skip)]
    is_known_held_out: bool,
    /// How many of the queries the candidate learned from, where it keeps that.
    seen_rows: Option<SeenRows>,
    gain: print::Row,
    /// Other measures; one that gets worse keeps the candidate back.
    beside: Vec<print::Row>,
    headroom: Headroom,
    /// Intervals of slices hold all together.
    slices: Vec<Slice>,
    better_queries: usize,
    equal_queries: usize,
    worse_queries: usize,
    regressions: Vec<Regression>,
}

#[derive(Serialize)]
struct Headroom {
    left: f64,
    perfect_queries: f64,
    found_in_top_10: Option<f64>,
    #[serde(skip)]
    words: String,
}

#[derive(Serialize)]
struct Slice {
    by: String,
    value: String,
    #[serde(flatten)]
    gain: print::Row,
}

#[derive(Serialize)]
struct Regression {
    query: String,
    base: f64,
    candidate: f64,
}

impl Gate {
    pub(super) fn report(
        &self,
        found: &Found,
        measure: Measure,
        scores: &Scores,
        seen_rows: Option<SeenRows>,
        is_model: bool,
        name: &dyn Fn(u64) -> String,
    ) -> Report {
        let headroom = &found.headroom;
        let [better_queries, equal_queries, worse_queries] = found.changed;
        Report {
            decision: found.decision.to_string(),
            exit_code: found.decision.exit_code(),
            words: found.decision.words().to_owned(),
            base: self.base.display().to_string(),
            candidate: self.candidate.display().to_string(),
            measure: measure.to_string(),
            min_gain: self.min_gain,
            queries: found.comparison.queries,
            clusters: found.comparison.clusters,
            skipped_queries: scores.skipped(),
            trained_on: found.decision == Decision::TrainedOn,
            is_known_held_out: !is_model || seen_rows.is_some(),
            seen_rows,
            gain: print::Row::new(measure.to_string(), &found.comparison),
            beside: print::rows(&found.others),
            headroom: Headroom {
                left: 1.0 - headroom.base,
                perfect_queries: headroom.perfect,
                found_in_top_10: headroom.found,
                words: headroom.words(),
            },
            slices: (found.slices.iter())
                .map(|slice| Slice {
                    by: slice.by.clone(),
                    value: slice.value.clone(),
                    gain: print::Row::new(measure.to_string(), &slice.comparison),
                })
                .collect(),
            better_queries,
            equal_queries,
            worse_queries,
            regressions: (found.regressions.iter())
                .map(|fallen| Regression {
                    query: name(fallen.query),
                    base: fallen.base,
                    candidate: fallen.candidate,
                })
                .collect(),
        }
    }
}

impl Report {
    pub(super) fn print(&self, common: &Common) -> Result<()> {
        if common.json {
            return print::json(self);
        }
        let count = |number: usize| print::count(number as u64);
        let classes = if self.clusters == self.queries {
            String::new()
        } else {
            format!(" of {} classes", count(self.clusters))
        };
        let skipped = match self.skipped_queries {
            0 => String::new(),
            skipped => format!(", {} skipped with nothing relevant", print::count(skipped)),
        };
        print::fact("base", &self.base)?;
        print::fact("candidate", &self.candidate)?;
        let queries = count(self.queries);
        let held_out = match self.is_known_held_out && !self.trained_on {
            true => " held out",
            false => "",
        };
        print::fact("queries", &format!("{queries}{held_out}{classes}{skipped}"))?;
        if !self.is_known_held_out {
            let note = "the candidate keeps no digests of its rows: whether it learned from these queries is not known";
            print::fact("note", note)?;
        }
        if let Some(seen) = self.seen_rows.filter(|seen| seen.seen > 0) {
            print::fact("WARNING", &print::seen_rows(&seen))?;
        }
        print::fact("headroom", &self.headroom.words)?;
        let (gain, measure) = (&self.gain, &self.measure);
        print::fact(
            "gain",
            &format!(
                "{:+.4} {measure}, 95 % interval [{:+.4}, {:+.4}] ({:.4} → {:.4}); least asked for \
                 {:+.4}",
                gain.difference, gain.low, gain.high, gain.base, gain.learned, self.min_gain
            ),
        )?;
        print::fact(
            "changed",
            &format!(
                "{} better, {} equal, {} worse",
                count(self.better_queries),
                count(self.equal_queries),
                count(self.worse_queries)
            ),
        )?;
        print::line("")?;
        print::table("beside it", "base", ", each alone", &self.beside)?;
        self.print_slices()?;
        if !self.regressions.is_empty() {
            print::line("\nfell most       base  candidate  query")?;
            for fallen in &self.regressions {
                let (base, candidate) = (fallen.base, fallen.candidate);
                let query = &fallen.query;
                print::line(&format!("{:<12}{base:>8.4}{candidate:>11.4}  {query}", ""))?;
            }
        }
        print::line("")?;
        let is_worse = |row: &print::Row| row.verdict == "worse";
        let measures = self.beside.iter().filter(|row| is_worse(row));
        let slices = self.slices.iter().filter(|slice| is_worse(&slice.gain));
        let worse: Vec<String> = (measures.map(|row| row.measure.clone()))
            .chain(slices.map(|slice| format!("{} {}", slice.by, slice.value)))
            .collect();
        let worse = match worse.is_empty() {
            true => String::new(),
            false => format!("; WORSE in {}", worse.join(", ")),
        };
        // What a person would miss who reads the last line alone.
        let fell = (self.beside.iter()).filter(|row| row.difference < 0.0 && !is_worse(row));
        let fell: Vec<&str> = fell.map(|row| row.measure.as_str()).collect();
        if !fell.is_empty() && self.exit_code == 0 {
            let text = format!(
                "{} fell, which may be chance; if that is what counts, decide by it (--measure {})",
                fell.join(", "),
                fell[0]
            );
            print::fact("note", &text)?;
        }
        let (words, code) = (&self.words, self.exit_code);
        print::fact("decision", &format!("{words}{worse} (exit code {code})"))
    }

    fn print_slices(&self) -> Result<()> {
        if self.slices.is_empty() {
            return Ok(());
        }
        let all = match self.slices.len() {
            1 => "95 % interval".to_owned(),
            several => format!("interval; all {several} hold together at 95 %"),
        };
        print::line(&format!(
            "\n{:<32}{:>8}{:>9}{:>10}{:>9}   {all}",
            "slice", "queries", "base", "candidate", "gain"
        ))?;
        for slice in &self.slices {
            let gain = &slice.gain;
            print::line(&format!(
                "{:<32}{:>8}{:>9.4}{:>10.4}{:>+9.4}   [{:+.4}, {:+.4}]  {}",
                format!("{} {}", slice.by, slice.value),
                print::count(gain.queries as u64),
                gain.base,
                gain.learned,
                gain.difference,
                gain.low,
                gain.high,
                gain.verdict
            ))?;
        }
        Ok(())
    }
}
