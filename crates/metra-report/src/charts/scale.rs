//! Axes: where a value lies on the paper, and at which values an axis has its ticks.
//!
//! Ticks are at multiples of 1, 2 or 5 times a power of ten, the steps that people read without
//! counting. Nothing here panics on values that are not numbers: a scale over them is the one from
//! 0 to 1, and its callers have left such values out before.

/// A way from values to coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    logarithmic: bool,
}

impl Scale {
    /// From `low` at `start` to `high` at `end`.
    pub(crate) fn linear((low, high): (f64, f64), (start, end): (f64, f64)) -> Self {
        let (low, high) = opened(low, high);
        Self {
            low,
            high,
            start,
            end,
            logarithmic: false,
        }
    }

    /// The same by powers; both ends must be above 0.
    pub(crate) fn logarithmic((low, high): (f64, f64), ends: (f64, f64)) -> Self {
        let logarithms = (low.log10(), high.log10());
        Self {
            logarithmic: true,
            ..Self::linear(logarithms, ends)
        }
    }

    /// Where a value lies; values beyond the ends are put on them.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let value = if self.logarithmic {
            value.log10()
        } else {
            value
        };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.start + share * (self.end - self.start)
    }
}

/// Values at which an axis is marked, with the decimals that tell them apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ticks {
    /// The values, rising.
    pub(crate) values: Vec<f64>,
    decimals: usize,
}

impl Ticks {
    /// About `wanted` ticks between two values.
    pub(crate) fn between(low: f64, high: f64, wanted: usize) -> Self {
        let (low, high) = opened(low, high);
        let step = round_step((high - low) / wanted.max(1) as f64);
        // The sum of small errors must not cost the last tick.
        let first = (low / step - 1e-9).ceil();
        let last = (high / step + 1e-9).floor();
        let count = ((last - first) as usize).min(100);
        Self {
            values: (0..=count).map(|i| (first + i as f64) * step).collect(),
            decimals: decimals(step),
        }
    }

    /// Ticks at whole numbers only.
    pub(crate) fn whole(low: f64, high: f64, wanted: usize) -> Self {
        let ticks = Self::between(low, high, wanted);
        if ticks.decimals == 0 {
            return ticks;
        }
        let (low, high) = opened(low, high);
        let whole = (low.ceil() as i64)..=(high.floor() as i64);
        Self {
            values: whole.map(|value| value as f64).collect(),
            decimals: 0,
        }
    }

    /// The label of a tick.
    pub(crate) fn label(&self, value: f64) -> String {
        // Rounding leaves −0 at the origin, which would be printed with its sign.
        let value = if value.abs() < 1e-12 { 0.0 } else { value };
        format!("{value:.*}", self.decimals).replace('-', "−")
    }
}

/// The powers of ten between two values, and 2 and 5 times them where they span two decades or
/// less; the ends are ticks' values themselves where `outward` has been applied.
pub(crate) fn powers(low: f64, high: f64) -> Vec<f64> {
    if !(low > 0.0 && high >= low && high.is_finite()) {
        return Vec::new();
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if (high / low).log10() <= 2.01 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let every = ((last - first) / 8 + 1) as usize;
    let decades = (first..=last).step_by(every);
    let all = decades.flat_map(|decade| factors.iter().map(move |f| f * 10f64.powi(decade)));
    all.filter(|value| (low * 0.999..=high * 1.001).contains(value))
        .collect()
}

/// The smallest range of 1, 2 or 5 times powers of ten around two values above 0.
pub(crate) fn outward(low: f64, high: f64) -> (f64, f64) {
    let factors = [1.0, 2.0, 5.0, 10.0];
    let below = |value: f64| {
        let decade = 10f64.powf(value.log10().floor());
        let fit = factors.iter().rev().find(|f| *f * decade <= value * 1.001);
        fit.unwrap_or(&1.0) * decade
    };
    let above = |value: f64| {
        let decade = 10f64.powf(value.log10().floor());
        let fit = factors.iter().find(|f| *f * decade >= value * 0.999);
        fit.unwrap_or(&10.0) * decade
    };
    let (low, high) = (below(low), above(high));
    if low < high {
        (low, high)
    } else {
        (low / 2.0, high * 2.0)
    }
}

/// The range of ticks that holds two values.
pub(crate) fn rounded(low: f64, high: f64, wanted: usize) -> (f64, f64) {
    let (low, high) = opened(low, high);
    let step = round_step((high - low) / wanted.max(1) as f64);
    (
        (low / step + 1e-9).floor() * step,
        (high / step - 1e-9).ceil() * step,
    )
}

/// The next of 1, 2, 5 times a power of ten that is not below.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

fn decimals(step: f64) -> usize {
    let digits = -(step.log10() + 1e-9).floor();
    digits.clamp(0.0, 12.0) as usize
}

/// A range with something between its ends.
fn opened(low: f64, high: f64) -> (f64, f64) {
    if !low.is_finite() || !high.is_finite() {
        return (0.0, 1.0);
    }
    let (low, high) = if low <= high {
        (low, high)
    } else {
        (high, low)
    };
    // Closer than this, a tick could not be told from its neighbour in 12 decimals.
    if high - low > 1e-9 * high.abs().max(1e-3) {
        (low, high)
    } else {
        let room = (0.1 * high.abs()).max(0.05);
        (low - room, high + room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, wanted: usize) -> Vec<String> {
        let ticks = Ticks::between(low, high, wanted);
        ticks.values.iter().map(|v| ticks.label(*v)).collect()
    }

    #[test]
    fn ticks_are_at_round_values() {
        // 1 / 5 = 0.2 is itself a round step.
        let expected = ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"];
        assert_eq!(labels(0.0, 1.0, 5), expected);
        // 0.13 / 4 = 0.0325: the next round step is 0.05.
        assert_eq!(labels(-0.03, 0.10, 4), ["0.00", "0.05", "0.10"]);
        assert_eq!(labels(-0.06, 0.10, 4), ["−0.05", "0.00", "0.05", "0.10"]);
        // 49 / 5 = 9.8: the step is 10.
        assert_eq!(labels(1.0, 50.0, 5), ["10", "20", "30", "40", "50"]);
    }

    #[test]
    fn counts_have_no_fractions() {
        assert_eq!(Ticks::whole(0.0, 2.0, 5).values, [0.0, 1.0, 2.0]);
        assert_eq!(
            Ticks::whole(0.0, 40.0, 4).values,
            [0.0, 10.0, 20.0, 30.0, 40.0]
        );
    }

    #[test]
    fn powers_have_halves_only_where_there_is_room() {
        assert_eq!(powers(0.5, 20.0), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        let wide = powers(0.001, 10.0);
        let expected = [0.001, 0.01, 0.1, 1.0, 10.0];
        assert_eq!(wide.len(), expected.len());
        for (found, expected) in wide.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-12);
        }
        let (low, high) = outward(0.03, 7.0);
        assert!((low - 0.02).abs() < 1e-12 && (high - 10.0).abs() < 1e-12);
        let (low, high) = outward(1.0, 1.0);
        assert!(low < 1.0 && high > 1.0);
    }

    #[test]
    fn a_scale_maps_its_ends_and_its_middle() {
        let scale = Scale::linear((0.0, 10.0), (100.0, 0.0));
        assert_eq!(scale.place(0.0), 100.0);
        assert_eq!(scale.place(5.0), 50.0);
        assert_eq!(scale.place(20.0), 0.0);
        let scale = Scale::logarithmic((0.01, 100.0), (0.0, 400.0));
        assert!((scale.place(1.0) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn no_range_and_no_numbers_are_no_reason_to_panic() {
        for (low, high) in [
            (0.5, 0.5),
            (0.0, 0.0),
            (f64::NAN, 1.0),
            (0.0, f64::INFINITY),
            (1.0, 0.0),
            (1e300, 1e300),
            (0.0, 1e-300),
        ] {
            let ticks = Ticks::between(low, high, 5);
            assert!(!ticks.values.is_empty() && ticks.values.len() < 20);
            assert!(
                Scale::linear((low, high), (0.0, 1.0))
                    .place(low)
                    .is_finite()
                    || low.is_nan()
            );
            let (low, high) = rounded(low, high, 5);
            assert!(low < high);
        }
        assert!(powers(0.0, 1.0).is_empty());
        assert!(powers(f64::NAN, 1.0).is_empty());
    }
}
