//! Similar and dissimilar pairs, triplets and quadruplets of rows. The kinds can be mixed, as in
//! Qwise's semi-supervised form.

use super::judgements::{Judgement, Judgements};
use super::relevance::Relevance;
use crate::data::RowId;
use crate::{Error, Result};
use std::collections::BTreeSet;

/// A pair of rows that must be nearer than another pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Quadruplet {
    /// The nearer pair.
    pub near: [RowId; 2],
    /// The farther pair.
    pub far: [RowId; 2],
    /// Whether a margin must lie between them; without, `far` must only not be nearer (light).
    pub strict: bool,
}

/// Pairs, triplets and quadruplets of rows of one corpus.
#[derive(Debug, Clone)]
pub struct Comparisons {
    rows: u64,
    similar: Vec<[RowId; 2]>,
    dissimilar: Vec<[RowId; 2]>,
    triplets: Vec<[RowId; 3]>,
    quadruplets: Vec<Quadruplet>,
    /// Similar pairs as a symmetric relation, for learners of ranking; what is not listed counts
    /// as irrelevant there.
    relevance: Option<Judgements>,
}

impl Comparisons {
    /// Nothing said yet about this many rows.
    pub fn new(rows: u64) -> Self {
        Comparisons {
            rows,
            similar: Vec::new(),
            dissimilar: Vec::new(),
            triplets: Vec::new(),
            quadruplets: Vec::new(),
            relevance: None,
        }
    }

    /// Add pairs of rows that belong together and pairs that do not. A pair counts once, whichever row comes
    /// first and however often it is listed.
    pub fn with_pairs(mut self, similar: &[[RowId; 2]], dissimilar: &[[RowId; 2]]) -> Result<Self> {
        self.similar.extend_from_slice(similar);
        self.dissimilar.extend_from_slice(dissimilar);
        for (number, pair) in self.similar.iter().chain(&self.dissimilar).enumerate() {
            self.check(number, "pair", pair)?;
            self.check_different(number, "pair", pair[0], pair[1])?;
        }
        let together: BTreeSet<[RowId; 2]> = self.similar.iter().map(ordered).collect();
        for (number, pair) in self.dissimilar.iter().enumerate() {
            if together.contains(&ordered(pair)) {
                return Err(Error::Data(format!(
                    "dissimilar pair {number}: rows {} and {} are also said to be similar",
                    pair[0], pair[1]
                )));
            }
        }
        let apart: BTreeSet<[RowId; 2]> = self.dissimilar.iter().map(ordered).collect();
        self.similar = together.into_iter().collect();
        self.dissimilar = apart.into_iter().collect();
        let line = |[query, item]: [RowId; 2], grade| Judgement { query, item, grade };
        let both_ways =
            |pair: &[RowId; 2], grade| [line(*pair, grade), line([pair[1], pair[0]], grade)];
        let relevant = self.similar.iter().flat_map(|pair| both_ways(pair, 1.0));
        let irrelevant = self.dissimilar.iter().flat_map(|pair| both_ways(pair, 0.0));
        let lines: Vec<Judgement> = relevant.chain(irrelevant).collect();
        self.relevance = if self.similar.is_empty() {
            None
        } else {
            Some(Judgements::within_one(self.rows, &lines)?)
        };
        Ok(self)
    }

    /// Add triplets: to the first row, the second is nearer than the third.
    pub fn with_triplets(mut self, triplets: &[[RowId; 3]]) -> Result<Self> {
        for (number, triplet) in triplets.iter().enumerate() {
            self.check(number, "triplet", triplet)?;
            let [anchor, near, far] = *triplet;
            self.check_different(number, "triplet", anchor, near)?;
            self.check_different(number, "triplet", near, far)?;
            self.check_different(number, "triplet", anchor, far)?;
        }
        self.triplets.extend_from_slice(triplets);
        Ok(self)
    }

    /// Add quadruplets.
    pub fn with_quadruplets(mut self, quadruplets: &[Quadruplet]) -> Result<Self> {
        for (number, quadruplet) in quadruplets.iter().enumerate() {
            let Quadruplet { near, far, .. } = quadruplet;
            self.check(number, "quadruplet", near)?;
            self.check(number, "quadruplet", far)?;
            self.check_different(number, "quadruplet", far[0], far[1])?;
            if ordered(near) == ordered(far) {
                return Err(Error::Row {
                    row: number as u64,
                    problem: format!(
                        "quadruplet compares the pair {near:?} with itself: expected two pairs"
                    ),
                });
            }
        }
        self.quadruplets.extend_from_slice(quadruplets);
        Ok(self)
    }

    fn check(&self, number: usize, what: &str, rows: &[RowId]) -> Result<()> {
        match rows.iter().find(|row| **row >= self.rows) {
            None => Ok(()),
            Some(row) => Err(Error::Row {
                row: number as u64,
                problem: format!(
                    "{what} names row {row}, but there are {} rows counted from 0",
                    self.rows
                ),
            }),
        }
    }

    fn check_different(&self, number: usize, what: &str, a: RowId, b: RowId) -> Result<()> {
        if a != b {
            return Ok(());
        }
        Err(Error::Row {
            row: number as u64,
            problem: format!("{what} names row {a} twice: expected different rows"),
        })
    }

    /// Number of rows that can be named.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of pairs, triplets and quadruplets.
    pub fn len(&self) -> usize {
        self.similar.len() + self.dissimilar.len() + self.triplets.len() + self.quadruplets.len()
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pairs that belong together, each once, in order.
    pub fn similar(&self) -> &[[RowId; 2]] {
        &self.similar
    }

    /// Pairs that do not, likewise.
    pub fn dissimilar(&self) -> &[[RowId; 2]] {
        &self.dissimilar
    }

    /// Triplets as given.
    pub fn triplets(&self) -> &[[RowId; 3]] {
        &self.triplets
    }

    /// Quadruplets as given.
    pub fn quadruplets(&self) -> &[Quadruplet] {
        &self.quadruplets
    }

    /// Similar pairs as relevance, where there are any.
    pub fn relevance(&self) -> Option<&dyn Relevance> {
        self.relevance.as_ref().map(|r| r as &dyn Relevance)
    }

    /// Similar and dissimilar pairs as judgements, where there are similar ones.
    pub(crate) fn judgements(&self) -> Option<&Judgements> {
        self.relevance.as_ref()
    }

    /// What is said about some rows alone, renumbered 0, 1, …
    pub fn select(&self, rows: &[RowId]) -> Result<Self> {
        let mut place = vec![RowId::MAX; self.rows as usize];
        for (new, row) in rows.iter().enumerate() {
            place[*row as usize] = new as RowId;
        }
        let renumber = |row: RowId| Some(place[row as usize]).filter(|p| *p != RowId::MAX);
        let pair = |p: &[RowId; 2]| Some([renumber(p[0])?, renumber(p[1])?]);
        let similar: Vec<_> = self.similar.iter().filter_map(pair).collect();
        let dissimilar: Vec<_> = self.dissimilar.iter().filter_map(pair).collect();
        let triplets: Vec<_> = (self.triplets.iter())
            .filter_map(|[a, n, f]| Some([renumber(*a)?, renumber(*n)?, renumber(*f)?]))
            .collect();
        let quadruplets: Vec<_> = (self.quadruplets.iter())
            .filter_map(|q| {
                Some(Quadruplet {
                    near: pair(&q.near)?,
                    far: pair(&q.far)?,
                    strict: q.strict,
                })
            })
            .collect();
        Comparisons::new(rows.len() as u64)
            .with_pairs(&similar, &dissimilar)?
            .with_triplets(&triplets)?
            .with_quadruplets(&quadruplets)
    }

    pub(super) fn describe(&self) -> String {
        let kinds = [
            (self.similar.len(), "similar pairs"),
            (self.dissimilar.len(), "dissimilar pairs"),
            (self.triplets.len(), "triplets"),
            (self.quadruplets.len(), "quadruplets"),
        ];
        let comparisons: Vec<String> = (kinds.iter())
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if comparisons.is_empty() {
            return format!("no comparisons of {} rows", self.rows);
        }
        format!("{} of {} rows", comparisons.join(", "), self.rows)
    }

    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) {
        hasher.update(b"comparisons");
        let mut list = |rows: &[RowId], count: usize| {
            hasher.update(&(count as u64).to_le_bytes());
            hasher.update(bytemuck::cast_slice(rows));
        };
        list(&[self.rows], 1);
        list(self.similar.as_flattened(), self.similar.len());
        list(self.dissimilar.as_flattened(), self.dissimilar.len());
        list(self.triplets.as_flattened(), self.triplets.len());
        let flat: Vec<RowId> = (self.quadruplets.iter())
            .flat_map(|q| {
                [
                    q.near[0],
                    q.near[1],
                    q.far[0],
                    q.far[1],
                    u64::from(q.strict),
                ]
            })
            .collect();
        list(&flat, self.quadruplets.len());
    }
}

fn ordered(pair: &[RowId; 2]) -> [RowId; 2] {
    [pair[0].min(pair[1]), pair[0].max(pair[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_pairs_are_relevant_both_ways() {
        let comparisons = Comparisons::new(4)
            .with_pairs(&[[0, 1], [1, 0], [2, 1]], &[[0, 3]])
            .unwrap();
        let relevance = comparisons.relevance().unwrap();
        assert_eq!(relevance.pairs(), 4);
        assert_eq!(comparisons.similar(), [[0, 1], [1, 2]]);
        assert!(relevance.is_relevant(1, 2) && relevance.is_relevant(2, 1));
        assert!(!relevance.is_relevant(0, 2));
    }

    #[test]
    fn nonsense_is_named() {
        let error = |r: Result<Comparisons>| r.unwrap_err().to_string();
        let new = || Comparisons::new(3);
        assert_eq!(
            error(new().with_pairs(&[[0, 3]], &[])),
            "row 0: pair names row 3, but there are 3 rows counted from 0"
        );
        assert!(error(new().with_pairs(&[[0, 1]], &[[1, 0]])).contains("also said to be similar"));
        assert!(error(new().with_triplets(&[[0, 1, 2], [0, 1, 1]])).contains("row 1: triplet"));
        let same = Quadruplet {
            near: [0, 1],
            far: [1, 0],
            strict: true,
        };
        assert!(error(new().with_quadruplets(&[same])).contains("with itself"));
    }

    #[test]
    fn a_part_keeps_what_lies_within_it() {
        let comparisons = Comparisons::new(5)
            .with_pairs(&[[0, 1], [3, 4]], &[[1, 4]])
            .unwrap()
            .with_triplets(&[[4, 3, 1], [0, 1, 2]])
            .unwrap();
        let part = comparisons.select(&[4, 1, 3]).unwrap();
        assert_eq!(part.similar(), &[[0, 2]]);
        assert_eq!(part.dissimilar(), &[[0, 1]]);
        assert_eq!(part.triplets(), &[[0, 2, 1]]);
        assert_eq!(part.rows(), 3);
    }
}
