//! Charts as inline SVG: curves, points, rows of intervals or bars, and a histogram.
//!
//! Each takes plain numbers and texts and gives `None` where there is nothing to draw, so that a
//! page can say so in words. Why they are written here and not by a plotting library:
//! `docs/decisions/report-charts.md`.

pub(crate) mod curves;
pub(crate) mod histogram;
pub(crate) mod points;
pub(crate) mod rows;
pub(crate) mod scale;
pub(crate) mod svg;

use scale::{Scale, Ticks};
use svg::{Anchor, Svg};

/// Width of every chart in its own units. A phone shows it at four fifths, a desk a little
/// larger, and text stays readable in both.
pub(crate) const WIDTH: f64 = 440.0;

/// How a line is told from others: by colour, dashes and the number in its badge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// One of [`Style::SERIES`] colours, from 0.
    Series(usize),
    /// The base: grey and dotted.
    Base,
    /// One of many that are not told apart.
    Background,
}

impl Style {
    /// Number of series that have a colour and dashes of their own.
    pub(crate) const SERIES: usize = 7;

    /// Its class in the style sheet.
    pub(crate) fn class(self) -> String {
        match self {
            Style::Series(place) => format!("s{}", place % Self::SERIES + 1),
            Style::Base => "base".to_owned(),
            Style::Background => "background".to_owned(),
        }
    }
}

/// What an interval or a bar says, by colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Better,
    Worse,
    Neither,
}

impl Tone {
    /// Its class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Better => "better",
            Tone::Worse => "worse",
            Tone::Neither => "neither",
        }
    }
}

/// The rectangle that values are drawn in.
#[derive(Debug, Clone, Copy)]
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    /// Room for labels at the left and below.
    fn plot(height: f64) -> Self {
        Self {
            left: 56.0,
            right: WIDTH - 14.0,
            top: 14.0,
            bottom: height - 46.0,
        }
    }

    /// The lower axis with its ticks, their labels and its title.
    fn lower_axis(&self, svg: &mut Svg, scale: &Scale, ticks: &[(f64, String)], title: &str) {
        for (value, label) in ticks {
            let x = scale.place(*value);
            svg.line("grid", (x, self.top), (x, self.bottom));
            svg.text("tick", (x, self.bottom + 17.0), Anchor::Middle, label);
        }
        let middle = ((self.left + self.right) / 2.0, self.bottom + 38.0);
        svg.text("title", middle, Anchor::Middle, title);
    }

    /// The left axis over a range of any numbers; its scale.
    fn left_range(&self, svg: &mut Svg, (low, high): (f64, f64), title: &str) -> Scale {
        let scale = Scale::linear((low, high), (self.bottom, self.top));
        let ticks = labelled(&Ticks::between(low, high, 5));
        self.left_axis(svg, &scale, &ticks, title);
        scale
    }

    /// The left axis with its ticks, their labels and its title.
    fn left_axis(&self, svg: &mut Svg, scale: &Scale, ticks: &[(f64, String)], title: &str) {
        for (value, label) in ticks {
            let y = scale.place(*value);
            svg.line("grid", (self.left, y), (self.right, y));
            svg.text("tick", (self.left - 7.0, y + 4.5), Anchor::End, label);
        }
        svg.upright("title", (14.0, (self.top + self.bottom) / 2.0), title);
    }

    /// The lines at the left and below, over the grid.
    fn edges(&self, svg: &mut Svg) {
        let corner = (self.left, self.bottom);
        svg.line("axis", (self.left, self.top), corner);
        svg.line("axis", corner, (self.right, self.bottom));
    }
}

/// Ticks with their labels.
fn labelled(ticks: &Ticks) -> Vec<(f64, String)> {
    let values = ticks.values.iter();
    values.map(|value| (*value, ticks.label(*value))).collect()
}

/// The smallest and the largest of the finite values.
fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold(None, |range, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}
