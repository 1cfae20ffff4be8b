//! What changing the model is worth and costs, in words and as JSON.

use super::inputs::BothSpaces;
use super::{FOUND, Migrate};
use crate::args::Common;
use crate::print;
use anyhow::{Result, ensure};
use metra::evaluate::{Comparison, Measure, Verdict};
use metra::experiment::{MigrationAdvice, MigrationFound, MigrationStudy, MigrationWay, WayFound};
use metra::training::Alignment;
use serde::Serialize;
use std::collections::BTreeMap;

/// Of 1,000 items each.
pub(super) struct Prices {
    embed: f64,
    write: f64,
    any: bool,
}

impl Prices {
    pub(super) fn new(embed: Option<f64>, write: Option<f64>) -> Result<Self> {
        for (name, price) in [("--embed-price", embed), ("--write-price", write)] {
            let is_price = price.is_none_or(|price| price.is_finite() && price >= 0.0);
            ensure!(is_price, "{name}: expected a number that is not below 0");
        }
        Ok(Prices {
            embed: embed.unwrap_or(0.0),
            write: write.unwrap_or(0.0),
            any: embed.is_some() || write.is_some(),
        })
    }
}

#[derive(Serialize)]
pub(super) struct Report {
    items: usize,
    /// Rows of either file that the other one does not have.
    unmatched_rows: u64,
    old_dimension: usize,
    new_dimension: usize,
    queries: usize,
    /// Queries without a right answer among the items; they are not counted.
    unanswered_queries: usize,
    /// Right answers that are not among the items of both files.
    answers_elsewhere: usize,
    is_judged: bool,
    query_map: MapFacts,
    item_map: MapFacts,
    lines: Vec<print::Line>,
    /// Against staying, by the measure that decides.
    gains: Vec<print::Row>,
    /// Against embedding everything anew, by the same.
    against_embedding_all: Vec<print::Row>,
    costs: Vec<WayCost>,
    /// Of the similarities that are added up where both models are used.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    weights: BTreeMap<&'static str, f64>,
    /// The way to take; none without judgements.
    choice: Option<String>,
    advice: String,
    #[serde(skip)]
    measures: Vec<Measure>,
}

#[derive(Serialize)]
struct MapFacts {
    form: String,
    /// Of mapped items that it was not learned from: one over the place at which they find their true vectors, in the mean.
    reciprocal_rank: f64,
}

impl MapFacts {
    fn new(map: &Alignment) -> Self {
        MapFacts {
            form: map.form.to_string(),
            reciprocal_rank: map.reciprocal_rank,
        }
    }
}

/// What a way costs for the whole collection.
#[derive(Serialize)]
struct WayCost {
    name: String,
    embedded: u64,
    written: u64,
    stored_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
    way_back: &'static str,
}

impl WayCost {
    fn new(
        way: MigrationWay,
        items: u64,
        [old, new]: [usize; 2],
        share: f64,
        prices: &Prices,
    ) -> Self {
        let part = (share * items as f64).round() as u64;
        let (embedded, written, dim) = match way {
            MigrationWay::Stay | MigrationWay::MapQueries => (0, 0, old),
            MigrationWay::MapItems => (0, items, new),
            MigrationWay::EmbedPart => (part, items, new),
            MigrationWay::EmbedAll => (items, items, new),
            MigrationWay::Both => (items, items, old + new),
        };
        let price = (embedded as f64 * prices.embed + written as f64 * prices.write) / 1000.0;
        WayCost {
            name: way.to_string(),
            embedded,
            written,
            stored_bytes: items.saturating_mul((dim * size_of::<f32>()) as u64),
            price: prices.any.then_some(price),
            way_back: match way {
                MigrationWay::Stay => "nothing changes",
                MigrationWay::MapQueries => "ask the old model again: no item was touched",
                MigrationWay::Both => "leave the new vectors out: the old ones are still there",
                _ => "keep the old vectors beside the new ones until you are sure",
            },
        }
    }
}

impl Report {
    pub(super) fn new(
        verb: &Migrate,
        both: &BothSpaces,
        study: &MigrationStudy,
        found: &MigrationFound,
        prices: Prices,
    ) -> Self {
        let dims = [&both.items.old, &both.items.new].map(|loaded| loaded.table.corpus.dim());
        let collection = verb.collection.unwrap_or(both.items.old.table.corpus.len());
        let criterion = study.measures[0];
        let against = |of: &dyn Fn(&WayFound) -> Option<Comparison>| {
            let ways = found.ways.iter();
            ways.filter_map(|way| Some(print::Row::new(way.way.to_string(), &of(way)?)))
                .collect()
        };
        let weights = found
            .weights
            .as_ref()
            .map_or(&[][..], |fusion| fusion.weights());
        let sum: f64 = weights.iter().sum();
        let named = ["old", "new"].into_iter().zip(weights);
        Report {
            items: both.items.len(),
            unmatched_rows: both.items.unmatched(),
            old_dimension: dims[0],
            new_dimension: dims[1],
            queries: found.ways[0].scores.queries().len(),
            unanswered_queries: both.unanswered,
            answers_elsewhere: both.judged_elsewhere,
            is_judged: both.truth.is_some(),
            query_map: MapFacts::new(&found.query_map),
            item_map: MapFacts::new(&found.item_map),
            lines: (found.ways.iter())
                .map(|way| print::Line::new(way.way.to_string(), &way.scores))
                .collect(),
            gains: against(&|way| gain(way, criterion)),
            against_embedding_all: against(&|way| way.against_all),
            costs: (found.ways.iter())
                .map(|way| WayCost::new(way.way, collection, dims, verb.share, &prices))
                .collect(),
            weights: named.map(|(name, weight)| (name, weight / sum)).collect(),
            choice: match found.advice {
                MigrationAdvice::Choose(way) => Some(way.to_string()),
                MigrationAdvice::Unknown => None,
            },
            advice: advice(found, criterion),
            measures: study.measures.clone(),
        }
    }

    pub(super) fn print(&self, common: &Common) -> Result<()> {
        if common.json {
            return print::json(self);
        }
        let left_out = match self.unmatched_rows {
            0 => String::new(),
            rows => format!(
                "; {} of one file alone left out",
                print::plural(rows, "row")
            ),
        };
        let items = print::count(self.items as u64);
        let (old, new) = (self.old_dimension, self.new_dimension);
        print::fact(
            "items",
            &format!("{items} in both spaces, of {old} and {new} dimensions{left_out}"),
        )?;
        let mut queries = print::count(self.queries as u64);
        if !self.is_judged {
            queries.push_str("; right is what the new model ranks first");
        }
        if self.unanswered_queries > 0 {
            let more = print::count(self.unanswered_queries as u64);
            queries.push_str(&format!(
                "; {more} more have no right answer among the items"
            ));
        }
        if self.answers_elsewhere > 0 {
            let answers = print::plural(self.answers_elsewhere as u64, "right answer");
            queries.push_str(&format!(
                "; {answers} not among the items: add judged items to both files"
            ));
        }
        print::fact("queries", &queries)?;
        for (name, map) in [("query map", &self.query_map), ("item map", &self.item_map)] {
            print::fact(
                name,
                &format!(
                    "{}; items find their own vectors with a mean reciprocal rank of {:.3}",
                    map.form, map.reciprocal_rank
                ),
            )?;
        }
        print::lines(&self.measures, &self.lines)?;
        let criterion = self.measures[0];
        // Without judgements the new model cannot but win.
        if self.is_judged {
            print::gains(&format!("{criterion}, against staying"), &self.gains)?;
            let title = format!("{criterion}, against embedding all");
            print::gains(&title, &self.against_embedding_all)?;
        }
        let price = match self.costs.iter().any(|cost| cost.price.is_some()) {
            true => "price",
            false => "",
        };
        let head = format!(
            "\n{:<20}{:>14}{:>14}{:>12}{price:>12}",
            "", "to embed", "to write", "stored MB"
        );
        print::line(head.trim_end())?;
        for cost in &self.costs {
            let price = cost
                .price
                .map_or(String::new(), |price| format!("{price:.2}"));
            let line = format!(
                "{:<20}{:>14}{:>14}{:>12.1}{price:>12}",
                cost.name,
                print::count(cost.embedded),
                print::count(cost.written),
                cost.stored_bytes as f64 / 1e6
            );
            print::line(line.trim_end())?;
        }
        print::line("")?;
        if let Some(cost) = self
            .choice
            .as_ref()
            .and_then(|way| self.costs.iter().find(|cost| cost.name == *way))
        {
            print::fact("way back", cost.way_back)?;
        }
        print::fact("advice", &self.advice)
    }
}

fn gain(found: &WayFound, criterion: Measure) -> Option<Comparison> {
    let row = found
        .gains
        .iter()
        .find(|(measure, _)| *measure == criterion);
    row.map(|(_, gain)| *gain)
}

fn stated(gain: &Comparison) -> String {
    format!(
        "{:+.4} [{:+.4}, {:+.4}]",
        gain.difference, gain.low, gain.high
    )
}

fn advice(found: &MigrationFound, criterion: Measure) -> String {
    let of = |wanted: MigrationWay| found.ways.iter().find(|found| found.way == wanted);
    let gain_of = |way: MigrationWay| of(way).and_then(|found| gain(found, criterion));
    let is_better =
        |way: MigrationWay| gain_of(way).is_some_and(|gain| gain.verdict() == Verdict::Better);
    let MigrationAdvice::Choose(choice) = found.advice else {
        let kept = |way| of(way).map_or(0.0, |found| 100.0 * found.scores.mean(FOUND));
        return format!(
            "nobody knows from this which model is better: name judgements with --qrels or --label. Of the first ten items of the \
             new model, mapped queries find {:.0} %, mapped items {:.0} %, and the old model by itself {:.0} %. If the new model \
             is better, what a map loses may be what made it better",
            kept(MigrationWay::MapQueries),
            kept(MigrationWay::MapItems),
            kept(MigrationWay::Stay)
        );
    };
    let what = match choice {
        MigrationWay::Stay => "stay",
        MigrationWay::MapQueries => {
            "map queries into the old space, and leave the items as they are"
        }
        MigrationWay::MapItems => "map the stored items into the new space",
        MigrationWay::EmbedPart => "embed a part of the items anew, and map the others",
        MigrationWay::EmbedAll | MigrationWay::Both => "embed all items anew",
    };
    let mut text = match (choice, gain_of(choice), gain_of(MigrationWay::EmbedAll)) {
        (MigrationWay::Stay, _, Some(all)) if all.verdict() == Verdict::Worse => {
            format!(
                "{what}: the new model is worse, {criterion} {}",
                stated(&all)
            )
        }
        (MigrationWay::Stay, _, Some(all)) => format!(
            "{what}: no change was shown to be better; embedding all anew changes {criterion} by {}",
            stated(&all)
        ),
        (_, Some(gain), _) => format!("{what}: {criterion} {} over staying", stated(&gain)),
        _ => what.to_owned(),
    };
    for way in [MigrationWay::MapQueries, MigrationWay::MapItems] {
        let Some(loss) = of(way).and_then(|found| found.against_all) else {
            continue;
        };
        if choice == way {
            text.push_str(&format!(", and {} against embedding all", stated(&loss)));
        } else if choice == MigrationWay::EmbedAll {
            let Comparison {
                difference,
                low,
                high,
                ..
            } = loss;
            text.push_str(&match loss.verdict() {
                Verdict::Worse => {
                    format!(
                        ". To {way} instead loses {:.4} [{:.4}, {:.4}]",
                        -difference, -high, -low
                    )
                }
                _ => format!(
                    ". To {way} instead was not shown to keep that: {}",
                    stated(&loss)
                ),
            });
        }
    }
    if let Some(over_all) = of(MigrationWay::Both).and_then(|found| found.against_all)
        && is_better(MigrationWay::Both)
        && over_all.verdict() == Verdict::Better
    {
        text.push_str(&format!(
            ". Both models added up are better still, {} against embedding all: every query and item then needs both",
            stated(&over_all)
        ));
    }
    text
}
