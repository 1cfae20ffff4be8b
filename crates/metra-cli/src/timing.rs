//! CPU time of a fit, beside that of a product of known size: times of a noisy machine mean little
//! without it.

use metra::linalg::{RowBuf, cross};
use serde::Serialize;
use std::time::Instant;

/// What a fit cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Timing {
    /// CPU seconds of one fit with the chosen settings, all threads together.
    pub(crate) fit_cpu_seconds: f64,
    /// Seconds of one 2048 × 2048 × 2048 product in f32 on one thread, measured right after.
    pub(crate) product_seconds: f64,
}

/// Run `work` and measure it.
pub(crate) fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let before = cpu_seconds();
    let result = work();
    (result, cpu_seconds() - before)
}

/// CPU seconds of this process so far; 0 where the system does not tell.
fn cpu_seconds() -> f64 {
    // Fields 14 and 15 of /proc/self/stat, counted in hundredths on Linux. The name in field 2 may
    // hold blanks, so counting starts behind its closing bracket.
    let Ok(text) = std::fs::read_to_string("/proc/self/stat") else {
        return 0.0;
    };
    let after_name = text.rsplit(')').next().unwrap_or("");
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|f| f.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}

/// Median of three products.
pub(crate) fn product_seconds() -> f64 {
    const SIDE: usize = 2048;
    let left = RowBuf::zeros(SIDE, SIDE);
    let mut out = vec![0.0; SIDE * SIDE];
    let mut times: Vec<f64> = (0..3)
        .map(|_| {
            let start = Instant::now();
            cross(left.rows(), left.rows(), 1.0, &mut out);
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[1]
}
