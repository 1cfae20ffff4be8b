//! The hinge with a rounded corner, L_τ^h of the slides (after Chapelle 2007): 0 above τ + h,
//! τ − t below τ − h, and between them the parabola (τ + h − t)²/4h that joins both smoothly.
//!
//! The slides print it for τ = 1 only; light constraints use the same function with τ = 0.

/// A rounded hinge of half-width h.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hinge {
    /// h.
    pub(super) smoothing: f64,
}

impl Hinge {
    /// L_τ^h(t).
    pub(super) fn value(self, margin: f64, t: f64) -> f64 {
        let h = self.smoothing;
        let below = margin + h - t;
        if below <= 0.0 {
            0.0
        } else if below <= 2.0 * h {
            below * below / (4.0 * h)
        } else {
            margin - t
        }
    }

    /// Its derivative: between −1 and 0.
    pub(super) fn slope(self, margin: f64, t: f64) -> f64 {
        let h = self.smoothing;
        -((margin + h - t) / (2.0 * h)).clamp(0.0, 1.0)
    }

    /// Its second derivative: 1/2h within the rounded corner.
    pub(super) fn curvature(self, margin: f64, t: f64) -> f64 {
        let h = self.smoothing;
        if (margin - t).abs() <= h {
            1.0 / (2.0 * h)
        } else {
            0.0
        }
    }

    /// Whether a constraint with this margin and value pushes at all.
    pub(super) fn pushes(self, margin: f64, t: f64) -> bool {
        t < margin + self.smoothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_and_light_by_hand() {
        let hinge = Hinge { smoothing: 0.25 };
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
    fn derivatives_are_those_of_the_value() {
        let hinge = Hinge { smoothing: 0.05 };
        for margin in [0.0, 1.0] {
            for step in -60..60 {
                let (t, e) = (margin + f64::from(step) * 0.0031, 1e-7);
                let slope = (hinge.value(margin, t + e) - hinge.value(margin, t - e)) / (2.0 * e);
                assert!((slope - hinge.slope(margin, t)).abs() < 1e-6, "{t}");
                let bend = (hinge.slope(margin, t + e) - hinge.slope(margin, t - e)) / (2.0 * e);
                assert!((bend - hinge.curvature(margin, t)).abs() < 1e-4, "{t}");
            }
        }
    }
}
