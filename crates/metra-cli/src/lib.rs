//! The command `metra`: from a file of vectors to a metric, a verdict and ranked answers. A library of one
//! function, because the Python package carries the command too.

mod args;
mod attribute_order;
#[cfg(feature = "cluster")]
mod cluster_args;
mod command_line;
mod commands;
mod comparisons;
#[cfg(all(
    test,
    feature = "cluster",
    feature = "images",
    feature = "postgres",
    feature = "serve"
))]
mod documented;
mod evaluation_args;
#[cfg(not(all(
    feature = "cluster",
    feature = "images",
    feature = "postgres",
    feature = "serve"
)))]
mod feature_off;
mod help;
#[cfg(feature = "images")]
mod image_sheet;
mod inputs;
mod interrupt;
mod method_args;
mod outputs;
#[cfg(feature = "postgres")]
mod postgres_filters;
mod print;
mod progress;
mod ranker;
mod split_args;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;

/// Learn what "similar" means for vectors you already have, and measure by how much it helps.
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
    /// Summarise a file of vectors, or queries, items and qrels: what is there, what is missing
    Check(commands::check::Check),
    /// Learn a metric: choose its settings on a validation part, evaluate it once on a test part
    Train(Box<commands::train::Train>),
    /// Compare methods under one protocol, with settings chosen on validation parts
    Compare(Box<commands::compare::Compare>),
    /// Compute a learning curve: quality against the number of labels
    Budget(Box<commands::budget::Budget>),
    /// Find how few bytes a stored item needs: int8, bits and product codes, learned or not
    Compress(Box<commands::compress::Compress>),
    /// Turn a click log into graded relevance judgements, corrected for positions
    Clicks(commands::clicks::Clicks),
    /// List the methods with their parameters, defaults and meanings
    Methods(commands::methods::Methods),
    /// Measure a model's ranking, or a TREC run
    Eval(Box<commands::eval::Eval>),
    /// Add rankings of the same queries up to one, such as a lexical and a dense one
    Fuse(Box<commands::fuse::Fuse>),
    /// Compare ways to change the embedding model: stay, map, embed anew, or use both
    Migrate(Box<commands::migrate::Migrate>),
    /// Decide whether a candidate may replace the baseline: a verdict with an exit code for CI
    Gate(Box<commands::gate::Gate>),
    /// Choose the match threshold for a false match rate on held-out rows; store it in the model
    Calibrate(commands::calibrate::Calibrate),
    /// Decide whether pairs of rows match, with a calibrated model
    Decide(commands::decide::Decide),
    /// Show what is in a model file
    Inspect(commands::inspect::Inspect),
    /// Map vectors with a model, for a vector store
    Embed(commands::embed::Embed),
    /// Rank items for queries
    Search(commands::search::Search),
    /// Write a model of the first dimensions of its map alone
    Shorten(commands::shorten::Shorten),
    /// Keep sums over labelled rows: add rows, forget rows exactly, train closed forms of what is left
    Sums(Box<commands::sums::Sums>),
    /// Show how a vector store can serve a model, and verify it
    Plan(commands::plan::PlanVerb),
    /// Write an index of mapped items, to search without a vector store
    Index(commands::index::Index),
    /// Write a model's map as a file for other programs: FAISS, ONNX, npy, safetensors, C, SQL
    Export(Box<commands::export::Export>),
    /// Write a model's vectors into a column of a PostgreSQL table; swap it in or roll back
    Push(Box<commands::push::Push>),
    /// Fetch vectors and labels from a table of PostgreSQL
    Pull(commands::pull::Pull),
    /// List the models that were pushed to a database
    Models(commands::models::Models),
    /// Serve models and indexes over HTTP
    Serve(Box<commands::serve::Serve>),
    /// Compute image feature vectors: stripes (people), GIST (scenes, web pages)
    Features(Box<commands::features::Features>),
    /// Draw the top-ranked images of held-out queries, correct and wrong ones marked
    Sheets(Box<commands::sheets::Sheets>),
    /// Rank rows by learned attributes; find similar rows with more or less of an attribute
    Attributes(Box<commands::attributes::Attributes>),
    /// Find the changes of a web page that matter, in screenshots over time
    Pages(Box<commands::pages::Pages>),
    /// Split a table into balanced, shuffled training shards that keep each class together
    Shard(commands::shard::Shard),
    /// Run on many machines: a scheduler, its executors, their status
    Cluster(commands::cluster::Cluster),
    /// Write the small data sets that the documentation uses
    Examples(commands::examples::Examples),
    /// Show the version, the processor, memory, and which optional parts were found
    Doctor(commands::doctor::Doctor),
    /// Print a completion script for a shell
    Completions(commands::completions::Completions),
    /// Write manual pages, one for each verb
    Man(commands::man::Man),
}

/// Run the command with these arguments; its exit code. `program` starts it, as work in a process of its own
/// needs it. To be called once in a process: Ctrl-C and the log are the command's from then on.
pub fn run(program: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    let words = std::iter::once(OsString::from("metra")).chain(arguments.iter().cloned());
    let read = help::grouped(Command::command()).try_get_matches_from(words);
    let read = read.and_then(|matches| Ok((Command::from_arg_matches(&matches)?, matches)));
    let (mut command, matches) = match read {
        Ok(read) => read,
        Err(error) => {
            // Help is an error here too. A reader who is gone misses nothing.
            _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    command_line::note(program, arguments);
    if let (Verb::Compare(verb), Some((_, given))) = (&mut command.verb, matches.subcommand()) {
        verb.note_given(given);
    }
    let common = command.common;
    #[cfg(feature = "serve")]
    if let Verb::Serve(verb) = &command.verb {
        // A server has its own way with signals, and its own threads.
        progress::start_log(&common, verb.log_format());
        return ended(verb.run(&common).map(|()| 0));
    }
    progress::start_log(&common, progress::LogFormat::Command);
    interrupt::watch();
    let checked = outputs::check(&matches, common.force);
    ended(checked.and_then(|()| run_verb(command.verb, &common)))
}

/// The exit code of an outcome, after its error was said.
fn ended(outcome: Result<u8>) -> u8 {
    match outcome {
        Ok(code) => print::ending(code),
        Err(error) if interrupted(&error) => {
            tracing::error!("interrupted; no file was left half-written");
            130
        }
        Err(error) => {
            tracing::error!("{}", whole(&error));
            1
        }
    }
}

fn run_verb(verb: Verb, common: &args::Common) -> Result<u8> {
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = common.threads {
        anyhow::ensure!(threads > 0, "threads must be at least 1, but is 0");
        pool = pool.num_threads(threads);
    }
    let done = |()| 0;
    pool.build()?.install(|| match verb {
        Verb::Check(verb) => verb.run(common).map(done),
        Verb::Train(verb) => verb.run(common).map(done),
        Verb::Compare(verb) => verb.run(common),
        Verb::Budget(verb) => verb.run(common).map(done),
        Verb::Compress(verb) => verb.run(common).map(done),
        Verb::Clicks(verb) => verb.run(common).map(done),
        Verb::Methods(verb) => verb.run(common).map(done),
        Verb::Eval(verb) => verb.run(common).map(done),
        Verb::Fuse(verb) => verb.run(common).map(done),
        Verb::Migrate(verb) => verb.run(common).map(done),
        Verb::Gate(verb) => verb.run(common),
        Verb::Calibrate(verb) => verb.run(common).map(done),
        Verb::Decide(verb) => verb.run(common).map(done),
        Verb::Inspect(verb) => verb.run(common).map(done),
        Verb::Embed(verb) => verb.run(common).map(done),
        Verb::Search(verb) => verb.run(common).map(done),
        Verb::Shorten(verb) => verb.run(common).map(done),
        Verb::Sums(verb) => verb.run(common).map(done),
        Verb::Plan(verb) => verb.run(common).map(done),
        Verb::Index(verb) => verb.run(common).map(done),
        Verb::Export(verb) => verb.run(common).map(done),
        Verb::Push(verb) => verb.run(common).map(done),
        Verb::Pull(verb) => verb.run(common).map(done),
        Verb::Models(verb) => verb.run(common).map(done),
        Verb::Serve(verb) => verb.run(common).map(done),
        Verb::Features(verb) => verb.run(common).map(done),
        Verb::Sheets(verb) => verb.run(common).map(done),
        Verb::Attributes(verb) => verb.run(common).map(done),
        Verb::Pages(verb) => verb.run(common),
        Verb::Shard(verb) => verb.run(common).map(done),
        Verb::Cluster(verb) => verb.run(common).map(done),
        Verb::Examples(verb) => verb.run(common).map(done),
        Verb::Doctor(verb) => verb.run(common).map(done),
        Verb::Completions(verb) => verb.run(help::grouped(Command::command())).map(done),
        Verb::Man(verb) => verb.run(&help::grouped(Command::command())).map(done),
    })
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
