//! Times in the names of files: dates with or without a time of day, as cron lines and crawlers write
//! them, to seconds since 1970.
//!
//! Only order and distances in time count, so that zones do not matter as long as all names mean the same
//! one, and there is no need of a calendar library: days follow from Hinnant's `days_from_civil`
//! (howardhinnant.github.io/date_algorithms.html), which is exact for the Gregorian calendar.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;

/// Seconds since 1970 of the first date in a text, with the time of day that follows it if there is one:
/// `2026-11-15`, `2026-11-15T10-30-00`, `page_20261115_103000`, `20261115103000`, `2026-11-15 10:30`.
pub fn parse_time(text: &str) -> Option<f64> {
    let digits: Vec<(usize, u32)> = (text.char_indices())
        .filter_map(|(place, letter)| Some((place, letter.to_digit(10)?)))
        .collect();
    (0..digits.len()).find_map(|start| {
        // A date begins where a number begins.
        let (place, _) = *digits.get(start)?;
        let inside = start > 0 && digits.get(start - 1)?.0 + 1 == place;
        if inside { None } else { moment(text, place) }
    })
}

/// The name of a file for a moment, in UTC: `2026-11-15T10-30-00Z`. No colons, which Windows forbids.
pub fn file_name(at: SystemTime) -> String {
    let seconds = at
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs() as i64;
    let (days, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}Z")
}

fn moment(text: &str, place: usize) -> Option<f64> {
    let mut rest = text.get(place..)?;
    let year = number(&mut rest, 4)?;
    let dashed = skip(&mut rest, "-_.");
    let month = number(&mut rest, 2)?;
    if dashed != skip(&mut rest, "-_.") {
        return None;
    }
    let day = number(&mut rest, 2)?;
    let known = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && civil_from_days(days_from_civil(year, month, day)) == (year, month, day);
    if !known {
        return None;
    }
    let date = days_from_civil(year, month, day) * DAY;
    let Some(seconds) = time_of_day(rest) else {
        // More digits at once are another number than a date: an id, say.
        let longer = rest.starts_with(|letter: char| letter.is_ascii_digit());
        return if longer { None } else { Some(date as f64) };
    };
    Some(date as f64 + seconds)
}

/// Hours, minutes and, where they are given, seconds with a fraction.
fn time_of_day(mut rest: &str) -> Option<f64> {
    skip(&mut rest, "Tt_- ");
    let hour = number(&mut rest, 2)?;
    let parted = skip(&mut rest, "-:_.");
    let minute = number(&mut rest, 2)?;
    let mut seconds = 0.0;
    let before = rest;
    if skip(&mut rest, "-:_.") == parted
        && let Some(whole) = number(&mut rest, 2)
    {
        seconds = whole as f64;
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let Some(after) = rest.strip_prefix('.')
            && digits(after) > 0
            && let Ok(fraction) = format!("0.{}", &after[..digits(after)]).parse::<f64>()
        {
            seconds += fraction;
            rest = &after[digits(after)..];
        }
    } else {
        rest = before;
    }
    let fits = hour < 24 && minute < 60 && seconds < 61.0;
    let longer = rest.starts_with(|letter: char| letter.is_ascii_digit());
    (fits && !longer).then_some((hour * 3600 + minute * 60) as f64 + seconds)
}

fn number(rest: &mut &str, digits: usize) -> Option<i64> {
    let found = rest.get(..digits)?;
    if !found.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    *rest = rest.get(digits..)?;
    found.parse().ok()
}

fn skip(rest: &mut &str, any: &str) -> bool {
    match rest.strip_prefix(|letter: char| any.contains(letter)) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (years + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds as `date -u -d "2026-11-15 10:30:00" +%s` prints them.
    const MOMENT: f64 = 1_794_738_600.0;

    #[test]
    fn names_of_many_kinds_mean_one_moment() {
        for name in [
            "2026-11-15T10-30-00",
            "2026-11-15T10-30-00Z",
            "2026-11-15T10:30",
            "2026-11-15 10.30.00",
            "2026_11_15_10_30_00",
            "20261115T103000",
            "20261115103000",
            "bbc-20261115_1030",
            "page 7 of 2026-11-15_10-30-00 full",
        ] {
            assert_eq!(parse_time(name), Some(MOMENT), "{name}");
        }
        assert_eq!(parse_time("2026-11-15"), Some(MOMENT - 37_800.0));
        assert_eq!(parse_time("20261115"), Some(MOMENT - 37_800.0));
        assert_eq!(parse_time("2026-11-15T10-30-00.250"), Some(MOMENT + 0.25));
        // 2024 was a leap year: `date -u -d 2024-02-29 +%s`.
        assert_eq!(parse_time("2024-02-29"), Some(1_709_164_800.0));
    }

    #[test]
    fn other_numbers_are_no_times() {
        for name in [
            "",
            "7",
            "page-12",
            "2026",
            "2026-13-01",
            "2023-02-29",
            "20261115999999",
            "é1",
        ] {
            assert_eq!(parse_time(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_is_read_back() {
        let at = UNIX_EPOCH + Duration::from_secs(MOMENT as u64);
        assert_eq!(file_name(at), "2026-11-15T10-30-00Z");
        for days in [0, 59, 60, 365, 10_957, 11_016, 20_772, 100_000] {
            let at = UNIX_EPOCH + Duration::from_secs(days * 86_400 + 3723);
            assert_eq!(
                parse_time(&file_name(at)),
                Some(days as f64 * 86_400.0 + 3723.0)
            );
        }
    }
}
