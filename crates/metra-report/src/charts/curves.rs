//! Curves over a common axis. Each is told from the others by colour, by its dashes and by a
//! numbered badge on it, so that it can be followed on paper and without seeing colours.

use super::scale::{Scale, Ticks, powers, rounded};
use super::svg::{Anchor, Svg};
use super::{Frame, Style, WIDTH, extent, labelled};

const HEIGHT: f64 = 330.0;

/// One curve.
pub(crate) struct Curve {
    /// Its name.
    pub(crate) name: String,
    /// What is written in its badge; no badge where it is empty.
    pub(crate) badge: String,
    /// Its look.
    pub(crate) style: Style,
    /// Its points, from left to right; those that are not finite are left out.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Axes of the chart.
pub(crate) struct Axes<'a> {
    /// Title of the lower axis.
    pub(crate) lower: &'a str,
    /// Title of the left axis.
    pub(crate) left: &'a str,
    /// Ends of the lower axis.
    pub(crate) range: (f64, f64),
    /// Whether the lower axis counts ranks: by powers, since the first ones matter most.
    pub(crate) ranks: bool,
    /// What is read aloud in place of the drawing.
    pub(crate) label: &'a str,
}

/// The chart, with the value at which its left axis begins; `None` where no curve has a point.
pub(crate) fn curves(curves: &[Curve], axes: &Axes<'_>) -> Option<(String, f64)> {
    let values = curves.iter().flat_map(|curve| finite(&curve.points));
    let (low, high) = extent(values.map(|(_, y)| y))?;
    // An axis of shares begins at 0, unless that would press the curves together.
    let low = if low < 0.2 { low.min(0.0) } else { low };
    let (low, high) = rounded(low, high, 5);
    let high = if low >= 0.0 {
        high.min(1.0_f64.max(low + 0.05))
    } else {
        high
    };

    let frame = Frame::plot(HEIGHT);
    let ends = (frame.left, frame.right);
    let across = if axes.ranks {
        Scale::logarithmic(axes.range, ends)
    } else {
        Scale::linear(axes.range, ends)
    };
    let mut svg = Svg::default();
    let up = frame.left_range(&mut svg, (low, high), axes.left);
    let lower = if axes.ranks {
        let ranks = powers(axes.range.0, axes.range.1).into_iter();
        ranks.map(|rank| (rank, format!("{rank:.0}"))).collect()
    } else {
        labelled(&Ticks::between(axes.range.0, axes.range.1, 5))
    };
    frame.lower_axis(&mut svg, &across, &lower, axes.lower);
    frame.edges(&mut svg);

    let placed: Vec<Vec<(f64, f64)>> = curves
        .iter()
        .map(|curve| {
            let points = finite(&curve.points);
            points
                .map(|(x, y)| (across.place(x), up.place(y)))
                .collect()
        })
        .collect();
    // The grey ones lie below, and the best, which comes first, on top.
    let order = |background: bool| {
        let pairs = curves.iter().zip(&placed).rev();
        pairs.filter(move |(c, _)| (c.style == Style::Background) == background)
    };
    for (curve, points) in order(true).chain(order(false)) {
        svg.open(&format!("curve {}", curve.style.class()), &curve.name);
        match points[..] {
            [] => {}
            [point] => svg.circle("dot", point, 4.0),
            _ => svg.path("stroke", points),
        }
        svg.close();
    }
    let badges = curves
        .iter()
        .filter(|curve| !curve.badge.is_empty())
        .count();
    let mut drawn: Vec<(f64, f64)> = Vec::new();
    let badged = curves
        .iter()
        .zip(&placed)
        .filter(|(c, _)| !c.badge.is_empty());
    for (number, (curve, points)) in badged.enumerate() {
        let share = (number as f64 + 0.7) / (badges as f64 + 0.4);
        if let Some(at) = free_place(points, share, &drawn) {
            drawn.push(at);
            badge(&mut svg, curve, at);
        }
    }
    Some((svg.finish(WIDTH, HEIGHT, axes.label), low))
}

/// A disc with the number of the curve.
fn badge(svg: &mut Svg, curve: &Curve, (x, y): (f64, f64)) {
    svg.open(&format!("badge {}", curve.style.class()), &curve.name);
    svg.circle("disc", (x, y), 8.5);
    svg.text("number", (x, y + 4.0), Anchor::Middle, &curve.badge);
    svg.close();
}

/// A point on the curve near the share of its width, where no badge is yet; the point itself where
/// there is no such place.
fn free_place(points: &[(f64, f64)], share: f64, drawn: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (start, end) = (points.first()?.0, points.last()?.0);
    let candidates = (0..40).map(|step: i32| {
        let side = if step % 2 == 0 { 1.0 } else { -1.0 };
        let moved = share + side * f64::from((step + 1) / 2) / 40.0;
        let x = start + moved.clamp(0.02, 0.98) * (end - start);
        (x, height_at(points, x))
    });
    let free = |at: &(f64, f64)| {
        let near = |other: &(f64, f64)| (other.0 - at.0).hypot(other.1 - at.1) < 18.5;
        !drawn.iter().any(near)
    };
    let wanted = start + share * (end - start);
    let found = candidates.into_iter().find(free);
    Some(found.unwrap_or((wanted, height_at(points, wanted))))
}

/// The curve's height at `x`, between its points on a straight line.
fn height_at(points: &[(f64, f64)], x: f64) -> f64 {
    let last = points.last().map_or(0.0, |point| point.1);
    let pair = points
        .windows(2)
        .find(|pair| matches!(pair, [_, right] if right.0 >= x));
    match pair {
        Some([left, right]) if right.0 > left.0 => {
            let share = ((x - left.0) / (right.0 - left.0)).clamp(0.0, 1.0);
            left.1 + share * (right.1 - left.1)
        }
        _ => last,
    }
}

fn finite(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let points = points.iter().copied();
    points.filter(|(x, y)| x.is_finite() && y.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: Vec<(f64, f64)>) -> Curve {
        Curve {
            name: "warca".to_owned(),
            badge: "1".to_owned(),
            style: Style::Series(0),
            points,
        }
    }

    fn axes() -> Axes<'static> {
        Axes {
            lower: "rank",
            left: "share",
            range: (1.0, 100.0),
            ranks: true,
            label: "a chart",
        }
    }

    #[test]
    fn points_lie_where_the_axes_say() {
        // The frame runs from 56 to 426 and from 284 (below) to 14, the values from 0 to 1.
        let (text, start) = curves(
            &[curve(vec![(1.0, 0.0), (10.0, 0.5), (100.0, 1.0)])],
            &axes(),
        )
        .unwrap();
        assert_eq!(start, 0.0);
        assert!(text.contains("d=\"M56 284L241 149L426 14\""), "{text}");
        let document = roxmltree::Document::parse(&text).unwrap();
        let ticks: Vec<&str> = document
            .descendants()
            .filter(|node| node.attribute("class") == Some("tick"))
            .filter_map(|node| node.text())
            .collect();
        let left = ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"];
        assert_eq!(
            ticks,
            [&left[..], &["1", "2", "5", "10", "20", "50", "100"]].concat()
        );
    }

    #[test]
    fn an_axis_of_high_shares_begins_above_zero() {
        let (_, start) = curves(&[curve(vec![(1.0, 0.93), (100.0, 0.99)])], &axes()).unwrap();
        assert!(start > 0.85 && start <= 0.93, "{start}");
    }

    #[test]
    fn one_point_is_a_dot_and_none_is_no_chart() {
        let (text, _) = curves(&[curve(vec![(1.0, 0.5), (2.0, f64::NAN)])], &axes()).unwrap();
        assert!(text.contains("class=\"dot\"") && !text.contains("NaN"));
        assert!(curves(&[curve(vec![(1.0, f64::NAN)])], &axes()).is_none());
        assert!(curves(&[], &axes()).is_none());
    }

    #[test]
    fn badges_of_equal_curves_do_not_hide_each_other() {
        let line = || curve(vec![(1.0, 0.4), (100.0, 0.6)]);
        let (text, _) = curves(&[line(), line(), line()], &axes()).unwrap();
        let document = roxmltree::Document::parse(&text).unwrap();
        let discs: Vec<f64> = document
            .descendants()
            .filter(|node| node.attribute("class") == Some("disc"))
            .filter_map(|node| node.attribute("cx")?.parse().ok())
            .collect();
        assert_eq!(discs.len(), 3);
        assert!(
            discs.windows(2).all(|pair| pair[1] - pair[0] > 17.0),
            "{discs:?}"
        );
    }
}
