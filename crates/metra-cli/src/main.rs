//! The command `metra`: from a file of vectors to a metric, a verdict and ranked answers.

mod args;
mod attribute_order;
#[cfg(feature = "cluster")]
mod cluster_args;
mod command_line;
mod commands;
mod comparisons;
mod evaluation_args;
#[cfg(not(all(feature = "cluster", feature = "images", feature = "postgres")))]
mod feature_off;
#[cfg(feature = "images")]
mod image_sheet;
mod inputs;
mod interrupt;
mod method_args;
mod print;
mod progress;
mod ranker;
mod split_args;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// Learn what "similar" means for vectors you already have, and see honestly by how much it helps.
#[derive(Parser)]
#[command(name = "metra", version, arg_required_else_help = true)]
struct Command {
    #[command(flatten)]
    common: args::Common,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Look at a file of vectors: shape, norms, duplicates, classes, headroom of the base
    Check(commands::check::Check),
    /// Learn a metric, choose its settings on a validation part and judge it on a test part
    Train(Box<commands::train::Train>),
    /// Compare methods under one protocol, with settings chosen on validation parts
    Compare(Box<commands::compare::Compare>),
    /// Measure a model's ranking, or a TREC run
    Eval(Box<commands::eval::Eval>),
    /// Decide whether a candidate may replace the base: a verdict with an exit code for CI
    Gate(Box<commands::gate::Gate>),
    /// See how many labels are enough, by learning from growing shares of them
    Budget(Box<commands::budget::Budget>),
    /// Turn a click log into graded judgements, corrected for positions
    Clicks(commands::clicks::Clicks),
    /// Turn images into vectors: stripes for people, GIST for scenes and pages
    #[cfg(feature = "images")]
    Features(Box<commands::features::Features>),
    /// Turn images into vectors (in builds with --features images)
    #[cfg(not(feature = "images"))]
    Features(feature_off::Absent),
    /// Map vectors with a model, for a vector store
    Embed(commands::embed::Embed),
    /// Write a model's map as a file for other programs: FAISS, ONNX, npy, safetensors, C, SQL
    Export(Box<commands::export::Export>),
    /// Write an index of mapped items, to search without a vector store
    Index(commands::index::Index),
    /// Rank items for queries
    Search(commands::search::Search),
    /// Rank rows by learned attributes; find rows like one, but with more of an attribute
    Attributes(Box<commands::attributes::Attributes>),
    /// Draw ranked sheets of images: held-out queries with what they find, right and wrong
    #[cfg(feature = "images")]
    Sheets(Box<commands::sheets::Sheets>),
    /// Draw ranked sheets of images (in builds with --features images)
    #[cfg(not(feature = "images"))]
    Sheets(feature_off::Absent),
    /// Put a model into a live table of PostgreSQL, swap it in, roll it back
    #[cfg(feature = "postgres")]
    Push(Box<commands::push::Push>),
    /// Put a model into a table of PostgreSQL (in builds with --features postgres)
    #[cfg(not(feature = "postgres"))]
    Push(feature_off::Absent),
    /// Fetch vectors and labels from a table of PostgreSQL
    #[cfg(feature = "postgres")]
    Pull(commands::pull::Pull),
    /// Fetch vectors from a table of PostgreSQL (in builds with --features postgres)
    #[cfg(not(feature = "postgres"))]
    Pull(feature_off::Absent),
    /// List the models that were pushed to a database
    #[cfg(feature = "postgres")]
    Models(commands::models::Models),
    /// List the models that were pushed to a database (in builds with --features postgres)
    #[cfg(not(feature = "postgres"))]
    Models(feature_off::Absent),
    /// Find the threshold at a rate of false matches, on rows not trained on, and store it
    Calibrate(commands::calibrate::Calibrate),
    /// Say of pairs of rows whether they are the same, by a calibrated model
    Decide(commands::decide::Decide),
    /// Find the changes of a web page that matter, in screenshots over time
    #[cfg(feature = "images")]
    Pages(Box<commands::pages::Pages>),
    /// Find the changes of a web page that matter (in builds with --features images)
    #[cfg(not(feature = "images"))]
    Pages(feature_off::Absent),
    /// Say how a vector store can serve a model, and verify it
    Plan(commands::plan::PlanVerb),
    /// Show what is in a model file
    Inspect(commands::inspect::Inspect),
    /// List the methods with their parameters, defaults and meanings
    Methods(commands::methods::Methods),
    /// Write training shards: whole classes together, balanced, shuffled by seed
    #[cfg(feature = "cluster")]
    Shard(commands::shard::Shard),
    /// Write training shards (in builds with --features cluster)
    #[cfg(not(feature = "cluster"))]
    Shard(feature_off::Absent),
    /// Run on many machines: a scheduler, its executors, their status
    #[cfg(feature = "cluster")]
    Cluster(commands::cluster::Cluster),
    /// Run on many machines (in builds with --features cluster)
    #[cfg(not(feature = "cluster"))]
    Cluster(feature_off::Absent),
}

fn main() -> ExitCode {
    let matches = Command::command().get_matches();
    let mut command = Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let (Verb::Compare(verb), Some((_, given))) = (&mut command.verb, matches.subcommand()) {
        verb.note_given(given);
    }
    let common = command.common;
    progress::start_log(common.json, verbose(&command.verb));
    interrupt::watch();
    match run(command.verb, &common) {
        Ok(code) => code,
        // Whoever read the output has seen enough, as `head` does.
        Err(error) if reader_left(&error) => ExitCode::SUCCESS,
        Err(error) if interrupted(&error) => {
            tracing::error!("interrupted; no output file was written");
            ExitCode::from(130)
        }
        Err(error) => {
            tracing::error!("{}", whole(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb, common: &args::Common) -> Result<ExitCode> {
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = common.threads {
        anyhow::ensure!(threads > 0, "threads must be at least 1, but is 0");
        pool = pool.num_threads(threads);
    }
    let done = |()| ExitCode::SUCCESS;
    pool.build()?.install(|| match verb {
        Verb::Compare(verb) => verb.run(common),
        Verb::Check(verb) => verb.run(common).map(done),
        Verb::Train(verb) => verb.run(common).map(done),
        Verb::Eval(verb) => verb.run(common).map(done),
        Verb::Gate(verb) => verb.run(common),
        Verb::Budget(verb) => verb.run(common).map(done),
        Verb::Clicks(verb) => verb.run(common).map(done),
        #[cfg(feature = "images")]
        Verb::Features(verb) => verb.run(common).map(done),
        #[cfg(not(feature = "images"))]
        Verb::Features(verb) => verb.run("features", "images").map(done),
        Verb::Embed(verb) => verb.run(common).map(done),
        Verb::Export(verb) => verb.run(common).map(done),
        Verb::Index(verb) => verb.run(common).map(done),
        Verb::Search(verb) => verb.run(common).map(done),
        Verb::Attributes(verb) => verb.run(common).map(done),
        #[cfg(feature = "images")]
        Verb::Sheets(verb) => verb.run(common).map(done),
        #[cfg(not(feature = "images"))]
        Verb::Sheets(verb) => verb.run("sheets", "images").map(done),
        #[cfg(feature = "postgres")]
        Verb::Push(verb) => verb.run(common).map(done),
        #[cfg(feature = "postgres")]
        Verb::Pull(verb) => verb.run(common).map(done),
        #[cfg(feature = "postgres")]
        Verb::Models(verb) => verb.run(common).map(done),
        #[cfg(not(feature = "postgres"))]
        Verb::Push(verb) => verb.run("push", "postgres").map(done),
        #[cfg(not(feature = "postgres"))]
        Verb::Pull(verb) => verb.run("pull", "postgres").map(done),
        #[cfg(not(feature = "postgres"))]
        Verb::Models(verb) => verb.run("models", "postgres").map(done),
        Verb::Calibrate(verb) => verb.run(common).map(done),
        Verb::Decide(verb) => verb.run(common).map(done),
        #[cfg(feature = "images")]
        Verb::Pages(verb) => verb.run(common),
        #[cfg(not(feature = "images"))]
        Verb::Pages(verb) => verb.run("pages", "images").map(done),
        Verb::Plan(verb) => verb.run(common).map(done),
        Verb::Inspect(verb) => verb.run(common).map(done),
        Verb::Methods(verb) => verb.run(common).map(done),
        #[cfg(feature = "cluster")]
        Verb::Shard(verb) => verb.run(common).map(done),
        #[cfg(feature = "cluster")]
        Verb::Cluster(verb) => verb.run(common).map(done),
        #[cfg(not(feature = "cluster"))]
        Verb::Shard(verb) => verb.run("shard", "cluster").map(done),
        #[cfg(not(feature = "cluster"))]
        Verb::Cluster(verb) => verb.run("cluster", "cluster").map(done),
    })
}

/// Whether libraries' messages are wanted.
fn verbose(verb: &Verb) -> bool {
    match verb {
        #[cfg(feature = "cluster")]
        Verb::Cluster(verb) => verb.verbose(),
        _ => false,
    }
}

/// An error with its causes, each said once: many errors name their cause themselves, or the file that
/// stands before them.
fn whole(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if cause.starts_with(&text) {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn reader_left(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref().map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}

fn interrupted(error: &anyhow::Error) -> bool {
    #[cfg(feature = "cluster")]
    if let Some(error) = error.downcast_ref::<metra_engine::Error>() {
        return error.is_interrupted();
    }
    if let Some(metra_stores::Error::Library(metra::Error::Interrupted)) = error.downcast_ref() {
        return true;
    }
    #[cfg(feature = "images")]
    if let Some(metra_images::Error::Library(metra::Error::Interrupted)) = error.downcast_ref() {
        return true;
    }
    let source = match error.downcast_ref::<metra_files::Error>() {
        Some(metra_files::Error::Metra { source, .. }) => Some(source),
        _ => error.downcast_ref::<metra::Error>(),
    };
    matches!(source, Some(metra::Error::Interrupted))
}
