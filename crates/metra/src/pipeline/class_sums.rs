//! Training from sums over labelled rows, which rows can be added to and taken away from: what a closed form learns from them
//! is what it would learn from the rows that are left.
//!
//! Digests of the rows are kept beside the sums, so that a row that was never added cannot be taken away, and nothing else
//! of them.

use super::{Pipeline, Prepare};
use crate::data::{Corpus, row_digest};
use crate::dataset::Dataset;
use crate::execute::summed::{MOST_TIMES, RowSums, SummedCorpus};
use crate::execute::{check_square, decode, encode, spread};
use crate::model::{Model, Origin, Preprocessing, Step};
use crate::supervision::Labels;
use crate::training::{CodeSpec, PreparedCorpus, Recipe, Run};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The beginning of the file, with its version.
const SIGNATURE: &[u8] = b"metra sums 1\n";
/// Files of more are none of ours: a square of 30,000 dimensions takes 4 GB.
const MOST_BYTES: u64 = 16 << 30;

/// Sums over labelled rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassSums {
    /// Preprocessing, which looks at every row by itself.
    recipe: String,
    /// Dimension of the vectors before it.
    input_dim: u64,
    /// Names of the classes in increasing order.
    classes: Vec<String>,
    sums: RowSums,
    /// A digest of every row with its class, in increasing order.
    rows: Vec<u64>,
}

/// Rows to be added or taken away.
struct Change {
    classes: Vec<String>,
    sums: RowSums,
    rows: Vec<u64>,
}

impl ClassSums {
    /// The sums over a data set of labelled rows, after preprocessing that looks at every row by itself.
    pub fn new(data: &Dataset<'_>, recipe: &Recipe) -> Result<Self> {
        let steps = row_by_row(recipe)?;
        let prepared = PreparedCorpus::new(data.items(), None, &steps).dim();
        check_square(prepared)?;
        let mut sums = ClassSums {
            recipe: recipe.to_string(),
            input_dim: data.dim() as u64,
            classes: Vec::new(),
            sums: RowSums::new(vec![0.0; prepared]),
            rows: Vec::new(),
        };
        sums.add(data)?;
        Ok(sums)
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.input_dim as usize
    }

    /// The preprocessing.
    pub fn recipe(&self) -> Result<Recipe> {
        self.recipe.parse()
    }

    /// Add the rows of a data set; how many of them were there before, and count once more now.
    pub fn add(&mut self, data: &Dataset<'_>) -> Result<u64> {
        if self.rows.is_empty() {
            let steps = row_by_row(&self.recipe()?)?;
            let prepared = PreparedCorpus::new(data.items(), None, &steps);
            // About a point near the rows: about 0, sums over rows far from it would cancel.
            self.sums = RowSums::new(spread(&prepared)?.mean);
        }
        let change = self.change(data)?;
        let is_known = |row: &&u64| self.rows.binary_search(row).is_ok();
        let known = change.rows.iter().filter(is_known).count() as u64;
        self.rows.extend(&change.rows);
        self.rows.sort_unstable();
        self.apply(&change, true);
        Ok(known)
    }

    /// Take the rows of a data set away, all of which must be among those that were added.
    pub fn remove(&mut self, data: &Dataset<'_>) -> Result<()> {
        let change = self.change(data)?;
        let mut gone: Vec<(u64, usize)> = change.rows.iter().copied().zip(0..).collect();
        gone.sort_unstable();
        let (mut kept, mut next) = (Vec::with_capacity(self.rows.len()), 0);
        let mut missing: Option<usize> = None;
        for (digest, row) in gone {
            let before = self.rows[next..].partition_point(|known| *known < digest);
            kept.extend_from_slice(&self.rows[next..next + before]);
            next += before;
            match self.rows.get(next) {
                Some(known) if *known == digest => next += 1,
                _ => missing = Some(missing.map_or(row, |first| first.min(row))),
            }
        }
        if let Some(row) = missing {
            return Err(Error::Row {
                row: data.items().origin(row as u64),
                problem:
                    "is not among the rows that were added, with this label: expected one that is"
                        .into(),
            });
        }
        kept.extend_from_slice(&self.rows[next..]);
        let mut left = self.clone();
        left.rows = kept;
        left.apply(&change, false);
        left.sums.centre();
        if left.sums.is_lost_beside(&self.sums) || left.sums.is_lost_beside(&change.sums) {
            return Err(Error::Data(format!(
                "squares of the rows to take away, or of where the sums began, are more than {MOST_TIMES:e} times those of the \
                 rows that would be left, so that f64 cannot take them away exactly: make the sums anew from the rows that \
                 are left"
            )));
        }
        *self = left;
        Ok(())
    }

    fn apply(&mut self, change: &Change, is_added: bool) {
        let mut places: BTreeMap<&str, usize> =
            (self.classes.iter().map(String::as_str)).zip(0..).collect();
        let mut names = self.classes.clone();
        let mut place = Vec::with_capacity(change.classes.len());
        for class in &change.classes {
            let next = places.len();
            let at = *places.entry(class).or_insert(next);
            if at == names.len() {
                names.push(class.clone());
            }
            place.push(at);
        }
        self.sums.change(&change.sums, &place, is_added);
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.retain(|class| self.sums.counts()[*class] > 0);
        order.sort_by(|a, b| names[*a].cmp(&names[*b]));
        self.sums.reorder(&order);
        self.classes = order.iter().map(|class| names[*class].clone()).collect();
    }

    fn change(&self, data: &Dataset<'_>) -> Result<Change> {
        if data.dim() != self.dim() {
            let what = "dimension of the vectors, as the sums have it";
            return Err(Error::shape(what, self.dim(), data.dim()));
        }
        if data.narrowing().is_some() {
            return Err(Error::Data(
                "sums are over f32: expected values that f32 can hold without being moved or scaled".into(),
            ));
        }
        let labels = data.training_labels("training from sums")?;
        let steps = row_by_row(&self.recipe()?)?;
        let prepared = PreparedCorpus::new(data.items(), None, &steps);
        let about = self.sums.about().to_vec();
        let sums = RowSums::of(&prepared, labels.of(), labels.classes(), about)?;
        if !sums.is_sound() {
            return Err(Error::Data(
                "sums over the rows are not finite: their values are too large".into(),
            ));
        }
        let keys: Vec<[u8; 32]> = (labels.names().iter())
            .map(|name| blake3::derive_key("metra: rows in sums", name.as_bytes()))
            .collect();
        let mut rows = Vec::with_capacity(data.items().len() as usize);
        prepared.scan(0..prepared.len(), &mut |first, block| {
            let classes = &labels.of()[first as usize..];
            let digests = block.iter().zip(classes);
            rows.extend(digests.map(|(row, class)| row_digest(&keys[*class as usize], row)));
            Ok(())
        })?;
        Ok(Change {
            classes: labels.names().to_vec(),
            sums,
            rows,
        })
    }

    /// Read a file of sums.
    pub fn load(path: &Path) -> Result<Self> {
        let wrong = || {
            let problem = "is no file of sums of this version, or a damaged one";
            Error::Data(format!("{}: {problem}", path.display()))
        };
        let found = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
        if !found.is_file() || found.len() > MOST_BYTES {
            return Err(wrong());
        }
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
        let whole = bytes.split_last_chunk::<32>();
        let whole = whole.filter(|(kept, digest)| blake3::hash(kept).as_bytes() == *digest);
        let kept = whole.and_then(|(kept, _)| kept.strip_prefix(SIGNATURE));
        let sums: ClassSums = decode(kept.ok_or_else(wrong)?).map_err(|_| wrong())?;
        if sums.is_sound() {
            Ok(sums)
        } else {
            Err(wrong())
        }
    }

    /// Whether the parts of a file fit each other.
    fn is_sound(&self) -> bool {
        let mut counts = self.sums.counts().iter();
        let counted = counts.try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let steps = self.recipe().ok().and_then(|recipe| recipe.row_by_row());
        let prepared = steps.and_then(|steps| {
            let mut dims = steps.iter();
            dims.try_fold(self.dim(), |dim, step| step.output_dim(dim).ok())
        });
        self.sums.is_sound()
            && self.classes.len() == self.sums.counts().len()
            && self.classes.is_sorted_by(|a, b| a < b)
            && counted == Some(self.rows())
            && self.rows.is_sorted()
            && prepared == Some(self.sums.about().len())
    }

    /// Write a file of sums, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend(encode(self)?);
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        crate::data::AtomicFile::write_all(path, &bytes)
    }
}

/// The steps of preprocessing that looks at every row by itself; an error for any other.
fn row_by_row(recipe: &Recipe) -> Result<Vec<Step>> {
    recipe.row_by_row().ok_or_else(|| {
        let expected =
            "steps that look at every row by itself (l2, sqrt, log, chi2) for training from sums";
        Error::parameter("prepare", expected, recipe)
    })
}

impl Pipeline {
    /// Fit to sums over labelled rows. Only closed forms over sums can, and the model does not know which rows it learned
    /// from.
    pub fn fit_sums(&self, sums: &ClassSums, seed: u64) -> Result<Model> {
        if self.recipe.to_string() != sums.recipe {
            let expected = format!("{}, as the sums have it", sums.recipe);
            return Err(Error::parameter("prepare", expected, &self.recipe));
        }
        if self.code != CodeSpec::None {
            let expected = "none for training from sums";
            return Err(Error::parameter("code", expected, self.code));
        }
        if let Some(earlier) = &self.start {
            let expected = "none for training from sums";
            return Err(Error::parameter("from", expected, earlier.file()));
        }
        let corpus = SummedCorpus(&sums.sums);
        let dim = corpus.dim() as u64;
        if corpus.len() < dim {
            return Err(Error::shape(
                "rows in the sums",
                format!("at least {dim}"),
                corpus.len(),
            ));
        }
        let counts = (0..).zip(sums.sums.counts());
        let classes: Vec<i64> = counts
            .flat_map(|(class, count)| std::iter::repeat_n(class, *count as usize))
            .collect();
        let data = Dataset::builder(&corpus).labels(Labels::from_numbers(&classes)?);
        let mut run = Run::new(seed);
        let map = self.method.fit(&data.build()?, &mut run)?;
        let prepare = Prepare {
            items: Preprocessing {
                input_dim: sums.dim(),
                steps: row_by_row(&self.recipe)?,
            },
            queries: None,
        };
        let parameters = self.method.parameters();
        let fitted = self.assemble(prepare, (map, parameters), &mut run)?;
        let digest = |bytes: Vec<u8>| blake3::hash(&bytes).to_hex().to_string();
        let origin = Origin {
            method: self.method.name().to_owned(),
            parameters: fitted.parameters,
            prepare: self.recipe.to_string(),
            seed,
            data: digest(encode(&sums.rows)?),
            supervision: digest(encode(&(&sums.classes, sums.sums.counts()))?),
            facts: fitted.facts,
            ..Origin::default()
        };
        Model::new(None, fitted.chain, origin)?.with_outputs(fitted.outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Subset;
    use crate::data::synthetic::Nuisance;
    use crate::linalg::RowBuf;
    use crate::model::Map;

    const SET: Nuisance = Nuisance {
        classes: 6,
        signal: 3,
        noise: 5,
        seed: 3,
    };

    fn pipeline(method: &str, settings: &[(&str, &str)], recipe: &Recipe) -> Pipeline {
        let settings: BTreeMap<String, String> = (settings.iter())
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Pipeline::named(method, &settings, recipe).unwrap()
    }

    /// A data set of some rows of the set.
    fn with<R>(rows: std::ops::Range<u64>, work: impl FnOnce(&Dataset<'_>) -> R) -> R {
        let all = SET.rows(rows.end as usize);
        let classes: Vec<i64> = rows.clone().map(|row| SET.class(row)).collect();
        let part = Subset::new(&all.corpus, rows.collect()).unwrap();
        let labels = Labels::from_numbers(&classes).unwrap();
        work(&Dataset::builder(&part).labels(labels).build().unwrap())
    }

    fn weights(map: &Map) -> Vec<f32> {
        match map {
            Map::LowRank(map) => map.weights().values().to_vec(),
            Map::Bilinear { query, item } => {
                [query.weights().values(), item.weights().values()].concat()
            }
            _ => panic!("a linear map was expected"),
        }
    }

    const METHODS: [(&str, &[(&str, &str)]); 6] = [
        ("lda", &[("rank", "3")]),
        ("pca", &[("rank", "4")]),
        ("whitening", &[("rank", "4")]),
        ("cca", &[("rank", "3")]),
        ("procrustes", &[("form", "regression")]),
        ("slr", &[("rank", "3"), ("target", "fixed")]),
    ];

    #[test]
    fn models_of_rows_added_and_taken_away_are_those_of_the_rows_left() {
        for recipe in ["none", "l2"] {
            let recipe: Recipe = recipe.parse().unwrap();
            let mut changed = with(0..150, |data| ClassSums::new(data, &recipe)).unwrap();
            with(150..400, |data| changed.add(data)).unwrap();
            with(100..160, |data| changed.remove(data)).unwrap();
            with(100..120, |data| changed.add(data)).unwrap();
            let rows: Vec<u64> = (0..120).chain(160..400).collect();
            let all = SET.rows(400);
            let left = Subset::new(&all.corpus, rows.clone()).unwrap();
            let classes: Vec<i64> = rows.iter().map(|row| SET.class(*row)).collect();
            let labels = Labels::from_numbers(&classes).unwrap();
            let data = Dataset::builder(&left).labels(labels).build().unwrap();
            let anew = ClassSums::new(&data, &recipe).unwrap();
            assert_eq!((changed.rows(), &changed.rows), (360, &anew.rows));
            assert_eq!(changed.classes, anew.classes);
            for (method, settings) in METHODS {
                let pipeline = pipeline(method, settings, &recipe);
                let from_sums = pipeline.fit_sums(&changed, 1).unwrap();
                let from_rows = pipeline.fit(&data).unwrap();
                let (sums, rows) = (
                    weights(from_sums.chain.map()),
                    weights(from_rows.chain.map()),
                );
                assert_eq!(sums.len(), rows.len(), "{method}");
                // A map is f32, whose last digit is 6e-8 of a value: what is summed agrees to far more.
                let largest = rows
                    .iter()
                    .fold(0.0_f32, |most, value| most.max(value.abs()));
                for (a, b) in sums.iter().zip(&rows) {
                    assert!(
                        (a - b).abs() <= 2e-6 * largest,
                        "{method} after {recipe}: {a} {b}"
                    );
                }
                assert_eq!(from_sums.training, None);
            }
        }
    }

    #[test]
    fn a_row_that_was_never_added_stays() {
        let recipe = Recipe::default();
        let mut sums = with(0..100, |data| ClassSums::new(data, &recipe)).unwrap();
        let before = sums.clone();
        let error = with(90..110, |data| sums.remove(data))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("not among the rows that were added"),
            "{error}"
        );
        assert_eq!(sums, before);
        // Twice is once too often.
        with(0..10, |data| sums.remove(data)).unwrap();
        assert!(with(0..1, |data| sums.remove(data)).is_err());
        // A class without rows is forgotten.
        let all = SET.rows(100);
        let rows: Vec<u64> = (10..100).filter(|row| SET.class(*row) == 0).collect();
        let part = Subset::new(&all.corpus, rows.clone()).unwrap();
        let labels = Labels::from_numbers(&vec![0; rows.len()]).unwrap();
        let data = Dataset::builder(&part).labels(labels).build().unwrap();
        sums.remove(&data).unwrap();
        assert_eq!(sums.classes(), 5);
    }

    #[test]
    fn known_rows_are_counted_and_none_is_left_behind() {
        let recipe = Recipe::default();
        let mut sums = with(0..100, |data| ClassSums::new(data, &recipe)).unwrap();
        assert_eq!(with(90..110, |data| sums.add(data)).unwrap(), 10);
        with(90..110, |data| sums.remove(data)).unwrap();
        // The point that sums are about is that of the rows which are left: one row is no longer to be seen in it.
        let mut sums = with(0..1, |data| ClassSums::new(data, &recipe)).unwrap();
        let first = sums.sums.about().to_vec();
        with(1..80, |data| sums.add(data)).unwrap();
        with(0..1, |data| sums.remove(data)).unwrap();
        let left = with(1..80, |data| ClassSums::new(data, &recipe)).unwrap();
        assert_ne!(sums.sums.about(), first);
        for (own, expected) in sums.sums.about().iter().zip(left.sums.about()) {
            assert!((own - expected).abs() < 1e-9, "{own} {expected}");
        }
        with(1..80, |data| sums.remove(data)).unwrap();
        assert_eq!((sums.rows(), sums.classes()), (0, 0));
        assert_eq!(sums.sums, RowSums::new(vec![0.0; SET.dim()]));
    }

    #[test]
    fn what_f64_cannot_take_away_is_refused() {
        let mut sums = with(0..100, |data| ClassSums::new(data, &Recipe::default())).unwrap();
        let far = RowBuf::from_values(vec![1e9; SET.dim()], SET.dim()).unwrap();
        let far = crate::data::MemoryCorpus::new(far).unwrap();
        let labels = || Labels::from_numbers(&[0]).unwrap();
        let data = Dataset::builder(&far).labels(labels()).build().unwrap();
        sums.add(&data).unwrap();
        let before = sums.clone();
        let error = sums.remove(&data).unwrap_err().to_string();
        assert!(error.contains("make the sums anew"), "{error}");
        assert_eq!(sums, before);
        // Where it came first, sums are about it.
        let mut sums = ClassSums::new(&data, &Recipe::default()).unwrap();
        with(0..100, |data| sums.add(data)).unwrap();
        let error = sums.remove(&data).unwrap_err().to_string();
        assert!(error.contains("make the sums anew"), "{error}");
    }

    #[test]
    fn sums_of_no_rows_begin_anew_where_the_next_rows_are() {
        let mut sums = with(0..50, |data| ClassSums::new(data, &Recipe::default())).unwrap();
        with(0..50, |data| sums.remove(data)).unwrap();
        let all = SET.rows(60);
        let mut far = all.corpus.rows().values().to_vec();
        far.iter_mut().for_each(|value| *value += 1e4);
        let far = RowBuf::from_values(far, SET.dim()).unwrap();
        let far = crate::data::MemoryCorpus::new(far).unwrap();
        let classes: Vec<i64> = (0..60).map(|row| SET.class(row)).collect();
        let labels = Labels::from_numbers(&classes).unwrap();
        let data = Dataset::builder(&far).labels(labels).build().unwrap();
        sums.add(&data).unwrap();
        assert_eq!(sums, ClassSums::new(&data, &Recipe::default()).unwrap());
        assert!(
            sums.sums
                .about()
                .iter()
                .all(|mean| (mean - 1e4).abs() < 100.0)
        );
    }

    #[test]
    fn files_come_back_and_damaged_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.sums");
        let sums = with(0..50, |data| ClassSums::new(data, &Recipe::default())).unwrap();
        sums.save(&path).unwrap();
        assert_eq!(ClassSums::load(&path).unwrap(), sums);
        let bytes = std::fs::read(&path).unwrap();
        for at in [0, 20, bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert!(ClassSums::load(&path).is_err(), "{at}");
        }
        std::fs::write(&path, b"").unwrap();
        assert!(ClassSums::load(&path).is_err());
        // A digest proves no sense: whoever writes a file can make one.
        let changes: [fn(&mut ClassSums); 4] = [
            |sums| sums.input_dim += 1,
            |sums| sums.classes.swap(0, 1),
            |sums| sums.rows.push(u64::MAX),
            |sums| sums.recipe = "chi2:3".into(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut sums = sums.clone();
            change(&mut sums);
            sums.save(&path).unwrap();
            assert!(ClassSums::load(&path).is_err(), "{number}");
        }
    }

    #[test]
    fn what_sums_do_not_tell_is_refused() {
        let sums = with(0..100, |data| ClassSums::new(data, &Recipe::default())).unwrap();
        let refused = |method: &str, recipe: &str| {
            let pipeline = pipeline(method, &[("rank", "3")], &recipe.parse().unwrap());
            pipeline.fit_sums(&sums, 1).unwrap_err().to_string()
        };
        for method in ["warca", "lfda", "xqda", "slr"] {
            let text = refused(method, "none");
            assert!(
                text.contains("only sums over the rows are kept"),
                "{method}: {text}"
            );
        }
        assert!(refused("lda", "l2").contains("as the sums have it"));
        let recipe: Recipe = "centre".parse().unwrap();
        let text = with(0..100, |data| ClassSums::new(data, &recipe)).unwrap_err();
        assert!(
            text.to_string().contains("look at every row by itself"),
            "{text}"
        );
        let few = with(0..6, |data| ClassSums::new(data, &Recipe::default())).unwrap();
        let lda = pipeline("lda", &[("rank", "3")], &Recipe::default());
        assert!(
            lda.fit_sums(&few, 1)
                .unwrap_err()
                .to_string()
                .contains("at least 8")
        );
    }
}
