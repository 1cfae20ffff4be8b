//! Where the scores of a series fall into two heaps: a threshold without labels.
//!
//! Otsu's rule (1979): of all ways to cut the sorted scores in two, take the one whose halves lie farthest
//! apart, weighted by their sizes (the largest variance between them). Roots of the scores are taken, since
//! quiet pairs lie close to 0 and changes are large and differ a lot: on the scores themselves the rule would
//! cut large changes from middling ones. It has no setting, and it always cuts: in a series in which nothing
//! happened it cuts noise, which is what the scores' table is for.

/// The threshold between the two heaps: halfway between the highest score below and the lowest above it.
/// Scores above it are changes. Where all scores are equal none is above.
pub fn between(scores: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = scores.iter().copied().filter(|s| s.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let root = |score: f64| score.max(0.0).sqrt();
    let total: f64 = sorted.iter().copied().map(root).sum();
    let count = sorted.len() as f64;
    let mut best = (0.0, *sorted.last()?);
    let mut below = 0.0;
    for (place, pair) in sorted.windows(2).enumerate() {
        let [low, high] = [pair[0], pair[1]];
        below += root(low);
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
        // Roots 1, 1.41, 3, 3.16, 3.16. Cut after two: means 1.21 and 3.11, 2·3·3.61 = 21.7. After one: 1 and
        // 2.69, 1·4·2.84 = 11.4. After three: 1.80 and 3.16, 3·2·1.84 = 11.1. Halfway between 2 and 9.
        assert_eq!(between(&[9.0, 1.0, 10.0, 2.0, 10.0]), Some(5.5));
        // Roots 0, 0, 0, 0, 2, 3, 3: after four means 0 and 2.67, 4·3·7.1 = 85; after five .4 and 3, 5·2·6.8 =
        // 68. The scores themselves: 0 and 7.33, 12·53.8 = 645, but .8 and 9, 10·67.2 = 672.
        assert_eq!(between(&[0.0, 0.0, 0.0, 0.0, 4.0, 9.0, 9.0]), Some(2.0));
        assert_eq!(between(&[3.0, 3.0]), Some(3.0));
        assert_eq!(between(&[f64::NAN]), None);
        assert_eq!(between(&[0.0, 0.0, 0.0, 1.0, f64::NAN]), Some(0.5));
    }
}
