//! Measures CPU time and memory, with the time of a matrix product of known size beside them, since
//! times of a noisy machine mean little alone.

use crate::linalg::{RowBuf, cross};
use serde::Serialize;
use std::time::Instant;

/// What a fit cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Timing {
    /// CPU seconds of one fit with the chosen settings, all threads together.
    pub fit_cpu_seconds: f64,
    /// Seconds of one 2048 × 2048 × 2048 product in f32 on one thread, measured right after.
    pub product_seconds: f64,
}

/// Run `work` and measure the CPU seconds of all threads.
pub(crate) fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let before = process_seconds();
    let result = work();
    (result, process_seconds() - before)
}

/// Run `work` on this thread alone and measure its CPU seconds; seconds of the clock where the
/// system does not tell.
pub(crate) fn timed_on_thread<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let (before, clock) = (thread_seconds(), Instant::now());
    let result = work();
    let spent = match (before, thread_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => clock.elapsed().as_secs_f64(),
    };
    (result, spent)
}

/// CPU seconds of this process so far; 0 where the system does not tell.
fn process_seconds() -> f64 {
    cpu_clock(Clock::Process).unwrap_or(0.0)
}

/// CPU seconds of this thread so far.
fn thread_seconds() -> Option<f64> {
    cpu_clock(Clock::Thread)
}

/// Whose CPU time.
#[derive(Clone, Copy)]
enum Clock {
    Process,
    Thread,
}

#[cfg(unix)]
fn cpu_clock(clock: Clock) -> Option<f64> {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(match clock {
        Clock::Process => ClockId::ProcessCPUTime,
        Clock::Thread => ClockId::ThreadCPUTime,
    });
    Some(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
}

#[cfg(not(unix))]
fn cpu_clock(_: Clock) -> Option<f64> {
    None
}

/// Run `work` and tell how far resident memory rose above what it was before, in bytes; `None`
/// where the system does not tell. The peak is that of the whole process.
pub fn peak_memory<R>(work: impl FnOnce() -> R) -> (R, Option<u64>) {
    // Writing 5 sets the peak back to the present size; without it an earlier peak could stand.
    let reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = resident("VmRSS:").filter(|_| reset);
    let result = work();
    let peak = before.and_then(|before| Some(resident("VmHWM:")?.saturating_sub(before)));
    (result, peak)
}

/// One size of /proc/self/status, in bytes.
fn resident(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Median of three products.
pub fn product_seconds() -> f64 {
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn work_is_seen() {
        // Some 50 ms of work and 64 MB that are touched.
        let work = || {
            let start = Instant::now();
            let mut sum = 0.0_f64;
            while start.elapsed().as_millis() < 50 {
                sum += (0..1000).map(f64::from).sum::<f64>().sqrt();
            }
            let memory = vec![1_u8; 64 << 20];
            std::hint::black_box((sum, memory.iter().map(|b| u64::from(*b)).sum::<u64>()))
        };
        let ((_, seconds), peak) = peak_memory(|| timed_on_thread(work));
        assert!(seconds > 0.001, "{seconds}");
        // Systems that hide the file tell nothing; those that do not must see the memory.
        assert!(peak.is_none_or(|peak| peak >= 60 << 20), "{peak:?}");
    }
}
