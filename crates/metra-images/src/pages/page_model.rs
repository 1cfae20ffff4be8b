//! Weights of a page's places: learned by `qwise` with `form=blocks`, kept in an ordinary model file.
//!
//! D(v, u) = Σ w_c |v_c − u_c| over the places c of the layout. The model file is that of any metric, whose
//! facts also say the layout, the screenshots' size and the threshold, so that `metra inspect` shows it and a
//! later screenshot is cut and compared in the same way.

use super::layout::COLUMNS;
use super::{Described, Frame, Labelled, Layout, Series, by_time, threshold};
use crate::{Error, Limits, Result};
use metra::methods::qwise::{Qwise, QwiseForm};
use metra::model::{Chain, Embedding, Map, Space};
use metra::training::Run;
use metra::{Dataset, Model, Pipeline};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// How weights are learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learning {
    /// Weight of |w|² beside the mean loss. Without one, 0.1, which keeps weights off cells that differed by
    /// chance; with labelled pairs 0.001, since a strong pull to 0 keeps scores below the threshold's margin.
    pub lambda: Option<f64>,
    /// Comparisons to draw.
    pub count: usize,
    /// How much all labelled pairs together count beside all comparisons by time.
    pub labels: f64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for Learning {
    fn default() -> Self {
        Learning {
            lambda: None,
            count: 20_000,
            labels: 1.0,
            seed: 0,
        }
    }
}

/// What was learned about a page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageModel {
    model: Model,
    layout: Layout,
    frame: Frame,
    threshold: f64,
    /// One a place, in the layout's order.
    weights: Vec<f64>,
}

/// Versions below which no far pair is far enough.
const LEAST_VERSIONS: usize = 10;

/// Facts of the model file.
const SIDE: &str = "page_cells";
const REGIONS: &str = "page_regions";
const WIDTH: &str = "page_width";
const HEIGHT: &str = "page_height";
const THRESHOLD: &str = "page_threshold";
const LABELS: &str = "page_labels";

impl PageModel {
    /// Learn from the order of versions in time, and from labelled pairs where there are some: then both
    /// kinds must be among them, and the threshold is learned as well. Without labels it lies between the
    /// two heaps of the successive pairs' scores.
    pub fn learn(
        series: &Series,
        described: &Described,
        labels: &[Labelled],
        settings: &Learning,
        stop: &AtomicBool,
    ) -> Result<Self> {
        series.expect(LEAST_VERSIONS, "to learn from")?;
        let quadruplets = by_time(&series.times(), settings.count, settings.seed);
        if quadruplets.is_empty() {
            return Err(Error::found(
                "series",
                "expected versions spread over more than eight times the time between two of them, found \
                 none: take them at regular times",
            ));
        }
        let pairs = |changed: bool| -> Vec<[u64; 2]> {
            let chosen = labels.iter().filter(|label| label.changed == changed);
            chosen
                .map(|label| label.pair.map(|place| place as u64))
                .collect()
        };
        let (same, changed) = (pairs(false), pairs(true));
        if same.is_empty() != changed.is_empty() {
            return Err(Error::found(
                "labels",
                format!(
                    "expected pairs of both kinds to learn from, found {} the same and {} changed",
                    same.len(),
                    changed.len()
                ),
            ));
        }
        let pair_cost = match labels.len() {
            0 => 1.0,
            some => settings.labels * quadruplets.len() as f64 / some as f64,
        };
        let data = Dataset::builder(described.corpus())
            .quadruplets(quadruplets)
            .pairs(same, changed)
            .stop(stop)
            .build()?;
        let method = Qwise {
            form: QwiseForm::Blocks,
            block: described.block(),
            lambda: (settings.lambda).unwrap_or(if labels.is_empty() { 0.1 } else { 1e-3 }),
            pair_cost,
            ..Qwise::default()
        };
        let space = Space::Blocks {
            size: described.block() as u32,
        };
        let pipeline = Pipeline::new(method).score(space);
        let mut model = pipeline.fit_with(&data, &mut Run::new(settings.seed))?;
        let weights = weights_of(&model.chain, described.layout())?;
        let threshold = match model.origin.facts.get("threshold") {
            Some(learned) => *learned,
            None => threshold::between(&successive(described, &weights)?).unwrap_or(0.0),
        };
        let frame = described.frame();
        let facts = [
            (WIDTH, f64::from(frame.width)),
            (HEIGHT, f64::from(frame.height)),
            (THRESHOLD, threshold),
            (LABELS, labels.len() as f64),
        ];
        let facts = facts.map(|(name, value)| (name.to_owned(), value));
        model.origin.facts.extend(facts);
        model.origin.facts.extend(layout_facts(described.layout()));
        Ok(PageModel {
            model,
            layout: described.layout().clone(),
            frame,
            threshold,
            weights,
        })
    }

    /// Read one from its file.
    pub fn load(path: &Path) -> Result<Self> {
        let model = Model::load(path)?;
        let fact = |name: &str| {
            (model.origin.facts.get(name).copied()).ok_or_else(|| {
                let problem = format!(
                    "expected a model by metra pages learn, found one without the fact {name}"
                );
                Error::file(path, problem)
            })
        };
        let threshold = fact(THRESHOLD)?;
        let frame = Frame {
            width: fact(WIDTH)? as u32,
            height: fact(HEIGHT)? as u32,
        };
        let pixels = u64::from(frame.width) * u64::from(frame.height);
        if !(1..=Limits::default().pixels).contains(&pixels) {
            let (width, height, most) = (frame.width, frame.height, Limits::default().pixels);
            let problem =
                format!("expected screenshots of 1 to {most} pixels, found {width} × {height}");
            return Err(Error::file(path, problem));
        }
        let layout = match model.origin.facts.get(REGIONS) {
            None => Layout::grid(fact(SIDE)? as usize, frame)?,
            Some(count) => {
                // The map has a weight for every region: a count that is larger is not believed.
                let count = (*count as usize).min(model.chain.input_dim());
                let boxes: Result<Vec<[u32; 4]>> = (0..count)
                    .map(|region| {
                        let mut place = [0; 4];
                        for (edge, name) in place.iter_mut().zip(COLUMNS) {
                            *edge = fact(&edge_name(region, name))? as u32;
                        }
                        Ok(place)
                    })
                    .collect();
                Layout::regions(&boxes?, frame)?
            }
        };
        let weights = weights_of(&model.chain, &layout)?;
        Ok(PageModel {
            model,
            layout,
            frame,
            threshold,
            weights,
        })
    }

    /// Write the model file.
    pub fn save(&self, path: &Path) -> Result<()> {
        Ok(self.model.save(path)?)
    }

    /// The metric with its origin.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The places that have weights.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The size to which screenshots are brought.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// Scores above this are changes that matter.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Labelled pairs it was learned from.
    pub fn labels(&self) -> usize {
        self.model
            .origin
            .facts
            .get(LABELS)
            .map_or(0, |count| *count as usize)
    }

    /// A weight for every place, in the layout's order.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// What every place adds to the score of two versions: weight times distance.
    pub fn parts(&self, described: &Described, a: usize, b: usize) -> Result<Vec<f64>> {
        let distances = described.distances(a, b)?;
        if distances.len() != self.weights.len() {
            let (expected, found) = (self.weights.len(), distances.len());
            return Err(metra::Error::shape("places of the descriptor", expected, found).into());
        }
        Ok(distances
            .iter()
            .zip(&self.weights)
            .map(|(d, w)| d * w)
            .collect())
    }
}

fn successive(described: &Described, weights: &[f64]) -> Result<Vec<f64>> {
    (1..described.versions())
        .map(|later| {
            let distances = described.distances(later - 1, later)?;
            Ok(distances.iter().zip(weights).map(|(d, w)| d * w).sum())
        })
        .collect()
}

/// The name of the fact that keeps an edge of a region.
fn edge_name(region: usize, edge: &str) -> String {
    format!("page_region_{region:04}_{edge}")
}

/// A layout as facts of a model file.
fn layout_facts(layout: &Layout) -> Vec<(String, f64)> {
    let boxes = layout.boxes();
    if let Some(side) = layout.side() {
        return vec![(SIDE.to_owned(), side as f64)];
    }
    let mut facts = vec![(REGIONS.to_owned(), boxes.len() as f64)];
    for (region, place) in boxes.iter().enumerate() {
        let edges = place.iter().zip(COLUMNS);
        facts.extend(edges.map(|(edge, name)| (edge_name(region, name), f64::from(*edge))));
    }
    facts
}

/// All numbers of a place have its weight.
fn weights_of(chain: &Chain, layout: &Layout) -> Result<Vec<f64>> {
    let places = layout.boxes().len();
    match chain.map() {
        Map::Diagonal(factors) if !factors.is_empty() && factors.len().is_multiple_of(places) => {
            let places = factors.chunks_exact(factors.len() / places);
            Ok(places
                .filter_map(|place| place.first())
                .map(|w| f64::from(*w))
                .collect())
        }
        _ => Err(Error::found(
            "model",
            format!(
                "expected weights of {}, found another map",
                layout.describe()
            ),
        )),
    }
}

#[cfg(test)]
#[path = "page_model_tests.rs"]
mod tests;
