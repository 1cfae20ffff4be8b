//! All claims of the four papers with what came of them: from the comparisons, and from a list of those that no comparison
//! tests.

use super::data::{Comparison, Data};
use super::{interval, prose, quotes};
use crate::markdown::without_code_spans;

use anyhow::{Context, Result, ensure};
use metra::experiment::compare::{ClaimOutcome, Finding};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Claims that no comparison tests.
const OTHERS: &str = "docs/results/other_claims.toml";

const PAPERS: [(&str, &str); 4] = [
    (
        "WARCA",
        "Jose and Fleuret, Scalable Metric Learning via Weighted Approximate Rank Component Analysis, ECCV 2016",
    ),
    (
        "FRML",
        "Lim and Lanckriet, Efficient Learning of Mahalanobis Metrics for Ranking, ICML 2014",
    ),
    (
        "SLR",
        "Qian and others, Similarity Learning via Adaptive Regression and Its Application to Image Retrieval, AAAI 2015",
    ),
    ("Qwise", "slides on quadruplet-wise constraints, 2013"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Others {
    claim: Vec<Other>,
}

/// A claim that no comparison tests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Other {
    paper: String,
    source: String,
    claim: String,
    state: State,
    why: String,
    page: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    #[serde(rename = "reproduced")]
    Reproduced,
    #[serde(rename = "not reproduced")]
    NotReproduced,
    #[serde(rename = "undecided")]
    Undecided,
    #[serde(rename = "not tried")]
    NotTried,
}

impl State {
    const ALL: [State; 4] = [
        State::Reproduced,
        State::NotReproduced,
        State::Undecided,
        State::NotTried,
    ];

    fn of(finding: Finding) -> Self {
        match finding {
            Finding::Reproduced => State::Reproduced,
            Finding::NotReproduced => State::NotReproduced,
            Finding::Undecided => State::Undecided,
        }
    }

    fn words(self) -> &'static str {
        match self {
            State::Reproduced => "reproduced",
            State::NotReproduced => "not reproduced",
            State::Undecided => "undecided",
            State::NotTried => "not tried",
        }
    }
}

/// The page.
pub(super) fn page(root: &Path, data: &Data) -> Result<String> {
    let text = std::fs::read_to_string(root.join(OTHERS)).context(OTHERS)?;
    let others: Others = toml::from_str(&text).context(OTHERS)?;
    for other in &others.claim {
        let known = PAPERS.iter().any(|(paper, _)| *paper == other.paper);
        ensure!(
            known,
            "{OTHERS}: expected a paper, but found {:?}",
            other.paper
        );
    }
    let mut sections = String::new();
    let mut counts = BTreeMap::new();
    for (name, comparison) in &data.comparisons {
        for claim in &comparison.results.claims {
            let known = PAPERS
                .iter()
                .any(|(paper, _)| *paper == paper_of(&claim.source));
            ensure!(known, "{name}: expected a paper in {:?}", claim.source);
        }
    }
    for (paper, title) in PAPERS {
        let mut count = |state: State| *counts.entry((paper, state)).or_insert(0) += 1;
        writeln!(sections, "\n## {paper}\n\n{title}.\n")?;
        sections.push_str(
            "| claim | source | on | finding | difference | on newly drawn parts | remark |\n\
             | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for (name, comparison) in first_parts(data) {
            let claims = comparison.results.claims.iter();
            for claim in claims.filter(|claim| {
                paper_of(&claim.source) == paper
                    && !has_more_queries_elsewhere(claim, comparison, data)
            }) {
                count(State::of(claim.finding));
                row(&mut sections, name, claim, data)?;
            }
        }
        let others = others.claim.iter().filter(|other| other.paper == paper);
        let others: Vec<&Other> = others.collect();
        if !others.is_empty() {
            sections.push_str(
                "\nJudged by hand, or not tried:\n\n| claim | source | state | why |\n| --- | --- | --- | --- |\n",
            );
        }
        for other in others {
            count(other.state);
            let Other { claim, source, .. } = other;
            let why = quotes::updated(&other.why, data)
                .with_context(|| format!("{OTHERS}: {paper}, {source}"))?;
            let bare = prose::figures(&without_code_spans(&quotes::removed(&other.why)));
            ensure!(
                bare.is_empty(),
                "{OTHERS}: {paper}, {source}: {} from nowhere",
                bare.join(", ")
            );
            let state = other.state.words();
            let state = match &other.page {
                Some(page) => format!("[{state}]({page})"),
                None => state.to_owned(),
            };
            writeln!(sections, "| {claim} | {source} | {state} | {why} |")?;
        }
    }
    let mut page = String::from(
        "# Claims of the papers\n\n\
         What the four papers say about the order of methods, and what came of it here. A claim is reproduced where the \
         paired 95 % interval of the difference lies above 0, not reproduced where it lies below, and undecided where it \
         contains 0. Features of most sets were computed anew ([data](../../experiments/data/README.md)), so orders and gains \
         are held against the papers, not single figures. Where settings were settled after test parts had been seen, \
         the same comparison on newly drawn parts of the same rows stands beside it. Where two comparisons judge a claim on \
         the same rows, that of more queries counts. What is no order of two methods was \
         judged by hand, from the figures that are given.\n\n\
         | paper | reproduced | not reproduced | undecided | not tried |\n| --- | --- | --- | --- | --- |\n",
    );
    for (paper, _) in PAPERS {
        write!(page, "| {paper} |")?;
        for state in State::ALL {
            let count = counts.get(&(paper, state)).copied().unwrap_or(0);
            write!(page, " {count} |")?;
        }
        page.push('\n');
    }
    Ok(page + &sections)
}

/// Comparisons but those on fresh parts, which stand beside the first ones.
fn first_parts(data: &Data) -> impl Iterator<Item = (&String, &Comparison)> {
    let all = data.comparisons.iter();
    all.filter(|(name, _)| !name.ends_with("_fresh"))
}

/// Whether another comparison judges the same claim on more queries of the same rows: a method that is slow has one of its
/// own, on some of the splits, where others are judged beside it.
fn has_more_queries_elsewhere(claim: &ClaimOutcome, of: &Comparison, data: &Data) -> bool {
    fn key(claim: &ClaimOutcome) -> [&str; 4] {
        [&claim.better, &claim.worse, &claim.measure, &claim.source].map(String::as_str)
    }
    let queries = |claim: &ClaimOutcome| claim.gain.as_ref().map_or(0, |gain| gain.queries);
    first_parts(data)
        .filter(|(_, other)| other.results.data.fingerprint == of.results.data.fingerprint)
        .flat_map(|(_, other)| &other.results.claims)
        .any(|other| key(other) == key(claim) && queries(other) > queries(claim))
}

fn paper_of(source: &str) -> &str {
    source.split(',').next().unwrap_or_default()
}

fn row(page: &mut String, name: &str, claim: &ClaimOutcome, data: &Data) -> Result<()> {
    let again = format!("{name}_fresh");
    let fresh = (data.comparisons.get(&again))
        .and_then(|comparison| {
            let mut claims = comparison.results.claims.iter();
            claims.find(|c| {
                (&c.better, &c.worse, &c.measure) == (&claim.better, &claim.worse, &claim.measure)
            })
        })
        .map(|claim| {
            format!(
                "[{}]({again}.md) {}",
                claim.finding.words(),
                difference(claim)
            )
        });
    let ClaimOutcome {
        better,
        worse,
        measure,
        remark,
        ..
    } = claim;
    let source = claim
        .source
        .split_once(", ")
        .map_or("", |(_, source)| source);
    writeln!(
        page,
        "| {better} > {worse} by {measure} | {source} | [{name}]({name}.md) | {} | {} | {} | {remark} |",
        claim.finding.words(),
        difference(claim),
        fresh.unwrap_or_default()
    )?;
    Ok(())
}

fn difference(claim: &ClaimOutcome) -> String {
    claim.gain.as_ref().map_or(String::new(), interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of a paper: reproduced, not reproduced, undecided, not tried.
    fn counted(page: &str, paper: &str) -> Vec<usize> {
        let start = format!("| {paper} | ");
        let row = page.lines().find_map(|line| line.strip_prefix(&start));
        let cells = row.unwrap().trim_end_matches(" |").split(" | ");
        cells.map(|cell| cell.parse().unwrap()).collect()
    }

    #[test]
    fn a_claim_counts_where_it_has_most_queries() {
        let root = crate::repository_root().unwrap();
        let mut data = Data::read(&root).unwrap();
        let before = page(&root, &data).unwrap();
        let mut smaller = data.comparisons["slr_compression"].clone();
        for claim in &mut smaller.results.claims {
            claim.gain.as_mut().unwrap().queries -= 1;
        }
        data.comparisons
            .insert("slr_compression_again".into(), smaller);
        let after = page(&root, &data).unwrap();
        assert_eq!(counted(&before, "SLR"), counted(&after, "SLR"));
        let again = data.comparisons.get_mut("slr_compression_again").unwrap();
        again.results.data.fingerprint = "of other rows".into();
        let other = page(&root, &data).unwrap();
        let sum = |page: &str| counted(page, "SLR").iter().sum::<usize>();
        let claims = data.comparisons["slr_compression_again"]
            .results
            .claims
            .len();
        assert_eq!(sum(&other), sum(&before) + claims);
    }

    #[test]
    fn findings_are_counted_once_whatever_is_on_newly_drawn_parts() {
        let root = crate::repository_root().unwrap();
        let mut data = Data::read(&root).unwrap();
        let before = page(&root, &data).unwrap();
        let (name, claim) = first_parts(&data)
            .find_map(|(name, comparison)| {
                let claims = &comparison.results.claims;
                let found = claims.iter().position(|c| {
                    c.finding == Finding::Reproduced && paper_of(&c.source) == "WARCA"
                });
                Some((name.clone(), found?))
            })
            .unwrap();
        let comparison = data.comparisons.get_mut(&name).unwrap();
        comparison.results.claims[claim].finding = Finding::Undecided;
        let after = page(&root, &data).unwrap();
        let [b, a] = [&before, &after].map(|page| counted(page, "WARCA"));
        assert_eq!((b[0] - 1, b[1], b[2] + 1, b[3]), (a[0], a[1], a[2], a[3]));
        assert_eq!(counted(&before, "SLR"), counted(&after, "SLR"));
    }
}
