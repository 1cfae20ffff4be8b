//! What the figures say, in sentences. Both forms of the report use the same ones.

use crate::leaderboard::{AgainstBest, Leaderboard, RankedLine, mean};
use crate::measures::heading;
use crate::numbers::{count, gain, interval, score, seconds};
use crate::tables::PartTable;
use metra::evaluate::INTERVALS;
use metra::experiment::compare::{Costs, Evidence, Finding, Gain, ProtocolFacts, Results, Sizes};
use serde::Serialize;

/// A part of a sentence: plain words, or a name that a caller gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) name: bool,
}

/// A heading with what is to be said under it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Remark {
    pub(crate) heading: &'static str,
    pub(crate) spans: Vec<Span>,
}

/// A term with its explanation.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Fact {
    pub(crate) term: String,
    pub(crate) text: String,
}

impl Fact {
    pub(crate) fn new(term: impl Into<String>, text: impl Into<String>) -> Self {
        Fact {
            term: term.into(),
            text: text.into(),
        }
    }
}

/// Sentences that grow.
#[derive(Debug, Default)]
struct Sentences {
    spans: Vec<Span>,
}

impl Sentences {
    fn say(&mut self, text: impl Into<String>) -> &mut Self {
        let (text, name) = (text.into(), false);
        self.spans.push(Span { text, name });
        self
    }

    fn name(&mut self, name: &str) -> &mut Self {
        let (text, name) = (name.to_owned(), true);
        self.spans.push(Span { text, name });
        self
    }

    /// `a, b and c`; of a long list the end is counted.
    fn names(&mut self, names: &[&str]) -> &mut Self {
        const MOST: usize = 12;
        let shown = if names.len() > MOST {
            MOST - 1
        } else {
            names.len()
        };
        for (at, name) in names.iter().take(shown).enumerate() {
            if at > 0 {
                let last = at + 1 == names.len();
                self.say(if last { " and " } else { ", " });
            }
            self.name(name);
        }
        if shown < names.len() {
            self.say(format!(" and {} more", names.len() - shown));
        }
        self
    }

    fn under(self, heading: &'static str) -> Remark {
        Remark {
            heading,
            spans: self.spans,
        }
    }
}

/// What seen and unseen items, or classes, are: a heading and an explanation.
pub(crate) fn seen(tables: &[PartTable]) -> (&'static str, &'static str) {
    match tables.iter().any(|table| table.part.ends_with("classes")) {
        true => ("Seen and unseen classes", SEEN_CLASSES),
        false => ("Seen and unseen items", SEEN_ITEMS),
    }
}

const SEEN_CLASSES: &str = "Training had no row of an unseen class: it is found by what the orderings say of \
    it. A method that finds none of these rows can only name seen classes.";

const SEEN_ITEMS: &str = "A query whose relevant items training had seen as relevant to other \
    queries can be answered from memory; one whose relevant items are all new cannot. What a \
    method gains on the latter is what it will gain on items that come later.";

/// The summary.
pub(crate) fn summary(leaderboard: &Leaderboard<'_>) -> Vec<Remark> {
    let parts = [
        best(leaderboard),
        memory(leaderboard),
        rivals(leaderboard),
        others(leaderboard),
        lost(leaderboard),
        failed(leaderboard),
        Some(choice(&leaderboard.results.protocol)),
        Some(many(leaderboard)),
    ];
    parts.into_iter().flatten().collect()
}

/// What to do by the results of a comparison, in a sentence.
pub fn verdict(results: &Results) -> String {
    let spans = conclusion(&Leaderboard::of(results));
    spans.into_iter().map(|span| span.text).collect()
}

/// The same with the names marked, for the first line of the page.
pub(crate) fn conclusion(leaderboard: &Leaderboard<'_>) -> Vec<Span> {
    let results = leaderboard.results;
    let base = results.base.as_str();
    let mut sentences = Sentences::default();
    let learned = leaderboard.best().filter(|best| !best.is_base);
    let difference = learned.and_then(|best| {
        let difference = leaderboard.of_criterion(&best.line.against_base)?;
        Some((best.line, difference))
    });
    let Some((line, difference)) = difference else {
        sentences.say("Keep ").name(base);
        sentences.say(format!(
            ": no method is ahead of it by {}.",
            leaderboard.criterion()
        ));
        return sentences.spans;
    };
    let unseen = line.parts.iter().find(|part| part.part == "unseen items");
    let unseen = unseen.and_then(|part| part.gain.as_ref());
    match (difference.adjusted, unseen.map(|gain| gain.evidence)) {
        (Evidence::Better, Some(Evidence::Worse)) => {
            sentences.say("Keep ").name(base).say(": ").name(&line.name);
            sentences.say(" is better on items that training had seen and worse on new ones");
        }
        (Evidence::Better, _) => {
            sentences
                .say("Ship ")
                .name(&line.name)
                .say(": it is better than ");
            sentences.name(base).say(" by more than chance");
        }
        (_, _) => {
            sentences.say("Keep ").name(base).say(": ").name(&line.name);
            sentences.say(" is ahead, but not by more than chance");
        }
    }
    sentences.say(format!(
        " ({} {}).",
        leaderboard.criterion(),
        gain(difference)
    ));
    if (difference.evidence, difference.adjusted) == (Evidence::Better, Evidence::None) {
        sentences.say(format!(
            " This interval is that of one comparison. {} were made, and the interval that allows for this, {}, holds 0. \
             To settle it, compare ",
            results.protocol.comparisons,
            interval(difference.wide_low, difference.wide_high)
        ));
        sentences.name(&line.name).say(" alone with ").name(base);
        sentences.say(" on test rows that were not used yet.");
    }
    if let (Evidence::Better, Some(new)) = (difference.adjusted, unseen) {
        sentences.say(format!(" On new items: {}.", gain(new)));
    }
    sentences.spans
}

fn best(leaderboard: &Leaderboard<'_>) -> Option<Remark> {
    let results = leaderboard.results;
    let mut sentences = Sentences::default();
    let Some(best) = leaderboard.best() else {
        sentences.say("No line was measured on every split, so none is best.");
        return Some(sentences.under("Best"));
    };
    let reached = mean(best.line, results.criterion());
    let reached = reached.map_or("no value".to_owned(), score);
    sentences.name(&best.line.name);
    sentences.say(format!(
        " is best: {} {reached}{}.",
        leaderboard.criterion(),
        over(results)
    ));
    if best.is_base {
        sentences.say(" It is the base itself: no method is ahead of it.");
        return Some(sentences.under("Best"));
    }
    let Some(difference) = leaderboard.of_criterion(&best.line.against_base) else {
        sentences.say(" It could not be compared with the base query by query.");
        return Some(sentences.under("Best"));
    };
    let base = leaderboard
        .base()
        .map_or(results.base.as_str(), |base| &base.line.name);
    sentences.say(" Against the base ").name(base);
    sentences.say(format!(
        " that is {} (95 % interval){}. {}",
        gain(difference),
        ahead(difference, results),
        strength(difference, results)
    ));
    Some(sentences.under("Best"))
}

/// A gain that the best line has on seen items alone.
fn memory(leaderboard: &Leaderboard<'_>) -> Option<Remark> {
    let line = leaderboard.best()?.line;
    let overall = leaderboard.of_criterion(&line.against_base)?;
    let unseen = line.parts.iter().find(|part| part.part == "unseen items")?;
    let new = unseen.gain.as_ref()?;
    if overall.evidence != Evidence::Better || new.evidence == Evidence::Better {
        return None;
    }
    let mut sentences = Sentences::default();
    sentences.say("On the ");
    sentences.say(count(unseen.queries, "query"));
    sentences.say(" none of whose relevant items training had seen, ");
    sentences.name(&line.name);
    sentences.say(match new.evidence {
        Evidence::Worse => format!(" loses ({}): what it gains is on known items.", gain(new)),
        _ => format!(
            " gains nothing that could be shown ({}): its gain may be memory of known items.",
            gain(new)
        ),
    });
    Some(sentences.under("Memory"))
}

fn rivals(leaderboard: &Leaderboard<'_>) -> Option<Remark> {
    leaderboard.best()?;
    let of = |wanted: AgainstBest| names(leaderboard, |ranked| leaderboard.rival(ranked) == wanted);
    let (same, nearly) = (of(AgainstBest::Same), of(AgainstBest::Nearly));
    let mut sentences = Sentences::default();
    match same[..] {
        [] => {
            let behind = of(AgainstBest::Behind).len() + nearly.len();
            if behind < 2 {
                return None;
            }
            sentences.say("Every other line that was compared is behind it by its 95 % interval.");
        }
        _ => {
            sentences.names(&same).say(format!(
                " cannot be told from the best: the interval of the difference holds 0. Choose \
                 among {} by cost.",
                if same.len() == 1 { "the two" } else { "these" }
            ));
        }
    }
    if !nearly.is_empty() {
        sentences
            .say(" Allowing for all comparisons, ")
            .names(&nearly);
        sentences.say(if same.is_empty() {
            " cannot be told from it."
        } else {
            " cannot be told from it either."
        });
    }
    Some(sentences.under("Level with the best"))
}

fn others(leaderboard: &Leaderboard<'_>) -> Option<Remark> {
    let of = |wanted: Evidence| {
        names(leaderboard, |ranked| {
            let difference = leaderboard.of_criterion(&ranked.line.against_base);
            !ranked.is_best && difference.is_some_and(|gain| gain.evidence == wanted)
        })
    };
    let (better, none, worse) = (
        of(Evidence::Better),
        of(Evidence::None),
        of(Evidence::Worse),
    );
    if better.len() + none.len() + worse.len() == 0 {
        return None;
    }
    let mut sentences = Sentences::default();
    for (names, words) in [
        (better, "Better than the base"),
        (none, "No evidence of a difference"),
        (worse, "Worse than the base"),
    ] {
        if names.is_empty() {
            continue;
        }
        let start = if sentences.spans.is_empty() { "" } else { " " };
        let words = format!("{start}{words}: ");
        sentences.say(words).names(&names).say(".");
    }
    Some(sentences.under("The others, against the base"))
}

/// Measures and queries for which the best is worse than the base.
fn lost(leaderboard: &Leaderboard<'_>) -> Option<Remark> {
    let best = leaderboard.best().filter(|best| !best.is_base)?;
    let gains = &best.line.against_base;
    let mut sentences = Sentences::default();
    let list = |wanted: Evidence| -> Vec<String> {
        let of = gains.iter().filter(|gain| gain.evidence == wanted);
        of.map(|difference| match wanted {
            Evidence::Worse => format!("{} {}", heading(&difference.measure), gain(difference)),
            _ => heading(&difference.measure),
        })
        .collect()
    };
    let (worse, none) = (list(Evidence::Worse), list(Evidence::None));
    if !worse.is_empty() {
        sentences.say(format!(
            "The best is worse than the base by {}. ",
            worse.join(", ")
        ));
    }
    if !none.is_empty() {
        sentences.say(format!(
            "No evidence of a difference by {}. ",
            none.join(", ")
        ));
    }
    if let Some(queries) = &best.line.queries {
        let all = queries.better + queries.equal + queries.worse;
        sentences.say(format!(
            "By {}, {} of {} lost, {} gained and {} stayed as they were.",
            leaderboard.criterion(),
            queries.worse,
            count(all, "query"),
            queries.better,
            queries.equal
        ));
    }
    (!sentences.spans.is_empty()).then(|| sentences.under("What was lost"))
}

fn failed(leaderboard: &Leaderboard<'_>) -> Option<Remark> {
    let failed = names(leaderboard, |ranked| ranked.line.failed());
    if failed.is_empty() {
        return None;
    }
    let mut sentences = Sentences::default();
    sentences.names(&failed).say(
        " failed on at least one split; they have no place and no intervals, and their reasons are \
         listed below.",
    );
    Some(sentences.under("Failed"))
}

fn choice(protocol: &ProtocolFacts) -> Remark {
    let mut sentences = Sentences::default();
    let criterion = heading(&protocol.criterion);
    if protocol.budget > 1 {
        sentences.say(format!(
            "Chosen by {criterion} on the validation part of each split, at most {} a method; test \
             parts were read once, with what had been chosen.",
            count(protocol.budget, "setting")
        ));
    } else {
        sentences.say(format!(
            "One setting a method, fixed beforehand; what is chosen after the fit (score, number of \
             steps) was chosen by {criterion} on the validation part. Test parts were read once."
        ));
    }
    if let Some(factor) = protocol.halving {
        sentences.say(format!(
            " Long trials were stopped early: of each round the best 1 in {factor} went on."
        ));
    }
    sentences.under("Settings")
}

fn many(leaderboard: &Leaderboard<'_>) -> Remark {
    let protocol = &leaderboard.results.protocol;
    let mut sentences = Sentences::default();
    let resamples = protocol.resamples;
    let mut gains = leaderboard
        .lines
        .iter()
        .flat_map(|ranked| &ranked.line.against_base);
    let drawn = gains.next().map_or("queries".to_owned(), |gain| {
        // What rises and falls together is drawn together.
        if gain.clusters == gain.queries {
            count(gain.queries, "query")
        } else if protocol.protocol == "judged" {
            format!("{} queries, each with all its occurrences", gain.clusters)
        } else if protocol.holdout == "identities" {
            format!("{} identities with all their queries", gain.clusters)
        } else {
            format!("{} classes with all their queries", gain.clusters)
        }
    });
    sentences.say(format!(
        "Intervals of 95 % are by {INTERVALS}: {resamples} resamples of {drawn}."
    ));
    if protocol.comparisons > 1 {
        let comparisons = protocol.comparisons;
        sentences.say(format!(
            " Of {comparisons} such intervals at once, some miss 0 by luck alone, so a second, \
             wider one allows for all of them (Bonferroni, {:.2} % each). A gain that only the \
             first supports is marked *. The best was picked by the same test figures, which \
             flatters it a little.",
            100.0 - 5.0 / comparisons as f64
        ));
    }
    sentences.under("How sure")
}

/// How it was compared, term by term.
pub(crate) fn protocol(results: &Results) -> Vec<Fact> {
    let protocol = &results.protocol;
    let measures: Vec<String> = protocol.measures.iter().map(|name| heading(name)).collect();
    let mut facts = vec![
        Fact::new("Judged", protocol.protocol.clone()),
        Fact::new("Held out", protocol.holdout.clone()),
        Fact::new("Splits", splits(&protocol.splits, protocol.folds)),
        Fact::new("Measures", measures.join(", ")),
        Fact::new("Criterion", heading(&protocol.criterion)),
        Fact::new(
            "Settings a method",
            format!("at most {} on each split", protocol.budget),
        ),
    ];
    if let Some(factor) = protocol.halving {
        facts.push(Fact::new("Successive halving", format!("factor {factor}")));
    }
    if let Some(rerank) = &protocol.rerank {
        facts.push(Fact::new("Re-ranking", rerank.clone()));
    }
    let intervals = format!(
        "{INTERVALS}, {} resamples; the wide ones allow for {}",
        protocol.resamples,
        count(protocol.comparisons, "comparison")
    );
    facts.push(Fact::new("Intervals", intervals));
    facts.push(Fact::new("Seed", protocol.seed.to_string()));
    facts
}

/// What it cost altogether.
pub(crate) fn costs(costs: &Costs) -> String {
    let mut text = String::new();
    if costs.wall_seconds > 0.0 {
        text += &format!(
            "All trials and fits took {} of CPU time and {} from start to end, {} at once. ",
            seconds(costs.cpu_seconds),
            seconds(costs.wall_seconds),
            count(costs.threads, "trial")
        );
    }
    // Without the yardstick fits were not run alone: other trials ran beside them.
    text += &match costs.product_seconds > 0.0 {
        true => format!(
            "Times of one fit are on one thread, alone; beside them a 2048 × 2048 × 2048 product in \
             f32 took {}, which is the yardstick for other machines.",
            seconds(costs.product_seconds)
        ),
        false => "Times of one fit are those of the fit on the first split.".to_owned(),
    };
    text
}

/// ` in 9 of 10 splits`, where there are several.
pub(crate) fn ahead(gain: &Gain, results: &Results) -> String {
    match results.protocol.splits.len() {
        0 | 1 => String::new(),
        splits => format!(", ahead in {} of {splits} splits", gain.ahead),
    }
}

fn strength(gain: &Gain, results: &Results) -> String {
    let comparisons = count(results.protocol.comparisons, "comparison");
    match (gain.evidence, gain.adjusted) {
        (Evidence::None, _) => "The interval holds 0: no evidence of a difference.".to_owned(),
        (_, Evidence::None) => {
            format!("The evidence does not survive allowing for {comparisons}.")
        }
        _ if results.protocol.comparisons > 1 => {
            format!("The evidence survives allowing for {comparisons}.")
        }
        _ => format!(
            "The interval does not hold 0, over {}.",
            count(gain.queries, "query")
        ),
    }
}

fn over(results: &Results) -> String {
    match (results.protocol.splits.len(), results.protocol.folds) {
        (0 | 1, _) => String::new(),
        (splits, true) => format!(" over all queries of {splits} folds"),
        (splits, false) => format!(" in the mean of {splits} splits"),
    }
}

fn splits(splits: &[Sizes], folds: bool) -> String {
    let range = |of: fn(&Sizes) -> usize| {
        let low = splits.iter().map(of).min().unwrap_or(0);
        let high = splits.iter().map(of).max().unwrap_or(0);
        if low == high {
            low.to_string()
        } else {
            format!("{low} to {high}")
        }
    };
    if splits.is_empty() {
        return "none".to_owned();
    }
    let kind = if folds { "fold" } else { "split" };
    format!(
        "{}: {} to learn from, {} to choose settings on, {} to judge",
        count(splits.len(), kind),
        range(|sizes| sizes.train),
        range(|sizes| sizes.validation),
        range(|sizes| sizes.test)
    )
}

fn names<'a>(
    leaderboard: &Leaderboard<'a>,
    keep: impl Fn(&RankedLine<'a>) -> bool,
) -> Vec<&'a str> {
    let kept = leaderboard.lines.iter().filter(|ranked| keep(ranked));
    kept.map(|ranked| ranked.line.name.as_str()).collect()
}

/// Of how many claims what came.
pub(crate) fn claims(results: &Results) -> String {
    let of = |wanted: Finding| {
        let found = results
            .claims
            .iter()
            .filter(|claim| claim.finding == wanted);
        format!("{} {}", found.count(), wanted.words())
    };
    format!(
        "Of {}: {}, {}, {}. A claim is reproduced where the 95 % interval of the difference is \
         above 0, not reproduced where it is below, and undecided where it holds 0.",
        count(results.claims.len(), "claim"),
        of(Finding::Reproduced),
        of(Finding::NotReproduced),
        of(Finding::Undecided)
    )
}

/// What was compared on, term by term.
pub(crate) fn data(results: &Results) -> Vec<Fact> {
    let facts = [
        ("Data", &results.data.text),
        ("Digest of the vectors", &results.data.fingerprint),
        ("Digest of the supervision", &results.data.supervision),
    ];
    let known = facts.into_iter().filter(|(_, text)| !text.is_empty());
    known.map(|(term, text)| Fact::new(term, text)).collect()
}

/// What is known of a gain.
pub(crate) fn evidence(gain: &Gain) -> &'static str {
    match (gain.evidence, gain.adjusted) {
        (Evidence::None, _) => "no evidence",
        (Evidence::Better, Evidence::None) => "better, but not after adjusting",
        (Evidence::Better, _) => "better",
        (Evidence::Worse, Evidence::None) => "worse, but not after adjusting",
        (Evidence::Worse, _) => "worse",
    }
}

/// The paragraphs of a text, which blank lines separate.
pub(crate) fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("\n\n").map(str::trim);
    parts.filter(|part| !part.is_empty())
}
