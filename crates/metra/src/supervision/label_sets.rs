//! Several labels per row: two rows are relevant to each other when they share one, the more the more they share.
//!
//! Rows with the same labels form a combination. Which combinations share a label is listed, pairs of rows are not:
//! rows are many, combinations mostly few.

use super::labels::Labels;
use super::relevance::{Pool, Relevance};
use crate::data::RowId;
use crate::{Error, Result};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

/// Most pairs of combinations that share a label: 1.2 GB. Reached where more than 10,000 combinations have one label.
const MOST_RELATED: usize = 100_000_000;

/// The grade of two rows that share labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SharedLabels {
    /// The number of labels that both have.
    #[default]
    Number,
    /// That number, divided by the number of labels that one of them has (Jaccard).
    Share,
}

impl fmt::Display for SharedLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SharedLabels::Number => "number",
            SharedLabels::Share => "share",
        })
    }
}

impl FromStr for SharedLabels {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "number" => SharedLabels::Number,
            "share" => SharedLabels::Share,
            other => {
                let found = format!("{other:?}");
                return Err(Error::parameter("shared labels", "number or share", found));
            }
        })
    }
}

/// The labels of every row.
#[derive(Debug, Clone)]
pub struct LabelSets {
    grade: SharedLabels,
    names: Vec<String>,
    /// The combination of every row.
    combinations: Labels,
    /// The labels of every combination, increasing.
    sets: Vec<Vec<u32>>,
    /// Combinations that share a label with combination c, increasing: `related[starts[c]..starts[c + 1]]`.
    starts: Vec<usize>,
    related: Vec<Related>,
    /// Ordered pairs of rows whose first one is of a combination before each.
    pairs_before: Vec<u64>,
}

/// A combination that shares a label with another one.
#[derive(Debug, Clone, Copy)]
struct Related {
    combination: u32,
    /// Rows of the related combinations before this one.
    rows_before: u32,
    grade: f32,
}

impl LabelSets {
    /// Row i has the labels `lists[of[i]]`, in any order. A row without labels is relevant to no other.
    pub fn new<S: AsRef<str>>(lists: &[Vec<S>], of: &[u32], grade: SharedLabels) -> Result<Self> {
        let names: BTreeSet<&str> = lists.iter().flatten().map(AsRef::as_ref).collect();
        let numbers: HashMap<&str, u32> = names.iter().copied().zip(0..).collect();
        let mut sets_by_name = HashMap::new();
        let mut list_names = Vec::with_capacity(lists.len());
        for list in lists {
            let labels: BTreeSet<&str> = list.iter().map(AsRef::as_ref).collect();
            let name = format!("{:?}", Vec::from_iter(&labels));
            let set: Vec<u32> = labels.iter().map(|label| numbers[label]).collect();
            list_names.push(name.clone());
            sets_by_name.insert(name, set);
        }
        let row_names: Option<Vec<&String>> = of
            .iter()
            .map(|list| list_names.get(*list as usize))
            .collect();
        let row_names = row_names.ok_or_else(|| {
            let found = of.iter().max().copied().unwrap_or(0);
            Error::shape(
                "number of a list of labels",
                format!("below {}", lists.len()),
                found,
            )
        })?;
        let combinations = Labels::from_names(&row_names)?;
        let set_of = |name: &String| sets_by_name.get(name).cloned().unwrap_or_default();
        let sets = combinations.names().iter().map(set_of).collect();
        let names = names.into_iter().map(str::to_owned).collect();
        Self::build(grade, names, combinations, sets)
    }

    fn build(
        grade: SharedLabels,
        names: Vec<String>,
        combinations: Labels,
        sets: Vec<Vec<u32>>,
    ) -> Result<Self> {
        let mut having = vec![Vec::new(); names.len()];
        for (combination, set) in (0_u32..).zip(&sets) {
            for label in set {
                having[*label as usize].push(combination);
            }
        }
        let size = |combination: u32| combinations.members(combination).len() as u64;
        let mut shared = vec![0_u32; sets.len()];
        let (mut starts, mut related) = (vec![0], Vec::new());
        let mut pairs_before = vec![0_u64];
        for (combination, set) in (0_u32..).zip(&sets) {
            let mut found = Vec::new();
            for other in set.iter().flat_map(|label| &having[*label as usize]) {
                if shared[*other as usize] == 0 {
                    found.push(*other);
                }
                shared[*other as usize] += 1;
            }
            found.sort_unstable();
            let mut rows = 0_u64;
            for other in found {
                let both = std::mem::take(&mut shared[other as usize]);
                let either = set.len() as u32 + sets[other as usize].len() as u32 - both;
                related.push(Related {
                    combination: other,
                    rows_before: rows as u32,
                    grade: match grade {
                        SharedLabels::Number => both as f32,
                        SharedLabels::Share => both as f32 / either as f32,
                    },
                });
                rows += size(other);
            }
            if related.len() > MOST_RELATED {
                return Err(Error::shape(
                    "pairs of combinations of labels that share one",
                    format!("at most {MOST_RELATED}: leave out labels that most rows have"),
                    format!("more among {} combinations", sets.len()),
                ));
            }
            starts.push(related.len());
            let before = pairs_before[combination as usize];
            pairs_before.push(before + size(combination) * rows.saturating_sub(1));
        }
        Ok(LabelSets {
            grade,
            names,
            combinations,
            sets,
            starts,
            related,
            pairs_before,
        })
    }

    /// Names of all labels, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The labels of a row, sorted. Panics like a slice when there is no such row.
    pub fn labels_of(&self, row: RowId) -> Vec<&str> {
        let labels = self.sets[self.combination(row) as usize].iter();
        labels
            .map(|label| self.names[*label as usize].as_str())
            .collect()
    }

    /// Number of labels that a row has on average.
    pub fn mean_size(&self) -> f64 {
        let sizes = self.combinations.of().iter();
        let total: usize = sizes.map(|c| self.sets[*c as usize].len()).sum();
        total as f64 / self.combinations.len().max(1) as f64
    }

    /// The grade of a row for itself, or of another row with the same labels.
    pub(crate) fn own_grade(&self, row: RowId) -> f32 {
        let labels = self.sets[self.combination(row) as usize].len();
        match self.grade {
            SharedLabels::Number => labels.max(1) as f32,
            SharedLabels::Share => 1.0,
        }
    }

    /// Every row with its combination of labels as its class.
    pub(crate) fn combinations(&self) -> &Labels {
        &self.combinations
    }

    /// The labels of some rows, numbered 0, 1, ….
    pub(crate) fn select(&self, rows: &[RowId]) -> Result<Self> {
        let combination = |row: &RowId| self.combinations.of()[*row as usize];
        let kept: BTreeSet<u32> = rows.iter().map(combination).collect();
        let sets = kept.iter().map(|c| self.sets[*c as usize].clone());
        let combinations = self.combinations.select(rows)?;
        Self::build(self.grade, self.names.clone(), combinations, sets.collect())
    }

    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) {
        hasher.update(b"label sets");
        hasher.update(self.grade.to_string().as_bytes());
        // A combination's name holds those of its labels.
        self.combinations.hash(hasher);
    }

    fn combination(&self, row: RowId) -> u32 {
        self.combinations.of()[row as usize]
    }

    fn related(&self, combination: u32) -> &[Related] {
        let combination = combination as usize;
        &self.related[self.starts[combination]..self.starts[combination + 1]]
    }

    /// Rows that share a label with those of a combination, these among them.
    fn related_rows(&self, combination: u32) -> u64 {
        self.related(combination).last().map_or(0, |last| {
            let rows = self.combinations.members(last.combination).len();
            u64::from(last.rows_before) + rows as u64
        })
    }
}

impl Relevance for LabelSets {
    fn queries(&self) -> u64 {
        self.combinations.len() as u64
    }

    fn items(&self) -> u64 {
        self.combinations.len() as u64
    }

    fn within(&self) -> bool {
        true
    }

    fn pairs(&self) -> u64 {
        self.pairs_before.last().copied().unwrap_or(0)
    }

    fn pair(&self, number: u64) -> (RowId, RowId) {
        let before = |before: &u64| *before <= number;
        let combination = (self.pairs_before.partition_point(before) - 1) as u32;
        let others = self.related_rows(combination) - 1;
        let within = number - self.pairs_before[combination as usize];
        let (first, second) = (within / others, within % others);
        let related = self.related(combination);
        // The second row skips the first: i = j is not in S.
        let own = related.partition_point(|other| other.combination < combination);
        let own = u64::from(related[own].rows_before) + first;
        let second = second + u64::from(second >= own);
        let place = related.partition_point(|other| u64::from(other.rows_before) <= second) - 1;
        let members = self.combinations.members(related[place].combination);
        let item = members[(second - u64::from(related[place].rows_before)) as usize];
        let query = self.combinations.members(combination)[first as usize];
        (RowId::from(query), RowId::from(item))
    }

    fn relevant_count(&self, query: RowId) -> u64 {
        self.related_rows(self.combination(query)).saturating_sub(1)
    }

    fn is_relevant(&self, query: RowId, item: RowId) -> bool {
        let related = self.related(self.combination(query));
        let item_combination = self.combination(item);
        query != item
            && (related.binary_search_by_key(&item_combination, |other| other.combination)).is_ok()
    }

    fn relevant(&self, query: RowId, out: &mut Vec<(RowId, f32)>) {
        let first = out.len();
        for other in self.related(self.combination(query)) {
            let members = self.combinations.members(other.combination).iter();
            let items = members.map(|item| (RowId::from(*item), other.grade));
            out.extend(items.filter(|(item, _)| *item != query));
        }
        out[first..].sort_unstable_by_key(|(item, _)| *item);
    }

    fn pool_key(&self, item: RowId) -> u64 {
        u64::from(self.combination(item))
    }

    fn visit_pool(&self, query: RowId, pool: &Pool, visit: &mut dyn FnMut(usize)) {
        let combination = self.combination(query);
        let related = self.related(combination);
        if related.len() < pool.items().len() && !related.is_empty() {
            for other in related {
                (pool.places(u64::from(other.combination))).for_each(&mut *visit);
            }
            return;
        }
        for (place, item) in pool.items().iter().enumerate() {
            if *item == query || self.is_relevant(query, *item) {
                visit(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows: 0 {a}, 1 {a, b}, 2 {b}, 3 {c}, 4 {}, 5 {b, a}, 6 {}.
    fn sets(grade: SharedLabels) -> LabelSets {
        let lists = [
            vec!["a"],
            vec!["a", "b"],
            vec!["b"],
            vec!["c"],
            vec![],
            vec!["b", "a", "b"],
        ];
        LabelSets::new(&lists, &[0, 1, 2, 3, 4, 5, 4], grade).unwrap()
    }

    /// By the definition, pair by pair.
    const SHARED: [&str; 7] = ["a", "ab", "b", "c", "", "ab", ""];

    fn shared(a: usize, b: usize) -> usize {
        SHARED[a].chars().filter(|l| SHARED[b].contains(*l)).count()
    }

    #[test]
    fn rows_are_relevant_by_the_labels_they_share() {
        let sets = sets(SharedLabels::Number);
        let mut listed = Vec::new();
        for query in 0..7 {
            let mut found = Vec::new();
            sets.relevant(query as u64, &mut found);
            let expected: Vec<(u64, f32)> = (0..7)
                .filter(|item| *item != query && shared(query, *item) > 0)
                .map(|item| (item as u64, shared(query, item) as f32))
                .collect();
            assert_eq!(found, expected, "query {query}");
            assert_eq!(sets.relevant_count(query as u64), expected.len() as u64);
            for item in 0..7 {
                let relevant = expected.iter().any(|(other, _)| *other == item);
                assert_eq!(sets.is_relevant(query as u64, item), relevant);
            }
            listed.extend(expected.iter().map(|(item, _)| (query as u64, *item)));
        }
        let mut pairs: Vec<_> = (0..sets.pairs()).map(|number| sets.pair(number)).collect();
        pairs.sort_unstable();
        assert_eq!(pairs, listed);
        assert_eq!(sets.names(), ["a", "b", "c"]);
        assert_eq!(
            (sets.labels_of(5), sets.labels_of(4)),
            (vec!["a", "b"], vec![])
        );
        // Seven rows with 1 + 2 + 1 + 1 + 0 + 2 + 0 labels.
        assert_eq!(sets.mean_size(), 1.0);
    }

    #[test]
    fn a_share_is_that_of_all_labels_of_both() {
        let sets = sets(SharedLabels::Share);
        let mut found = Vec::new();
        sets.relevant(1, &mut found);
        // {a, b} with {a}: 1 of 2; with {b}: 1 of 2; with {a, b}: 2 of 2.
        assert_eq!(found, [(0, 0.5), (2, 0.5), (5, 1.0)]);
    }

    #[test]
    fn a_part_keeps_what_its_rows_share() {
        let part = sets(SharedLabels::Number).select(&[6, 5, 3, 2]).unwrap();
        let mut found = Vec::new();
        part.relevant(1, &mut found);
        assert_eq!(found, [(3, 1.0)]);
        assert_eq!((part.pairs(), part.relevant_count(0)), (2, 0));
    }

    #[test]
    fn a_pool_is_searched_for_relevant_rows_and_the_query() {
        let sets = sets(SharedLabels::Number);
        let mut pool = Pool::default();
        pool.fill(&sets, [0, 6, 4, 3, 5, 1].into_iter());
        let places = |query: RowId| {
            let mut found = Vec::new();
            sets.visit_pool(query, &pool, &mut |place| found.push(place));
            found.sort_unstable();
            found
        };
        // Rows 0, 5 and 1 have a; row 4 is alone.
        assert_eq!((places(0), places(4)), (vec![0, 4, 5], vec![2]));
        // A pool of fewer rows than the query has related combinations is searched row by row.
        pool.fill(&sets, [5, 3].into_iter());
        let mut found = Vec::new();
        sets.visit_pool(1, &pool, &mut |place| found.push(place));
        assert_eq!(found, [0]);
    }

    #[test]
    fn lists_that_are_not_there_are_an_error() {
        let error = LabelSets::new(&[vec!["a"]], &[0, 1], SharedLabels::Number).unwrap_err();
        assert!(error.to_string().contains("below 1"), "{error}");
    }
}
