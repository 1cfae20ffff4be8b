//! Figures that are quoted in documents. A figure is the text of a link whose title says where it is from:
//!
//! ```text
//! [.9453](../results/clinc150.md "clinc150: SupCon: p@1")
//! ```
//!
//! The first part of the title is a file in `docs/results/data`. For a comparison, the second is a line and the third a
//! measure (the mean; of two numbers, mean and deviation), `MEASURE gain` (difference and ends of its interval), a part of
//! the queries such as `unseen items`, with ` gain` or without, `cpu` (seconds of one fit), `memory` (MiB) or a
//! fact that the learner reports; or the second
//! is `A > B`, a claim, and the third its measure. For any other file the second part is a JSON pointer, in which an entry of
//! a list is named by its `name`: a place in a list would be another entry's after the next run.
//!
//! The numbers in the text are replaced in order, each in the form that it has: sign, leading zero, decimals, per cent.

use super::data::{Comparison, Data};

use anyhow::{Context, Result, bail, ensure};
use metra::experiment::compare::{Gain, Line};
use serde_json::Value;

/// A value to be written.
#[derive(Clone, Copy)]
struct Quoted {
    value: f64,
    /// Whether it may be written in per cent.
    is_share: bool,
}

/// The line with its quotes up to date.
pub(super) fn updated(line: &str, data: &Data) -> Result<String> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(link) = next(rest) {
        out.push_str(&rest[..link.text_start]);
        let text = &rest[link.text_start..link.text_end];
        let text = find(link.title, text, data)
            .and_then(|values| replaced(text, &values))
            .with_context(|| format!("\"{}\"", link.title))?;
        out.push_str(&text);
        out.push_str(&rest[link.text_end..link.end]);
        rest = &rest[link.end..];
    }
    Ok(out + rest)
}

/// The line without its quotes.
pub(super) fn removed(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(link) = next(rest) {
        out.push_str(&rest[..link.text_start]);
        rest = &rest[link.end..];
    }
    out + rest
}

/// A link with a title that names a source.
struct Link<'t> {
    text_start: usize,
    text_end: usize,
    end: usize,
    title: &'t str,
}

fn next(line: &str) -> Option<Link<'_>> {
    line.match_indices("](").find_map(|(at, mark)| {
        let target = &line[at + mark.len()..];
        let (_, rest) = target.split_once(" \"")?;
        let (title, after) = rest.split_once("\")")?;
        // The title is this link's own, and names a source: another begins after it.
        if target[..target.len() - rest.len()].contains(')') || !title.contains(": ") {
            return None;
        }
        Some(Link {
            text_start: opening_bracket(&line[..at])? + 1,
            text_end: at,
            end: line.len() - after.len(),
            title,
        })
    })
}

/// A link's text may hold pairs of brackets, such as those of an interval.
fn opening_bracket(before: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in before.char_indices().rev() {
        match letter {
            ']' => depth += 1,
            '[' if depth == 0 => return Some(at),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// What the title names, for a link with this text.
fn find(title: &str, text: &str, data: &Data) -> Result<Vec<Quoted>> {
    let parts: Vec<&str> = title.split(": ").collect();
    if let Some(comparison) = data.comparisons.get(parts[0]) {
        let [_, line, what] = parts[..] else {
            bail!("expected the name of a comparison, a line and what is quoted of it");
        };
        return quoted(comparison, line, what);
    }
    let known = || {
        let names = data.comparisons.keys().chain(data.others.keys());
        names.map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    let other = (data.others.get(parts[0]))
        .with_context(|| format!("expected the name of a file of results ({})", known()))?;
    let [_, pointer] = parts[..] else {
        bail!("expected the name of a file and a JSON pointer");
    };
    let value = pointed(other, pointer).with_context(|| format!("{pointer} is not in it"))?;
    let values = match value.as_array() {
        Some(values) => values.iter().map(|value| value.as_f64()).collect(),
        None => value.as_f64().map(|value| vec![value]),
    };
    let values: Vec<f64> = values.with_context(|| format!("{pointer} is no number"))?;
    // Such a value may be of any unit: only the sign says that a share is meant.
    let is_share = text.contains('%');
    let quoted = values.into_iter().map(|value| Quoted { value, is_share });
    Ok(quoted.collect())
}

/// What a JSON pointer names; in a list of named entries, by the one name.
fn pointed<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    let mut parts = pointer.strip_prefix('/')?.split('/');
    parts.try_fold(value, |value, part| {
        let entries = value.as_array().filter(|entries| {
            let mut entries = entries.iter();
            entries.any(|entry| entry.get("name").is_some())
        });
        let Some(entries) = entries else {
            return value.pointer(&format!("/{part}"));
        };
        let mut named = entries.iter().filter(|entry| entry["name"] == part);
        named.next().filter(|_| named.next().is_none())
    })
}

fn quoted(comparison: &Comparison, name: &str, what: &str) -> Result<Vec<Quoted>> {
    let results = &comparison.results;
    if let Some((better, worse)) = name.split_once(" > ") {
        let claim = (results.claims.iter())
            .find(|claim| claim.better == better && claim.worse == worse && claim.measure == what)
            .context("there is no such claim")?;
        return Ok(ends(claim.gain.as_ref().context("it has no difference")?));
    }
    let line = (results.lines.iter())
        .find(|line| line.name == name)
        .with_context(|| {
            let names: Vec<&str> = results.lines.iter().map(|l| l.name.as_str()).collect();
            format!("expected a line of it ({})", names.join(", "))
        })?;
    let cost = || {
        comparison
            .costs
            .lines
            .get(name)
            .context("its cost is not known")
    };
    match what {
        "cpu" => Ok(vec![plain(cost()?.fit_cpu_seconds)]),
        "memory" => {
            let bytes = cost()?.fit_peak_bytes.context("its memory is not known")?;
            Ok(vec![plain(bytes as f64 / 1048576.0)])
        }
        _ => measured(line, what),
    }
}

fn measured(line: &Line, what: &str) -> Result<Vec<Quoted>> {
    if let Some(found) = line.measures.iter().find(|m| m.measure == what) {
        return Ok(vec![share(found.mean), share(found.deviation)]);
    }
    if let Some(part) = line.parts.iter().find(|part| part.part == what) {
        return Ok(vec![share(part.mean)]);
    }
    if let Some(fact) = line.fact(what) {
        return Ok(vec![plain(fact)]);
    }
    let of = what.strip_suffix(" gain").unwrap_or_default();
    if let Some(gain) = line.against_base.iter().find(|gain| gain.measure == of) {
        return Ok(ends(gain));
    }
    if let Some(part) = line.parts.iter().find(|part| part.part == of) {
        return Ok(ends(part.gain.as_ref().context("it has no gain")?));
    }
    bail!("expected a measure, MEASURE gain, a part of the queries, a fact, cpu or memory");
}

fn ends(gain: &Gain) -> Vec<Quoted> {
    [gain.difference, gain.low, gain.high].map(share).to_vec()
}

fn share(value: f64) -> Quoted {
    Quoted {
        value,
        is_share: true,
    }
}

fn plain(value: f64) -> Quoted {
    Quoted {
        value,
        is_share: false,
    }
}

/// The text with its numbers replaced in order.
fn replaced(text: &str, values: &[Quoted]) -> Result<String> {
    let is_percent = is_percent(text);
    let mut out = String::new();
    let mut rest = text;
    let mut values = values.iter();
    let mut count = 0;
    while let Some((start, end)) = number(rest) {
        let value = values
            .next()
            .with_context(|| format!("{text:?} has more numbers than there are values"))?;
        out.push_str(&rest[..start]);
        out.push_str(&written(&rest[start..end], is_percent, *value));
        rest = &rest[end..];
        count += 1;
    }
    ensure!(count > 0, "{text:?} has no number");
    Ok(out + rest)
}

/// Where the next number stands, with its sign.
fn number(text: &str) -> Option<(usize, usize)> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let digit = text.find(|c: char| c.is_ascii_digit())?;
    let start = text[..digit]
        .char_indices()
        .rev()
        .take_while(|(_, c)| matches!(c, '.' | '+' | '−' | '-'))
        .last()
        .map_or(digit, |(at, _)| at);
    let end = text[digit..]
        .find(|c| !is_part(c))
        .map_or(text.len(), |length| digit + length);
    // A full stop behind a number is the sentence's.
    let length = text[..end].trim_end_matches('.').len();
    Some((start, length))
}

/// Whether shares are written in per cent: by the sign, or because a number is above 1.
fn is_percent(text: &str) -> bool {
    let mut rest = text;
    while let Some((start, end)) = number(rest) {
        let bare = rest[start..end].trim_start_matches(['+', '−', '-']);
        if bare.parse::<f64>().is_ok_and(|number| number > 1.0) {
            return true;
        }
        rest = &rest[end..];
    }
    text.contains('%')
}

/// The value in the form of this number.
fn written(form: &str, is_percent: bool, quoted: Quoted) -> String {
    let bare = form.trim_start_matches(['+', '−', '-']);
    let is_signed = form.len() > bare.len();
    let decimals = bare.split_once('.').map_or(0, |(_, digits)| digits.len());
    let factor = match quoted.is_share && is_percent {
        true => 100.0,
        false => 1.0,
    };
    let value = quoted.value * factor;
    let mut digits = format!("{:.decimals$}", value.abs());
    if bare.starts_with('.') {
        digits = digits
            .strip_prefix('0')
            .map(str::to_owned)
            .unwrap_or(digits);
    }
    let is_zero = digits.chars().all(|c| matches!(c, '0' | '.'));
    let sign = match value {
        _ if is_zero => "",
        value if value < 0.0 => "−",
        _ if is_signed => "+",
        _ => "",
    };
    format!("{sign}{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Data {
        let mut data = Data::default();
        let value = serde_json::json!({"a": [0.1234, -0.05, 0.2], "b": 12.34, "c": {"d": 0.991},
            "e": [{"name": "x, 2", "f": 7}, {"name": "y"}, {"name": "y"}]});
        data.others.insert("bench".to_owned(), value);
        data
    }

    #[test]
    fn numbers_keep_their_form() {
        let line = |text: &str, pointer: &str| {
            let line = format!("x [{text}](a.md \"bench: {pointer}\"), [y](b.md) .5");
            let found = updated(&line, &data()).unwrap();
            let (found, rest) = found[3..].split_once("](a.md").unwrap();
            assert!(rest.ends_with(", [y](b.md) .5"));
            found.to_owned()
        };
        assert_eq!(line(".55", "/a/0"), ".12");
        assert_eq!(line("0.5555", "/a/0"), "0.1234");
        assert_eq!(line("+.1 [+.1, +.1]", "/a"), "+.1 [−.1, +.2]");
        assert_eq!(line("10.1 %", "/a/0"), "12.3 %");
        assert_eq!(line("99 %", "/c/d"), "99 %");
        assert_eq!(line("2", "/c/d"), "1");
        assert_eq!(line("1.000", "/c/d"), "0.991");
        assert_eq!(line("1.3 s, 0.75 s", "/a"), "0.1 s, −0.05 s");
        assert_eq!(line("9.9 s", "/b"), "12.3 s");
        assert_eq!(line("**.99** and .1", "/a"), "**.12** and −.1");
        assert_eq!(line("12 of", "/b"), "12 of");
        assert_eq!(line("1", "/e/x, 2/f"), "7");
        assert_eq!(removed("a [.5](b.md \"bench: /b\") .7"), "a [ .7");
    }

    #[test]
    fn what_is_nowhere_is_told() {
        let error = |title: &str| {
            let line = format!("[.5](a.md \"{title}\")");
            format!("{:#}", updated(&line, &data()).unwrap_err())
        };
        assert!(error("benches: /b").contains("bench"));
        assert!(error("bench: /z").contains("/z is not in it"));
        assert!(error("bench: /c").contains("no number"));
        assert!(error("bench: /e/0/f").contains("/e/0/f is not in it"));
        assert!(error("bench: /e/y/f").contains("/e/y/f is not in it"));
        let many = updated("[1, 2 and 3](a.md \"bench: /b\")", &data());
        assert!(format!("{:#}", many.unwrap_err()).contains("more numbers"));
    }
}
