//! Class labels: two rows are relevant to each other when they share a class.

use super::relevance::{Pool, Relevance};
use crate::data::RowId;
use crate::{Error, Result};
use std::collections::BTreeMap;

/// The class of every row.
#[derive(Debug, Clone)]
pub struct Labels {
    names: Vec<String>,
    of: Vec<u32>,
    /// Rows sorted by class (rows of class c: `members[starts[c]..starts[c + 1]]`).
    members: Vec<u32>,
    starts: Vec<u32>,
    /// Place of each row among the members of its class.
    place: Vec<u32>,
    /// Ordered pairs in the classes before each class.
    pairs_before: Vec<u64>,
}

impl Labels {
    /// Labels by name, one a row. Classes are numbered in the order of their names: as numbers
    /// where all are whole numbers, as text otherwise.
    pub fn from_names<S: AsRef<str>>(values: &[S]) -> Result<Self> {
        let mut index: BTreeMap<&str, u32> = BTreeMap::new();
        for value in values {
            index.entry(value.as_ref()).or_insert(0);
        }
        let mut names: Vec<&str> = index.keys().copied().collect();
        if names.iter().all(|n| n.parse::<i64>().is_ok()) {
            names.sort_by_key(|n| n.parse::<i64>().unwrap_or(0));
        }
        for (number, name) in names.iter().enumerate() {
            index.insert(name, number as u32);
        }
        let of = values.iter().map(|v| index[v.as_ref()]).collect();
        let names = names.into_iter().map(str::to_owned).collect();
        Self::build(of, names)
    }

    /// Labels by number, one a row; each number is its own name.
    pub fn from_numbers(values: &[i64]) -> Result<Self> {
        let mut distinct = values.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let of = values
            .iter()
            .map(|v| distinct.binary_search(v).unwrap_or(0) as u32)
            .collect();
        Self::build(of, distinct.iter().map(i64::to_string).collect())
    }

    fn build(of: Vec<u32>, names: Vec<String>) -> Result<Self> {
        if of.len() >= u32::MAX as usize {
            return Err(Error::shape(
                "labelled rows",
                "fewer than 2^32 - 1",
                of.len(),
            ));
        }
        let mut starts = vec![0_u32; names.len() + 1];
        for class in &of {
            starts[*class as usize + 1] += 1;
        }
        for class in 0..names.len() {
            starts[class + 1] += starts[class];
        }
        let mut fill = starts.clone();
        let mut members = vec![0_u32; of.len()];
        let mut place = vec![0_u32; of.len()];
        for (row, class) in of.iter().enumerate() {
            let slot = &mut fill[*class as usize];
            members[*slot as usize] = row as u32;
            place[row] = *slot - starts[*class as usize];
            *slot += 1;
        }
        let mut pairs_before = vec![0_u64; names.len() + 1];
        for class in 0..names.len() {
            let size = u64::from(starts[class + 1] - starts[class]);
            pairs_before[class + 1] = pairs_before[class] + size * size.saturating_sub(1);
        }
        Ok(Labels {
            names,
            of,
            members,
            starts,
            place,
            pairs_before,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.names.len()
    }

    /// Names of all classes, in the order of their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The class of every row.
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// Name of a class.
    pub fn name(&self, class: u32) -> &str {
        &self.names[class as usize]
    }

    /// Rows of a class in increasing order.
    pub fn members(&self, class: u32) -> &[u32] {
        let class = class as usize;
        &self.members[self.starts[class] as usize..self.starts[class + 1] as usize]
    }

    /// Rows in the median class.
    pub fn median_class_size(&self) -> usize {
        let mut sizes: Vec<u32> = self.starts.windows(2).map(|w| w[1] - w[0]).collect();
        sizes.sort_unstable();
        sizes.get(sizes.len() / 2).map_or(0, |s| *s as usize)
    }

    /// Classes of one row only.
    pub fn singletons(&self) -> usize {
        self.starts.windows(2).filter(|w| w[1] - w[0] == 1).count()
    }

    /// Labels of some rows; classes that no row has any more are dropped.
    pub fn select(&self, rows: &[RowId]) -> Result<Self> {
        let mut used = vec![u32::MAX; self.names.len()];
        for row in rows {
            used[self.of[*row as usize] as usize] = 0;
        }
        let mut names = Vec::new();
        for (class, slot) in used.iter_mut().enumerate() {
            if *slot == 0 {
                *slot = names.len() as u32;
                names.push(self.names[class].clone());
            }
        }
        let of = rows
            .iter()
            .map(|r| used[self.of[*r as usize] as usize])
            .collect();
        Self::build(of, names)
    }

    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) {
        hasher.update(b"labels");
        for name in &self.names {
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
        }
        hasher.update(bytemuck::cast_slice(&self.of));
    }
}

impl Relevance for Labels {
    fn queries(&self) -> u64 {
        self.of.len() as u64
    }

    fn items(&self) -> u64 {
        self.of.len() as u64
    }

    fn within(&self) -> bool {
        true
    }

    fn pairs(&self) -> u64 {
        self.pairs_before.last().copied().unwrap_or(0)
    }

    fn pair(&self, number: u64) -> (RowId, RowId) {
        let class = self
            .pairs_before
            .partition_point(|before| *before <= number)
            - 1;
        let members = self.members(class as u32);
        let others = members.len() as u64 - 1;
        let within = number - self.pairs_before[class];
        let (first, second) = (within / others, within % others);
        // The second member skips the first: i = j is not in S.
        let second = second + u64::from(second >= first);
        (
            RowId::from(members[first as usize]),
            RowId::from(members[second as usize]),
        )
    }

    fn relevant_count(&self, query: RowId) -> u64 {
        self.members(self.of[query as usize]).len() as u64 - 1
    }

    fn is_relevant(&self, query: RowId, item: RowId) -> bool {
        query != item && self.of[query as usize] == self.of[item as usize]
    }

    fn relevant(&self, query: RowId, out: &mut Vec<(RowId, f32)>) {
        let members = self.members(self.of[query as usize]);
        let own = self.place[query as usize] as usize;
        out.extend(members[..own].iter().map(|m| (RowId::from(*m), 1.0)));
        out.extend(members[own + 1..].iter().map(|m| (RowId::from(*m), 1.0)));
    }

    fn pool_key(&self, item: RowId) -> u64 {
        u64::from(self.of[item as usize])
    }

    fn visit_pool(&self, query: RowId, pool: &Pool, visit: &mut dyn FnMut(usize)) {
        pool.places(u64::from(self.of[query as usize]))
            .for_each(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn every_pair_has_its_number() {
        let labels = Labels::from_names(&["b", "a", "b", "c", "a", "b"]).unwrap();
        // a: rows 1, 4 (2 ordered pairs); b: rows 0, 2, 5 (6); c: one row (0).
        assert_eq!(labels.pairs(), 8);
        let mut pairs: Vec<_> = (0..8).map(|n| labels.pair(n)).collect();
        assert!(pairs.iter().all(|(i, j)| labels.is_relevant(*i, *j)));
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 8);
        assert_eq!(labels.irrelevant_count(0), 3);
        assert_eq!(labels.singletons(), 1);
    }

    #[test]
    fn numbers_are_ordered_as_numbers() {
        let labels = Labels::from_names(&["10", "9", "-1"]).unwrap();
        assert_eq!((labels.name(0), labels.name(2)), ("-1", "10"));
        assert_eq!(
            labels.of(),
            Labels::from_numbers(&[10, 9, -1]).unwrap().of()
        );
    }

    #[test]
    fn sampled_pairs_are_uniform_over_s() {
        // Classes of 2, 3, 5 and 7 rows: 2 + 6 + 20 + 42 = 70 ordered pairs. Chi-square with 69
        // degrees of freedom; 111.1 is the 0.999 quantile.
        let values: Vec<i64> = [(0, 2), (1, 3), (2, 5), (3, 7)]
            .iter()
            .flat_map(|(class, size)| vec![*class; *size])
            .collect();
        let labels = Labels::from_numbers(&values).unwrap();
        assert_eq!(labels.pairs(), 70);
        let mut counts = BTreeMap::new();
        let mut stream = Stream::new(5, "test", 0);
        let draws = 70_000;
        for _ in 0..draws {
            *counts.entry(labels.pair(stream.below(70))).or_insert(0_u32) += 1;
        }
        let expected = f64::from(draws) / 70.0;
        assert_eq!(counts.len(), 70);
        let chi: f64 = counts
            .values()
            .map(|c| (f64::from(*c) - expected).powi(2) / expected)
            .sum();
        assert!(chi < 111.1, "chi-square {chi}");
    }

    #[test]
    fn pool_finds_relevant_items_and_self() {
        let labels = Labels::from_numbers(&[0, 1, 0, 1, 2]).unwrap();
        let mut pool = Pool::default();
        pool.fill(&labels, [4, 2, 0, 3, 2].into_iter());
        let mut found = Vec::new();
        labels.visit_pool(0, &pool, &mut |p| found.push(p));
        assert_eq!(found, vec![1, 2, 4]);
    }
}
