//! `mutate TARGET COUNT [SEED]`: damaged copies of a target's valid inputs, drawn by a seed. Prints what
//! became of them and the most memory that the process had; fails where damage was read as if nothing had
//! happened though the file carries a digest. A panic or a crash ends it with the number of the case.
#![allow(clippy::print_stdout)]

use metra::internal::Stream;
use metra_fuzz::{Target, find, seeds};
use metra_testing::mutated;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [name, count] => run(name, count, "1"),
        [name, count, seed] => run(name, count, seed),
        _ => usage(),
    }
}

fn run(name: &str, count: &str, seed: &str) -> ExitCode {
    match (find(name), count.parse(), seed.parse()) {
        (Some(target), Ok(count), Ok(seed)) => damage(target, count, seed),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    let names: Vec<&str> = metra_fuzz::TARGETS
        .iter()
        .map(|target| target.name)
        .collect();
    println!("mutate TARGET COUNT [SEED]");
    println!("targets: {}", names.join(", "));
    ExitCode::FAILURE
}

fn damage(target: &Target, count: u64, seed: u64) -> ExitCode {
    let valid = seeds::of(target.name);
    let whole: Vec<_> = (valid.iter())
        .map(|(name, bytes)| {
            target
                .try_run(bytes)
                .unwrap_or_else(|e| panic!("{name}: {e}"))
        })
        .collect();
    let unused = memory();
    let (mut refused, mut same, mut other) = (0_u64, 0_u64, Vec::new());
    for case in 0..count {
        let mut random = Stream::new(seed, target.name, case);
        let place = random.below(valid.len() as u64) as usize;
        let second = random.below(valid.len() as u64) as usize;
        let bytes = mutated(&valid[place].1, &valid[second].1, &mut |n| random.below(n));
        let outcome = match target.try_run(&bytes) {
            Ok(outcome) => outcome,
            Err(panic) => {
                println!("{}: case {case} of seed {seed} {panic}", target.name);
                return ExitCode::FAILURE;
            }
        };
        match outcome {
            None => refused += 1,
            found if found == whole[place] => same += 1,
            _ => other.push(case),
        }
    }
    let name = target.name;
    println!(
        "{name}: {count} damaged inputs of {} valid ones: {refused} refused, {same} read as before, {} read \
         as something else; {} MB of memory at most, {} MB before",
        valid.len(),
        other.len(),
        memory() >> 20,
        unused >> 20
    );
    match target.notices_damage && !other.is_empty() {
        true => {
            println!("{name}: damage was not noticed in cases {other:?} of seed {seed}");
            ExitCode::FAILURE
        }
        false => ExitCode::SUCCESS,
    }
}

/// The most memory that the process ever had, as Linux keeps it; 0 elsewhere.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
