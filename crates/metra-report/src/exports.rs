//! The figures of a comparison as files for other programs: CSV, LaTeX and SVG.

use crate::charts::rows::{Interval, intervals};
use crate::figures::{self, Key};
use crate::leaderboard::{Leaderboard, mean, tone};
use crate::measures::heading;
use crate::page::style_sheet;
use crate::{
    Error,
    charts::svg::{escaped, printable},
};
use metra::experiment::compare::{Evidence, Line, Results};
use std::fmt::Write;

/// Files with their names: scores and gains as `scores.csv` and `scores.tex`, the curves as
/// `cmc.csv`, `cmc.svg`, `precision.csv` and `precision.svg`, where rankings were evaluated.
pub fn exports(results: &Results) -> Result<Vec<(&'static str, String)>, Error> {
    let leaderboard = Leaderboard::of(results);
    let mut files = vec![
        ("scores.csv", scores_csv(&leaderboard)),
        ("scores.tex", scores_latex(&leaderboard)),
    ];
    let curves = [
        (
            "cmc.csv",
            "rank",
            (|line| &line.cmc) as fn(&Line) -> &Vec<f64>,
        ),
        ("precision.csv", "recall", |line| &line.precision),
    ];
    for (name, axis, curve) in curves {
        if let Some(text) = curves_csv(&leaderboard, axis, curve) {
            files.push((name, text));
        }
    }
    let figures = [
        ("cmc.svg", figures::cmc(&leaderboard)),
        ("precision.svg", figures::precision(&leaderboard)),
    ];
    for (name, figure) in figures {
        if let Some(figure) = figure {
            let keys = figures::legend(&leaderboard).0;
            files.push((name, alone(&figure.svg.to_string(), &keys)?));
        }
    }
    Ok(files)
}

/// One line a method and measure: the mean, and the gain over the base with its interval.
fn scores_csv(leaderboard: &Leaderboard<'_>) -> String {
    let mut text = "line,measure,mean,deviation,gain,low,high,queries\n".to_owned();
    for ranked in &leaderboard.lines {
        for measure in &ranked.line.measures {
            let gain = ranked.line.against_base.iter();
            let gain = gain.clone().find(|gain| gain.measure == measure.measure);
            let gain = gain.map_or(",,,".to_owned(), |gain| {
                format!(
                    "{},{},{},{}",
                    gain.difference, gain.low, gain.high, gain.queries
                )
            });
            let (name, mean, deviation) =
                (field(&ranked.line.name), measure.mean, measure.deviation);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name},{},{mean},{deviation},{gain}", measure.measure);
        }
    }
    text
}

/// A column a method; `None` where no method has a curve.
fn curves_csv(
    leaderboard: &Leaderboard<'_>,
    axis: &str,
    curve: fn(&Line) -> &Vec<f64>,
) -> Option<String> {
    let drawn = leaderboard.lines.iter().map(|ranked| ranked.line);
    let drawn: Vec<&Line> = drawn.filter(|line| !curve(line).is_empty()).collect();
    let points = drawn.iter().map(|line| curve(line).len()).min()?;
    let names: Vec<String> = drawn.iter().map(|line| field(&line.name)).collect();
    let mut text = format!("{axis},{}\n", names.join(","));
    for point in 0..points {
        let place = match axis {
            "rank" => (point + 1) as f64,
            _ => point as f64 / (points - 1).max(1) as f64,
        };
        let values = drawn.iter().map(|line| curve(line)[point].to_string());
        let values: Vec<String> = values.collect();
        let _ = writeln!(text, "{place},{}", values.join(","));
    }
    Some(text)
}

/// A field of a CSV file.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// A table for the package booktabs: means, the best of a column in bold, and the gain by the
/// criterion with its interval.
fn scores_latex(leaderboard: &Leaderboard<'_>) -> String {
    let results = leaderboard.results;
    let measures = &results.protocol.measures;
    let several = results.protocol.splits.len() > 1;
    let mut text = format!(
        "\\begin{{tabular}}{{l{}l}}\n\\toprule\n",
        "r".repeat(measures.len())
    );
    let heads: Vec<String> = measures.iter().map(|name| latex(&heading(name))).collect();
    let base = latex(&results.base);
    let _ = writeln!(
        text,
        "& {} & gain over {base} \\\\\n\\midrule",
        heads.join(" & ")
    );
    let largest = |measure: usize| {
        let values = leaderboard
            .lines
            .iter()
            .filter_map(|r| mean(r.line, measure));
        values.fold(f64::NEG_INFINITY, f64::max)
    };
    for ranked in &leaderboard.lines {
        let cells = (0..measures.len()).map(|measure| {
            let Some(found) = ranked.line.measures.get(measure) else {
                return "--".to_owned();
            };
            let deviation = match several {
                true => format!(" $\\pm$ {:.3}", found.deviation),
                false => String::new(),
            };
            match found.mean >= largest(measure) {
                true => format!("\\textbf{{{:.3}}}{deviation}", found.mean),
                false => format!("{:.3}{deviation}", found.mean),
            }
        });
        let cells: Vec<String> = cells.collect();
        let gain = leaderboard.of_criterion(&ranked.line.against_base);
        let gain = gain.map_or("--".to_owned(), |gain| {
            let (difference, low, high) = (gain.difference, gain.low, gain.high);
            format!("${difference:+.3}$ [${low:+.3}$, ${high:+.3}$]")
        });
        let (name, cells) = (latex(&ranked.line.name), cells.join(" & "));
        let _ = writeln!(text, "{name} & {cells} & {gain} \\\\");
    }
    text.push_str("\\bottomrule\n\\end{tabular}\n");
    text
}

/// Plain text in LaTeX.
fn latex(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            c => out.push(printable(c)),
        }
    }
    out
}

/// A gain with its interval, of whatever was compared.
#[derive(Debug, Clone, PartialEq)]
pub struct GainBar {
    /// What gained, in some twenty letters.
    pub name: String,
    /// The difference of means.
    pub gain: f64,
    /// Ends of its interval.
    pub interval: (f64, f64),
}

/// Gains of several comparisons as one drawing, with its style sheet inside; `axis` stands below it, and `label` says what
/// is drawn to those who cannot see it.
pub fn gains_chart(gains: &[GainBar], axis: &str, label: &str) -> Result<String, Error> {
    let rows: Vec<Interval> = (gains.iter())
        .map(|row| Interval {
            name: row.name.clone(),
            value: row.gain,
            narrow: row.interval,
            wide: row.interval,
            tone: tone(Evidence::of(row.interval.0, row.interval.1)),
        })
        .collect();
    let svg = intervals(&rows, axis, label).unwrap_or_default();
    alone(&svg, &[])
}

/// A drawing of the page as a file of its own, with style sheet and legend inside.
fn alone(svg: &str, legend: &[Key]) -> Result<String, Error> {
    const LINE: f64 = 24.0;
    let style = style_sheet()?;
    let own = "svg { background: var(--paper); color: var(--ink); font-family: sans-serif; }";
    let view = svg.split('"').nth(1).unwrap_or_default();
    let sizes: Vec<f64> = view
        .split(' ')
        .filter_map(|size| size.parse().ok())
        .collect();
    let [_, _, width, height] = sizes[..] else {
        return Ok(svg.to_owned());
    };
    let drawing = svg.split_once('>').map_or("", |(_, rest)| rest);
    let drawing = drawing.trim_end().trim_end_matches("</svg>");
    let mut keys = String::new();
    for (at, key) in legend.iter().enumerate() {
        let y = height + LINE * (at as f64 + 0.5);
        let (class, badge, name) = (&key.class, escaped(&key.badge), escaped(&key.name));
        let foot = y + 4.0;
        let _ = writeln!(
            keys,
            "<g class=\"badge {class}\"><circle class=\"disc\" cx=\"24\" cy=\"{y}\" r=\"8.5\"/>\
             <text class=\"number\" x=\"24\" y=\"{foot}\" text-anchor=\"middle\">{badge}</text></g>\
             <text x=\"42\" y=\"{foot}\">{name}</text>"
        );
    }
    let height = height + LINE * legend.len() as f64 + 8.0;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\">\n<style><![CDATA[\n{style}\n{own}\n]]></style>\n{drawing}{keys}</svg>\n"
    ))
}
