//! The table of `metra compress` as text.

use crate::print;
use anyhow::Result;
use metra_report::{CompressionGain, CompressionReport, CompressionRow};

pub(super) fn print(report: &CompressionReport) -> Result<()> {
    print::fact("data", &report.data)?;
    let queries = print::count(report.queries as u64);
    print::fact(
        "held out",
        &format!("{}: {queries} test queries", report.holdout),
    )?;
    let base = format!(
        "{}, {} bytes per item: {} {:.4}",
        report.base,
        print::count(report.base_bytes as u64),
        report.measure,
        report.base_value
    );
    print::fact("base", &base)?;
    let width = report.rows.iter().map(|row| name(row).len()).max();
    let width = width.unwrap_or(0).max(12);
    print::line(&format!(
        "{:>10}{:>8}{:>6}  {:<width$}{:>9}{:>9}   95 % interval",
        "budget", "memory", "disk", "map and code", report.measure, "gain"
    ))?;
    for row in &report.rows {
        let Some(gain) = row.measures.first() else {
            continue;
        };
        let disk = row.disk_bytes.map_or(String::new(), |b| b.to_string());
        print::line(&format!(
            "{:>10}{:>8}{disk:>6}  {:<width$}{}",
            row.budgets_text(),
            row.item_bytes,
            name(row),
            text(gain)
        ))?;
    }
    for (what, of_kind) in [
        (
            "seen",
            seen as fn(&CompressionRow) -> Option<&CompressionGain>,
        ),
        ("new", unseen),
    ] {
        let all: Vec<(&CompressionRow, &CompressionGain)> = (report.rows.iter())
            .filter_map(|row| Some((row, of_kind(row)?)))
            .collect();
        let Some((_, first)) = all.first() else {
            continue;
        };
        let count = print::plural(first.queries as u64, "query");
        print::line(&format!(
            "{what} items alone ({count}, base {:.4})",
            first.base
        ))?;
        for (row, gain) in all {
            let (budget, memory) = (row.budgets_text(), row.item_bytes);
            let disk = row.disk_bytes.map_or(String::new(), |b| b.to_string());
            let row = format!("{budget:>10}{memory:>8}{disk:>6}  {:<width$}", name(row));
            print::line(&format!("{row}{}", text(gain)))?;
        }
    }
    print::fact("recommended", &format!("* {}", report.recommendation))
}

fn seen(row: &CompressionRow) -> Option<&CompressionGain> {
    row.seen.as_ref()
}

fn unseen(row: &CompressionRow) -> Option<&CompressionGain> {
    row.unseen.as_ref()
}

fn name(row: &CompressionRow) -> String {
    let mark = if row.recommended { " *" } else { "" };
    format!("{}{mark}", row.words)
}

fn text(gain: &CompressionGain) -> String {
    format!(
        "{:>9.4}{:>+9.4}   [{:+.4}, {:+.4}]  {}",
        gain.value, gain.difference, gain.low, gain.high, gain.verdict
    )
}
