//! How the learners stand beside those of other libraries, from the records of `benches/peers/learners`.

use super::data::Data;
use super::signed;

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const SETS: [(&str, &str); 4] = [
    ("digits", "Digits"),
    ("mnist5000", "MNIST, 5,000 rows"),
    ("clinc150", "CLINC150"),
    ("fashion_mnist", "Fashion-MNIST"),
];
/// How many times dearer is worth saying.
const MANY: f64 = 5.0;
/// Student's t at 97.5 % for 1 to 9 degrees of freedom.
const T: [f64; 9] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
];

#[derive(Deserialize)]
struct Record {
    key: String,
    #[serde(default)]
    quality: Option<BTreeMap<String, Quality>>,
    #[serde(default)]
    cpu: Option<f64>,
    #[serde(default)]
    peak: Option<f64>,
}

#[derive(Deserialize, Clone, Copy)]
struct Quality {
    map: f64,
    #[serde(rename = "p@1")]
    p_at_1: f64,
}

/// A measure of a fit.
type Of = fn(&Quality) -> f64;

/// One method on one input, with its fits in the order of their seeds.
struct Fits {
    name: String,
    library: String,
    input: String,
    quality: Vec<Quality>,
    cpu: Vec<f64>,
    peak: Option<f64>,
}

impl Fits {
    fn mean(&self, of: Of) -> f64 {
        mean(self.quality.iter().map(of))
    }

    fn all(&self, of: Of) -> Vec<f64> {
        self.quality.iter().map(of).collect()
    }

    fn words(&self) -> String {
        format!("{} on {}", self.name, self.input)
    }

    fn is_ours(&self) -> bool {
        self.library == "metra"
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn records(data: &Data) -> Result<Vec<Record>> {
    let value = data.others.get("peers").context("peers.json is missing")?;
    serde_json::from_value(value.clone()).context("peers.json")
}

/// Fits that gave a map, set by set with what it is called. Those that took long have one seed.
fn fits(data: &Data) -> Result<Vec<(&'static str, Vec<Fits>)>> {
    let records = records(data)?;
    let mut found: BTreeMap<String, BTreeMap<u32, Record>> = BTreeMap::new();
    for record in records {
        let Some((prefix, last)) = record.key.rsplit_once('/') else {
            continue;
        };
        let seed = match last {
            "fit" => Some(1),
            other => other
                .strip_prefix("seed")
                .and_then(|seed| seed.parse().ok()),
        };
        if let Some(seed) = seed {
            let seeds = found.entry(prefix.to_owned()).or_default();
            seeds.insert(seed, record);
        }
    }
    let mut all: BTreeMap<String, Vec<Fits>> = BTreeMap::new();
    for (prefix, seeds) in found {
        let parts: Vec<&str> = prefix.split('/').collect();
        let [set, input, library, name] = parts[..] else {
            continue;
        };
        let quality = seeds.values().map(|record| {
            let quality = record.quality.as_ref()?;
            quality.values().next().copied()
        });
        let Some(quality) = quality.collect::<Option<Vec<_>>>() else {
            continue;
        };
        let input = match input.strip_prefix("pca") {
            Some(rank) => format!("{rank} principal components"),
            None => "all columns".to_owned(),
        };
        all.entry(set.to_owned()).or_default().push(Fits {
            name: name.to_owned(),
            library: library.to_owned(),
            input,
            quality,
            cpu: seeds.values().filter_map(|record| record.cpu).collect(),
            peak: seeds.values().next().and_then(|record| record.peak),
        });
    }
    let named = SETS.map(|(set, about)| (about, all.remove(set).unwrap_or_default()));
    Ok(named.into())
}

fn best(fits: &[Fits], ours: bool, of: Of) -> Option<&Fits> {
    let learned = fits.iter().filter(|fits| fits.library != "as they are");
    let side = learned.filter(|fits| fits.is_ours() == ours);
    side.max_by(|a, b| a.mean(of).total_cmp(&b.mean(of)))
}

/// Where another library is ahead of the best of ours, in words.
pub(super) fn behind(page: &mut String, data: &Data) -> Result<()> {
    for (about, fits) in fits(data)? {
        let measures: [(&str, Of); 2] = [("mAP", |q| q.map), ("P@1", |q| q.p_at_1)];
        for (measure, of) in measures {
            let (Some(ours), Some(other)) = (best(&fits, true, of), best(&fits, false, of)) else {
                continue;
            };
            let (difference, ends) = paired(&ours.all(of), &other.all(of));
            if difference < 0.0 {
                writeln!(
                    page,
                    "- **{about}** ([peers](peers.md)): {}'s {} has {measure} {:.4}, the best of ours, {}, {:.4}: {}{ends}.",
                    other.library,
                    other.words(),
                    other.mean(of),
                    ours.words(),
                    ours.mean(of),
                    signed(difference),
                )?;
            }
        }
    }
    unreached(page, data)?;
    dear_adapters(page, data)
}

/// Sets on which no fit of ours reaches, on validation rows, what the longest fits of a peer do.
fn unreached(page: &mut String, data: &Data) -> Result<()> {
    let records = records(data)?;
    for (set, about) in SETS {
        let (mut peer, mut ours) = (None, None);
        for record in &records {
            let parts: Vec<&str> = record.key.split('/').collect();
            let [of, _, library, name, what] = parts[..] else {
                continue;
            };
            let Some(race) = what.strip_prefix("race").filter(|_| of == set) else {
                continue;
            };
            let quality = record.quality.as_ref().and_then(|q| q.values().next());
            let side = match library {
                "metra" => &mut ours,
                _ if race.contains("-1000-") => &mut peer,
                _ => continue,
            };
            if let Some(quality) = quality
                && side.is_none_or(|(best, _)| quality.map > best)
            {
                *side = Some((quality.map, name));
            }
        }
        if let (Some((mark, other)), Some((best, name))) = (peer, ours)
            && best < mark
        {
            writeln!(
                page,
                "- **{about}, CPU time to a given quality** ([peers](peers.md)): {other} reaches mAP {mark:.4} on validation rows \
                 with 1,000 steps, and no learner of ours does with as many: {name} has {best:.4} at most."
            )?;
        }
    }
    Ok(())
}

/// Sets on which the best adapter of ours takes many times the CPU seconds of the best other one.
fn dear_adapters(page: &mut String, data: &Data) -> Result<()> {
    let Some(found) = read_adapters(data)? else {
        return Ok(());
    };
    for (name, set) in &found.sets {
        let best = |ours: bool| {
            let side = set.lines.iter().filter(move |(_, line)| {
                line.library != "as they are" && (line.library == "metra") == ours
            });
            side.max_by(|a, b| a.1.quality().total_cmp(&b.1.quality()))
        };
        let (Some((ours, line)), Some((other, peer))) = (best(true), best(false)) else {
            continue;
        };
        let (cpu, peers) = (
            mean(line.cpu.iter().copied()),
            mean(peer.cpu.iter().copied()),
        );
        if cpu > MANY * peers {
            writeln!(
                page,
                "- **Adapters on {name}** ([below](#adapters-of-text-embeddings)): {ours} takes {cpu:.1} CPU seconds with all \
                 that it tries, {other} {peers:.1}, for nDCG@10 {:.4} and {:.4}.",
                line.quality(),
                peer.quality()
            )?;
        }
    }
    Ok(())
}

/// The best of the others and the best of ours, set by set.
pub(super) fn table(page: &mut String, data: &Data) -> Result<()> {
    let mut seeds = 0;
    let mut body = String::new();
    for (about, fits) in fits(data)? {
        let map: Of = |q| q.map;
        let (Some(ours), Some(other)) = (best(&fits, true, map), best(&fits, false, map)) else {
            continue;
        };
        seeds = seeds.max(ours.quality.len());
        let (difference, ends) = paired(&ours.all(map), &other.all(map));
        let costs = |fits: &Fits| {
            let memory = fits
                .peak
                .map_or(String::new(), |peak| format!(", {peak:.0} MB"));
            format!("{:.2} s{memory}", mean(fits.cpu.iter().copied()))
        };
        writeln!(
            body,
            "| {about} | {} of {} | {:.4} | {:.4} | {} | {} | {:.4} | {:.4} | {} | {}{ends} |",
            other.words(),
            other.library,
            other.mean(map),
            other.mean(|q| q.p_at_1),
            costs(other),
            ours.words(),
            ours.mean(map),
            ours.mean(|q| q.p_at_1),
            costs(ours),
            signed(difference),
        )?;
    }
    let means = match seeds {
        1 => "one seed".to_owned(),
        seeds => format!(
            "means over {seeds} seeds (one for fits that took longer than 40 CPU seconds), of splits where a set has no official one, and of the fits. Intervals are over the seeds: on CLINC150 and Fashion-MNIST, which have one split, they say how much fits differ, and not what other queries would give"
        ),
    };
    writeln!(
        page,
        "\n## Beside other software\n\n\
         The best by mAP of metric-learn, scikit-learn and pytorch-metric-learning, and the best of ours: {means}. Three \
         settings of each method were tried on validation rows, the same rows and the same code judge all ([how, and all \
         methods](peers.md)). CPU seconds and peak memory of the process of one fit on one thread.\n\n\
         | set | best of the others | mAP | P@1 | cost | best of ours | mAP | P@1 | cost | mAP, ours less the other |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n{}",
        body.trim_end()
    )?;
    Ok(())
}

#[derive(Deserialize)]
struct Adapters {
    seeds: usize,
    versions: BTreeMap<String, String>,
    sets: BTreeMap<String, AdapterSet>,
}

#[derive(Deserialize)]
struct AdapterSet {
    queries: usize,
    items: usize,
    lines: BTreeMap<String, AdapterLine>,
}

#[derive(Deserialize)]
struct AdapterLine {
    library: String,
    #[serde(rename = "ndcg@10")]
    ndcg: Vec<f64>,
    unseen: Vec<Option<f64>>,
    cpu: Vec<f64>,
}

impl AdapterLine {
    fn quality(&self) -> f64 {
        mean(self.ndcg.iter().copied())
    }
}

fn read_adapters(data: &Data) -> Result<Option<Adapters>> {
    let value = data.others.get("adapters").cloned();
    value
        .map(|value| serde_json::from_value(value).context("adapters.json"))
        .transpose()
}

/// Adapters of text embeddings, all against the vectors as they are.
pub(super) fn adapters(page: &mut String, data: &Data) -> Result<()> {
    let Some(found) = read_adapters(data)? else {
        return Ok(());
    };
    let versions: Vec<String> = (found.versions.iter())
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    writeln!(
        page,
        "\n## Adapters of text embeddings\n\n\
         nDCG@10, means over {} draws of test queries, with the gain over cosine and its 95 % interval over the draws, which overlap, so that it is somewhat narrow; \
         the last columns are queries none of whose relevant items training had seen, and CPU seconds of all that is \
         tried, ours with choosing on validation queries and the others' without. All are given the same queries and judged by \
         the same code. Made by `python benches/peers/adapters.py \
         METRA docs/results/data/adapters.json`, which says what each of them is; {}.",
        found.seeds,
        versions.join(", ")
    )?;
    for (name, set) in &found.sets {
        writeln!(
            page,
            "\n| {name}, {} queries, {} items | | nDCG@10 | gain | unseen items | gain | CPU s |\n\
             | --- | --- | --- | --- | --- | --- | --- |",
            set.queries, set.items
        )?;
        let base = set.lines.get("cosine").context("cosine")?;
        let mut lines: Vec<(&String, &AdapterLine)> = set.lines.iter().collect();
        lines.sort_by(|a, b| b.1.quality().total_cmp(&a.1.quality()));
        for (method, line) in lines {
            let unseen =
                |line: &AdapterLine| line.unseen.iter().flatten().copied().collect::<Vec<f64>>();
            let gain = |ours: &[f64], other: &[f64]| match method == "cosine" {
                true => String::new(),
                false => {
                    let (difference, ends) = paired(ours, other);
                    format!("{}{ends}", signed(difference))
                }
            };
            writeln!(
                page,
                "| {method} | {} | {:.4} | {} | {:.4} | {} | {:.1} |",
                line.library,
                line.quality(),
                gain(&line.ndcg, &base.ndcg),
                mean(unseen(line).into_iter()),
                gain(&unseen(line), &unseen(base)),
                mean(line.cpu.iter().copied())
            )?;
        }
    }
    Ok(())
}

/// Ours less the other, seed by seed, with Student's interval where there are several.
fn paired(ours: &[f64], other: &[f64]) -> (f64, String) {
    let differences: Vec<f64> = ours.iter().zip(other).map(|(a, b)| a - b).collect();
    let middle = mean(differences.iter().copied());
    let free = differences.len().saturating_sub(1);
    let Some(t) = free.checked_sub(1).and_then(|at| T.get(at)) else {
        return (middle, String::new());
    };
    let squares: f64 = differences.iter().map(|d| (d - middle).powi(2)).sum();
    let error = (squares / free as f64 / differences.len() as f64).sqrt();
    let (low, high) = (signed(middle - t * error), signed(middle + t * error));
    (middle, format!(" \\[{low}, {high}\\]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fit(key: &str, map: f64, cpu: f64) -> serde_json::Value {
        json!({"key": key, "cpu": cpu, "quality": {"cosine": {"map": map, "p@1": 0.5}}})
    }

    #[test]
    fn a_better_peer_is_told_with_its_interval() {
        let mut data = Data::default();
        let records = json!([
            fit("digits/all/metra/Lda/fit", 0.8, 1.0),
            fit("digits/all/metra/Lda/seed2", 0.7, 3.0),
            fit("digits/all/torch/Loss/fit", 0.9, 1.0),
            fit("digits/all/torch/Loss/seed2", 0.9, 1.0),
            fit("digits/all/as they are/Cosine/fit", 0.99, 0.0),
            json!({"key": "digits/all/torch/Stopped/fit", "cpu": null}),
        ]);
        data.others.insert("peers".to_owned(), records);
        let mut page = String::new();
        behind(&mut page, &data).unwrap();
        assert_eq!(page.lines().count(), 1, "P@1 is equal: {page}");
        // Differences of -.1 and -.2: their mean less 12.706 times the standard error .05.
        assert!(page.contains("−0.1500 \\[−0.7853, +0.4853\\]"), "{page}");
        page.clear();
        table(&mut page, &data).unwrap();
        assert!(page.contains("means over 2 seeds"));
        assert!(page.contains("| Lda on all columns | 0.7500 | 0.5000 | 2.00 s |"));
        assert!(!page.contains("Cosine"), "what learns nothing is no peer");
    }

    #[test]
    fn a_dear_adapter_is_told() {
        let line = |library: &str, ndcg: f64, cpu: f64| json!({"library": library, "ndcg@10": [ndcg], "unseen": [null], "cpu": [cpu]});
        let dear = |cpu: f64| {
            let lines = json!({
                "cosine": line("as they are", 0.1, 0.0),
                "ours": line("metra", 0.6, cpu),
                "theirs": line("other", 0.5, 1.0),
            });
            let set = json!({"queries": 2, "items": 3, "lines": lines});
            let found = json!({"seeds": 1, "versions": {}, "sets": {"S": set}});
            let mut data = Data::default();
            data.others.insert("adapters".to_owned(), found);
            let mut page = String::new();
            dear_adapters(&mut page, &data).unwrap();
            page
        };
        assert!(dear(5.1).contains("ours takes 5.1 CPU seconds"));
        assert_eq!(dear(4.9), "");
    }
}
