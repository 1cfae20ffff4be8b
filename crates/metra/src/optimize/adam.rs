//! Adam (Kingma & Ba, 2015) over a flat vector of f32.

use crate::linalg::vectorized;

use serde::{Deserialize, Serialize};

/// State of Adam.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
    step: i32,
}

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

impl Adam {
    /// For `len` parameters.
    pub(crate) fn new(len: usize) -> Self {
        Adam {
            first: vec![0.0; len],
            second: vec![0.0; len],
            step: 0,
        }
    }

    /// Append all that it remembers as numbers.
    pub(crate) fn write(&self, out: &mut Vec<f32>) {
        out.extend_from_slice(&self.first);
        out.extend_from_slice(&self.second);
        out.push(self.step as f32);
    }

    /// What [`Adam::write`] wrote for `len` parameters; nothing where there are other numbers.
    pub(crate) fn read(len: usize, values: &[f32]) -> Option<Self> {
        let (step, moments) = values.split_last()?;
        let (first, second) = moments.split_at_checked(len)?;
        (second.len() == len).then(|| Adam {
            first: first.to_vec(),
            second: second.to_vec(),
            step: *step as i32,
        })
    }

    /// One step against `gradient` with this rate.
    pub(crate) fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f32) {
        self.step = self.step.saturating_add(1);
        let rate = rate / (1.0 - BETA_1.powi(self.step));
        let root = (1.0 - BETA_2.powi(self.step)).sqrt();
        let (first, second) = (&mut self.first[..], &mut self.second[..]);
        vectorized(
            #[inline(always)]
            || {
                for (((w, g), m), v) in parameters.iter_mut().zip(gradient).zip(first).zip(second) {
                    *m = BETA_1 * *m + (1.0 - BETA_1) * g;
                    *v = BETA_2 * *v + (1.0 - BETA_2) * g * g;
                    *w -= rate * *m / (v.sqrt() / root + EPSILON);
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_has_the_size_of_the_rate() {
        // With bias correction m/√v is ±1 at the first step whatever the gradient's size.
        let mut adam = Adam::new(2);
        let mut w = [1.0, 1.0];
        adam.step(&mut w, &[1e-3, -50.0], 0.1);
        assert!(
            (w[0] - 0.9).abs() < 1e-4 && (w[1] - 1.1).abs() < 1e-6,
            "{w:?}"
        );
    }

    #[test]
    fn what_it_remembers_is_written_and_read() {
        let mut adam = Adam::new(2);
        let mut w = [1.0, 1.0];
        adam.step(&mut w, &[1e-3, -50.0], 0.1);
        let mut values = Vec::new();
        adam.write(&mut values);
        let mut again = Adam::read(2, &values).unwrap();
        let mut other = w;
        adam.step(&mut w, &[0.5, 0.5], 0.1);
        again.step(&mut other, &[0.5, 0.5], 0.1);
        assert_eq!(w, other);
        assert!(Adam::read(3, &values).is_none() && Adam::read(2, &[]).is_none());
    }

    #[test]
    fn finds_the_minimum_of_a_bowl() {
        let mut adam = Adam::new(2);
        let mut w = [5.0_f32, -3.0];
        for step in 0..2000 {
            let gradient = [2.0 * (w[0] - 1.0), 20.0 * (w[1] - 2.0)];
            adam.step(&mut w, &gradient, 0.1 * (1.0 - step as f32 / 2000.0));
        }
        assert!(
            (w[0] - 1.0).abs() < 1e-3 && (w[1] - 2.0).abs() < 1e-3,
            "{w:?}"
        );
    }
}
