//! Points with their names: score against time. The lower axis is logarithmic, because methods'
//! times differ by powers of ten.

use super::scale::{Scale, outward, powers};
use super::svg::{Anchor, Svg, shortened};
use super::{Frame, Style, WIDTH, extent};

const HEIGHT: f64 = 380.0;
/// Width of a letter of a label, near enough to see whether two labels meet.
const LETTER: f64 = 6.7;
const RADIUS: f64 = 5.0;

/// One point.
pub(crate) struct Point {
    /// Its name.
    pub(crate) name: String,
    /// What stands for its name where there is no room for it.
    pub(crate) badge: String,
    /// Whether its name is written beside it.
    pub(crate) is_labelled: bool,
    /// Its look.
    pub(crate) style: Style,
    /// Place on the lower axis, above 0.
    pub(crate) across: f64,
    /// Place on the left axis.
    pub(crate) up: f64,
}

/// The chart; `None` where no point can be drawn. The line joins the points that none to their left
/// is above.
pub(crate) fn points(
    points: &[Point],
    lower: &str,
    left: &str,
    tick: impl Fn(f64) -> String,
    label: &str,
) -> Option<String> {
    let drawn: Vec<&Point> = points
        .iter()
        .filter(|point| point.across > 0.0 && point.across.is_finite() && point.up.is_finite())
        .collect();
    let (first, last) = extent(drawn.iter().map(|point| point.across))?;
    let (low, high) = extent(drawn.iter().map(|point| point.up))?;
    let room = (0.08 * (high - low)).max(0.005);
    let (low, high) = (low - room, high + room);
    // Labels stand to the right of their points where they can.
    let (first, last) = outward(first / 1.2, 4.0 * last);

    let frame = Frame::plot(HEIGHT);
    let across = Scale::logarithmic((first, last), (frame.left, frame.right));
    let mut svg = Svg::default();
    let up = frame.left_range(&mut svg, (low, high), left);
    let ticks: Vec<(f64, String)> = powers(first, last)
        .into_iter()
        .map(|value| (value, tick(value)))
        .collect();
    frame.lower_axis(&mut svg, &across, &ticks, lower);
    frame.edges(&mut svg);

    let at = |point: &Point| (across.place(point.across), up.place(point.up));
    let frontier: Vec<(f64, f64)> = frontier(&drawn).into_iter().map(at).collect();
    if frontier.len() > 1 {
        svg.path("frontier", &frontier);
    }
    let places: Vec<(f64, f64)> = drawn.iter().map(|point| at(point)).collect();
    // Grey ones first, so that those with a colour lie on top.
    for background in [true, false] {
        let pairs = drawn.iter().zip(&places);
        for (point, place) in pairs.filter(|(p, _)| (p.style == Style::Background) == background) {
            svg.open(&format!("point {}", point.style.class()), &point.name);
            svg.circle("dot", *place, RADIUS);
            svg.close();
        }
    }
    let on_line = along(&frontier);
    let mut taken: Vec<Area> = places
        .iter()
        .map(|place| Area::around(*place, RADIUS))
        .collect();
    let labelled = drawn.iter().zip(&places).filter(|(p, _)| p.is_labelled);
    for (point, place) in labelled {
        let full = format!("{} {}", point.badge, shortened(&point.name, 22));
        let texts = [full.trim(), point.badge.as_str()];
        let found = texts.into_iter().find_map(|text| {
            // A label on the line is better than none.
            let avoiding = [&taken[..], &on_line[..]].concat();
            let area = room_for(text, *place, &frame, &avoiding)
                .or_else(|| room_for(text, *place, &frame, &taken))?;
            Some((text, area))
        });
        if let Some((text, (area, far))) = found {
            let end = (
                area.left.max(place.0.min(area.right)),
                area.bottom.min(place.1.max(area.top)),
            );
            if far {
                svg.line("leader", *place, end);
            }
            svg.text(
                "point-label",
                (area.left, area.bottom - 3.5),
                Anchor::Start,
                text,
            );
            taken.push(area);
        }
    }
    Some(svg.finish(WIDTH, HEIGHT, label))
}

/// Points that no cheaper one equals or beats, from left to right.
fn frontier<'a>(points: &[&'a Point]) -> Vec<&'a Point> {
    let mut sorted: Vec<&Point> = points.to_vec();
    sorted.sort_by(|a, b| a.across.total_cmp(&b.across).then(b.up.total_cmp(&a.up)));
    let mut best = f64::NEG_INFINITY;
    sorted.retain(|point| {
        let ahead = point.up > best;
        best = best.max(point.up);
        ahead
    });
    sorted
}

#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn around((x, y): (f64, f64), reach: f64) -> Self {
        Self {
            left: x - reach,
            right: x + reach,
            top: y - reach,
            bottom: y + reach,
        }
    }

    fn meets(&self, other: &Area) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Small areas along a line, close enough that no label fits between them.
fn along(line: &[(f64, f64)]) -> Vec<Area> {
    let pairs = line.windows(2).filter_map(|pair| match pair {
        [from, to] => Some((*from, *to)),
        _ => None,
    });
    let steps = |(from, to): ((f64, f64), (f64, f64))| {
        let steps = ((to.0 - from.0).hypot(to.1 - from.1) / 6.0).ceil().max(1.0);
        (0..=steps as usize).map(move |step| {
            let share = step as f64 / steps;
            let (x, y) = (
                from.0 + share * (to.0 - from.0),
                from.1 + share * (to.1 - from.1),
            );
            Area::around((x, y), 1.0)
        })
    };
    pairs.flat_map(steps).collect()
}

/// A place for a label near its point where nothing is yet, and whether it is so far away that a
/// line must lead to it.
fn room_for(text: &str, (x, y): (f64, f64), frame: &Frame, taken: &[Area]) -> Option<(Area, bool)> {
    let width = LETTER * text.chars().count() as f64;
    let height = 15.0;
    for far in [0.0, 14.0, 28.0, 42.0] {
        let gap = RADIUS + 4.0 + far;
        let middle = y - height / 2.0;
        let corners = [
            (x + gap, middle),
            (x - gap - width, middle),
            (x - width / 2.0, y - gap - height + 2.0),
            (x - width / 2.0, y + gap - 2.0),
            (x + gap, middle - gap),
            (x + gap, middle + gap),
            (x - gap - width, middle - gap),
            (x - gap - width, middle + gap),
        ];
        for (left, top) in corners {
            let area = Area {
                left,
                right: left + width,
                top,
                bottom: top + height,
            };
            let inside = area.left > frame.left + 2.0
                && area.right < frame.right + 8.0
                && area.top > frame.top - 10.0
                && area.bottom < frame.bottom - 1.0;
            if inside && !taken.iter().any(|other| other.meets(&area)) {
                return Some((area, far > 0.0));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(name: &str, across: f64, up: f64) -> Point {
        Point {
            name: name.to_owned(),
            badge: "7".to_owned(),
            is_labelled: true,
            style: Style::Background,
            across,
            up,
        }
    }

    fn draw(list: &[Point]) -> Option<String> {
        points(list, "CPU s", "mAP", |value| format!("{value}"), "a chart")
    }

    #[test]
    fn the_line_joins_what_nothing_cheaper_beats() {
        let all = [
            point("slow", 10.0, 0.8),
            point("middle", 1.0, 0.7),
            point("wasteful", 5.0, 0.6),
            point("quick", 0.1, 0.5),
            point("equal", 2.0, 0.7),
        ];
        let list: Vec<&Point> = all.iter().collect();
        let names: Vec<&str> = frontier(&list).iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["quick", "middle", "slow"]);
    }

    #[test]
    fn labels_do_not_meet() {
        let list: Vec<Point> = (0..12)
            .map(|i| {
                point(
                    "a name",
                    1.0 + 0.05 * f64::from(i),
                    0.5 + 0.002 * f64::from(i % 3),
                )
            })
            .collect();
        let text = draw(&list).unwrap();
        let document = roxmltree::Document::parse(&text).unwrap();
        let areas: Vec<Area> = document
            .descendants()
            .filter(|node| node.attribute("class") == Some("point-label"))
            .map(|node| {
                let left: f64 = node.attribute("x").unwrap().parse().unwrap();
                let bottom: f64 = node.attribute("y").unwrap().parse().unwrap();
                let width = LETTER * node.text().unwrap().chars().count() as f64;
                Area {
                    left: left + 0.1,
                    right: left + width - 0.1,
                    top: bottom - 11.0,
                    bottom: bottom + 3.0,
                }
            })
            .collect();
        assert!(areas.len() >= 8, "{} labels", areas.len());
        for (at, area) in areas.iter().enumerate() {
            assert!(!areas[..at].iter().any(|other| other.meets(area)));
        }
    }

    #[test]
    fn what_cannot_be_placed_is_left_out() {
        assert!(draw(&[]).is_none());
        assert!(draw(&[point("never", 0.0, 0.5), point("nan", 1.0, f64::NAN)]).is_none());
        let one = draw(&[
            point("one", 1.0, 0.5),
            point("infinite", f64::INFINITY, 0.5),
        ])
        .unwrap();
        assert_eq!(one.matches("class=\"dot\"").count(), 1);
        assert!(!one.contains("NaN") && !one.contains("inf"));
    }
}
