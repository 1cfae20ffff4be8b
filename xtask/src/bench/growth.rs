//! Charts of how costs grow with the number of rows, from figures whose names end in that number.

use super::Figure;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
/// Left, right, top and bottom of the plot; names of lines stand to the right of it.
const PLOT: (f64, f64, f64, f64) = (60.0, 440.0, 20.0, 270.0);
const COLOURS: [&str; 4] = ["#1b6ca8", "#c8553d", "#4f772d", "#7b4b94"];

/// One kind of work over several numbers of rows.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    name: String,
    /// Number of rows and cost, in increasing order.
    points: Vec<(f64, f64)>,
}

/// The lines of all figures with these units.
pub(super) fn lines(figures: &[Figure], units: &[&str]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for figure in figures.iter().filter(|figure| is_growth(figure)) {
        let Some((name, size)) = parts(&figure.name) else {
            continue;
        };
        if !units.contains(&figure.unit.as_str()) {
            continue;
        }
        let name = match figure.unit.as_str() {
            "MB" => name.to_owned(),
            unit => format!("{name}, {unit}"),
        };
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push((size, figure.median)),
            None => lines.push(Line {
                name,
                points: vec![(size, figure.median)],
            }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

/// Whether a figure is drawn rather than listed.
pub(super) fn is_growth(figure: &Figure) -> bool {
    figure.bench == "growth"
}

/// "WARCA step, 10000 rows" is the work and 10,000.
fn parts(name: &str) -> Option<(&str, f64)> {
    let (work, size) = name.rsplit_once(", ")?;
    let size = size.split(' ').next()?.parse().ok()?;
    Some((work, size))
}

/// A chart with logarithmic axes.
pub(super) fn chart(lines: &[Line], unit: &str) -> String {
    let (left, right, top, bottom) = PLOT;
    let points = || lines.iter().flat_map(|line| &line.points);
    let range = |of: fn(&(f64, f64)) -> f64| {
        let logs = || {
            points()
                .map(of)
                .filter(|value| *value > 0.0)
                .map(f64::log10)
        };
        let low = logs().fold(f64::INFINITY, f64::min).floor();
        (low, logs().fold(low + 1.0, f64::max).ceil())
    };
    let (x_range, y_range) = (range(|point| point.0), range(|point| point.1));
    let along = |value: f64, (low, high): (f64, f64)| (value.log10() - low) / (high - low);
    let x = |value: f64| left + along(value, x_range) * (right - left);
    let y = |value: f64| bottom - along(value, y_range) * (bottom - top);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    let text = |x: f64, y: f64, anchor: &str, colour: &str, words: &str| {
        format!(
            "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>\n"
        )
    };
    let mut add = |part: String| svg.push_str(&part);
    for power in x_range.0 as i32..=x_range.1 as i32 {
        let at = x(10_f64.powi(power));
        add(format!(
            "<path d=\"M{at:.0} {top}V{bottom}\" stroke=\"#ddd\"/>\n"
        ));
        add(text(at, bottom + 18.0, "middle", "#333", &written(power)));
    }
    for power in y_range.0 as i32..=y_range.1 as i32 {
        let at = y(10_f64.powi(power));
        add(format!(
            "<path d=\"M{left} {at:.0}H{right}\" stroke=\"#ddd\"/>\n"
        ));
        add(text(left - 8.0, at + 4.0, "end", "#333", &written(power)));
    }
    add(text(
        (left + right) / 2.0,
        bottom + 38.0,
        "middle",
        "#333",
        "rows",
    ));
    add(text(left + 4.0, top - 6.0, "start", "#333", unit));
    // Names keep apart where lines end close to each other.
    let mut ends: Vec<(f64, usize)> = (lines.iter().enumerate())
        .filter_map(|(number, line)| Some((y(line.points.last()?.1), number)))
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = f64::NEG_INFINITY;
    for (end, number) in ends {
        let (line, colour) = (&lines[number], COLOURS[number % COLOURS.len()]);
        let mut path = String::new();
        for (place, (size, cost)) in line.points.iter().enumerate() {
            let letter = if place == 0 { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            _ = write!(path, "{letter}{:.1} {:.1}", x(*size), y(*cost));
        }
        add(format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n"
        ));
        let at = end.max(below + 15.0);
        below = at;
        add(text(right + 8.0, at + 4.0, "start", colour, &line.name));
    }
    svg.push_str("</svg>\n");
    svg
}

/// A power of ten as people write it.
fn written(power: i32) -> String {
    match power {
        -3..=0 => format!("{}", 10_f64.powi(power)),
        1..=5 => (0..power)
            .fold("1".to_owned(), |text, _| text + "0")
            .replace("100000", "100,000")
            .replace("10000", "10,000"),
        _ => format!("1e{power}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_made_of_figures_that_end_in_a_number_of_rows() {
        let figure = |name: &str, unit: &str, median| Figure {
            bench: "growth".into(),
            name: name.into(),
            unit: unit.into(),
            median,
            low: median,
            high: median,
        };
        let figures = [
            figure("WARCA step, 100000 rows", "ms", 2.0),
            figure("WARCA step, 10000 rows", "ms", 1.0),
            figure("rows, 10000 rows", "MB", 3.0),
        ];
        let found = lines(&figures, &["ms"]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "WARCA step, ms");
        assert_eq!(found[0].points, [(1e4, 1.0), (1e5, 2.0)]);
        let svg = chart(&found, "ms");
        // The first point stands at the left of the plot and at its bottom, 1 ms.
        assert!(svg.contains("d=\"M60.0 270.0L440.0"), "{svg}");
        assert!(svg.contains("10,000") && svg.contains("100,000"));
    }
}
