//! The single-shot protocol of person re-identification.
//!
//! Jose & Fleuret, ECCV 2016, section 4.2: one image of each person is drawn as probe, the others
//! are the gallery, and the draw is repeated. Where two cameras are known (VIPeR, PRID450s) probes
//! come from one camera and the gallery holds one image of each person from the other; both
//! directions are made, and their results are to be averaged.

use crate::data::{Groups, RowId};
use crate::random::Stream;
use crate::supervision::Labels;
use crate::{Error, Result};

/// Which camera the probes of a trial come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Cameras play no part.
    Any,
    /// Probes from the first camera (in the order of names), gallery from the second.
    Forward,
    /// Probes from the second camera, gallery from the first.
    Backward,
}

/// One draw: which rows ask and which rows are searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SingleShotTrial {
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// Where probes come from.
    pub direction: Direction,
    /// Rows of the probes, one a person, increasing.
    pub queries: Vec<RowId>,
    /// Rows of the gallery, increasing.
    pub gallery: Vec<RowId>,
}

/// Draw the trials: one for each repeat without cameras, two (both directions) with them.
///
/// Persons of one image, or seen by one camera only, serve where they can: as distractors in the
/// gallery, or as probes that have nothing relevant and are skipped by the evaluation.
pub(crate) fn single_shot(
    labels: &Labels,
    cameras: Option<&Groups>,
    repeats: u32,
    seed: u64,
) -> Result<Vec<SingleShotTrial>> {
    if repeats == 0 {
        return Err(Error::parameter("repeats", "at least 1", 0));
    }
    let mut trials = Vec::new();
    let Some(cameras) = cameras else {
        for repeat in 0..repeats {
            let mut stream = Stream::new(seed, "single shot", u64::from(repeat));
            let queries = one_a_person(labels, |_| true, &mut stream);
            let gallery = (0..labels.len() as RowId)
                .filter(|row| queries.binary_search(row).is_err())
                .collect();
            trials.push(SingleShotTrial {
                repeat,
                direction: Direction::Any,
                queries,
                gallery,
            });
        }
        return Ok(trials);
    };
    if cameras.len() != labels.len() {
        return Err(Error::shape(
            "cameras of the rows",
            labels.len(),
            cameras.len(),
        ));
    }
    let mut used: Vec<u32> = cameras.of().to_vec();
    used.sort_unstable();
    used.dedup();
    let [first, second] = used[..] else {
        return Err(Error::Data(format!(
            "the single-shot protocol needs images of exactly 2 cameras, but found {}",
            used.len()
        )));
    };
    for repeat in 0..repeats {
        for (direction, probes, others) in [
            (Direction::Forward, first, second),
            (Direction::Backward, second, first),
        ] {
            let counter = 2 * u64::from(repeat) + u64::from(direction == Direction::Backward);
            let mut stream = Stream::new(seed, "single shot by camera", counter);
            let by = |camera: u32| move |row: u32| cameras.of()[row as usize] == camera;
            trials.push(SingleShotTrial {
                repeat,
                direction,
                queries: one_a_person(labels, by(probes), &mut stream),
                gallery: one_a_person(labels, by(others), &mut stream),
            });
        }
    }
    Ok(trials)
}

/// One random row of every person among the rows that `keep` allows, in increasing order.
fn one_a_person(labels: &Labels, keep: impl Fn(u32) -> bool, stream: &mut Stream) -> Vec<RowId> {
    let mut rows = Vec::with_capacity(labels.classes());
    for class in 0..labels.classes() as u32 {
        let members = labels.members(class).iter().copied();
        let allowed: Vec<u32> = members.filter(|row| keep(*row)).collect();
        if !allowed.is_empty() {
            rows.push(RowId::from(
                allowed[stream.below(allowed.len() as u64) as usize],
            ));
        }
    }
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_probe_a_person_and_the_rest_is_gallery() {
        let labels = Labels::from_numbers(&[0, 0, 0, 1, 1, 2]).unwrap();
        let trials = single_shot(&labels, None, 20, 3).unwrap();
        assert_eq!(trials.len(), 20);
        for trial in &trials {
            let mut persons: Vec<u32> = trial
                .queries
                .iter()
                .map(|r| labels.of()[*r as usize])
                .collect();
            persons.sort_unstable();
            assert_eq!(persons, vec![0, 1, 2]);
            let mut all = [trial.queries.clone(), trial.gallery.clone()].concat();
            all.sort_unstable();
            assert_eq!(all, (0..6).collect::<Vec<_>>());
        }
        assert!(trials.iter().any(|t| t.queries != trials[0].queries));
        assert_eq!(trials, single_shot(&labels, None, 20, 3).unwrap());
    }

    #[test]
    fn cameras_are_crossed_in_both_directions() {
        let labels = Labels::from_numbers(&[0, 0, 0, 1, 1]).unwrap();
        let cameras = Groups::new(&["a", "b", "b", "a", "b"]);
        let trials = single_shot(&labels, Some(&cameras), 2, 1).unwrap();
        assert_eq!(trials.len(), 4);
        assert_eq!(trials[0].queries, vec![0, 3]);
        assert_eq!(trials[1].gallery, vec![0, 3]);
        assert!(trials[0].gallery[0] == 1 || trials[0].gallery[0] == 2);
        assert_eq!(trials[0].gallery[1], 4);
        assert_eq!(
            (trials[2].repeat, trials[3].direction),
            (1, Direction::Backward)
        );
        let three = Groups::new(&["a", "b", "c", "a", "b"]);
        assert!(single_shot(&labels, Some(&three), 1, 1).is_err());
        assert!(single_shot(&labels, None, 0, 1).is_err());
    }
}
