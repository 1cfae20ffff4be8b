//! Where the scores of a series fall into two heaps: a threshold without labels.
//!
//! Otsu's rule (1979): of all ways to cut the sorted scores in two, take the one whose halves lie farthest
//! apart, weighted by their sizes (the largest variance between them). It has no setting, and it always
//! cuts: in a series in which nothing happened it cuts noise, which is what the scores' table is for.

/// The threshold between the two heaps: halfway between the highest score below and the lowest above it.
/// Scores above it are changes. Where all scores are equal none is above.
pub fn between(scores: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = scores.iter().copied().filter(|s| s.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let total: f64 = sorted.iter().sum();
    let count = sorted.len() as f64;
    let mut best = (0.0, *sorted.last()?);
    let mut below = 0.0;
    for (place, pair) in sorted.windows(2).enumerate() {
        let [low, high] = [pair[0], pair[1]];
        below += low;
        let size = place as f64 + 1.0;
        let apart = (total - below) / (count - size) - below / size;
        let variance = size * (count - size) * apart * apart;
        if low < high && variance > best.0 {
            best = (variance, (low + high) / 2.0);
        }
    }
    Some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_heaps_by_hand() {
        // Cut after 1, 2: means 1.5 and 9.67, 2·3·66.7 = 400. After 1: 1 and 7.75, 1·4·45.6 = 182. After
        // 1, 2, 9: 4 and 10, 3·2·36 = 216. Halfway between 2 and 9.
        assert_eq!(between(&[9.0, 1.0, 10.0, 2.0, 10.0]), Some(5.5));
        assert_eq!(between(&[3.0, 3.0]), Some(3.0));
        assert_eq!(between(&[f64::NAN]), None);
        assert_eq!(between(&[0.0, 0.0, 0.0, 1.0, f64::NAN]), Some(0.5));
    }
}
