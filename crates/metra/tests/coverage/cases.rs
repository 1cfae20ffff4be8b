//! Simulated evaluations whose true gain is known: values as retrieval measures have them, between 0
//! and 1 with many ties at both ends, of queries alone or in classes of unequal size.

use metra::internal::Stream;

/// How a query's value follows from how hard it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Average precision or nDCG: graded, a fifth of the values at 0 or 1.
    Graded,
    /// Precision at 1: 0 or 1, one query in four changes.
    First,
    /// The same near the ceiling: one query in thirty changes, most of them for the worse.
    Rare,
}

/// A population of queries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) queries: usize,
    /// Mean size of the classes, whose members are hard and gain alike; `None` for queries that
    /// have nothing to do with each other.
    pub(crate) class_size: Option<f64>,
    /// Whether large classes gain more than small ones.
    pub(crate) larger_gain_more: bool,
}

impl Case {
    /// Values of base and candidate and the class of every query.
    pub(crate) fn draw(&self, seed: u64, counter: u64) -> (Vec<f64>, Vec<f64>, Vec<u64>) {
        let mut stream = Stream::new(seed, "coverage case", counter);
        let (mut base, mut learned, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        let mut class = 0;
        while base.len() < self.queries {
            let large = stream.normal();
            let size = match self.class_size {
                // Sizes are log-normal: the largest of 25 classes has a fifth of the queries.
                Some(mean) => (mean * (0.8 * large - 0.32).exp()).round().max(1.0) as usize,
                None => 1,
            };
            let (hard, mut gain) = (0.8 * stream.normal(), 0.25 + 0.5 * stream.normal());
            if self.larger_gain_more {
                gain += 0.3 * large;
            }
            for _ in 0..size.min(self.queries - base.len()) {
                let before = 0.5 + hard + 1.2 * stream.normal();
                let after = before + gain + 0.7 * stream.normal();
                base.push(self.kind.value(before));
                learned.push(self.kind.value(after));
                classes.push(class);
            }
            class += 1;
        }
        (base, learned, classes)
    }

    /// The gain that an evaluation without end would find, from a fresh draw of 4,000,000 queries.
    pub(crate) fn truth(&self) -> f64 {
        let large = Case {
            queries: 4_000_000,
            ..*self
        };
        let (base, learned, _) = large.draw(99, 0);
        let gains = learned
            .iter()
            .zip(&base)
            .map(|(after, before)| after - before);
        gains.sum::<f64>() / base.len() as f64
    }
}

impl Kind {
    fn value(self, easy: f64) -> f64 {
        match self {
            Kind::Graded => (1.3 / (1.0 + (-1.5 * easy).exp()) - 0.15).clamp(0.0, 1.0),
            Kind::First => f64::from(easy > 0.0),
            Kind::Rare => f64::from(easy > -2.0),
        }
    }
}
