//! `metra serve` under load, from the records of `benches/service/run.py`, as a page.

use super::data::Data;

use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write;

const HEAD: &str = "\
# The service under load

`metra serve` ([how](../guide/serve.md)) as a process on loopback: one thread of the server on one core, [oha](https://github.com/hatoo/oha) on
the other one. Vectors are synthetic. Capacity is what 16 connections get that ask again at once (8 and 4 where requests have 32 and 128
queries). Latencies are of loads at a constant rate by 64 connections, medians of four, and are counted from the time when a request should
have been sent. Other guests of the machine change its speed within seconds: in some rounds nine tenths of the capacity just measured were more
than the server then could do, and requests queued. Columns of the CPU say how much of its core each side took: a figure is the client's limit
where its share is near 1 and the server's is not.

Made by `python benches/service/run.py $(command -v metra) docs/results/data/service.json map search overload soak life`
([what each part does](../../benches/service/README.md)). Rates are those of one shared machine; ratios are of things measured in turns.
";

/// Latency at shares of the capacity, and the CPU of both sides at all of it.
const UNDER_LOAD: &str = "ms at 50 %: p50, p99, p99.9 | at 90 % | CPU: server, client";

/// A part of the record, with its facts by JSON pointers.
struct Part<'d>(&'d Value);

impl<'d> Part<'d> {
    fn at(&self, pointer: &str) -> Result<Part<'d>> {
        let found = self.0.pointer(pointer);
        found
            .map(Part)
            .with_context(|| format!("service.json: there is no {pointer}"))
    }

    fn number(&self, pointer: &str) -> Result<f64> {
        let value = self.at(pointer)?.0;
        value
            .as_f64()
            .with_context(|| format!("service.json: {pointer} is no number"))
    }

    fn entries(&self, pointer: &str) -> Result<Vec<(&'d str, Part<'d>)>> {
        let value = self.at(pointer)?.0;
        let entries = value
            .as_object()
            .with_context(|| format!("service.json: {pointer} is no object"))?;
        Ok(entries
            .iter()
            .map(|(name, value)| (name.as_str(), Part(value)))
            .collect())
    }

    /// Median, 99th and 99.9th percentile.
    fn latency(&self) -> Result<String> {
        let of = |name: &str| self.number(&format!("/milliseconds/{name}"));
        Ok(format!(
            "{:.1}, {:.1}, {:.1}",
            of("p50")?,
            of("p99")?,
            of("p99.9")?
        ))
    }

    /// The columns of `UNDER_LOAD`.
    fn under_load(&self) -> Result<String> {
        Ok(format!(
            "{} | {} | {:.2}, {:.2}",
            self.at("/at/50%")?.latency()?,
            self.at("/at/90%")?.latency()?,
            self.number("/cpu/server")?,
            self.number("/cpu/client")?
        ))
    }

    /// What it was measured with.
    fn run(&self) -> Result<String> {
        let text = |pointer: &str| {
            Ok::<_, anyhow::Error>(self.at(pointer)?.0.as_str().unwrap_or_default())
        };
        Ok(format!(
            "Metra {} (digest of the library's sources {}), {}, numpy {}, {}; a product of 2048 × 2048 f32 on the server's core took {:.2} s \
             before and {:.2} s after.",
            text("/run/metra/version")?,
            text("/run/metra/sources")?,
            text("/run/oha")?,
            text("/run/numpy")?,
            text("/run/cpu")?,
            self.number("/run/product_seconds/before")?,
            self.number("/run/product_seconds/after")?,
        ))
    }
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = (data.others.get("service")).context("service.json is missing")?;
    let record = Part(value);
    let mut page = HEAD.to_owned();
    mapping(&record.at("/map")?, &mut page)?;
    searching(&record.at("/search")?, &mut page)?;
    overload(&record.at("/overload")?, &mut page)?;
    soak(&record.at("/soak")?, &mut page)?;
    life(&record.at("/life")?, &mut page)?;
    Ok(page)
}

fn mapping(part: &Part<'_>, page: &mut String) -> Result<()> {
    writeln!(
        page,
        "\n## Mapping\n\n\
         Vectors of 384 numbers become 64, one or 256 in a request, as JSON or as bytes. numpy's product is that of the same batch with a matrix \
         of the model's size, alone on the server's core. An empty body is refused before any work: {:.0} a second; `/healthz` answers {:.0} a \
         second.\n\n\
         | body | requests/s | vectors/s | to numpy's product | to an empty body | {UNDER_LOAD} |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |",
        part.number("/empty body/requests_per_second")?,
        part.number("/healthz/requests_per_second")?
    )?;
    for (name, way) in part.entries("/ways")? {
        writeln!(
            page,
            "| {name} | {:.0} | {:.0} | {:.3} | {:.2} | {} |",
            way.number("/requests_per_second")?,
            way.number("/vectors_per_second")?,
            way.number("/to_numpy")?,
            way.number("/to_empty_body")?,
            way.under_load()?
        )?;
    }
    writeln!(page, "\n{}", part.run()?)?;
    Ok(())
}

fn searching(part: &Part<'_>, page: &mut String) -> Result<()> {
    page.push_str(
        "\n## Searching\n\n\
         The ten nearest items of 64 numbers. The library alone is `metra search` over a file of queries on one thread, less its start; it \
         searches an exact index 128 queries at a time by one product. Requests of 32 have a smaller one, and a lone query has none: that is held \
         against numpy, with one product of all items with the query.\n",
    );
    for (kind, index) in part.entries("/indexes")? {
        let command = index.number("/library_queries_per_second/command")?;
        let numpy = index.at("/library_queries_per_second")?.0["numpy, one query"].as_f64();
        let alone = numpy.map_or(String::new(), |rate| {
            format!(", numpy one query at a time {rate:.0}")
        });
        writeln!(
            page,
            "\n{} million items, {kind}: the library alone answers {command:.0} queries a second{alone}. Of the ten nearest the service finds \
             {:.4}, the command {:.4}.\n\n\
             | queries in a request | queries/s | to the library | to numpy | {UNDER_LOAD} |\n\
             | --- | --- | --- | --- | --- | --- | --- |",
            index.number("/items")? / MILLION,
            index.number("/compared/recall_at_10")?,
            index.number("/compared/command_recall_at_10")?,
        )?;
        let mut ways = index.entries("/ways")?;
        ways.sort_by_key(|(rows, _)| rows.parse::<u64>().ok());
        for (rows, way) in ways {
            let ratio = |name: &str| {
                let ratio = way.0["ratio"][name].as_f64();
                ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"))
            };
            writeln!(
                page,
                "| {rows} | {:.0} | {} | {} | {} |",
                way.number("/queries_per_second")?,
                ratio("command"),
                ratio("numpy, one query"),
                way.under_load()?
            )?;
        }
    }
    writeln!(page, "\n{}", part.run()?)?;
    Ok(())
}

fn overload(part: &Part<'_>, page: &mut String) -> Result<()> {
    writeln!(
        page,
        "\n## Five times the capacity\n\n\
         A constant rate of {:.0} times the capacity by {:.0} connections, whatever is answered. Goodput is of answers with status 200. The client has \
         one core: what it reached is beside what it was asked for. Recovery is the time until the median of ten requests is at most twice what \
         it was before. In the last column {:.0} connections ask again as soon as they are answered or refused.\n\n\
         | requests | minutes | capacity/s | asked for/s | reached/s | goodput to capacity | least second | refused | without answer | greatest memory | \
         recovered after | asked again at once: to capacity |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        part.number("/times")?,
        part.number("/connections")?,
        part.number("/impatient")?
    )?;
    for (name, kind) in part.entries("/kinds")? {
        let refused: Vec<String> = (kind.entries("/refused")?.into_iter())
            .map(|(status, share)| {
                let share = share.0.as_f64().unwrap_or_default();
                format!("{status}: {:.1} %", 100.0 * share)
            })
            .collect();
        writeln!(
            page,
            "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} | {} | {:.2} % | {:.0} MiB | {:.1} s | {:.2} |",
            kind.number("/seconds")? / 60.0,
            kind.number("/capacity")?,
            kind.number("/asked_per_second")?,
            kind.number("/reached_per_second")?,
            kind.number("/goodput")?,
            kind.number("/least_second")?,
            refused.join(", "),
            100.0 * kind.number("/without_answer")?,
            kind.number("/memory/own_greatest")? / MEBIBYTE,
            kind.number("/recovery_seconds")?,
            kind.number("/goodput_of_impatient")?
        )?;
    }
    writeln!(page, "\n{}", part.run()?)?;
    Ok(())
}

fn soak(part: &Part<'_>, page: &mut String) -> Result<()> {
    writeln!(
        page,
        "\n## Half an hour\n\n\
         {:.0} minutes at 70 % of the capacity, half of it searches and half batches of 256 vectors as bytes. After the first third, memory that is no \
         page of a file changes by {} MiB an hour and descriptors by {}.\n\n\
         | | ms, first third: p50, p99, p99.9 | second | last | p99, last to first |\n\
         | --- | --- | --- | --- | --- |",
        part.number("/minutes")?,
        change(part.number("/mebibytes_per_hour/own")?),
        change(part.number("/descriptors_per_hour")?)
    )?;
    for (name, ratio) in part.entries("/p99_last_to_first")? {
        let third = |number: usize| part.at(&format!("/thirds/{number}/{name}"))?.latency();
        writeln!(
            page,
            "| {name} | {} | {} | {} | {:.2} |",
            third(0)?,
            third(1)?,
            third(2)?,
            ratio.0.as_f64().unwrap_or(f64::NAN)
        )?;
    }
    writeln!(page, "\n{}", part.run()?)?;
    Ok(())
}

fn life(part: &Part<'_>, page: &mut String) -> Result<()> {
    page.push_str(
        "\n## Reloads, stops and kills\n\n\
         Six clients ask without a pause and compare every answer with what the model that it names must answer. Broken are requests that were \
         taken and not answered as they should be. A client that finds nobody listening, while the server starts anew, was refused.\n\n\
         | | times | answers with 200 | refused | connections ended before any answer | broken |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    let reloads = part.at("/reloads")?;
    let times: f64 = (reloads.entries("/reloads")?.iter())
        .filter_map(|(_, count)| count.0.as_f64())
        .sum();
    for (name, one, times) in [
        ("reloads", &reloads, times),
        (
            "SIGTERM and start",
            &part.at("/stops")?,
            part.number("/stops/stops")?,
        ),
    ] {
        // What never happened has no count.
        let of = |what: &str| one.0["counts"][what].as_u64().unwrap_or_default();
        writeln!(
            page,
            "| {name} | {times} | {} | {} | {} | {} |",
            of("status 200"),
            of("refused"),
            of("fresh, no answer"),
            one.number("/broken")?
        )?;
    }
    let kills = part.at("/kills")?;
    writeln!(
        page,
        "\nAfter `kill -9`, with an index of {} million items ({:.2} GB), until `/readyz` answers 200; cold: its pages were dropped from memory before.\n\n\
         | start | seconds, least to greatest |\n| --- | --- |",
        kills.number("/items")? / MILLION,
        kills.number("/index_bytes")? / 1e9
    )?;
    for (name, way) in kills.entries("/ways")? {
        let times: Vec<f64> = (way
            .at("/seconds_to_ready")?
            .0
            .as_array()
            .into_iter()
            .flatten())
        .filter_map(Value::as_f64)
        .collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = times.iter().copied().fold(0.0, f64::max);
        writeln!(page, "| {name} | {least:.2} to {greatest:.2} |")?;
    }
    let large = part.at("/reloads of a large index")?;
    writeln!(
        page,
        "\nWhile this index is read again, a search of a small one takes at most {:.0} ms, and at most {:.0} ms before.\n\n{}",
        large.number("/longest_during")?,
        large.number("/longest_before")?,
        part.run()?
    )?;
    Ok(())
}

const MEBIBYTE: f64 = 1_048_576.0;
const MILLION: f64 = 1e6;

fn change(value: f64) -> String {
    format!("{value:+.1}").replace('-', "−")
}
