//! Whether a difference is more than chance: a paired bootstrap over clusters of queries.
//!
//! Both systems answer the same queries, so only the differences are resampled. Queries of one
//! identity rise and fall together; resampling them one by one would make intervals too narrow, so
//! whole clusters are drawn with replacement (Efron & Tibshirani 1993; Smucker, Allan & Carterette,
//! CIKM 2007, for the paired test in retrieval).
//!
//! The interval is mean ± t · standard error: the error is the deviation of the resampled means,
//! times √(m / (m − 1)) for m clusters, and t is Student's with the effective number of clusters
//! less one, where (Σ size)² / Σ size² is that number (Kish 1965): a few large clusters count for
//! more than their share. Percentiles of the resampled means, which the textbooks have, cover the
//! truth too rarely with few clusters or rare changes: docs/decisions/intervals.md has the figures.

use super::student;
use crate::random::Stream;
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt;

/// How intervals are made, in words for reports.
pub const INTERVALS: &str =
    "Student's t over paired differences, with the standard error of resampled means";

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Number of resamples.
    pub resamples: u32,
    /// How often intervals made so hold the truth.
    pub level: f64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Bootstrap {
            resamples: 2000,
            level: 0.95,
            seed: 0,
        }
    }
}

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is above 0.
    Better,
    /// The whole interval is below 0.
    Worse,
    /// The interval holds 0.
    NoEvidence,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoEvidence => "no evidence",
        })
    }
}

/// A difference of means with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Mean of the first system.
    pub base: f64,
    /// Mean of the second system.
    pub learned: f64,
    /// Second mean less first mean.
    pub difference: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Queries compared.
    pub queries: usize,
    /// Clusters resampled.
    pub clusters: usize,
}

impl Comparison {
    /// What the interval says of the second system.
    pub fn verdict(&self) -> Verdict {
        if self.low > 0.0 {
            Verdict::Better
        } else if self.high < 0.0 {
            Verdict::Worse
        } else {
            Verdict::NoEvidence
        }
    }
}

/// Interval of `mean(learned) − mean(base)`, where entry i of both belongs to the same query and
/// `clusters[i]` names its cluster.
pub fn paired_bootstrap(
    base: &[f64],
    learned: &[f64],
    clusters: &[u64],
    options: &Bootstrap,
) -> Result<Comparison> {
    for (what, found) in [
        ("values of the second system", learned.len()),
        ("clusters of the queries", clusters.len()),
    ] {
        if found != base.len() {
            return Err(Error::shape(what, base.len(), found));
        }
    }
    check_level(options.level)?;
    let differences: Vec<f64> = learned.iter().zip(base).map(|(l, b)| l - b).collect();
    let resampled = resample(&[&differences], clusters, options.resamples, options.seed)?;
    let (low, high) = resampled.interval(0, options.level);
    let queries = base.len() as f64;
    let (base_mean, learned_mean) = (
        base.iter().sum::<f64>() / queries,
        learned.iter().sum::<f64>() / queries,
    );
    Ok(Comparison {
        base: base_mean,
        learned: learned_mean,
        difference: learned_mean - base_mean,
        low,
        high,
        queries: base.len(),
        clusters: resampled.clusters,
    })
}

/// Means of some columns with what resampling says of their errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Resampled {
    /// For each column its mean and the standard error of that.
    columns: Vec<(f64, f64)>,
    /// The largest |value| that an interval reaches where little is known: 1, as measures go, or
    /// more where a cluster's mean is larger.
    widest: f64,
    /// Clusters resampled.
    pub clusters: usize,
    /// As many clusters of one size would say as much.
    pub effective: f64,
}

impl Resampled {
    /// The interval that holds a column's true mean this often. With a single cluster nothing is
    /// known of chance, and the interval is all that measures can be.
    pub(crate) fn interval(&self, column: usize, level: f64) -> (f64, f64) {
        let (mean, error) = self.columns[column];
        if self.clusters < 2 {
            return (-self.widest, self.widest);
        }
        let reach = error * student::two_sided(level, self.effective - 1.0);
        // Means cannot leave the range of the values, whatever a handful of clusters suggests.
        (
            (mean - reach).max(-self.widest),
            (mean + reach).min(self.widest),
        )
    }
}

/// Means of every column with their errors over clusters drawn with replacement. All columns share
/// the draws, which cost most of the time where many methods are compared in many measures.
pub fn resample(
    columns: &[&[f64]],
    clusters: &[u64],
    resamples: u32,
    seed: u64,
) -> Result<Resampled> {
    if let Some(column) = columns.iter().find(|c| c.len() != clusters.len()) {
        return Err(Error::shape(
            "values to resample",
            clusters.len(),
            column.len(),
        ));
    }
    if clusters.is_empty() {
        return Err(Error::Data("there is no query to compare".into()));
    }
    // Values of a cluster always travel together, so their sums and number are all it takes.
    let mut numbers: BTreeMap<u64, usize> = clusters.iter().map(|cluster| (*cluster, 0)).collect();
    for (place, number) in numbers.values_mut().enumerate() {
        *number = place;
    }
    let width = columns.len() + 1;
    let mut sums = vec![0.0; numbers.len() * width];
    for (query, cluster) in clusters.iter().enumerate() {
        let row = &mut sums[numbers[cluster] * width..][..width];
        for (sum, column) in row.iter_mut().zip(columns) {
            *sum += column[query];
        }
        row[width - 1] += 1.0;
    }
    resample_sums(&sums, width, resamples, seed)
}

/// Interval of Σ sum / Σ count, a rate between 0 and 1, over clusters drawn with replacement.
pub(super) fn resampled_interval(sums: &[(f64, f64)], options: &Bootstrap) -> Result<(f64, f64)> {
    check_level(options.level)?;
    let flat: Vec<f64> = sums
        .iter()
        .flat_map(|(sum, count)| [*sum, *count])
        .collect();
    let resampled = resample_sums(&flat, 2, options.resamples, options.seed)?;
    Ok(within_rates(resampled.interval(0, options.level)))
}

/// An interval of a share, which is never below 0 or above 1.
pub(super) fn within_rates((low, high): (f64, f64)) -> (f64, f64) {
    (low.clamp(0.0, 1.0), high.clamp(0.0, 1.0))
}

/// Resample clusters: `sums` has a row of `width` numbers for each, the last of which is what the
/// others are divided by.
fn resample_sums(sums: &[f64], width: usize, resamples: u32, seed: u64) -> Result<Resampled> {
    if resamples < 2 {
        return Err(Error::parameter("resamples", "at least 2", resamples));
    }
    let count = sums.len() / width;
    let rows: Vec<Vec<f64>> = (0..u64::from(resamples))
        .into_par_iter()
        .map(|resample| {
            let mut stream = Stream::new(seed, "bootstrap", resample);
            let mut total = vec![0.0; width];
            for _ in 0..count {
                let drawn = stream.below(count as u64) as usize;
                for (sum, value) in total.iter_mut().zip(&sums[drawn * width..][..width]) {
                    *sum += value;
                }
            }
            means(&total)
        })
        .collect();
    let mut total = vec![0.0; width];
    let (mut squares, mut widest) = (0.0, 1.0_f64);
    for row in sums.chunks_exact(width) {
        for (sum, value) in total.iter_mut().zip(row) {
            *sum += value;
        }
        squares += row[width - 1] * row[width - 1];
        widest = means(row).iter().fold(widest, |w, mean| w.max(mean.abs()));
    }
    // Resampling m clusters shows (m − 1) / m of the variance that m new ones would have.
    let unbiased = count as f64 / (count as f64 - 1.0).max(1.0);
    let columns = means(&total).into_iter().enumerate().map(|(column, mean)| {
        let drawn = || rows.iter().map(|row| row[column]);
        let centre = drawn().sum::<f64>() / rows.len() as f64;
        let squares: f64 = drawn()
            .map(|value| (value - centre) * (value - centre))
            .sum();
        let variance = squares / (rows.len() - 1) as f64;
        (mean, (unbiased * variance).sqrt())
    });
    Ok(Resampled {
        columns: columns.collect(),
        widest,
        clusters: count,
        effective: total[width - 1] * total[width - 1] / squares,
    })
}

/// Sums divided by the last of them.
fn means(sums: &[f64]) -> Vec<f64> {
    let (by, sums) = sums.split_last().unwrap_or((&1.0, &[]));
    sums.iter().map(|sum| sum / by).collect()
}

fn check_level(level: f64) -> Result<()> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::parameter("level", "between 0 and 1", level));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(count: usize, mean: f64, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(seed, "test", 0);
        (0..count).map(|_| mean + stream.normal()).collect()
    }

    #[test]
    fn verdicts_follow_the_interval() {
        let zeros = vec![0.0; 400];
        let own: Vec<u64> = (0..400).collect();
        let run = |learned: &[f64]| {
            paired_bootstrap(&zeros, learned, &own, &Bootstrap::default()).unwrap()
        };
        // Standard error 1 / 20 = 0.05: a gain of 0.5 is ten of them.
        let clear = run(&normal(400, 0.5, 1));
        assert_eq!(clear.verdict(), Verdict::Better);
        // The interval is about ± 1.96 standard errors wide.
        assert!(((clear.high - clear.low) / (2.0 * 1.96 * 0.05) - 1.0).abs() < 0.15);
        assert_eq!(run(&normal(400, -0.5, 1)).verdict(), Verdict::Worse);
        assert_eq!(run(&zeros).verdict(), Verdict::NoEvidence);
        assert_eq!(Verdict::NoEvidence.to_string(), "no evidence");
    }

    #[test]
    fn queries_of_one_cluster_are_no_new_evidence() {
        // 20 clusters, each repeated 50 times: the interval must be as wide as that of 20 queries,
        // not as narrow as that of 1000.
        let few = normal(20, 0.3, 7);
        let many: Vec<f64> = few.iter().flat_map(|v| vec![*v; 50]).collect();
        let clusters: Vec<u64> = (0..20).flat_map(|c| vec![c; 50]).collect();
        let own: Vec<u64> = (0..20).collect();
        let options = Bootstrap::default();
        let wide = paired_bootstrap(&vec![0.0; 1000], &many, &clusters, &options).unwrap();
        let same = paired_bootstrap(&[0.0; 20], &few, &own, &options).unwrap();
        assert!((wide.low - same.low).abs() < 1e-12 && (wide.high - same.high).abs() < 1e-12);
    }

    #[test]
    fn threads_change_nothing_and_bad_input_is_named() {
        let (a, b) = (normal(50, 0.0, 1), normal(50, 0.1, 2));
        let own: Vec<u64> = (0..50).collect();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| paired_bootstrap(&a, &b, &own, &Bootstrap::default()).unwrap())
        };
        assert_eq!(run(1), run(2));
        assert!(paired_bootstrap(&a, &b[1..], &own, &Bootstrap::default()).is_err());
        assert!(paired_bootstrap(&[], &[], &[], &Bootstrap::default()).is_err());
        let none = Bootstrap {
            resamples: 1,
            ..Bootstrap::default()
        };
        assert!(paired_bootstrap(&a, &b, &own, &none).is_err());
    }

    #[test]
    fn the_interval_is_student_over_the_clusters() {
        // Three clusters of one value, 0, 0.3 and 0.6: mean 0.3, deviation 0.3, standard error
        // 0.3 / √3 = 0.1732, and Student's t with 2 degrees of freedom is 4.3027 at 95 %: reach
        // 0.7453. The deviation of 2,000 resampled means is within some 3 % of that.
        let own = [0, 1, 2];
        let found = paired_bootstrap(&[0.0; 3], &[0.0, 0.3, 0.6], &own, &Bootstrap::default());
        let found = found.unwrap();
        assert!((found.difference - 0.3).abs() < 1e-12);
        let reach = 0.7453;
        assert!(((found.high - found.low) / 2.0 / reach - 1.0).abs() < 0.05);
        // Sizes 8, 1 and 1: as much as 100 / 66 clusters, so one degree of freedom.
        let values = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.1, 0.2];
        let clusters = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2];
        let resampled = resample(&[&values], &clusters, 2000, 0).unwrap();
        assert!((resampled.effective - 100.0 / 66.0).abs() < 1e-12);
    }

    #[test]
    fn one_cluster_is_no_evidence() {
        let found = paired_bootstrap(&[0.1; 9], &[0.9; 9], &[4; 9], &Bootstrap::default()).unwrap();
        assert_eq!((found.low, found.high), (-1.0, 1.0));
        assert_eq!(found.verdict(), Verdict::NoEvidence);
        // Whatever the unit of the values, what was seen lies inside.
        let found = paired_bootstrap(&[0.0; 2], &[7.0; 2], &[4; 2], &Bootstrap::default()).unwrap();
        assert_eq!((found.low, found.high), (-7.0, 7.0));
    }
}
