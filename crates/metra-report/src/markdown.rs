//! The page in Markdown, for a repository: what the HTML file says, without charts and without
//! anything about single queries, which may belong to data that must not be published.

use crate::leaderboard::Leaderboard;
use crate::measures::heading;
use crate::tables::{self, GainCell, ScoreCell, ScoreRow};
use crate::words::{self, Remark, Span};
use metra::experiment::compare::{Costs, Results};
use std::fmt::Write;

/// The report as a page in Markdown. No row of the data is named in it, so that it may be published
/// where the data may not.
pub fn markdown(results: &Results, costs: Option<&Costs>) -> String {
    let leaderboard = Leaderboard::of(results);
    let mut page = Page::default();
    page.paragraph(&format!("# {}", escaped(&results.name)));
    for part in words::paragraphs(&results.about) {
        page.paragraph(&escaped(part));
    }
    page.paragraph("Made by this command:");
    page.fenced(&results.command);
    page.paragraph("## Summary");
    page.list(words::summary(&leaderboard).iter().map(remark));
    page.paragraph("## Scores");
    scores(&mut page, &leaderboard, costs);
    gains(&mut page, &leaderboard);
    parts(&mut page, &leaderboard);
    failures(&mut page, &leaderboard);
    claims(&mut page, results);
    page.paragraph("## Data and protocol");
    let facts = words::data(results)
        .into_iter()
        .chain(words::protocol(results));
    page.list(facts.map(|fact| format!("**{}:** {}", escaped(&fact.term), escaped(&fact.text))));
    settings(&mut page, &leaderboard);
    if let Some(costs) = costs {
        page.paragraph("## Costs");
        page.paragraph(&words::costs(costs));
    }
    page.paragraph(&format!("Written by metra {}.", escaped(&results.version)));
    page.text.truncate(page.text.trim_end().len());
    page.text + "\n"
}

fn scores(page: &mut Page, leaderboard: &Leaderboard<'_>, costs: Option<&Costs>) {
    let rows = tables::scores(leaderboard, costs);
    let measures = &leaderboard.results.protocol.measures;
    let mut head = vec!["".to_owned(), "line".to_owned()];
    head.extend(measures.iter().map(|name| escaped(&heading(name))));
    head.extend(leaderboard.results.facts.iter().map(|name| escaped(name)));
    head.push("trials".to_owned());
    if costs.is_some() {
        head.extend(["CPU, one fit", "memory", "CPU, all"].map(str::to_owned));
    }
    let body = rows.iter().map(|row| {
        let mut cells = vec![row.place.clone(), name(row)];
        cells.extend(row.cells.iter().map(score));
        cells.extend(row.facts.iter().cloned());
        cells.push(row.trials.clone());
        if costs.is_some() {
            cells.extend([row.cpu.clone(), row.memory.clone(), row.total.clone()]);
        }
        cells
    });
    page.table(&head, body);
    let mut notes = vec!["Bold: the highest mean."];
    if leaderboard.results.protocol.splits.len() > 1 {
        notes.push("±: standard deviation over splits.");
    }
    if rows.iter().any(|row| !row.level.is_empty()) {
        notes.push(
            "≈: cannot be told from the best (≈\\*: only where all comparisons are allowed for).",
        );
    }
    if rows.iter().any(ScoreRow::has_published) {
        notes.push("In brackets: what was published.");
    }
    page.paragraph(&notes.join(" "));
}

fn name(row: &ScoreRow) -> String {
    let mut text = escaped(&row.name);
    if row.is_best {
        text = format!("**{text}**");
    }
    if row.is_base {
        text += " (base)";
    }
    if !row.level.is_empty() {
        let _ = write!(text, " {}", escaped(&row.level));
    }
    if !row.failed.is_empty() {
        let _ = write!(text, " ({})", row.failed);
    }
    text
}

fn score(cell: &ScoreCell) -> String {
    let mut text = if cell.best {
        format!("**{}**", cell.mean)
    } else {
        cell.mean.clone()
    };
    if !cell.deviation.is_empty() {
        let _ = write!(text, " ± {}", cell.deviation);
    }
    if !cell.published.is_empty() {
        let _ = write!(text, " ({})", cell.published);
    }
    text
}

fn gains(page: &mut Page, leaderboard: &Leaderboard<'_>) {
    let rows = tables::gains(leaderboard);
    if rows.is_empty() {
        return;
    }
    let base = escaped(&leaderboard.results.base);
    page.paragraph(&format!("## Gain over {base}"));
    let mut head = vec!["line".to_owned()];
    let measures = leaderboard.results.protocol.measures.iter();
    head.extend(measures.map(|name| escaped(&heading(name))));
    let body = rows.iter().map(|row| {
        let cells = row.cells.iter().map(gain);
        std::iter::once(escaped(&row.name)).chain(cells).collect()
    });
    page.table(&head, body);
    page.paragraph(
        "In brackets: 95 % interval of the difference. \\*: the evidence does not survive allowing \
         for all comparisons.",
    );
}

fn parts(page: &mut Page, leaderboard: &Leaderboard<'_>) {
    let tables = tables::parts(leaderboard);
    if tables.is_empty() {
        return;
    }
    let (heading, explanation) = words::seen(&tables);
    page.paragraph(&format!("## {heading}"));
    page.paragraph(explanation);
    let criterion = escaped(&leaderboard.criterion());
    for table in tables {
        let head = [
            format!("{}, {}", escaped(&table.part), table.queries),
            criterion.clone(),
            "gain".to_owned(),
        ];
        let body = table.rows.iter();
        let body = body.map(|row| vec![escaped(&row.name), row.mean.clone(), gain(&row.gain)]);
        page.table(&head, body);
    }
}

fn gain(cell: &GainCell) -> String {
    if cell.difference.is_empty() {
        return String::new();
    }
    let words = match cell.words {
        "no evidence" => ", no evidence",
        _ => "",
    };
    let interval = escaped(&cell.interval);
    format!(
        "{} {interval}{words}{}",
        cell.difference,
        escaped(cell.fragile)
    )
}

fn failures(page: &mut Page, leaderboard: &Leaderboard<'_>) {
    let rows = tables::failures(leaderboard);
    if rows.is_empty() {
        return;
    }
    page.paragraph("## Failures");
    let body = rows
        .iter()
        .map(|row| vec![escaped(&row.name), row.splits.clone(), escaped(&row.reason)]);
    page.table(&["line", "splits", "reason"], body);
}

fn claims(page: &mut Page, results: &Results) {
    if results.claims.is_empty() {
        return;
    }
    page.paragraph("## Claims");
    page.paragraph(&words::claims(results));
    let head = ["claim", "source", "finding", "difference", "remark"];
    let rows = tables::claims(results);
    let body = rows.iter().map(|row| {
        let (better, worse) = (escaped(&row.better), escaped(&row.worse));
        let claim = format!("{better} > {worse} by {}", escaped(&row.measure));
        vec![
            claim,
            escaped(&row.source),
            format!("**{}**", row.finding),
            escaped(&row.gain),
            escaped(&row.remark),
        ]
    });
    page.table(&head, body);
}

fn settings(page: &mut Page, leaderboard: &Leaderboard<'_>) {
    page.paragraph("## Settings");
    let head = ["line", "method", "fixed", "tried", "chosen most often"];
    let rows = tables::settings(leaderboard);
    let body = rows.iter().map(|row| {
        [&row.name, &row.method, &row.fixed, &row.tried, &row.chosen]
            .map(|text| escaped(text))
            .to_vec()
    });
    page.table(&head, body);
}

fn remark(remark: &Remark) -> String {
    let spans = remark.spans.iter().map(|Span { text, name }| {
        if *name {
            format!("**{}**", escaped(text))
        } else {
            escaped(text)
        }
    });
    format!("**{}.** {}", remark.heading, spans.collect::<String>())
}

/// A page that grows block by block.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn paragraph(&mut self, text: &str) {
        self.text += text;
        self.text += "\n\n";
    }

    fn list(&mut self, items: impl Iterator<Item = String>) {
        for item in items {
            self.text += &format!("- {}\n", item.trim_end());
        }
        self.text.push('\n');
    }

    fn table(&mut self, head: &[impl AsRef<str>], body: impl Iterator<Item = Vec<String>>) {
        self.row(head);
        self.row(&vec!["---"; head.len()]);
        for row in body {
            self.row(&row);
        }
        self.text.push('\n');
    }

    fn row(&mut self, cells: &[impl AsRef<str>]) {
        self.text += "|";
        for cell in cells {
            self.text += &format!(" {} |", cell.as_ref().trim());
        }
        self.text.push('\n');
    }

    /// The fence is longer than any in the text.
    fn fenced(&mut self, text: &str) {
        let mut fence = "```".to_owned();
        while text.contains(&fence) {
            fence.push('`');
        }
        self.paragraph(&format!("{fence}\n{}\n{fence}", text.trim_end()));
    }
}

/// Text without meaning in Markdown, on one line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let marker = block_marker(text);
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let after = letters.peek().map_or(' ', |&(_, letter)| letter);
        if marker == Some(at) {
            out.push('\\');
        }
        match letter {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '#' => {
                out.push('\\');
                out.push(letter);
            }
            // Within a word it is no sign.
            '_' if !(before.is_alphanumeric() && after.is_alphanumeric()) => out.push_str("\\_"),
            other => out.push(crate::charts::svg::printable(other)),
        }
        before = letter;
    }
    out
}

/// Where the sign stands by which a text would begin a list, a quotation or a rule.
fn block_marker(text: &str) -> Option<usize> {
    let at = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (sign, rest) = text[at..].split_at_checked(1)?;
    let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
    let marks = match (at, sign) {
        (0, ">") => true,
        (0, "-") => ends || rest.starts_with('-'),
        (0, "+") => ends,
        (1.., "." | ")") => ends,
        _ => false,
    };
    marks.then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escaped("kernel_lfda"), "kernel_lfda");
        assert_eq!(escaped("_a_|<b>*\n"), "\\_a\\_\\|&lt;b>\\* ");
        for (text, plain) in [
            ("0.", "0\\."),
            ("12) b", "12\\) b"),
            ("- b", "\\- b"),
            ("--- b", "\\--- b"),
            ("+", "\\+"),
            (">b", "\\>b"),
        ] {
            assert_eq!(escaped(text), plain);
        }
        for text in ["0.5", "-0.5", "+.5", "a - b", "12", "é."] {
            assert_eq!(escaped(text), text);
        }
        let mut page = Page::default();
        page.fenced("a ``` b\n");
        assert_eq!(page.text, "````\na ``` b\n````\n\n");
    }
}
