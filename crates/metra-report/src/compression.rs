//! Quality by bytes of an item: the table of `metra compress` as data, and as one HTML file.

use crate::Error;
use crate::charts::Style;
use crate::charts::points::{Point, points};
use crate::figures::Figure;
use crate::measures::heading;
use crate::numbers::{interval, score, signed};
use crate::page::{environment, finished};
use metra::evaluate::{Comparison, Measure};
use metra::experiment::{CodeTrial, Compressed, CompressionResult, Experiment};
use minijinja::value::{Serde, Value};
use serde::Serialize;

/// Quality by bytes of an item.
#[derive(Debug, Serialize)]
pub struct CompressionReport {
    /// The data in words.
    pub data: String,
    /// What was held out.
    pub holdout: String,
    /// Queries of the test part.
    pub queries: usize,
    /// The measure that is chosen by.
    pub measure: String,
    /// How vectors are compared as they are.
    pub base: String,
    /// Bytes of an item as it is, in f32.
    pub base_bytes: usize,
    /// The measure of the vectors as they are on the test part.
    pub base_value: f64,
    /// First answers that are rescored from disk, where that is tried.
    pub rescore: usize,
    /// One line per budget and way.
    pub rows: Vec<CompressionRow>,
    /// What to do, in a sentence.
    pub recommendation: String,
    /// All that was tried on the validation part.
    pub trials: Vec<CodeTrial>,
    /// How to get it again.
    pub command: String,
}

/// The best for a budget.
#[derive(Debug, Serialize)]
pub struct CompressionRow {
    /// The budgets of bytes in memory for which it is the best, from small to large.
    pub budgets: Vec<usize>,
    /// Map and code in words.
    pub words: String,
    /// Number of the trial that it was chosen by.
    pub trial: usize,
    /// Whether it learned from supervision.
    pub learned: bool,
    /// Whether the first answers are rescored from disk.
    pub rescored: bool,
    /// Whether it is what is recommended.
    pub recommended: bool,
    /// The method.
    pub method: String,
    /// Preprocessing.
    pub prepare: String,
    /// The code.
    pub code: String,
    /// Dimension of a mapped vector.
    pub rank: usize,
    /// Bytes of an item in memory.
    pub item_bytes: usize,
    /// Bytes of an item on disk.
    pub disk_bytes: Option<usize>,
    /// All measures against the baseline, that which is chosen by first.
    pub measures: Vec<CompressionGain>,
    /// The measure that is chosen by, for queries about items that training had seen as relevant.
    pub seen: Option<CompressionGain>,
    /// The same for queries about new items.
    pub unseen: Option<CompressionGain>,
}

/// One measure against the baseline.
#[derive(Debug, Clone, Serialize)]
pub struct CompressionGain {
    /// The measure.
    pub measure: String,
    /// Of the vectors as they are.
    pub base: f64,
    /// Of the codes.
    pub value: f64,
    /// The difference.
    pub difference: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What the interval says.
    pub verdict: String,
    /// Queries.
    pub queries: usize,
}

impl CompressionGain {
    fn new(measure: Measure, found: &Comparison) -> Self {
        CompressionGain {
            measure: measure.to_string(),
            base: found.base,
            value: found.learned,
            difference: found.difference,
            low: found.low,
            high: found.high,
            verdict: found.verdict().to_string(),
            queries: found.queries,
        }
    }

    fn of(rows: &[(Measure, Comparison)], wanted: Measure) -> Option<Self> {
        let row = rows.iter().find(|(measure, _)| *measure == wanted);
        row.map(|(measure, found)| Self::new(*measure, found))
    }
}

impl CompressionRow {
    /// The budgets for which it is the best: the first to the last.
    pub fn budgets_text(&self) -> String {
        match &self.budgets[..] {
            [] => String::new(),
            [only] => only.to_string(),
            [first, .., last] => format!("{first} to {last}"),
        }
    }
}

impl CompressionReport {
    /// What was found, by an experiment on data in words.
    pub fn new(
        found: &CompressionResult,
        experiment: &Experiment<'_>,
        data: &str,
        rescore: usize,
    ) -> Self {
        let recommended = found.recommended();
        let row = |place: usize| {
            let one = &found.found[place];
            let trial = &found.trials[one.trial];
            let verdicts = &one.verdicts;
            let mut measures: Vec<CompressionGain> = (verdicts.rows.iter())
                .map(|(measure, gain)| CompressionGain::new(*measure, gain))
                .collect();
            let name = found.measure.to_string();
            measures.sort_by_key(|gain| gain.measure != name);
            CompressionRow {
                budgets: Vec::new(),
                words: found.words(one),
                trial: one.trial,
                learned: one.is_learned,
                rescored: one.rescoring.is_some(),
                recommended: recommended.is_some_and(|best| std::ptr::eq(best, one)),
                method: trial.method.clone(),
                prepare: trial.prepare.clone(),
                code: trial.code.clone(),
                rank: one.rank,
                item_bytes: one.item_bytes,
                disk_bytes: one.disk_bytes(),
                measures,
                seen: CompressionGain::of(&verdicts.seen, found.measure),
                unseen: CompressionGain::of(&verdicts.unseen, found.measure),
            }
        };
        let mut places: Vec<usize> = Vec::new();
        let mut rows: Vec<CompressionRow> = Vec::new();
        for point in &found.points {
            for place in point.places() {
                let known = places.iter().position(|known| *known == place);
                let at = known.unwrap_or_else(|| {
                    places.push(place);
                    rows.push(row(place));
                    rows.len() - 1
                });
                rows[at].budgets.push(point.budget);
            }
        }
        let queries = |one: &Compressed| one.verdicts.base.queries().len();
        CompressionReport {
            data: data.to_owned(),
            holdout: experiment.holdout.to_string(),
            queries: found.found.first().map_or(0, queries),
            measure: found.measure.to_string(),
            base: found.base.to_string(),
            base_bytes: found.base_bytes,
            base_value: found.base_value,
            rescore,
            rows,
            recommendation: found.recommendation(),
            trials: found.trials.clone(),
            command: experiment.command.clone(),
        }
    }

    /// One HTML file with the table and a chart: nothing is fetched, there is no script.
    pub fn html(&self) -> Result<String, Error> {
        let text = environment()?
            .get_template("compression.html")?
            .render(Value::from(Serde(&View::of(self))))?;
        Ok(finished(&text))
    }

    fn chart(&self) -> Option<Figure> {
        let mut all: Vec<Point> = (self.rows.iter())
            .filter_map(|row| {
                let gain = row.measures.first()?;
                Some(Point {
                    name: row.words.clone(),
                    badge: format!("{} B", row.item_bytes),
                    is_labelled: true,
                    style: Style::Series(usize::from(row.rescored)),
                    across: row.item_bytes as f64,
                    up: gain.value,
                })
            })
            .collect();
        all.push(Point {
            name: format!("{} as it is", self.base),
            badge: format!("{} B", self.base_bytes),
            is_labelled: true,
            style: Style::Base,
            across: self.base_bytes as f64,
            up: self.base_value,
        });
        let caption = "On the test part. The line joins what no smaller code reaches.";
        self.figure(&all, caption)
    }

    /// Everything that was tried, on the validation part.
    fn trials_chart(&self) -> Option<Figure> {
        let is_chosen = |number: usize| {
            let mut rows = self.rows.iter().filter(|row| !row.rescored);
            rows.any(|row| row.trial == number)
        };
        let all: Vec<Point> = (self.trials.iter().enumerate())
            .filter_map(|(number, trial)| {
                let (bytes, value) = (trial.item_bytes?, trial.alone?);
                Some(Point {
                    name: format!("{} {}", trial.method, trial.code),
                    badge: format!("{bytes} B"),
                    is_labelled: is_chosen(number),
                    style: match trial.learned {
                        true => Style::Series(0),
                        false => Style::Background,
                    },
                    across: bytes as f64,
                    up: value.mean,
                })
            })
            .collect();
        let caption = "On the validation part, codes searched alone: learned maps in colour, others in grey. Only \
                       what was chosen for a budget is named.";
        self.figure(&all, caption)
    }

    fn figure(&self, all: &[Point], caption: &str) -> Option<Figure> {
        let (measure, lower) = (heading(&self.measure), "bytes of an item in memory");
        let label = format!("{measure} by {lower}");
        let tick = |value: f64| format!("{value:.0}");
        let svg = points(all, lower, &measure, tick, &label)?;
        Some(Figure {
            svg: Value::from_safe_string(svg),
            caption: caption.to_owned(),
        })
    }
}

/// All that the template shows.
#[derive(Serialize)]
struct View<'a> {
    report: &'a CompressionReport,
    version: &'static str,
    heading: String,
    base_value: String,
    figures: Vec<Figure>,
    rows: Vec<RowView>,
    has_disk: bool,
    has_kinds: bool,
}

#[derive(Serialize)]
struct RowView {
    budget: String,
    words: String,
    way: &'static str,
    item_bytes: usize,
    disk_bytes: String,
    value: String,
    gain: String,
    interval: String,
    tone: &'static str,
    verdict: String,
    unseen: String,
    recommended: bool,
}

impl<'a> View<'a> {
    fn of(report: &'a CompressionReport) -> Self {
        let rows = report.rows.iter().filter_map(|row| {
            let gain = row.measures.first()?;
            let of_kind = |gain: &Option<CompressionGain>| match gain {
                Some(gain) => format!(
                    "{} {}",
                    signed(gain.difference),
                    interval(gain.low, gain.high)
                ),
                None => String::new(),
            };
            Some(RowView {
                budget: row.budgets_text(),
                words: row.words.clone(),
                way: if row.rescored { "rescored" } else { "alone" },
                item_bytes: row.item_bytes,
                disk_bytes: row
                    .disk_bytes
                    .map_or(String::new(), |bytes| bytes.to_string()),
                value: score(gain.value),
                gain: signed(gain.difference),
                interval: interval(gain.low, gain.high),
                tone: match gain.verdict.as_str() {
                    "better" => "better",
                    "worse" => "worse",
                    _ => "neither",
                },
                verdict: gain.verdict.clone(),
                unseen: of_kind(&row.unseen),
                recommended: row.recommended,
            })
        });
        View {
            report,
            version: env!("CARGO_PKG_VERSION"),
            heading: heading(&report.measure),
            base_value: score(report.base_value),
            figures: [report.chart(), report.trials_chart()]
                .into_iter()
                .flatten()
                .collect(),
            rows: rows.collect(),
            has_disk: report.rows.iter().any(|row| row.disk_bytes.is_some()),
            has_kinds: report.rows.iter().any(|row| row.unseen.is_some()),
        }
    }
}
