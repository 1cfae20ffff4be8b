//! What the figures say, in sentences. Both forms of the report use the same ones.

use crate::measures::heading;
use crate::numbers::{count, gain, score, seconds};
use crate::standing::{Placed, Rival, Standing, mean};
use metra::study::compare::{Costs, Evidence, Finding, Gain, ProtocolFacts, Results, Sizes};
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
struct Saying {
    spans: Vec<Span>,
}

impl Saying {
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

/// What seen and unseen items are.
pub(crate) const SEEN: &str = "A query whose relevant items training had seen as relevant to other \
    queries can be answered from memory; one whose relevant items are all new cannot. What a \
    method gains on the latter is what it will gain on items that come later.";

/// The summary.
pub(crate) fn summary(standing: &Standing<'_>) -> Vec<Remark> {
    let parts = [
        best(standing),
        memory(standing),
        rivals(standing),
        others(standing),
        lost(standing),
        failed(standing),
        Some(choice(&standing.results.protocol)),
        Some(many(standing)),
    ];
    parts.into_iter().flatten().collect()
}

fn best(standing: &Standing<'_>) -> Option<Remark> {
    let results = standing.results;
    let mut saying = Saying::default();
    let Some(best) = standing.best() else {
        saying.say("No line was measured on every split, so none is best.");
        return Some(saying.under("Best"));
    };
    let reached = mean(best.line, results.criterion());
    let reached = reached.map_or("no value".to_owned(), score);
    saying.name(&best.line.name);
    saying.say(format!(
        " is best: {} {reached}{}.",
        standing.criterion(),
        over(results)
    ));
    if best.is_base {
        saying.say(" It is the base itself: no method is ahead of it.");
        return Some(saying.under("Best"));
    }
    let Some(difference) = standing.of_criterion(&best.line.against_base) else {
        saying.say(" It could not be compared with the base query by query.");
        return Some(saying.under("Best"));
    };
    let base = standing
        .base()
        .map_or(results.base.as_str(), |base| &base.line.name);
    saying.say(" Against the base ").name(base);
    saying.say(format!(
        " that is {} (95 % interval){}. {}",
        gain(difference),
        ahead(difference, results),
        strength(difference, results)
    ));
    Some(saying.under("Best"))
}

/// A gain that the best line has on seen items alone.
fn memory(standing: &Standing<'_>) -> Option<Remark> {
    let line = standing.best()?.line;
    let overall = standing.of_criterion(&line.against_base)?;
    let unseen = line.parts.iter().find(|part| part.part == "unseen items")?;
    let new = unseen.gain.as_ref()?;
    if overall.evidence != Evidence::Better || new.evidence == Evidence::Better {
        return None;
    }
    let mut saying = Saying::default();
    saying.say("On the ");
    saying.say(count(unseen.queries, "query"));
    saying.say(" none of whose relevant items training had seen, ");
    saying.name(&line.name);
    saying.say(format!(
        " gains nothing that could be shown ({}): its gain may be memory of known items.",
        gain(new)
    ));
    Some(saying.under("Memory"))
}

fn rivals(standing: &Standing<'_>) -> Option<Remark> {
    standing.best()?;
    let of = |wanted: Rival| names(standing, |placed| standing.rival(placed) == wanted);
    let (same, nearly) = (of(Rival::Same), of(Rival::Nearly));
    let mut saying = Saying::default();
    match same[..] {
        [] => {
            let behind = of(Rival::Behind).len() + nearly.len();
            if behind < 2 {
                return None;
            }
            saying.say("Every other line that was compared is behind it by its 95 % interval.");
        }
        _ => {
            saying.names(&same).say(format!(
                " cannot be told from the best: the interval of the difference holds 0. Choose \
                 among {} by cost.",
                if same.len() == 1 { "the two" } else { "these" }
            ));
        }
    }
    if !nearly.is_empty() {
        saying.say(" Allowing for all comparisons, ").names(&nearly);
        saying.say(if same.is_empty() {
            " cannot be told from it."
        } else {
            " cannot be told from it either."
        });
    }
    Some(saying.under("Level with the best"))
}

fn others(standing: &Standing<'_>) -> Option<Remark> {
    let of = |wanted: Evidence| {
        names(standing, |placed| {
            let difference = standing.of_criterion(&placed.line.against_base);
            !placed.is_best && difference.is_some_and(|gain| gain.evidence == wanted)
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
    let mut saying = Saying::default();
    for (names, words) in [
        (better, "Better than the base"),
        (none, "No evidence of a difference"),
        (worse, "Worse than the base"),
    ] {
        if names.is_empty() {
            continue;
        }
        let start = if saying.spans.is_empty() { "" } else { " " };
        let words = format!("{start}{words}: ");
        saying.say(words).names(&names).say(".");
    }
    Some(saying.under("The others, against the base"))
}

/// Measures and queries for which the best is worse than the base.
fn lost(standing: &Standing<'_>) -> Option<Remark> {
    let best = standing.best().filter(|best| !best.is_base)?;
    let gains = &best.line.against_base;
    let mut saying = Saying::default();
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
        saying.say(format!(
            "The best is worse than the base by {}. ",
            worse.join(", ")
        ));
    }
    if !none.is_empty() {
        saying.say(format!(
            "No evidence of a difference by {}. ",
            none.join(", ")
        ));
    }
    if let Some(queries) = &best.line.queries {
        let all = queries.better + queries.equal + queries.worse;
        saying.say(format!(
            "By {}, {} of {} lost, {} gained and {} stayed as they were.",
            standing.criterion(),
            queries.worse,
            count(all, "query"),
            queries.better,
            queries.equal
        ));
    }
    (!saying.spans.is_empty()).then(|| saying.under("What was lost"))
}

fn failed(standing: &Standing<'_>) -> Option<Remark> {
    let failed = names(standing, |placed| placed.line.failed());
    if failed.is_empty() {
        return None;
    }
    let mut saying = Saying::default();
    saying.names(&failed).say(
        " failed on at least one split; they have no place and no intervals, and their reasons are \
         listed below.",
    );
    Some(saying.under("Failed"))
}

fn choice(protocol: &ProtocolFacts) -> Remark {
    let mut saying = Saying::default();
    let criterion = heading(&protocol.criterion);
    if protocol.budget > 1 {
        saying.say(format!(
            "Chosen by {criterion} on the validation part of each split, at most {} a method; test \
             parts were read once, with what had been chosen.",
            count(protocol.budget, "setting")
        ));
    } else {
        saying.say(format!(
            "One setting a method, fixed beforehand; what is chosen after the fit (score, number of \
             steps) was chosen by {criterion} on the validation part. Test parts were read once."
        ));
    }
    if let Some(factor) = protocol.halving {
        saying.say(format!(
            " Long trials were stopped early: of each round the best 1 in {factor} went on."
        ));
    }
    saying.under("Settings")
}

fn many(standing: &Standing<'_>) -> Remark {
    let protocol = &standing.results.protocol;
    let mut saying = Saying::default();
    let resamples = protocol.resamples;
    let mut gains = standing
        .lines
        .iter()
        .flat_map(|placed| &placed.line.against_base);
    let drawn = gains.next().map_or("queries".to_owned(), |gain| {
        // Queries of one identity rise and fall together, so identities are drawn where they differ.
        if gain.clusters < gain.queries {
            format!("{} identities with all their queries", gain.clusters)
        } else {
            count(gain.queries, "query")
        }
    });
    saying.say(format!(
        "Intervals are paired bootstrap intervals of 95 %: {resamples} resamples of {drawn}."
    ));
    if protocol.comparisons > 1 {
        let comparisons = protocol.comparisons;
        saying.say(format!(
            " Of {comparisons} such intervals at once, some miss 0 by luck alone, so a second, \
             wider one allows for all of them (Bonferroni, {:.2} % each). A gain that only the \
             first supports is marked *. The best was picked by the same test figures, which \
             flatters it a little.",
            100.0 - 5.0 / comparisons as f64
        ));
    }
    saying.under("How sure")
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
        "paired bootstrap, {} resamples; the wide ones allow for {}",
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

fn names<'a>(standing: &Standing<'a>, keep: impl Fn(&Placed<'a>) -> bool) -> Vec<&'a str> {
    let kept = standing.lines.iter().filter(|placed| keep(placed));
    kept.map(|placed| placed.line.name.as_str()).collect()
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
pub(crate) fn verdict(gain: &Gain) -> &'static str {
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
