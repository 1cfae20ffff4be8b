//! Which charts a comparison has, and what is said under them.

use crate::charts::Style;
use crate::charts::curves::{Axes, Curve, curves};
use crate::charts::histogram::histogram;
use crate::charts::points::{Point, points};
use crate::charts::rows::{Balance, Interval, balances, intervals};
use crate::leaderboard::{Leaderboard, RankedLine, mean, tone};
use crate::numbers::{count, seconds, unbroken};
use metra::experiment::compare::{Costs, QueryChanges};
use minijinja::Value;
use serde::Serialize;

/// Ranks beyond these differ too little to be worth the room.
const RANKS: usize = 50;
/// Times below a millisecond say more about the clock than about the method.
const SHORTEST: f64 = 0.001;

/// A chart with its caption.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    /// The drawing, which may stand in the page as it is.
    pub(crate) svg: Value,
    pub(crate) caption: String,
}

/// One line of the legend of the curves.
#[derive(Debug, Serialize)]
pub(crate) struct Key {
    pub(crate) class: String,
    pub(crate) badge: String,
    pub(crate) name: String,
}

/// Share of queries answered by rank; `None` where rankings were not judged.
pub(crate) fn cmc(leaderboard: &Leaderboard<'_>) -> Option<Figure> {
    let longest = leaderboard
        .lines
        .iter()
        .map(|ranked| ranked.line.cmc.len())
        .max()?;
    let ranks = longest.min(RANKS);
    let list = lines(leaderboard, |ranked| {
        let values = ranked.line.cmc.iter().take(ranks).enumerate();
        values
            .map(|(at, value)| ((at + 1) as f64, *value))
            .collect()
    });
    let axes = Axes {
        lower: "rank",
        left: "queries answered by this rank",
        range: (1.0, ranks.max(2) as f64),
        ranks: true,
        label: "CMC curves: share of queries whose first relevant item has at most this rank",
    };
    let (svg, start) = curves(&list, &axes)?;
    let shown = if ranks < longest {
        format!(" The first {ranks} of {longest} ranks are shown.")
    } else {
        String::new()
    };
    let caption = format!(
        "CMC: share of queries whose first relevant item has at most this rank, on a logarithmic \
         axis.{shown}{}",
        begins(start)
    );
    Some(Figure::new(svg, caption))
}

/// Precision by recall; `None` where rankings were not judged.
pub(crate) fn precision(leaderboard: &Leaderboard<'_>) -> Option<Figure> {
    let list = lines(leaderboard, |ranked| {
        let values = &ranked.line.precision;
        let last = values.len().saturating_sub(1).max(1) as f64;
        let values = values.iter().enumerate();
        values
            .map(|(at, value)| (at as f64 / last, *value))
            .collect()
    });
    // With one relevant item a query, the largest precision is the same at every recall.
    let is_flat = |curve: &Curve| curve.points.windows(2).all(|pair| pair[0].1 == pair[1].1);
    if list.iter().all(is_flat) {
        return None;
    }
    let axes = Axes {
        lower: "recall",
        left: "mean precision",
        range: (0.0, 1.0),
        ranks: false,
        label: "Precision-recall curves",
    };
    let (svg, start) = curves(&list, &axes)?;
    let caption = format!(
        "Precision and recall: the mean over queries of the largest precision at this recall or a \
         greater one.{}",
        begins(start)
    );
    Some(Figure::new(svg, caption))
}

/// Names of the curves, told apart ones first.
pub(crate) fn legend(leaderboard: &Leaderboard<'_>) -> (Vec<Key>, Vec<String>) {
    let drawn = leaderboard.lines.iter().filter(|ranked| has_curve(ranked));
    let (apart, grey): (Vec<_>, Vec<_>) = drawn.partition(|p| p.style != Style::Background);
    let keys = apart.into_iter().map(|ranked| Key {
        class: ranked.style.class(),
        badge: ranked.badge(),
        name: ranked.line.name.clone(),
    });
    let grey = grey.into_iter().map(|ranked| ranked.line.name.clone());
    (keys.collect(), grey.collect())
}

/// The criterion against the time of one fit; `None` where fewer than three times are known.
pub(crate) fn times(leaderboard: &Leaderboard<'_>, costs: &Costs) -> Option<Figure> {
    let criterion = leaderboard.results.criterion();
    let mut short = 0;
    let list: Vec<Point> = leaderboard
        .lines
        .iter()
        .filter_map(|ranked| {
            // A mean over fewer splits than the others' would mislead beside them.
            ranked.place?;
            let cost = costs.lines.get(&ranked.line.name)?;
            let time = cost.fit_cpu_seconds;
            if time.is_nan() || time < 0.0 {
                return None;
            }
            short += usize::from(time < SHORTEST);
            Some(Point {
                name: ranked.line.name.clone(),
                badge: ranked.badge(),
                is_labelled: true,
                style: ranked.style,
                across: time.max(SHORTEST),
                up: mean(ranked.line, criterion)?,
            })
        })
        .collect();
    // Two points are two numbers, and the table has them.
    if list.len() < 3 {
        return None;
    }
    let left = leaderboard.criterion();
    let label = format!("{left} against CPU time of one fit");
    let svg = points(&list, "CPU time of one fit", &left, tick, &label)?;
    let mut caption = format!(
        "{left} against the CPU time of one fit with the chosen settings, on a logarithmic axis. \
         Numbers are places in the table. The dotted line joins what nothing quicker beats."
    );
    if short > 0 {
        caption += " Fits of less than 1 ms are drawn at 1 ms.";
    }
    if costs.product_seconds > 0.0 {
        let product = seconds(costs.product_seconds);
        caption += &format!(" For scale: a 2048³ product in f32 took {product}.");
    }
    Some(Figure::new(svg, caption))
}

/// Gains over the base by the criterion, with both intervals.
pub(crate) fn gains(leaderboard: &Leaderboard<'_>) -> Option<Figure> {
    let rows: Vec<Interval> = leaderboard
        .lines
        .iter()
        .filter_map(|ranked| {
            let gain = leaderboard.of_criterion(&ranked.line.against_base)?;
            Some(Interval {
                name: numbered(ranked),
                value: gain.difference,
                narrow: (gain.low, gain.high),
                wide: (gain.wide_low, gain.wide_high),
                tone: tone(gain.evidence),
            })
        })
        .collect();
    let criterion = leaderboard.criterion();
    let lower = format!("gain in {criterion} over the base");
    let svg = intervals(&rows, &lower, &format!("{lower}, with intervals"))?;
    let caption = format!(
        "Gain in {criterion} over the base. Thick: 95 % interval; thin: the interval that allows \
         for all comparisons. Hollow dots: no evidence, the 95 % interval holds 0."
    );
    Some(Figure::new(svg, caption))
}

/// Queries that gained and lost, line by line.
pub(crate) fn wins(leaderboard: &Leaderboard<'_>) -> Option<Figure> {
    let rows: Vec<Balance> = leaderboard
        .lines
        .iter()
        .filter_map(|ranked| {
            let queries = ranked.line.queries.as_ref()?;
            Some(Balance {
                name: numbered(ranked),
                worse: queries.worse,
                equal: queries.equal,
                better: queries.better,
            })
        })
        .collect();
    let criterion = leaderboard.criterion();
    let lower = "← queries lost · gained →";
    let label = format!("Queries that lost and gained in {criterion} against the base");
    let svg = balances(&rows, lower, &label)?;
    let caption = format!(
        "{label}, as shares of all queries, with their numbers. What is missing to 100 % stayed as \
         it was."
    );
    Some(Figure::new(svg, caption))
}

/// How large the changes of one line's queries were.
pub(crate) fn changes(
    leaderboard: &Leaderboard<'_>,
    name: &str,
    of: &QueryChanges,
) -> Option<Figure> {
    let criterion = leaderboard.criterion();
    let lower = format!("change in {criterion} against the base");
    let label = format!("Histogram of the {lower} for {name}");
    let svg = histogram(&of.histogram, &lower, "queries", &label)?;
    let equal = count(of.equal, "query");
    let caption = format!("How much queries changed; {equal} without change left out.");
    Some(Figure::new(svg, caption))
}

impl Figure {
    fn new(svg: String, caption: String) -> Self {
        Self {
            svg: Value::from_safe_string(svg),
            caption: unbroken(&caption),
        }
    }
}

fn lines<'a>(
    leaderboard: &Leaderboard<'a>,
    points: impl Fn(&RankedLine<'a>) -> Vec<(f64, f64)>,
) -> Vec<Curve> {
    let drawn = leaderboard.lines.iter().filter(|ranked| has_curve(ranked));
    drawn
        .map(|ranked| Curve {
            name: ranked.line.name.clone(),
            badge: if ranked.style == Style::Background {
                String::new()
            } else {
                ranked.badge()
            },
            style: ranked.style,
            points: points(ranked),
        })
        .collect()
}

/// Lines with failed splits have no place, and their curves are over other queries than the rest.
fn has_curve(ranked: &RankedLine<'_>) -> bool {
    let line = ranked.line;
    ranked.place.is_some() && !(line.cmc.is_empty() && line.precision.is_empty())
}

fn numbered(ranked: &RankedLine<'_>) -> String {
    format!("{} {}", ranked.badge(), ranked.line.name)
}

fn begins(start: f64) -> &'static str {
    if start > 0.0 {
        " The left axis does not begin at 0."
    } else {
        ""
    }
}

fn tick(value: f64) -> String {
    if value < 0.9995 {
        format!("{:.0} ms", 1000.0 * value)
    } else {
        format!("{value:.0} s")
    }
}
