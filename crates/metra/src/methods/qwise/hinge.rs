//! The hinge with a rounded corner, L_τ^h of the slides (after Chapelle 2007): 0 above τ + h,
//! τ − t below τ − h, and between them the parabola (τ + h − t)²/4h that joins both smoothly.
//!
//! The slides print it for τ = 1 only; light constraints use the same function with τ = 0. Beside it
//! the squared hinge of ranking SVMs, which has no line.

/// A hinge: 0 above its margin, a parabola where it begins and a line beyond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hinge {
    /// How far above the margin the parabola begins.
    pub(super) reach: f64,
    /// How far down it goes before the line takes over.
    pub(super) width: f64,
    /// The parabola is this times the square of the way down.
    pub(super) factor: f64,
}

impl Hinge {
    /// L_τ^h: the corner is rounded over ± h.
    pub(super) fn rounded(h: f64) -> Self {
        Hinge {
            reach: h,
            width: 2.0 * h,
            factor: 1.0 / (4.0 * h),
        }
    }

    /// max(0, τ − t)²: all parabola, no line.
    pub(super) fn squared() -> Self {
        Hinge {
            reach: 0.0,
            width: f64::INFINITY,
            factor: 1.0,
        }
    }

    /// The loss of t with this margin.
    pub(super) fn value(self, margin: f64, t: f64) -> f64 {
        let below = margin + self.reach - t;
        if below <= 0.0 {
            0.0
        } else if below <= self.width {
            self.factor * below * below
        } else {
            margin - t
        }
    }

    /// Its derivative: never above 0, and −1 on the line.
    pub(super) fn slope(self, margin: f64, t: f64) -> f64 {
        let below = margin + self.reach - t;
        -2.0 * self.factor * below.clamp(0.0, self.width)
    }

    /// Its second derivative: that of the parabola, 0 elsewhere.
    pub(super) fn curvature(self, margin: f64, t: f64) -> f64 {
        let below = margin + self.reach - t;
        if (0.0..=self.width).contains(&below) {
            2.0 * self.factor
        } else {
            0.0
        }
    }

    /// Whether a constraint with this margin and value pushes at all.
    pub(super) fn pushes(self, margin: f64, t: f64) -> bool {
        t < margin + self.reach
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_and_light_by_hand() {
        let hinge = Hinge::rounded(0.25);
        // τ = 1: nothing above 1.25; at 1 the parabola (0.25)²/1 = 0.0625; at 0.75 it meets the
        // line at 0.25; at 0 the line has 1.
        assert_eq!(hinge.value(1.0, 1.3), 0.0);
        assert_eq!(hinge.value(1.0, 1.0), 0.0625);
        assert_eq!(hinge.value(1.0, 0.75), 0.25);
        assert_eq!(hinge.value(1.0, 0.0), 1.0);
        // τ = 0: the same, moved by 1.
        assert_eq!(hinge.value(0.0, 0.3), 0.0);
        assert_eq!(hinge.value(0.0, 0.0), 0.0625);
        assert_eq!(hinge.value(0.0, -1.0), 1.0);
        assert_eq!((hinge.slope(1.0, 1.0), hinge.slope(0.0, 1.0)), (-0.5, 0.0));
        assert_eq!(hinge.curvature(1.0, 1.1), 2.0);
    }

    #[test]
    fn squared_by_hand() {
        let hinge = Hinge::squared();
        // (1 − t)² below 1: 0 at 1, 0.25 at 0.5, 9 at −2 with slope −2·3.
        assert_eq!((hinge.value(1.0, 1.0), hinge.value(1.0, 0.5)), (0.0, 0.25));
        assert_eq!(
            (hinge.value(1.0, -2.0), hinge.slope(1.0, -2.0)),
            (9.0, -6.0)
        );
        assert_eq!(
            (hinge.curvature(1.0, -2.0), hinge.curvature(1.0, 1.5)),
            (2.0, 0.0)
        );
        // Margin 0 both ways is the square: 0.7² = 0.49.
        assert!((hinge.value(0.0, -0.7) + hinge.value(0.0, 0.7) - 0.49).abs() < 1e-15);
    }

    #[test]
    fn derivatives_are_those_of_the_value() {
        let hinge = Hinge::rounded(0.05);
        for (margin, hinge) in [(0.0, hinge), (1.0, hinge), (1.0, Hinge::squared())] {
            for step in -60..60 {
                // Between steps, so that no end of a parabola is met.
                let (t, e) = (margin + (f64::from(step) + 0.5) * 0.0031, 1e-7);
                let slope = (hinge.value(margin, t + e) - hinge.value(margin, t - e)) / (2.0 * e);
                assert!((slope - hinge.slope(margin, t)).abs() < 1e-6, "{t}");
                let bend = (hinge.slope(margin, t + e) - hinge.slope(margin, t - e)) / (2.0 * e);
                assert!((bend - hinge.curvature(margin, t)).abs() < 1e-4, "{t}");
            }
        }
    }
}
