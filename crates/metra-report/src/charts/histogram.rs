//! How large the changes were: numbers of queries in equal bins from −1 to 1.

use super::scale::{Scale, Ticks};
use super::svg::Svg;
use super::{Frame, Tone, WIDTH, labelled};

const HEIGHT: f64 = 250.0;

/// The chart; `None` where every bin is empty. Bins below 0 and above it differ in colour and lie
/// on two sides of a line.
pub(crate) fn histogram(counts: &[usize], lower: &str, left: &str, label: &str) -> Option<String> {
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    // What lies beyond the largest change is empty and would only make the bars thin.
    let bins = counts.len();
    let width = 2.0 / bins as f64;
    let ends = |bin: usize| (-1.0 + bin as f64 * width, -1.0 + (bin + 1) as f64 * width);
    let filled = (0..bins).filter(|bin| counts.get(*bin).is_some_and(|count| *count > 0));
    let reach = filled.fold(0.0_f64, |reach, bin| {
        let (start, end) = ends(bin);
        reach.max(start.abs()).max(end.abs())
    });
    let reach = (reach + width / 2.0).min(1.0);

    let frame = Frame::plot(HEIGHT);
    let across = Scale::linear((-reach, reach), (frame.left, frame.right));
    let up = Scale::linear((0.0, most as f64), (frame.bottom, frame.top));
    let mut svg = Svg::default();
    let ticks = Ticks::whole(0.0, most as f64, 4);
    frame.left_axis(&mut svg, &up, &labelled(&ticks), left);
    let below = labelled(&Ticks::between(-reach, reach, 10));
    frame.lower_axis(&mut svg, &across, &below, lower);
    for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (start, end) = ends(bin);
        let tone = if start + end > 1e-9 {
            Tone::Better
        } else if start + end < -1e-9 {
            Tone::Worse
        } else {
            Tone::Neither
        };
        let title = format!("{start:+.2} to {end:+.2}: {count}").replace('-', "−");
        svg.open(&format!("bar {}", tone.class()), &title);
        let (x, y) = (across.place(start) + 1.0, up.place(*count as f64));
        let size = (across.place(end) - x - 1.0, frame.bottom - y);
        svg.rectangle(tone.class(), (x, y), size);
        svg.close();
    }
    frame.edges(&mut svg);
    let zero = across.place(0.0);
    svg.line("zero", (zero, frame.top), (zero, frame.bottom));
    Some(svg.finish(WIDTH, HEIGHT, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_as_high_as_its_count() {
        // Four bins of 0.5; the frame is 370 wide and 190 high, from 56 and down to 204.
        let text = histogram(&[1, 0, 2, 0], "change", "queries", "a chart").unwrap();
        // −1 to −0.5, half as high: from 56 + 1 on, 92.5 − 2 wide, 95 high.
        let expected = "x=\"57\" y=\"109\" width=\"90.5\" height=\"95\"";
        assert!(text.contains(expected), "{text}");
        assert!(
            text.contains("x=\"242\" y=\"14\" width=\"90.5\" height=\"190\""),
            "{text}"
        );
        assert!(text.contains("class=\"bar worse\"") && text.contains("class=\"bar better\""));
    }

    #[test]
    fn empty_bins_are_no_chart() {
        assert!(histogram(&[], "", "", "").is_none());
        assert!(histogram(&[0, 0], "", "", "").is_none());
        assert!(histogram(&[3], "", "", "").is_some());
    }
}
