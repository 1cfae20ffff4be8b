//! Chooses the ridge and the number of iterations on the validation part within one fit: the
//! eigendecompositions are made once and serve all.

use crate::model::Map;
use crate::training::parameters::{ParameterValue, require};
use crate::training::{Progress, Run};
use crate::{Error, Result};
use std::time::Instant;

/// One ridge, or several of which the validation part chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct Ridges(pub Vec<f64>);

impl Ridges {
    /// One ridge.
    pub fn one(ridge: f64) -> Self {
        Ridges(vec![ridge])
    }

    pub(super) fn check(&self) -> Result<()> {
        require(!self.0.is_empty(), "ridge", "at least one number", "none")?;
        for ridge in &self.0 {
            require(*ridge >= 0.0, "ridge", "at least 0", ridge)?;
        }
        Ok(())
    }
}

impl ParameterValue for Ridges {
    fn expected() -> String {
        "a number, or several by comma".into()
    }

    fn parse(text: &str) -> Option<Self> {
        let numbers: Option<Vec<f64>> = text
            .split(',')
            .map(|word| f64::parse(word.trim()))
            .collect();
        numbers.map(Ridges)
    }

    fn show(&self) -> String {
        let words: Vec<String> = self.0.iter().map(ParameterValue::show).collect();
        words.join(",")
    }
}

/// A learner that starts anew with each ridge and then improves in iterations.
pub(super) trait Path {
    /// Where an iteration stands.
    type State;

    /// The start with this ridge.
    fn begin(&self, ridge: f64) -> Result<Self::State>;

    /// One iteration; returns its loss.
    fn advance(
        &self,
        ridge: f64,
        state: &mut Self::State,
        iteration: u64,
        seed: u64,
    ) -> Result<f64>;

    /// The map.
    fn map(&self, ridge: f64, state: &Self::State) -> Result<Map>;
}

/// Walk all ridges and iterations and keep the best map, where somebody validates; otherwise go to
/// the end with the only ridge. A step is one iteration of one ridge, counted along the list with
/// the starts, so that `last_step` names a ridge and a number of iterations.
pub(super) fn search<P: Path>(
    path: &P,
    ridges: &Ridges,
    iterations: u64,
    run: &mut Run<'_>,
) -> Result<Map> {
    let stride = iterations + 1;
    let steps = stride * ridges.0.len() as u64;
    if let Some(last) = run.last_step {
        let last = last.min(steps - 1);
        let ridge = ridges.0[(last / stride) as usize];
        return go(path, ridge, last % stride, run);
    }
    if run.validate.is_none() {
        let [ridge] = ridges.0[..] else {
            return Err(Error::parameter(
                "ridge",
                "one number where nothing is held out for validation to choose on",
                ridges.show(),
            ));
        };
        return go(path, ridge, iterations, run);
    }
    let began = Instant::now();
    let mut best: Option<(f64, Map, u64, f64)> = None;
    'ridges: for (number, ridge) in ridges.0.iter().enumerate() {
        run.check_stop()?;
        let mut state = path.begin(*ridge)?;
        let mut loss = 0.0;
        for iteration in 0..stride {
            run.check_stop()?;
            if iteration > 0 {
                loss = path.advance(*ridge, &mut state, iteration, run.seed)?;
            }
            let map = path.map(*ridge, &state)?;
            let value = match run.validate.as_mut() {
                Some(validate) => validate(&map)?,
                None => 0.0,
            };
            let step = number as u64 * stride + iteration;
            if best.as_ref().is_none_or(|(b, ..)| value > *b) {
                best = Some((value, map, step, *ridge));
            }
            if tell(run, step, steps, loss, began, Some(value)) {
                break 'ridges;
            }
        }
    }
    let Some((_, map, step, ridge)) = best else {
        return Err(Error::Data("no ridge gave a value on validation".into()));
    };
    run.facts.insert("best_step".into(), step as f64);
    record(run, ridge, step % stride);
    Ok(map)
}

fn go<P: Path>(path: &P, ridge: f64, iterations: u64, run: &mut Run<'_>) -> Result<Map> {
    let began = Instant::now();
    let mut state = path.begin(ridge)?;
    let mut done = 0;
    while done < iterations {
        run.check_stop()?;
        done += 1;
        let loss = path.advance(ridge, &mut state, done, run.seed)?;
        if tell(run, done, iterations, loss, began, None) {
            break;
        }
    }
    record(run, ridge, done);
    path.map(ridge, &state)
}

fn record(run: &mut Run<'_>, ridge: f64, iterations: u64) {
    run.facts.insert("ridge".into(), ridge);
    run.facts.insert("iterations".into(), iterations as f64);
}

fn tell(
    run: &mut Run<'_>,
    step: u64,
    steps: u64,
    loss: f64,
    began: Instant,
    validation: Option<f64>,
) -> bool {
    run.tell(&Progress {
        step,
        steps,
        loss,
        ranking: None,
        speed: step as f64 / began.elapsed().as_secs_f64().max(1e-9),
        validation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path whose map is the factor ridge + 10·iterations.
    struct Count;

    impl Path for Count {
        type State = u64;

        fn begin(&self, _: f64) -> Result<u64> {
            Ok(0)
        }

        fn advance(&self, _: f64, state: &mut u64, iteration: u64, _: u64) -> Result<f64> {
            assert_eq!(iteration, *state + 1);
            *state += 1;
            Ok(0.0)
        }

        fn map(&self, ridge: f64, state: &u64) -> Result<Map> {
            Ok(Map::Diagonal(vec![ridge as f32 + 10.0 * *state as f32]))
        }
    }

    fn value(map: &Map) -> f64 {
        match map {
            Map::Diagonal(factors) => f64::from(factors[0]),
            _ => f64::NAN,
        }
    }

    #[test]
    fn the_best_step_leads_to_the_same_map_again() {
        let ridges = Ridges(vec![1.0, 2.0, 3.0]);
        // Nearest to 22: ridge 2 after 2 iterations, step 1·4 + 2.
        let mut nearest = |map: &Map| Ok(-(value(map) - 22.0).abs());
        let mut run = Run::new(1);
        run.validate = Some(&mut nearest);
        let map = search(&Count, &ridges, 3, &mut run).unwrap();
        assert_eq!(value(&map), 22.0);
        assert_eq!(run.facts["best_step"], 6.0);
        assert_eq!((run.facts["ridge"], run.facts["iterations"]), (2.0, 2.0));
        let mut again = Run::new(1);
        again.last_step = Some(6);
        assert_eq!(search(&Count, &ridges, 3, &mut again).unwrap(), map);
    }

    #[test]
    fn without_validation_one_ridge_goes_to_the_end() {
        let map = search(&Count, &Ridges::one(0.5), 3, &mut Run::new(1)).unwrap();
        assert_eq!(value(&map), 30.5);
        let two = search(&Count, &Ridges(vec![0.1, 1.0]), 3, &mut Run::new(1));
        let text = two.unwrap_err().to_string();
        assert!(
            text.contains("validation") && text.contains("0.1,1"),
            "{text}"
        );
    }

    #[test]
    fn ridges_are_read_and_written() {
        let ridges = Ridges::parse("0.01, 0.1,1").unwrap();
        assert_eq!(ridges.0, [0.01, 0.1, 1.0]);
        assert_eq!(Ridges::parse(&ridges.show()), Some(ridges));
        assert!(Ridges::parse("0.1,,1").is_none() && Ridges::parse("NaN").is_none());
        assert!(Ridges(vec![-1.0]).check().is_err() && Ridges(Vec::new()).check().is_err());
    }
}
