//! Quality by bytes of an item on real data: `metra compress` on the sets listed here, and the page of what came of it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::measuring::{data_folder, metra, printed};
use crate::tree;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// A data set with what is said about it and the arguments of the command; `$METRA_DATA` is the folder of that
/// variable, and paths without it are below the root.
struct Set {
    name: &'static str,
    about: &'static str,
    arguments: &'static str,
}

const SETS: &[Set] = &[
    Set {
        name: "digits",
        about: "Digits: 8 × 8 pixels of ten known classes, test images against each other.",
        arguments: "examples/data/digits.parquet --label label --measures map,p@1",
    },
    Set {
        name: "clinc150",
        about: "CLINC150: sentence embeddings of 150 known intents, test queries against the training part.",
        arguments: "$METRA_DATA/clinc150_minilm.parquet --label label --where split!=val --where split!=oos_train \
                    --where split!=oos_val --where split!=oos_test --test-where split=test --holdout rows \
                    --protocol against-training --measures map,p@1",
    },
    Set {
        name: "fashion_mnist",
        about: "Fashion-MNIST: pixels of ten known classes, test images against each other.",
        arguments: "$METRA_DATA/fashion_mnist.parquet --label label --test-where train=false --holdout rows \
                    --measures map,p@1",
    },
    Set {
        name: "caltech101",
        about: "Caltech101: LLC features of 101 known classes, the first split, test images against each other.",
        arguments: "$METRA_DATA/caltech101_llc1000.parquet --label label --splits \
                    $METRA_DATA/caltech101_llc1000.splits.json --split 0 --holdout rows --measures map,p@1",
    },
    Set {
        name: "covertype",
        about: "Covertype: 54 measurements of seven known classes, the first fold, test rows against the training part.",
        arguments: "$METRA_DATA/covertype15k.parquet --label label --splits $METRA_DATA/covertype15k.splits.json \
                    --split 0 --holdout rows --protocol against-training --prepare scale --measures map,p@1",
    },
    Set {
        name: "viper",
        about: "VIPeR: stripes of people that training has not seen, the first split, single-shot.",
        arguments: "$METRA_DATA/viper_stripes2580.parquet --label label --camera camera --splits \
                    $METRA_DATA/viper_stripes2580.splits.json --split 0 --holdout identities --protocol single-shot \
                    --repeats 10 --methods xqda,warca --prepare sqrt --measures map,cmc@1",
    },
    Set {
        name: "scifact",
        about: "SciFact: claims against abstracts with judgements, the official split.",
        arguments: "--queries $METRA_DATA/scifact_minilm_queries.parquet --items \
                    $METRA_DATA/scifact_minilm_docs.parquet --qrels $METRA_DATA/scifact_qrels.tsv --id label \
                    --splits $METRA_DATA/scifact_minilm.splits.json --split 0 --measures ndcg@10,map \
                    --bytes 16,32,48,128,388",
    },
    Set {
        name: "cranfield",
        about: "Cranfield: questions against abstracts with graded judgements.",
        arguments: "--queries $METRA_DATA/cranfield_minilm_queries.parquet --items \
                    $METRA_DATA/cranfield_minilm_docs.parquet --qrels $METRA_DATA/cranfield_qrels.tsv --id label \
                    --test 0.5 --measures ndcg@10,map --bytes 16,32,48,128,388",
    },
];

/// What the page shows of a run.
#[derive(Deserialize)]
struct Found {
    measure: String,
    base: String,
    base_bytes: usize,
    base_value: f64,
    queries: usize,
    rescore: usize,
    rows: Vec<Row>,
    recommendation: String,
}

#[derive(Deserialize)]
struct Row {
    budgets: Vec<usize>,
    words: String,
    recommended: bool,
    item_bytes: usize,
    disk_bytes: Option<usize>,
    measures: Vec<Gain>,
    unseen: Option<Gain>,
}

#[derive(Deserialize)]
struct Gain {
    value: f64,
    difference: f64,
    low: f64,
    high: f64,
}

/// Run the set named, or all, by the command at this path or one that is built, and write what was found.
pub fn codes(root: &Path, name: &str, command: Option<&str>) -> Result<()> {
    let known: Vec<&str> = SETS.iter().map(|set| set.name).collect();
    let chosen: Vec<&Set> = (SETS.iter())
        .filter(|set| name == "all" || set.name == name)
        .collect();
    ensure!(
        !chosen.is_empty(),
        "expected all or the name of a set ({}), but found {name:?}",
        known.join(", ")
    );
    for set in chosen {
        run(root, set, command)?;
    }
    Ok(())
}

fn run(root: &Path, set: &Set, command: Option<&str>) -> Result<()> {
    let data = data_folder()?;
    let arguments =
        (set.arguments.split_whitespace()).map(|word| word.replace("$METRA_DATA", &data));
    let mut program = metra(root, command);
    let program = program.args(["compress", "--json"]);
    let text = printed(program.args(arguments)).context(set.name)?;
    // The folder of the data is this machine's own.
    let text = text.replace(&data, "$METRA_DATA");
    tree::write(&data_file(root, set), text.as_bytes())
}

fn data_file(root: &Path, set: &Set) -> PathBuf {
    root.join(format!("docs/results/data/codes_{}.json", set.name))
}

/// The page, from the files of all sets that were run.
pub(crate) fn codes_page(root: &Path) -> Result<String> {
    let mut page = String::from(
        "# Quality by bytes of an item\n\n\
         What `metra compress` finds on real data ([how to read it](../guide/compress.md)). For every budget of bytes, map \
         and code were chosen on a validation part and evaluated once on the test part, against the untransformed vectors \
         in f32. Made by `METRA_DATA=… cargo xtask codes all`; the whole results, with all that was tried, are in \
         `docs/results/data/codes_*.json`.\n",
    );
    for set in SETS {
        let file = data_file(root, set);
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        let found: Found =
            serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        section(&mut page, set, &found)?;
    }
    faiss_section(&mut page, root)?;
    pgvector_section(&mut page, root)?;
    hamming_section(&mut page, root)?;
    Ok(page)
}

#[derive(Deserialize)]
struct Hamming {
    faiss: String,
    what: String,
    of_faiss: [f64; 3],
    faster_than_floats: [f64; 3],
}

fn hamming_section(page: &mut String, root: &Path) -> Result<()> {
    let Some(found) = read_result::<Hamming>(root, "codes_hamming.json")? else {
        return Ok(());
    };
    let ([ratio, low, high], [floats, least, most]) = (found.of_faiss, found.faster_than_floats);
    writeln!(
        page,
        "\n## Search by Hamming distance\n\nThe {}, one thread on a shared machine, runs in turns: {ratio:.2} of the time of \
         FAISS {} `IndexBinaryFlat` ({low:.2} to {high:.2}), with the same distances; {floats:.1} times as fast as exact \
         search of as many f32 vectors of 128 dimensions ({least:.1} to {most:.1}). Made by `python \
         benches/peers/faiss_hamming.py docs/results/data/codes_hamming.json`.",
        found.what, found.faiss
    )?;
    Ok(())
}

/// A result that another program wrote, where it was run.
fn read_result<T: serde::de::DeserializeOwned>(root: &Path, name: &str) -> Result<Option<T>> {
    let file = root.join("docs/results/data").join(name);
    let Ok(text) = std::fs::read_to_string(&file) else {
        return Ok(None);
    };
    let found = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
    Ok(Some(found))
}

#[derive(Deserialize)]
struct Faiss {
    faiss: String,
    base: (f64, f64),
    codes: Vec<FaissCode>,
}

#[derive(Deserialize)]
struct FaissCode {
    factory: String,
    bytes: usize,
    map: f64,
    #[serde(rename = "p@1")]
    p_at_1: f64,
}

fn faiss_section(page: &mut String, root: &Path) -> Result<()> {
    let Some(found) = read_result::<Faiss>(root, "codes_faiss.json")? else {
        return Ok(());
    };
    writeln!(
        page,
        "\n## FAISS's own codes on CLINC150\n\nThe same split as above, by FAISS {} (`python benches/peers/codes.py \
         $METRA_DATA docs/results/data/codes_faiss.json`); the untransformed vectors give map {:.4} and p@1 {:.4}.\n\n\
         | factory | bytes | map | p@1 |\n| --- | --- | --- | --- |",
        found.faiss, found.base.0, found.base.1
    )?;
    for code in &found.codes {
        let (factory, bytes) = (&code.factory, code.bytes);
        writeln!(
            page,
            "| {factory} | {bytes} | {:.4} | {:.4} |",
            code.map, code.p_at_1
        )?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Pgvector {
    server: String,
    items: u64,
    queries: u64,
    rescored: usize,
    ways: Vec<PgvectorWay>,
}

#[derive(Deserialize)]
struct PgvectorWay {
    way: String,
    evaluated: f64,
    served: f64,
    index_bytes: u64,
    index_seconds: f64,
    per_second: f64,
    least: f64,
    most: f64,
}

fn pgvector_section(page: &mut String, root: &Path) -> Result<()> {
    let Some(found) = read_result::<Pgvector>(root, "codes_pgvector.json")? else {
        return Ok(());
    };
    writeln!(
        page,
        "\n## Bits in PostgreSQL\n\n{}, {} items of 384 dimensions (the training part of CLINC150, and mixtures of two of its \
         rows that are relevant to nothing), {} test queries, HNSW with `ef_search` {} and as many answers rescored. \
         Evaluated is nDCG@10 by `metra eval`, which compares with every item: of the vectors in f32 for the first two \
         lines, of the model with its code for the last. One connection on a shared machine of two cores, the searches \
         in turns. Made by `python benches/pgvector_codes.py METRA ADDRESS docs/results/data/codes_pgvector.json`; [how \
         to](../guide/postgres.md#bits).\n\n\
         | | evaluated | by pgvector | index, MB | built in, s | searches per second (least, most) |\n\
         | --- | --- | --- | --- | --- | --- |",
        found.server, found.items, found.queries, found.rescored
    )?;
    for way in &found.ways {
        writeln!(
            page,
            "| {} | {:.4} | {:.4} | {:.0} | {:.0} | {:.0} ({:.0}, {:.0}) |",
            way.way,
            way.evaluated,
            way.served,
            way.index_bytes as f64 / 1e6,
            way.index_seconds,
            way.per_second,
            way.least,
            way.most
        )?;
    }
    Ok(())
}

fn section(page: &mut String, set: &Set, found: &Found) -> Result<()> {
    let has_unseen = found.rows.iter().any(|row| row.unseen.is_some());
    let Found {
        measure,
        base,
        base_bytes,
        base_value,
        queries,
        ..
    } = found;
    writeln!(page, "\n## {}\n\n{}", set.name, set.about)?;
    writeln!(
        page,
        "Base: {base} on {base_bytes} bytes, {measure} {base_value:.4} ({queries} test queries). Rescoring looks at the \
         first {} answers.\n",
        found.rescore
    )?;
    let unseen = if has_unseen { " new items alone |" } else { "" };
    let dashes = if has_unseen { " --- |" } else { "" };
    writeln!(
        page,
        "| budget | bytes in memory | on disk | map and code | {measure} | gain | 95 % interval |{unseen}\n\
         | --- | --- | --- | --- | --- | --- | --- |{dashes}"
    )?;
    for row in &found.rows {
        let budget = match &row.budgets[..] {
            [first, .., last] => format!("{first} to {last}"),
            [only] => only.to_string(),
            [] => String::new(),
        };
        let Some(gain) = row.measures.first() else {
            continue;
        };
        let disk = row
            .disk_bytes
            .map_or(String::new(), |bytes| bytes.to_string());
        let words = if row.recommended {
            format!("**{}**", row.words)
        } else {
            row.words.clone()
        };
        let mut line = format!(
            "| {budget} | {} | {disk} | {words} | {:.4} | {:+.4} | [{:+.4}, {:+.4}] |",
            row.item_bytes, gain.value, gain.difference, gain.low, gain.high
        );
        if has_unseen {
            let text = row.unseen.as_ref().map_or(String::new(), |gain| {
                format!(
                    "{:+.4} [{:+.4}, {:+.4}]",
                    gain.difference, gain.low, gain.high
                )
            });
            write!(line, " {text} |")?;
        }
        writeln!(page, "{line}")?;
    }
    writeln!(page, "\nRecommended: {}.", found.recommendation)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let root = crate::repository_root().unwrap();
        let error = codes(&root, "clinc", None).unwrap_err().to_string();
        assert!(error.contains("clinc150, "), "{error}");
    }
}
