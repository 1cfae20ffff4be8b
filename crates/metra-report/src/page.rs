//! The HTML page: one file with its style sheet and drawings inside.
//!
//! The template is filled with escaping on. Only drawings made by [`crate::charts`], which escapes
//! by itself, stand in it as they are. Elements are closed as in XML, so that the tests can read
//! the page with a strict parser.

use crate::figures::{self, Figure, Key};
use crate::leaderboard::{Leaderboard, mean, tone};
use crate::measures::{heading, meaning};
use crate::numbers::{count, interval, score, signed, unbroken};
use crate::sheets::{GroupView, Sheets};
use crate::tables::{self, ClaimRow, FailureRow, GainRow, PartTable, ScoreRow, SettingsRow};
use crate::words::{self, Fact, Remark, Span};
use crate::{Error, charts::svg::printable};
use metra::experiment::compare::{Costs, QueryChange, QueryChanges, Results};
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// The report as one HTML file: nothing is fetched, there is no script, and the same results give
/// the same bytes. Costs are in a file of their own because they are never the same twice; without
/// them their columns and their chart are left out.
pub fn html(results: &Results, costs: Option<&Costs>) -> Result<String, Error> {
    html_with_sheets(results, costs, &Sheets::default())
}

/// The same with sheets of pictures behind the curves. Their bytes are in the page: it is a third larger
/// than they are.
pub fn html_with_sheets(
    results: &Results,
    costs: Option<&Costs>,
    sheets: &Sheets,
) -> Result<String, Error> {
    let environment = environment()?;
    let page = Page::of(results, costs, sheets);
    let text = environment
        .get_template("page.html")?
        .render(Value::from(Serde(&page)))?;
    Ok(finished(&text))
}

/// A page as it may be written. Control characters in names would be left as they are by escaping, and no page
/// may hold them.
pub(crate) fn finished(text: &str) -> String {
    let keep = |c: char| if c == '\n' { c } else { printable(c) };
    text.chars().map(keep).collect()
}

pub(crate) fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    // A name that the page lacks is a mistake to find in tests, not an empty place to ship.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_template("style.css", include_str!("page/style.css"))?;
    environment.add_template("theme.html", include_str!("page/theme.html"))?;
    environment.add_template("page.html", include_str!("page/page.html"))?;
    environment.add_template("compression.html", include_str!("page/compression.html"))?;
    Ok(environment)
}

/// The style sheet of pages and drawings.
pub(crate) fn style_sheet() -> Result<String, Error> {
    Ok(environment()?.get_template("style.css")?.render(())?)
}

/// All that the template shows.
#[derive(Serialize)]
struct Page {
    name: String,
    about: Vec<String>,
    version: String,
    kind: &'static str,
    verdict: Vec<Span>,
    tiles: Vec<Tile>,
    summary: Vec<Remark>,
    measures: Vec<Heading>,
    fact_names: Vec<String>,
    scores: Vec<ScoreRow>,
    has_costs: bool,
    costs: String,
    has_level: bool,
    has_fragile: bool,
    has_published: bool,
    base: String,
    best: String,
    gains: Vec<GainRow>,
    gains_figure: Option<Figure>,
    parts: Vec<PartTable>,
    seen: (&'static str, &'static str),
    failures: Vec<FailureRow>,
    cmc: Option<Figure>,
    precision: Option<Figure>,
    legend: Vec<Key>,
    grey: Vec<String>,
    sheets: Vec<GroupView>,
    sheets_words: String,
    times: Option<Figure>,
    wins: Option<Figure>,
    queries: Vec<QueryView>,
    criterion: String,
    several: bool,
    claims: Vec<ClaimRow>,
    claims_found: String,
    settings: Vec<SettingsRow>,
    protocol: Vec<Fact>,
    data: Vec<Fact>,
    command: String,
    glossary: Vec<Fact>,
}

/// A figure that is seen first.
#[derive(Serialize)]
struct Tile {
    label: String,
    value: String,
    note: String,
    tone: &'static str,
}

/// Head of a column.
#[derive(Serialize)]
struct Heading {
    text: String,
    criterion: bool,
}

/// Queries of one line that changed.
#[derive(Serialize)]
struct QueryView {
    name: String,
    open: bool,
    counts: String,
    histogram: Option<Figure>,
    sides: Vec<Side>,
}

/// The largest gains or losses.
#[derive(Serialize)]
struct Side {
    title: &'static str,
    rows: Vec<ChangeRow>,
}

/// One query.
#[derive(Serialize)]
struct ChangeRow {
    query: String,
    split: usize,
    base: String,
    value: String,
    change: String,
}

impl Page {
    fn of(results: &Results, costs: Option<&Costs>, sheets: &Sheets) -> Self {
        let leaderboard = Leaderboard::of(results);
        let scores = tables::scores(&leaderboard, costs);
        let gains = tables::gains(&leaderboard);
        let (legend, grey) = figures::legend(&leaderboard);
        let mut cells = gains.iter().flat_map(|row| &row.cells);
        Page {
            name: results.name.clone(),
            about: words::paragraphs(&results.about)
                .map(str::to_owned)
                .collect(),
            version: results.version.clone(),
            kind: if results.lines.len() > 2 {
                "Comparison of methods"
            } else {
                "Learned against base"
            },
            verdict: words::conclusion(&leaderboard),
            tiles: tiles(&leaderboard),
            summary: summary(&leaderboard),
            measures: headings(results),
            has_costs: costs.is_some_and(|costs| !costs.lines.is_empty()),
            costs: costs.map_or(String::new(), |costs| unbroken(&words::costs(costs))),
            has_level: scores.iter().any(|row| !row.level.is_empty()),
            has_fragile: cells.any(|cell| !cell.fragile.is_empty())
                || scores
                    .iter()
                    .any(|row| row.level.ends_with(tables::FRAGILE)),
            has_published: scores.iter().any(ScoreRow::has_published),
            base: results.base.clone(),
            best: results.best.clone(),
            gains_figure: figures::gains(&leaderboard),
            seen: words::seen(&tables::parts(&leaderboard)),
            parts: tables::parts(&leaderboard),
            fact_names: results.facts.clone(),
            failures: tables::failures(&leaderboard),
            cmc: figures::cmc(&leaderboard),
            precision: figures::precision(&leaderboard),
            legend,
            grey,
            sheets: sheets.views(),
            sheets_words: sheets.words.clone(),
            times: costs.and_then(|costs| figures::times(&leaderboard, costs)),
            wins: figures::wins(&leaderboard),
            queries: queries(&leaderboard),
            criterion: leaderboard.criterion(),
            several: results.protocol.splits.len() > 1,
            claims: tables::claims(results),
            claims_found: unbroken(&words::claims(results)),
            settings: tables::settings(&leaderboard),
            protocol: words::protocol(results),
            data: words::data(results),
            command: results.command.clone(),
            glossary: glossary(results),
            scores,
            gains,
        }
    }
}

fn tiles(leaderboard: &Leaderboard<'_>) -> Vec<Tile> {
    let results = leaderboard.results;
    let Some(best) = leaderboard.best() else {
        return Vec::new();
    };
    let measured = best.line.measures.get(results.criterion());
    let splits = results.protocol.splits.len();
    let base = leaderboard.base().filter(|base| !base.is_best);
    let note = match (measured, base) {
        (Some(value), _) if splits > 1 => {
            format!("± {} over {splits} splits", score(value.deviation))
        }
        (_, Some(base)) => mean(base.line, results.criterion()).map_or(String::new(), |mean| {
            format!("{}: {}", base.line.name, score(mean))
        }),
        _ => String::new(),
    };
    let mut tiles = vec![
        Tile {
            label: "Best".to_owned(),
            value: best.line.name.clone(),
            note: if best.is_base {
                "the base itself".to_owned()
            } else {
                format!("of {}", count(results.lines.len(), "line"))
            },
            tone: "",
        },
        Tile {
            label: leaderboard.criterion(),
            value: measured.map_or("n/a".to_owned(), |value| score(value.mean)),
            note,
            tone: "",
        },
    ];
    if let Some(gain) = leaderboard.of_criterion(&best.line.against_base) {
        tiles.push(Tile {
            label: format!("Gain over {}", results.base),
            value: signed(gain.difference),
            note: format!(
                "{}, {}",
                interval(gain.low, gain.high),
                words::evidence(gain)
            ),
            tone: tone(gain.evidence).class(),
        });
    }
    if let Some(queries) = &best.line.queries {
        let all = queries.better + queries.equal + queries.worse;
        tiles.push(Tile {
            label: "Queries gained : lost".to_owned(),
            value: format!("{} : {}", queries.better, queries.worse),
            note: format!("of {all} judged"),
            tone: "",
        });
    }
    tiles
}

fn summary(leaderboard: &Leaderboard<'_>) -> Vec<Remark> {
    let mut remarks = words::summary(leaderboard);
    let spans = remarks.iter_mut().flat_map(|remark| &mut remark.spans);
    for span in spans.filter(|span| !span.name) {
        span.text = unbroken(&span.text);
    }
    remarks
}

fn headings(results: &Results) -> Vec<Heading> {
    let measures = results.protocol.measures.iter();
    measures
        .map(|name| Heading {
            text: heading(name),
            criterion: *name == results.protocol.criterion,
        })
        .collect()
}

/// The best first and open; the base has none.
fn queries(leaderboard: &Leaderboard<'_>) -> Vec<QueryView> {
    let changed = leaderboard.lines.iter();
    let changed = changed.filter_map(|ranked| Some((ranked, ranked.line.queries.as_ref()?)));
    changed
        .enumerate()
        .map(|(at, (ranked, queries))| QueryView {
            name: ranked.line.name.clone(),
            open: at == 0,
            counts: format!(
                "{} better, {} equal, {} worse",
                queries.better, queries.equal, queries.worse
            ),
            histogram: figures::changes(leaderboard, &ranked.line.name, queries),
            sides: sides(queries),
        })
        .collect()
}

fn sides(queries: &QueryChanges) -> Vec<Side> {
    let sides = [
        ("Largest gains", &queries.gains),
        ("Largest losses", &queries.losses),
    ];
    sides
        .into_iter()
        .filter(|(_, rows)| !rows.is_empty())
        .map(|(title, rows)| Side {
            title,
            rows: rows.iter().map(change).collect(),
        })
        .collect()
}

fn change(change: &QueryChange) -> ChangeRow {
    ChangeRow {
        query: change.query.clone(),
        split: change.split.saturating_add(1),
        base: score(change.base),
        value: score(change.value),
        change: signed(change.value - change.base),
    }
}

fn glossary(results: &Results) -> Vec<Fact> {
    let measures = results.protocol.measures.iter();
    measures
        .filter_map(|name| Some(Fact::new(heading(name), meaning(name)?)))
        .collect()
}
