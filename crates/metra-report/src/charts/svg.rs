//! Writing SVG: the few elements that the charts use, with everything escaped.
//!
//! Colours are never written here. Elements have classes, and the page's style sheet gives them the
//! colours of the theme; this is why the charts look right in light, in dark and on paper.

use std::fmt::Write;

/// How the text lies to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// A drawing that grows.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    body: String,
}

impl Svg {
    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (round(from), round(to));
        self.write(format_args!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ));
    }

    /// Straight lines from point to point.
    pub(crate) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut data = String::new();
        for (at, point) in points.iter().enumerate() {
            let (x, y) = round(*point);
            let step = if at == 0 { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(data, "{step}{x} {y}");
        }
        self.write(format_args!("<path class=\"{class}\" d=\"{data}\"/>"));
    }

    /// A rectangle from a corner.
    pub(crate) fn rectangle(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        let ((x, y), (width, height)) = (round(corner), round(size));
        self.write(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    /// A circle.
    pub(crate) fn circle(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        let (x, y) = round(centre);
        self.write(format_args!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"
        ));
    }

    /// A line of text, with its foot at the point.
    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let ((x, y), anchor, text) = (round(at), anchor.name(), escaped(text));
        self.write(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// Text that runs upwards, centred on the point.
    pub(crate) fn upright(&mut self, class: &str, at: (f64, f64), text: &str) {
        let ((x, y), text) = (round(at), escaped(text));
        self.write(format_args!(
            "<text class=\"{class}\" transform=\"translate({x} {y}) rotate(-90)\" \
             text-anchor=\"middle\">{text}</text>"
        ));
    }

    /// Opens a group whose parts share a class, with words that a browser shows at the pointer.
    pub(crate) fn open(&mut self, class: &str, title: &str) {
        self.write(format_args!("<g class=\"{class}\">"));
        if !title.is_empty() {
            let title = escaped(title);
            self.write(format_args!("<title>{title}</title>"));
        }
    }

    /// Closes the group that was opened last.
    pub(crate) fn close(&mut self) {
        self.write(format_args!("</g>"));
    }

    /// The whole element. `label` is what is read aloud in place of the drawing.
    pub(crate) fn finish(self, width: f64, height: f64, label: &str) -> String {
        let label = escaped(label);
        let body = self.body;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n{body}</svg>"
        )
    }

    fn write(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Text as it may stand between tags and in quoted attributes. Control characters, which no
/// document may hold, become the sign for what cannot be shown.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(printable(other)),
        }
    }
    out
}

/// The character, or the sign for what cannot be shown.
pub(crate) fn printable(character: char) -> char {
    match character {
        '\n' | '\t' | '\r' => ' ',
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        other if other.is_control() => '\u{fffd}',
        other => other,
    }
}

/// The text in at most `most` characters. What is left out is in the middle, because names of one
/// family differ at their ends.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let end = kept / 2;
    let start: String = text.chars().take(kept - end).collect();
    let end: String = text.chars().skip(length - end).collect();
    format!("{}…{}", start.trim_end(), end.trim_start())
}

/// Tenths are finer than any screen shows and keep the file small.
fn round((x, y): (f64, f64)) -> (f64, f64) {
    // Adding 0 turns −0 into 0.
    let tenth = |value: f64| (value * 10.0).round() / 10.0 + 0.0;
    (tenth(x), tenth(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        let hostile = "\"/><script>alert('x')</script>&\u{0}";
        let mut svg = Svg::default();
        svg.text("label", (1.04, 2.0), Anchor::End, hostile);
        svg.open("s1", hostile);
        svg.close();
        let text = svg.finish(10.0, 20.0, hostile);
        let document = roxmltree::Document::parse(&text).unwrap();
        let shown = document.descendants().find(|n| n.has_tag_name("text"));
        let expected = hostile.replace('\u{0}', "\u{fffd}");
        assert_eq!(shown.unwrap().text(), Some(expected.as_str()));
        assert_eq!(shown.unwrap().attribute("x"), Some("1"));
        let root = document.root_element();
        assert_eq!(root.attribute("aria-label"), Some(expected.as_str()));
        assert!(!text.contains("<script"));
    }

    #[test]
    fn long_texts_keep_both_ends() {
        assert_eq!(shortened("warca", 5), "warca");
        assert_eq!(shortened("warca-χ²-rank-40", 8), "warc…-40");
        assert_eq!(shortened("long", 1), "…");
        assert_eq!(shortened("", 0), "");
    }
}
