//! The first page of results: where Metra is behind, what it gains on each task, how it stands beside other software,
//! and where everything else is.

use super::data::{Comparison, Data};
use super::{interval, peers};

use anyhow::{Context, Result};
use metra::experiment::compare::{Evidence, Gain, Line, Results};
use std::fmt::Write;

/// The chart, which the README shows as well.
pub(super) const CHART: &str = "docs/results/gains.svg";

/// A task with its comparison and the measure that is shown.
struct Task {
    about: &'static str,
    short: &'static str,
    comparison: &'static str,
    measure: &'static str,
}

const TASKS: &[Task] = &[
    Task {
        about: "Persons across two cameras, VIPeR: who is it?",
        short: "VIPeR, rank-1",
        comparison: "viper",
        measure: "cmc@1",
    },
    Task {
        about: "Persons across two cameras, PRID450s",
        short: "PRID450s, rank-1",
        comparison: "prid450s",
        measure: "cmc@1",
    },
    Task {
        about: "Intents of sentences, CLINC150, by MiniLM's embeddings",
        short: "CLINC150, mAP",
        comparison: "clinc150",
        measure: "map",
    },
    Task {
        about: "Claims and abstracts with judgements, SciFact",
        short: "SciFact, nDCG@10",
        comparison: "scifact",
        measure: "ndcg@10",
    },
    Task {
        about: "SciFact, abstracts that no training claim cites",
        short: "SciFact unseen, nDCG",
        comparison: "scifact_unseen",
        measure: "ndcg@10",
    },
    Task {
        about: "Questions and abstracts, Cranfield, 225 questions",
        short: "Cranfield, nDCG@10",
        comparison: "cranfield",
        measure: "ndcg@10",
    },
    Task {
        about: "Images of 101 categories, Caltech101",
        short: "Caltech101, mAP",
        comparison: "caltech101",
        measure: "map",
    },
    Task {
        about: "Clothes by their pixels, Fashion-MNIST",
        short: "Fashion-MNIST, mAP",
        comparison: "fashion_mnist",
        measure: "map",
    },
    Task {
        about: "Digits by their pixels",
        short: "Digits, mAP",
        comparison: "digits",
        measure: "map",
    },
    Task {
        about: "Forest cover by 54 measurements, covertype",
        short: "covertype, mAP",
        comparison: "covertype",
        measure: "map",
    },
    Task {
        about: "Scenes by relative attributes, OSR, against RankSVM",
        short: "OSR, accuracy",
        comparison: "osr",
        measure: "accuracy",
    },
    Task {
        about: "Faces by relative attributes, PubFig, against RankSVM",
        short: "PubFig, accuracy",
        comparison: "pubfig",
        measure: "accuracy",
    },
];

/// A task with what came of it.
struct Shown<'d> {
    task: &'d Task,
    comparison: &'d Comparison,
    best: &'d Line,
    gain: Option<&'d Gain>,
}

fn shown(data: &Data) -> Vec<Shown<'_>> {
    let found = TASKS.iter().filter_map(|task| {
        let comparison = data.comparisons.get(task.comparison)?;
        let best = line(&comparison.results, &comparison.results.best)?;
        let gain = best.against_base.iter().find(|g| g.measure == task.measure);
        Some(Shown {
            task,
            comparison,
            best,
            gain,
        })
    });
    found.collect()
}

fn line<'r>(results: &'r Results, name: &str) -> Option<&'r Line> {
    results.lines.iter().find(|line| line.name == name)
}

/// The chart of gains.
pub(super) fn chart(data: &Data) -> Result<String> {
    let rows: Vec<metra_report::GainBar> = (shown(data).iter())
        .filter_map(|shown| {
            let gain = shown.gain?;
            Some(metra_report::GainBar {
                name: shown.task.short.to_owned(),
                gain: gain.difference,
                interval: (gain.low, gain.high),
            })
        })
        .collect();
    let label = "gain of the best method over the base, with 95 % intervals";
    let axis = "gain over the base, 95 % interval";
    Ok(metra_report::gains_chart(&rows, axis, label)?)
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let shown = shown(data);
    let mut page = String::from(
        "# Results\n\n\
         Figures here and in the guides come from the files in [data](data) and are written by `cargo xtask docs`; CI fails \
         where a document and its file differ. Settings were chosen on validation parts; what \
         was settled after test parts had been seen is said on each page, and where it matters newly drawn parts are \
         beside it. Intervals are of 95 %.\n\n## Where it is behind\n\n",
    );
    behind(&mut page, &shown, data)?;
    tasks(&mut page, &shown)?;
    peers::table(&mut page, data)?;
    peers::adapters(&mut page, data)?;
    comparisons(&mut page, data)?;
    page.push_str(
        "\n## More\n\n\
         - [Claims of the four papers](claims.md): reproduced, not reproduced, undecided or not tried, with an interval where it is about the order of two methods.\n\
         - [Quality by bytes of an item](codes.md), [speed](performance.md), [the service under load](service.md), [beside other software](peers.md) with all that was \
         tried, [classes without training rows](zero_shot.md).\n\
         - [Fusion of rankings](fusion.md), [changes of the embedding model](migration.md), \
         [training again from an earlier model](warm_start.md), [several labels per row](label_sets.md), \
         [rows of several vectors](several_vectors.md), [queries and items of two models](two_towers.md).\n\
         - [Figures of single commands](recorded.md) that guides quote.\n\
         - [Which method when](../guide/choosing.md) says what follows from all this; [where the data come \
         from](../../experiments/data/README.md).\n",
    );
    Ok(page)
}

fn behind(page: &mut String, shown: &[Shown<'_>], data: &Data) -> Result<()> {
    for one in shown {
        behind_on(page, one)?;
        // On newly drawn parts a loss alone is news: that a gain is not shown there was said of the first ones.
        if let Some(again) = data
            .comparisons
            .get(&format!("{}_fresh", one.task.comparison))
        {
            losses(page, one.task, again)?;
        }
    }
    peers::behind(page, data)
}

/// What the best line loses on newly drawn parts.
fn losses(page: &mut String, task: &Task, again: &Comparison) -> Result<()> {
    let name = format!("{}_fresh", task.comparison);
    let best = line(&again.results, &again.results.best).context("the best")?;
    let of_measures = (best.against_base.iter()).map(|gain| (format!("by {}", gain.measure), gain));
    let of_parts = best.parts.iter().filter_map(|part| {
        let place = format!("on {} queries about {}", part.queries, part.part);
        Some((place, part.gain.as_ref()?))
    });
    for (place, gain) in of_measures.chain(of_parts) {
        if gain.evidence == Evidence::Worse {
            writeln!(
                page,
                "- **{}, newly drawn parts** ([{name}]({name}.md)): {} loses {place}: {}{}.",
                task.about,
                best.name,
                interval(gain),
                fragile(gain)
            )?;
        }
    }
    Ok(())
}

/// The mark of an interval that does not lie on one side of 0 after allowing for all comparisons.
fn fragile(gain: &Gain) -> &'static str {
    match gain.evidence != Evidence::None && gain.adjusted != gain.evidence {
        true => " \\*",
        false => "",
    }
}

fn behind_on(page: &mut String, one: &Shown<'_>) -> Result<()> {
    let name = one.task.comparison;
    let (best, base) = (&one.best.name, &one.comparison.results.base);
    if best == base {
        writeln!(
            page,
            "- **{}** ([{name}]({name}.md)): nothing is ahead of {base}.",
            one.task.about
        )?;
        return Ok(());
    }
    if let Some(gain) = one.gain.filter(|gain| gain.evidence != Evidence::Better) {
        writeln!(
            page,
            "- **{}** ([{name}]({name}.md)): no gain is shown. {best} against {base}: {}.",
            one.task.about,
            interval(gain)
        )?;
    }
    for gain in one
        .best
        .against_base
        .iter()
        .filter(|g| g.evidence == Evidence::Worse)
    {
        writeln!(
            page,
            "- **{}** ([{name}]({name}.md)): {best}, best by {}, loses by {}: {}.",
            one.task.about,
            one.comparison.results.protocol.criterion,
            gain.measure,
            interval(gain)
        )?;
    }
    let unseen = one
        .best
        .parts
        .iter()
        .find(|part| part.part.starts_with("unseen"));
    if let Some((part, gain)) = unseen.and_then(|part| Some((part, part.gain.as_ref()?)))
        && gain.evidence != Evidence::Better
        && one.gain.is_some_and(|all| all.queries > part.queries)
    {
        writeln!(
            page,
            "- **{}** ([{name}]({name}.md)): on {} queries about {} no gain of {best} is shown: {}.",
            one.task.about,
            part.queries,
            part.part,
            interval(gain)
        )?;
    }
    Ok(())
}

fn tasks(page: &mut String, shown: &[Shown<'_>]) -> Result<()> {
    page.push_str(
        "\n## At a glance\n\n\
         The best method of each comparison by its criterion, which was picked by the same test figures and is flattered a \
         little by that. CPU time and memory are those of one fit on one thread, without the memory of the data. Published is what a paper \
         states for the same method, on features or parts of its own. \\*: the evidence does not survive allowing for all \
         comparisons.\n\n\
         | task | measure | base | best | | gain | published | CPU | memory |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for one in shown {
        let results = &one.comparison.results;
        let base = line(results, &results.base).context("the base")?;
        let (name, measure) = (one.task.comparison, one.task.measure);
        let value = |line: &Line| {
            let found = line.measures.iter().find(|m| m.measure == measure);
            found.map_or(String::new(), |m| format!("{:.4}", m.mean))
        };
        let published = one.best.measures.iter().find(|m| m.measure == measure);
        let published = published.and_then(|m| m.published);
        let cost = one.comparison.costs.lines.get(&one.best.name);
        writeln!(
            page,
            "| [{}]({name}.md) | {measure} | {} | {} | **{}** | {} | {} | {} | {} |",
            one.task.about,
            value(base),
            one.best.name,
            value(one.best),
            one.gain
                .map_or(String::new(), |gain| interval(gain) + fragile(gain)),
            published.map_or(String::new(), |value| format!("{value:.3}")),
            cost.map_or(String::new(), |cost| seconds(cost.fit_cpu_seconds)),
            cost.and_then(|cost| cost.fit_peak_bytes)
                .map_or(String::new(), |bytes| format!(
                    "{:.0} MiB",
                    bytes as f64 / 1048576.0
                )),
        )?;
    }
    page.push_str("\n![gain of the best method over the base, with 95 % intervals](gains.svg)\n");
    Ok(())
}

fn comparisons(page: &mut String, data: &Data) -> Result<()> {
    page.push_str(
        "\n## All comparisons\n\nOne file in [experiments](../../experiments) each; `cargo xtask reproduce NAME` runs one \
         again.\n\n| comparison | best | gain over | | claims reproduced |\n| --- | --- | --- | --- | --- |\n",
    );
    let mut cpu = 0.0;
    for (name, comparison) in &data.comparisons {
        cpu += comparison.costs.cpu_seconds;
        let results = &comparison.results;
        let best = line(results, &results.best).context("the best")?;
        let gain = best
            .against_base
            .iter()
            .find(|g| g.measure == results.protocol.criterion);
        let reproduced = (results.claims.iter())
            .filter(|claim| claim.finding == metra::experiment::compare::Finding::Reproduced);
        let claims = match results.claims.len() {
            0 => String::new(),
            all => format!("{} of {all}", reproduced.count()),
        };
        writeln!(
            page,
            "| [{name}]({name}.md) | {} | {} | {} | {claims} |",
            results.best,
            results.base,
            gain.map_or(String::new(), |gain| format!(
                "{} {}{}",
                results.protocol.criterion,
                interval(gain),
                fragile(gain)
            ))
        )?;
    }
    let first = data.comparisons.values().next().context("comparisons")?;
    writeln!(
        page,
        "\nAll comparisons are of one build (digest of the library's sources {}); together they took {:.1} CPU hours on {}.",
        first.results.code_digest,
        cpu / 3600.0,
        first.cpu
    )?;
    Ok(())
}

fn seconds(value: f64) -> String {
    if value < 0.095 {
        format!("{:.0} ms", 1000.0 * value)
    } else {
        format!("{value:.1} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Data {
        Data::read(&crate::repository_root().unwrap()).unwrap()
    }

    fn is_told(data: &Data) -> bool {
        let mut page = String::new();
        behind(&mut page, &shown(data), data).unwrap();
        page.contains("[clinc150](clinc150.md)")
    }

    #[test]
    fn a_measure_that_fell_is_told_first() {
        let mut data = data();
        assert!(!is_told(&data));
        let results = &mut data.comparisons.get_mut("clinc150").unwrap().results;
        let best = results.best.clone();
        let line = results.lines.iter_mut().find(|line| line.name == best);
        let gains = &mut line.unwrap().against_base;
        let gain = gains.iter_mut().find(|gain| gain.measure != "map").unwrap();
        gain.evidence = Evidence::Worse;
        assert!(is_told(&data));
        let page = page(&data).unwrap();
        assert!(page.find("clinc150.md").unwrap() < page.find("## At a glance").unwrap());
    }

    #[test]
    fn a_base_that_is_best_is_told() {
        let mut data = data();
        let results = &mut data.comparisons.get_mut("clinc150").unwrap().results;
        results.best = results.base.clone();
        assert!(is_told(&data));
    }

    #[test]
    fn every_task_is_a_known_comparison() {
        let data = data();
        for task in TASKS {
            let known = data.comparisons.contains_key(task.comparison);
            assert!(known, "{}", task.comparison);
        }
    }
}
