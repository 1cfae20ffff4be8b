//! What time says without a label: a pair of versions is nearer than a pair that lies farther apart and
//! contains it.
//!
//! Which comparisons carry a signal? News accumulates: what changed between t and t + 1 is still changed
//! between an earlier r and a later s, and more came to it. So the distance of a news cell over [r, s] is
//! hardly ever below that over [t, t + 1] ⊂ [r, s], whenever the news came. A pair beside it can be quiet
//! where [t, t + 1] was not, which only adds noise; so far pairs contain the near one. An advertisement or a
//! menu drawn at every load, and a clock, are as different after one step as after thirty: their
//! difference has the mean 0, so that no weight on them satisfies comparisons that weights on news do not.
//! For the same reason near pairs are successive versions: nothing changes less. Far pairs span at least
//! `FARTHER` times as much time, so that news had time to come.
//!
//! What dwells for several versions before it changes among a few states looks like news up to the time
//! that it dwells; with far pairs much longer than that it adds no more than a step.

use metra::internal::Stream;
use metra::supervision::Quadruplet;

/// How many times farther apart a far pair is, at least.
const FARTHER: f64 = 8.0;

/// Draw quadruplets of versions with these times (increasing): all of them where they are fewer than
/// `count`.
pub fn by_time(times: &[f64], count: usize, seed: u64) -> Vec<Quadruplet> {
    let mut all = Vec::new();
    let mut random = Stream::new(seed, "quadruplets of versions", 0);
    let near_pairs = times.len().saturating_sub(1);
    let share = count.div_ceil(near_pairs.max(1));
    for near in 0..near_pairs {
        let Some([start, end]) = times.get(near..near + 2).map(|t| [t[0], t[1]]) else {
            continue;
        };
        let least = FARTHER * (end - start);
        // Far pairs by their first version: all that end late enough.
        let firsts: Vec<[usize; 2]> = (0..=near)
            .map(|first| {
                let late = times.partition_point(|t| *t < times[first] + least);
                [first, late.max(near + 1)]
            })
            .collect();
        let total: usize = firsts.iter().map(|[_, late]| times.len() - late).sum();
        for place in random.choose(total as u64, share) {
            let mut left = place as usize;
            for [first, late] in &firsts {
                let ends = times.len() - late;
                if left < ends {
                    all.push(Quadruplet {
                        near: [near as u64, near as u64 + 1],
                        far: [*first as u64, (late + left) as u64],
                        strict: true,
                    });
                    break;
                }
                left -= ends;
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_pairs_contain_near_ones_and_last_longer() {
        // Ten versions a unit apart: pairs at least 8 apart are (0, 8), (0, 9) and (1, 9). The near pair
        // (0, 1) lies in the first two, (8, 9) in the last two, all others in all three.
        let times: Vec<f64> = (0..10).map(f64::from).collect();
        let all = by_time(&times, usize::MAX, 1);
        assert_eq!(all.len(), 2 + 7 * 3 + 2);
        for q in &all {
            assert!(q.far[0] <= q.near[0] && q.near[1] <= q.far[1] && q.far[1] - q.far[0] >= 8);
            assert!(q.strict && q.near[1] == q.near[0] + 1);
        }
        // (0, 1) lies in (0, 13) alone of those that last 8, (5, 6) in the three that end at 13 and begin up
        // to 5. Pauses of 4 and 7 need 32 and 56: there are none.
        let pause = [0.0, 1.0, 5.0, 6.0, 13.0];
        let near = |q: &Quadruplet| q.near[0];
        assert_eq!(
            by_time(&pause, 100, 1).iter().map(near).collect::<Vec<_>>(),
            [0, 2, 2, 2]
        );
    }

    #[test]
    fn draws_are_shared_by_near_pairs_and_follow_the_seed() {
        let times: Vec<f64> = (0..60).map(f64::from).collect();
        let some = by_time(&times, 590, 1);
        assert_eq!(some.len(), 590);
        assert_eq!(some, by_time(&times, 590, 1));
        assert_ne!(some, by_time(&times, 590, 2));
        assert!(by_time(&[0.0, 1.0, 2.0], 100, 1).is_empty());
    }
}
