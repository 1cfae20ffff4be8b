//! How many images a second become stripes and GIST, on one thread and on two, beside bare decoding and
//! resizing.
//!
//! `cargo run -p metra-images --example throughput [FOLDER]`
//!
//! Rounds of all cases follow one another, and each ratio is taken inside a round, so that other work on the
//! machine touches both sides; figures are medians of rounds. Images are those of FOLDER, or drawn for the
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
    println!(
        "feature   images   a second on 1   on 2   scaling   times decode + resize on 1   on 2"
    );
    for case in &cases {
        let seconds = |what: &dyn Describe, threads: usize| -> Result<f64, metra_images::Error> {
            let start = Instant::now();
            let take = |_, row: metra_images::Result<Vec<f32>>| row.map(|_| ());
            let run = || describe_all(&case.list.entries, what, Limits::default(), &|| false, take);
            pools[threads].install(run)?;
            Ok(start.elapsed().as_secs_f64())
        };
        // [feature or bare][threads], in each round.
        let mut rounds: Vec<[[f64; 2]; 2]> = Vec::new();
        for round in 0..=ROUNDS {
            let times = [
                [seconds(&*case.what, 0)?, seconds(&*case.what, 1)?],
                [seconds(&case.bare, 0)?, seconds(&case.bare, 1)?],
            ];
            // The first only warms the cache of files.
            if round > 0 {
                rounds.push(times);
            }
        }
        let of = |value: fn(&[[f64; 2]; 2]) -> f64| median(rounds.iter().map(value).collect());
        let images = case.list.entries.len() as f64;
        println!(
            "{:<10}{images:>6}{:>16.0}{:>7.0}{:>10.2}{:>29.1}{:>7.1}",
            case.name,
            images / of(|times| times[0][0]),
            images / of(|times| times[0][1]),
            of(|times| times[0][0] / times[0][1]),
            of(|times| times[0][0] / times[1][0]),
            of(|times| times[0][1] / times[1][1]),
        );
    }
    Ok(())
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
