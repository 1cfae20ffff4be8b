//! Numbers as reports write them: four decimals for measures, a true minus sign, and units that
//! keep times and sizes short. What is no number is written as such and never as a value.

use metra::experiment::compare::Gain;

const NOTHING: &str = "n/a";

/// A measure.
pub(crate) fn score(value: f64) -> String {
    if value.is_finite() {
        minus(format!("{value:.4}"))
    } else {
        NOTHING.to_owned()
    }
}

/// A difference of measures, with its sign.
pub(crate) fn signed(value: f64) -> String {
    if !value.is_finite() {
        NOTHING.to_owned()
    } else if value.abs() < 0.00005 {
        "0.0000".to_owned()
    } else {
        minus(format!("{value:+.4}"))
    }
}

/// The ends of an interval.
pub(crate) fn interval(low: f64, high: f64) -> String {
    format!("[{}, {}]", signed(low), signed(high))
}

/// A difference with its 95 % interval.
pub(crate) fn gain(gain: &Gain) -> String {
    let ends = interval(gain.low, gain.high);
    format!("{} {ends}", signed(gain.difference))
}

/// CPU time.
pub(crate) fn seconds(value: f64) -> String {
    if !value.is_finite() || value < 0.0 {
        NOTHING.to_owned()
    } else if value < 0.001 {
        "< 1 ms".to_owned()
    } else if value < 0.9995 {
        format!("{:.0} ms", 1000.0 * value)
    } else if value < 9.995 {
        format!("{value:.2} s")
    } else if value < 99.95 {
        format!("{value:.1} s")
    } else if value < 6000.0 {
        format!("{value:.0} s")
    } else {
        format!("{:.1} h", value / 3600.0)
    }
}

/// Memory.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = value as f64 / 1024.0;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    for next in units {
        if value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if value < 9.95 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// A value that a learner reported, in at most five digits.
pub(crate) fn fact(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let size = value.abs();
    if value == value.round() && size < 1e9 {
        minus(format!("{value:.0}"))
    } else if (0.001..1e6).contains(&size) {
        let digits = (4 - size.log10().floor() as i32).clamp(0, 7) as usize;
        minus(format!("{value:.digits$}"))
    } else {
        minus(format!("{value:.3e}"))
    }
}

/// A number of things: `1 split`, `2 splits`; the plural of words in -y is written out.
pub(crate) fn count(number: usize, word: &str) -> String {
    let word = match (number, word) {
        (1, _) => word.to_owned(),
        (_, "query") => "queries".to_owned(),
        _ => format!("{word}s"),
    };
    format!("{number} {word}")
}

/// The text with units that stay on the line of their numbers.
pub(crate) fn unbroken(text: &str) -> String {
    [" %", " ms", " s "]
        .iter()
        .fold(text.to_owned(), |text, unit| {
            let bound = unit.replacen(' ', "\u{a0}", 1);
            text.replace(unit, &bound)
        })
}

fn minus(text: String) -> String {
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_have_four_decimals() {
        assert_eq!(score(0.87716), "0.8772");
        assert_eq!(score(f64::NAN), "n/a");
        assert_eq!(signed(0.21371), "+0.2137");
        assert_eq!(signed(-0.0043), "−0.0043");
        assert_eq!(signed(-0.00001), "0.0000");
        assert_eq!(interval(-0.1, 0.25), "[−0.1000, +0.2500]");
    }

    #[test]
    fn units_keep_values_short() {
        let times = [0.0, 0.0123, 0.9999, 4.618, 46.18, 461.8, 7200.0, f64::NAN];
        let expected = [
            "< 1 ms", "12 ms", "1.00 s", "4.62 s", "46.2 s", "462 s", "2.0 h", "n/a",
        ];
        assert_eq!(times.map(seconds), expected);
        let sizes = [0, 1536, 20 << 20, 1 << 30, u64::MAX];
        let expected = ["0.0 KiB", "1.5 KiB", "20 MiB", "1.0 GiB", "16777216 TiB"];
        assert_eq!(sizes.map(bytes), expected);
    }

    #[test]
    fn facts_keep_five_digits() {
        let values = [3.0, 0.012345678, 1234.5678, 1e-9, -2.5, f64::INFINITY];
        let expected = ["3", "0.012346", "1234.6", "1.000e−9", "−2.5000", "n/a"];
        assert_eq!(values.map(fact), expected);
        assert_eq!(count(1, "split") + &count(2, "query"), "1 split2 queries");
    }
}
