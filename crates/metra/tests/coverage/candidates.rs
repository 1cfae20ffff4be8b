//! Other intervals of a mean over clusters, to be held against the one that the library has.

use crate::cases::Case;
use metra::evaluate::{Bootstrap, paired_bootstrap};
use metra::internal::Stream;
use rayon::prelude::*;

const RESAMPLES: usize = 2000;
const NAMES: [&str; 6] = [
    "percentile",
    "× √(m/(m−1))",
    "studentised",
    "BCa",
    "normal",
    "the one taken",
];

/// A line for every case: how often each candidate holds the truth.
pub(crate) fn table(cases: &[Case], draws: u64) -> String {
    let names = NAMES.map(|name| format!("{name:>14}")).concat();
    let mut table = format!("{:<62}{names}\n", "");
    for case in cases {
        let truth = case.truth();
        let found: Vec<Vec<(f64, f64)>> = (0..draws)
            .into_par_iter()
            .map(|draw| intervals(case, draw))
            .collect();
        let shares = (0..NAMES.len()).map(|candidate| {
            let holds = |f: &&Vec<(f64, f64)>| f[candidate].0 <= truth && truth <= f[candidate].1;
            let held = found.iter().filter(holds).count();
            format!("{:>14.1}", 100.0 * held as f64 / draws as f64)
        });
        let name = format!(
            "{:?}, {} queries, class size {:?}{}",
            case.kind,
            case.queries,
            case.class_size,
            if case.larger_gain_more {
                ", larger gain more"
            } else {
                ""
            }
        );
        table.push_str(&format!("{name:<62}{}\n", shares.collect::<String>()));
    }
    table
}

fn intervals(case: &Case, draw: u64) -> Vec<(f64, f64)> {
    let (base, learned, classes) = case.draw(2, draw);
    let count = *classes.last().unwrap() as usize + 1;
    let m = count as f64;
    // Sum of the differences and number of queries of every class.
    let mut sums = vec![[0.0; 2]; count];
    for ((after, before), class) in learned.iter().zip(&base).zip(&classes) {
        sums[*class as usize][0] += after - before;
        sums[*class as usize][1] += 1.0;
    }
    let (mean, error) = mean_and_error(&sums);
    let mut stream = Stream::new(draw, "candidates", 0);
    let (mut means, mut ratios) = (Vec::new(), Vec::new());
    let mut drawn = sums.clone();
    for _ in 0..RESAMPLES {
        drawn.fill_with(|| sums[stream.below(count as u64) as usize]);
        let (resampled, its_error) = mean_and_error(&drawn);
        means.push(resampled);
        let off = resampled - mean;
        // A draw without any change has no error; it lies infinitely far out.
        ratios.push(if off == 0.0 {
            0.0
        } else {
            off / its_error.max(1e-12)
        });
    }
    means.sort_by(f64::total_cmp);
    ratios.sort_by(f64::total_cmp);
    let percentile = (quantile(&means, 0.025), quantile(&means, 0.975));
    let factor = (m / (m - 1.0)).sqrt();
    let wider = |end: f64| mean + factor * (end - mean);
    let studentised = (
        mean - quantile(&ratios, 0.975) * error,
        mean - quantile(&ratios, 0.025) * error,
    );
    let taken = paired_bootstrap(&base, &learned, &classes, &Bootstrap::default()).unwrap();
    vec![
        percentile,
        (wider(percentile.0), wider(percentile.1)),
        studentised,
        accelerated(&sums, mean, &means),
        (mean - 1.96 * error, mean + 1.96 * error),
        (taken.low, taken.high),
    ]
}

/// Σ sum / Σ number with its standard error by linearisation.
fn mean_and_error(sums: &[[f64; 2]]) -> (f64, f64) {
    let m = sums.len() as f64;
    let total: f64 = sums.iter().map(|s| s[0]).sum();
    let number: f64 = sums.iter().map(|s| s[1]).sum();
    let mean = total / number;
    let squares: f64 = sums.iter().map(|s| (s[0] - mean * s[1]).powi(2)).sum();
    (mean, (m / (m - 1.0) * squares).sqrt() / number)
}

/// Bias-corrected and accelerated percentiles (Efron 1987).
fn accelerated(sums: &[[f64; 2]], mean: f64, means: &[f64]) -> (f64, f64) {
    let below: f64 = (means.iter())
        .map(|value| {
            if *value < mean {
                1.0
            } else {
                0.5 * f64::from(*value == mean)
            }
        })
        .sum();
    let bias = normal_quantile((below / means.len() as f64).clamp(0.001, 0.999));
    let moment = |power| {
        sums.iter()
            .map(|s| (s[0] - mean * s[1]).powi(power))
            .sum::<f64>()
    };
    let scale = 6.0 * moment(2).powf(1.5);
    let acceleration = if scale > 0.0 { moment(3) / scale } else { 0.0 };
    let share = |z: f64| {
        let moved = bias + z;
        normal_share(bias + moved / (1.0 - acceleration * moved))
    };
    (quantile(means, share(-1.96)), quantile(means, share(1.96)))
}

/// Share of a standard normal below x, by Simpson's rule from 0.
fn normal_share(x: f64) -> f64 {
    let x = x.clamp(-8.0, 8.0);
    let step = x / 200.0;
    let density = |place: i32| (-0.5 * (f64::from(place) * step).powi(2)).exp();
    let weighted = (1..200).map(|place| density(place) * if place % 2 == 1 { 4.0 } else { 2.0 });
    let area = (density(0) + weighted.sum::<f64>() + density(200)) * step / 3.0;
    0.5 + area / std::f64::consts::TAU.sqrt()
}

fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if normal_share(middle) < share {
            low = middle
        } else {
            high = middle
        }
    }
    (low + high) / 2.0
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * place.fract()
}
