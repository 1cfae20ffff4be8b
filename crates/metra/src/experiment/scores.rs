//! Values of measures for every query of a part, pooled over a protocol's trials.

use crate::Result;
use crate::evaluate::{
    Bootstrap, Comparison, Evaluation, EvaluationOptions, Measure, RankedQuery, evaluate_ranking,
    paired_bootstrap,
};

/// One value a query and measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    measures: Vec<Measure>,
    values: Vec<Vec<f64>>,
    queries: Vec<u64>,
    clusters: Vec<u64>,
    skipped: u64,
    /// Sums over queries of the CMC curve and of precision at recall levels.
    cmc: Vec<f64>,
    precision: Vec<f64>,
}

impl Scores {
    pub(super) fn new(measures: &[Measure]) -> Self {
        Scores {
            measures: measures.to_vec(),
            values: vec![Vec::new(); measures.len()],
            queries: Vec::new(),
            clusters: Vec::new(),
            skipped: 0,
            cmc: Vec::new(),
            precision: Vec::new(),
        }
    }

    /// The scores of one evaluation; `ids` name its queries and `cluster` what each belongs to.
    pub fn of(ids: &[u64], cluster: impl Fn(u64) -> u64, found: &Evaluation) -> Self {
        let measures: Vec<Measure> = found.values.iter().map(|(measure, _)| *measure).collect();
        let mut scores = Scores::new(&measures);
        scores.extend(ids, cluster, found);
        scores
    }

    /// The scores of rankings; `ids` name their queries and `cluster` what each belongs to.
    pub(super) fn of_rankings(
        ids: &[u64],
        cluster: impl Fn(u64) -> u64,
        ranked: &[RankedQuery],
        measures: &[Measure],
    ) -> Result<Self> {
        let options = EvaluationOptions {
            measures: measures.to_vec(),
            ..EvaluationOptions::default()
        };
        Ok(Scores::of(
            ids,
            cluster,
            &evaluate_ranking(ranked, &options)?,
        ))
    }

    /// Take in one trial; `ids` name its queries and `cluster` what each belongs to in all trials.
    pub(super) fn extend(&mut self, ids: &[u64], cluster: impl Fn(u64) -> u64, found: &Evaluation) {
        for (values, measure) in self.values.iter_mut().zip(&self.measures) {
            values.extend_from_slice(found.of(*measure).unwrap_or(&[]));
        }
        self.queries
            .extend(found.queries.iter().map(|q| ids[*q as usize]));
        self.clusters
            .extend(found.queries.iter().map(|q| cluster(ids[*q as usize])));
        self.skipped += found.skipped;
        let weight = found.queries.len() as f64;
        add(&mut self.cmc, &found.curve, weight);
        add(&mut self.precision, &found.precision, weight);
    }

    /// Take in what a classifier found: for every measure one value a query.
    pub(super) fn extend_classified(
        &mut self,
        ids: &[u64],
        cluster: impl Fn(u64) -> u64,
        found: &[Vec<f64>],
    ) {
        for (values, found) in self.values.iter_mut().zip(found) {
            values.extend_from_slice(found);
        }
        self.queries.extend_from_slice(ids);
        self.clusters.extend(ids.iter().map(|id| cluster(*id)));
    }

    /// What was measured.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Queries that had something relevant, in the order of the values.
    pub fn queries(&self) -> &[u64] {
        &self.queries
    }

    /// What each of them belongs to.
    pub fn clusters(&self) -> &[u64] {
        &self.clusters
    }

    /// Queries that had nothing relevant and were left out.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// One value a query.
    pub fn values(&self, measure: Measure) -> &[f64] {
        let place = self.measures.iter().position(|m| *m == measure);
        place.map_or(&[], |place| &self.values[place])
    }

    /// Mean over queries; 0 where there is none.
    pub fn mean(&self, measure: Measure) -> f64 {
        let values = self.values(measure);
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }

    /// Take in the scores of other queries for the same measures.
    pub(super) fn append(&mut self, other: &Scores) {
        for (values, measure) in self.values.iter_mut().zip(&self.measures) {
            values.extend_from_slice(other.values(*measure));
        }
        self.queries.extend_from_slice(&other.queries);
        self.clusters.extend_from_slice(&other.clusters);
        self.skipped += other.skipped;
        add(&mut self.cmc, &other.cmc, 1.0);
        add(&mut self.precision, &other.precision, 1.0);
    }

    /// Share of queries whose first relevant item has rank 1, at most 2, …; empty where classes
    /// were judged, or some queries were left out of these scores.
    pub fn cmc(&self) -> Vec<f64> {
        self.per_query(&self.cmc)
    }

    /// Mean precision at recall 0, 0.05, … 1; empty as for [`Scores::cmc`].
    pub fn precision(&self) -> Vec<f64> {
        self.per_query(&self.precision)
    }

    fn per_query(&self, sums: &[f64]) -> Vec<f64> {
        let queries = self.queries.len().max(1) as f64;
        sums.iter().map(|sum| sum / queries).collect()
    }

    /// Only the queries for which `keep` holds.
    pub(crate) fn filter(&self, keep: impl Fn(u64) -> bool) -> Scores {
        let kept: Vec<usize> = (0..self.queries.len())
            .filter(|i| keep(self.queries[*i]))
            .collect();
        Scores {
            measures: self.measures.clone(),
            values: (self.values.iter())
                .map(|values| kept.iter().map(|i| values[*i]).collect())
                .collect(),
            queries: kept.iter().map(|i| self.queries[*i]).collect(),
            clusters: kept.iter().map(|i| self.clusters[*i]).collect(),
            skipped: 0,
            cmc: Vec::new(),
            precision: Vec::new(),
        }
    }

    /// Interval of the gain of `self` over `base`, query by query.
    pub fn against(&self, base: &Scores, measure: Measure, seed: u64) -> Result<Comparison> {
        let options = Bootstrap {
            seed,
            ..Bootstrap::default()
        };
        paired_bootstrap(
            base.values(measure),
            self.values(measure),
            &self.clusters,
            &options,
        )
    }
}

fn add(sums: &mut Vec<f64>, values: &[f64], weight: f64) {
    if sums.is_empty() {
        sums.resize(values.len(), 0.0);
    }
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += weight * value;
    }
}
