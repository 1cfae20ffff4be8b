//! How many images a second become stripes and GIST, on one thread and on two, beside bare decoding and
//! resizing.
//!
//! `cargo run -p metra-images --example throughput [FOLDER]`
//!
//! Rounds of all cases follow one another, and each ratio is taken inside a round, so that other work on the
//! machine touches both sides; figures are medians of rounds. On a machine that is not quiet two threads do
//! not get two processors: the time that processors spent (Linux tells it) then says more than the clock.
//! Images are those of FOLDER, or drawn for the
//! purpose: people of 48 × 128 as PNG for stripes, scenes of 256 × 256 as JPEG for GIST.

#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use image::imageops::{FilterType, resize};
use metra_images::rows::describe_all;
use metra_images::{Describe, Gist, GistSettings, Limits, List, Picture, Stripes, Unmatched};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

const ROUNDS: usize = 9;

/// What any feature has to do before it begins.
struct Resized(u32, u32);

impl Describe for Resized {
    fn dimension(&self) -> usize {
        1
    }

    fn describe(&self, picture: &Picture) -> Vec<f32> {
        let small = resize(picture, self.0, self.1, FilterType::Triangle);
        vec![small.as_raw().iter().map(|byte| f32::from(*byte)).sum()]
    }
}

struct Case {
    name: &'static str,
    what: Box<dyn Describe>,
    bare: Resized,
    list: List,
}

fn main() -> Result<(), Box<dyn Error>> {
    let drawn = tempfile::tempdir()?;
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let images = |name: &str, width, height, ending| -> Result<List, Box<dyn Error>> {
        let folder = match &given {
            Some(folder) => folder.clone(),
            None => draw(&drawn.path().join(name), width, height, ending)?,
        };
        Ok(List::gather(&[folder], None, Unmatched::Fail)?)
    };
    let cases = [
        Case {
            name: "stripes",
            what: Box::new(Stripes::new(6)?),
            bare: Resized(48, 128),
            list: images("people", 48, 128, "png")?,
        },
        Case {
            name: "gist",
            what: Box::new(Gist::new(GistSettings::default())?),
            bare: Resized(128, 128),
            list: images("scenes", 256, 256, "jpg")?,
        },
    ];
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pools = [pool(1)?, pool(2)?];
    println!("feature  of images    images/s on 1   on 2   scaling     processor ms on 1   on 2");
    for case in &cases {
        let run = |what: &dyn Describe, threads: usize| -> Result<Time, metra_images::Error> {
            let start = (Instant::now(), processor_seconds());
            let take = |_, row: metra_images::Result<Vec<f32>>| row.map(|_| ());
            let run = || describe_all(&case.list.entries, what, Limits::default(), &|| false, take);
            pools[threads].install(run)?;
            Ok(Time {
                clock: start.0.elapsed().as_secs_f64(),
                processor: processor_seconds() - start.1,
            })
        };
        // The feature on one thread and on two, then the bare resizing, in each round.
        let mut rounds: Vec<[Time; 4]> = Vec::new();
        for round in 0..=ROUNDS {
            let times = [
                run(&*case.what, 0)?,
                run(&*case.what, 1)?,
                run(&case.bare, 0)?,
                run(&case.bare, 1)?,
            ];
            // The first only warms the cache of files.
            if round > 0 {
                rounds.push(times);
            }
        }
        let of = |value: &dyn Fn(&[Time; 4]) -> f64| median(rounds.iter().map(value).collect());
        let images = case.list.entries.len() as f64;
        for (name, one) in [(case.name, 0), ("  bare", 2)] {
            println!(
                "{name:<9}{images:>9}{:>17.0}{:>7.0}{:>10.2}{:>22.2}{:>7.2}",
                images / of(&|times| times[one].clock),
                images / of(&|times| times[one + 1].clock),
                of(&|times| times[one].clock / times[one + 1].clock),
                1e3 / images * of(&|times| times[one].processor),
                1e3 / images * of(&|times| times[one + 1].processor),
            );
        }
        println!(
            "  times the bare: {:.1} on 1, {:.1} on 2 by the clock, {:.1} by the processor",
            of(&|times| times[0].clock / times[2].clock),
            of(&|times| times[1].clock / times[3].clock),
            of(&|times| times[0].processor / times[2].processor),
        );
    }
    Ok(())
}

struct Time {
    clock: f64,
    processor: f64,
}

/// What all threads of this process have had of processors; not a number where the system does not say.
fn processor_seconds() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return f64::NAN;
    };
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let status = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        status.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// 256 images of waves and patches.
fn draw(folder: &Path, width: u32, height: u32, ending: &str) -> Result<PathBuf, Box<dyn Error>> {
    std::fs::create_dir(folder)?;
    for number in 0..256 {
        let step = 0.05 + 0.003 * f64::from(number);
        let picture = Picture::from_fn(width, height, |x, y| {
            let wave = (step * f64::from(x) + 0.11 * f64::from(y)).sin();
            let noise = (x * 7919 + y * 104_729 + number * 31) % 23;
            let patch = (x / 16 + y / 16 + number) % 4 * 25;
            let value = (110.0 + 70.0 * wave) as u32 + noise;
            image::Rgb([value as u8, (value / 2 + patch) as u8, (patch * 2) as u8])
        });
        picture.save(folder.join(format!("{number:03}.{ending}")))?;
    }
    Ok(folder.to_path_buf())
}
