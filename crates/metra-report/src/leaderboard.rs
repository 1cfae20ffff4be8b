//! The order of the lines, and how each stands to the best and to the base.
//!
//! Lines are ordered by the mean of the criterion; those of which a split failed come last and have
//! no place, since their means are over fewer splits. What is not a number never comes first.

use crate::charts::{Style, Tone};
use crate::measures::heading;
use metra::experiment::compare::{Evidence, Gain, Line, Results};

/// Lines in their order.
pub(crate) struct Leaderboard<'a> {
    pub(crate) results: &'a Results,
    pub(crate) lines: Vec<RankedLine<'a>>,
}

/// A line with its place.
pub(crate) struct RankedLine<'a> {
    pub(crate) line: &'a Line,
    /// From 1; `None` where a split failed or nothing was measured.
    pub(crate) place: Option<usize>,
    pub(crate) is_base: bool,
    pub(crate) is_best: bool,
    /// How it is drawn.
    pub(crate) style: Style,
}

/// How a line stands to the best one, by the criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgainstBest {
    /// The 95 % interval of the difference holds 0.
    Same,
    /// Only the adjusted interval holds 0.
    Nearly,
    /// Both intervals say that it is behind.
    Behind,
    /// It is the best, or was not compared.
    Apart,
}

impl<'a> Leaderboard<'a> {
    pub(crate) fn of(results: &'a Results) -> Self {
        let criterion = results.criterion();
        let mut lines: Vec<RankedLine<'a>> = results
            .lines
            .iter()
            .map(|line| RankedLine {
                line,
                place: None,
                is_base: line.name == results.base,
                is_best: line.name == results.best,
                style: Style::Background,
            })
            .collect();
        // Whole lines first, each kind from high to low; the sort keeps the experiment's order
        // among equals, but the one named best leads those that it ties with.
        let key = |ranked: &RankedLine<'_>| {
            let mean = mean(ranked.line, criterion);
            let whole = mean.is_some() && !ranked.line.failed();
            (whole, mean.unwrap_or(f64::NEG_INFINITY), ranked.is_best)
        };
        lines.sort_by(|a, b| {
            let ((a_whole, a_mean, a_best), (b_whole, b_mean, b_best)) = (key(a), key(b));
            let by_mean = b_mean.total_cmp(&a_mean);
            b_whole
                .cmp(&a_whole)
                .then(by_mean)
                .then(b_best.cmp(&a_best))
        });
        let whole = lines.iter().filter(|ranked| key(ranked).0).count();
        let mut series = 0;
        for (at, ranked) in lines.iter_mut().enumerate() {
            ranked.place = (at < whole).then_some(at + 1);
            if ranked.is_base {
                ranked.style = Style::Base;
            } else if series < Style::SERIES && at < whole {
                ranked.style = Style::Series(series);
                series += 1;
            }
        }
        Self { results, lines }
    }

    /// The line with the highest mean of the criterion, where there is one.
    pub(crate) fn best(&self) -> Option<&RankedLine<'a>> {
        self.lines.iter().find(|ranked| ranked.is_best)
    }

    /// The base, where it is among the lines.
    pub(crate) fn base(&self) -> Option<&RankedLine<'a>> {
        self.lines.iter().find(|ranked| ranked.is_base)
    }

    /// The highest mean of a measure among lines without failures.
    pub(crate) fn highest(&self, measure: usize) -> Option<f64> {
        let whole = self.lines.iter().filter(|ranked| !ranked.line.failed());
        whole
            .filter_map(|ranked| mean(ranked.line, measure))
            .max_by(f64::total_cmp)
    }

    /// How a line stands to the best by the criterion.
    pub(crate) fn rival(&self, ranked: &RankedLine<'_>) -> AgainstBest {
        if ranked.is_best {
            return AgainstBest::Apart;
        }
        match self.of_criterion(&ranked.line.against_best) {
            None => AgainstBest::Apart,
            Some(gain) if gain.evidence == Evidence::None => AgainstBest::Same,
            Some(gain) if gain.adjusted == Evidence::None => AgainstBest::Nearly,
            Some(_) => AgainstBest::Behind,
        }
    }

    /// The heading of the criterion.
    pub(crate) fn criterion(&self) -> String {
        heading(&self.results.protocol.criterion)
    }

    /// The gain by the criterion.
    pub(crate) fn of_criterion<'g>(&self, gains: &'g [Gain]) -> Option<&'g Gain> {
        gain_of(gains, &self.results.protocol.criterion)
    }
}

impl RankedLine<'_> {
    /// The place as text; a dash where there is none.
    pub(crate) fn badge(&self) -> String {
        self.place.map_or("–".to_owned(), |place| place.to_string())
    }
}

/// The colour of evidence.
pub(crate) fn tone(evidence: Evidence) -> Tone {
    match evidence {
        Evidence::Better => Tone::Better,
        Evidence::Worse => Tone::Worse,
        Evidence::None => Tone::Neither,
    }
}

/// The gain by a measure.
pub(crate) fn gain_of<'g>(gains: &'g [Gain], measure: &str) -> Option<&'g Gain> {
    gains.iter().find(|gain| gain.measure == measure)
}

/// The finite mean of a measure.
pub(crate) fn mean(line: &Line, measure: usize) -> Option<f64> {
    let mean = line.measures.get(measure)?.mean;
    mean.is_finite().then_some(mean)
}
