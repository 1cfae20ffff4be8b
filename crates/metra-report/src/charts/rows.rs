//! One row per line of the experiment: differences with their intervals, or how many queries gained and lost.

use super::scale::{Scale, Ticks};
use super::svg::{Anchor, Svg, shortened};
use super::{Frame, Tone, WIDTH, extent, labelled};

const ROW: f64 = 24.0;
/// Letters of a name that the column at the left has room for.
const LETTERS: usize = 21;

/// A difference.
pub(crate) struct Interval {
    /// Whose it is.
    pub(crate) name: String,
    /// The difference itself.
    pub(crate) value: f64,
    /// The 95 % interval.
    pub(crate) narrow: (f64, f64),
    /// The interval that allows for all comparisons.
    pub(crate) wide: (f64, f64),
    /// What it says.
    pub(crate) tone: Tone,
}

/// How many queries went which way.
pub(crate) struct Balance {
    /// Whose it is.
    pub(crate) name: String,
    /// Queries that lost.
    pub(crate) worse: usize,
    /// Queries that stayed.
    pub(crate) equal: usize,
    /// Queries that gained.
    pub(crate) better: usize,
}

/// Differences as dots on two bars each; `None` where none can be drawn.
pub(crate) fn intervals(rows: &[Interval], lower: &str, label: &str) -> Option<String> {
    let rows: Vec<&Interval> = rows
        .iter()
        .filter(|row| {
            let ends = [row.narrow.0, row.narrow.1, row.wide.0, row.wide.1];
            row.value.is_finite() && ends.iter().all(|end| end.is_finite())
        })
        .collect();
    let ends = rows
        .iter()
        .flat_map(|row| [row.wide.0, row.wide.1, row.value, 0.0]);
    let (low, high) = extent(ends)?;
    let frame = frame(rows.len());
    let across = Scale::linear((low, high), (frame.left + 8.0, frame.right - 6.0));
    let mut svg = Svg::default();
    let ticks = labelled(&Ticks::between(low, high, 6));
    frame.lower_axis(&mut svg, &across, &ticks, lower);
    let zero = across.place(0.0);
    svg.line("zero", (zero, frame.top), (zero, frame.bottom));
    for (number, row) in rows.iter().enumerate() {
        let y = middle(&frame, number);
        row_label(&mut svg, &frame, y, &row.name);
        svg.open(&format!("interval {}", row.tone.class()), &row.name);
        let at = |value: f64| (across.place(value), y);
        svg.line("wide", at(row.wide.0), at(row.wide.1));
        svg.line("narrow", at(row.narrow.0), at(row.narrow.1));
        svg.circle("dot", at(row.value), 4.5);
        svg.close();
    }
    Some(svg.finish(WIDTH, height(rows.len()), label))
}

/// Bars to the left for queries that lost and to the right for those that gained, with their
/// numbers; `None` where no query was compared.
pub(crate) fn balances(rows: &[Balance], lower: &str, label: &str) -> Option<String> {
    let rows: Vec<(&Balance, f64)> = rows
        .iter()
        .map(|row| (row, (row.worse + row.equal + row.better) as f64))
        .filter(|(_, all)| *all > 0.0)
        .collect();
    let shares = rows
        .iter()
        .flat_map(|(row, all)| [-(row.worse as f64) / all, row.better as f64 / all]);
    let (low, high) = extent(shares)?;
    let percent = |value: f64| 100.0 * value;
    let (low, high) = (percent(low.min(-0.01)), percent(high.max(0.01)));
    let frame = frame(rows.len());
    // Numbers stand beyond the ends of the bars and need their room.
    let across = Scale::linear((low, high), (frame.left + 38.0, frame.right - 38.0));
    let mut svg = Svg::default();
    let ticks = Ticks::between(low, high, 5);
    let labels: Vec<(f64, String)> = ticks
        .values
        .iter()
        .map(|value| (*value, format!("{} %", ticks.label(value.abs()))))
        .collect();
    frame.lower_axis(&mut svg, &across, &labels, lower);
    let zero = across.place(0.0);
    for (number, (row, all)) in rows.iter().enumerate() {
        let y = middle(&frame, number);
        row_label(&mut svg, &frame, y, &row.name);
        let title = format!(
            "{}: {} worse, {} equal, {} better",
            row.name, row.worse, row.equal, row.better
        );
        svg.open("balance", &title);
        let left = across.place(-percent(row.worse as f64 / all));
        let right = across.place(percent(row.better as f64 / all));
        svg.rectangle("worse", (left, y - 7.0), (zero - left, 14.0));
        svg.rectangle("better", (zero, y - 7.0), (right - zero, 14.0));
        let (worse, better) = (row.worse.to_string(), row.better.to_string());
        svg.text("count", (left - 4.0, y + 4.0), Anchor::End, &worse);
        svg.text("count", (right + 4.0, y + 4.0), Anchor::Start, &better);
        svg.close();
    }
    svg.line("zero", (zero, frame.top), (zero, frame.bottom));
    Some(svg.finish(WIDTH, height(rows.len()), label))
}

fn frame(rows: usize) -> Frame {
    Frame {
        left: 166.0,
        right: WIDTH - 10.0,
        top: 6.0,
        bottom: 10.0 + ROW * rows as f64,
    }
}

fn height(rows: usize) -> f64 {
    10.0 + ROW * rows as f64 + 46.0
}

fn middle(frame: &Frame, row: usize) -> f64 {
    frame.top + 2.0 + ROW * (row as f64 + 0.5)
}

fn row_label(svg: &mut Svg, frame: &Frame, y: f64, name: &str) {
    let (at, name) = ((frame.left - 4.0, y + 4.5), shortened(name, LETTERS));
    svg.text("row-label", at, Anchor::End, &name);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(value: f64) -> Interval {
        Interval {
            name: "a".to_owned(),
            value,
            narrow: (value - 0.1, value + 0.1),
            wide: (value - 0.2, value + 0.2),
            tone: Tone::Better,
        }
    }

    #[test]
    fn an_interval_lies_where_the_axis_says() {
        // The axis runs from −0.2 to 0.8 over 174 to 424: 250 for 1.
        let text = intervals(&[interval(0.6), interval(0.0)], "gain", "a chart").unwrap();
        assert!(text.contains("<circle class=\"dot\" cx=\"374\""), "{text}");
        assert!(text.contains("class=\"narrow\" x1=\"349\""), "{text}");
        assert!(text.contains("class=\"zero\" x1=\"224\""), "{text}");
    }

    #[test]
    fn bars_are_shares_of_all_queries() {
        let row = Balance {
            name: "a".to_owned(),
            worse: 10,
            equal: 60,
            better: 30,
        };
        // From −10 % to 30 % over 204 to 392: 47 for each 10 %.
        let text = balances(&[row], "queries", "a chart").unwrap();
        assert!(text.contains("class=\"worse\" x=\"204\""), "{text}");
        assert!(text.contains("class=\"better\" x=\"251\""), "{text}");
        assert!(text.contains("width=\"141\""), "{text}");
    }

    #[test]
    fn nothing_and_what_is_no_number_are_left_out() {
        assert!(intervals(&[], "", "").is_none());
        assert!(intervals(&[interval(f64::NAN)], "", "").is_none());
        assert!(intervals(&[interval(0.0)], "", "").is_some());
        let none = Balance {
            name: String::new(),
            worse: 0,
            equal: 0,
            better: 0,
        };
        assert!(balances(&[none], "", "").is_none());
    }
}
