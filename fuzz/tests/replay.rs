//! The kept corpus through every target, and some hundred damaged copies of it.

use metra::internal::Stream;
use metra_fuzz::{TARGETS, seeds};
use metra_testing::mutated;

/// Damaged inputs of a target. `mutate` does as many as one likes.
const DAMAGED: u64 = 300;

#[test]
fn the_corpus_is_read_and_damage_is_survived() {
    for target in TARGETS {
        let valid = seeds::of(target.name);
        assert!(!valid.is_empty(), "{}: no input to begin with", target.name);
        let run = |name: &str, bytes: &[u8]| {
            let outcome = target.try_run(bytes);
            outcome.unwrap_or_else(|error| panic!("{}, {name}: {error}", target.name))
        };
        let whole: Vec<_> = valid.iter().map(|(name, bytes)| run(name, bytes)).collect();
        let read = whole.iter().filter(|outcome| outcome.is_some()).count();
        assert!(
            read > 0,
            "{}: nothing of the corpus can be read",
            target.name
        );
        for case in 0..DAMAGED {
            let mut random = Stream::new(1, target.name, case);
            let place = random.below(valid.len() as u64) as usize;
            let second = random.below(valid.len() as u64) as usize;
            let bytes = mutated(&valid[place].1, &valid[second].1, &mut |n| random.below(n));
            let found = run(&format!("{} in case {case}", valid[place].0), &bytes);
            let noticed = found.is_none() || found == whole[place];
            assert!(
                noticed || !target.notices_damage,
                "{}: damage of {} was not noticed in case {case}",
                target.name,
                valid[place].0
            );
        }
    }
}
