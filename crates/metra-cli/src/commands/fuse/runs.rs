//! Runs with their documents numbered, query by query.

use anyhow::{Result, bail, ensure};
use metra::search::{Fusion, ScoredItem};
use metra::training::JudgedLists;
use metra_files::{NamedFusion, QrelsByName, TrecRun, read_run};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Several rankings of the same queries.
pub(super) struct Runs {
    /// Their names.
    pub(super) names: Vec<String>,
    documents: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Of every query one list a run, empty where the run does not have the query.
    lists: BTreeMap<String, Vec<Vec<ScoredItem>>>,
}

/// The queries that have a relevant item.
pub(super) struct JudgedQueries {
    pub(super) queries: Vec<JudgedLists>,
    /// Their numbers by name.
    pub(super) numbers: HashMap<String, usize>,
    /// Queries with a relevant item that no run has.
    pub(super) absent: usize,
}

impl Runs {
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        ensure!(
            paths.len() > 1,
            "expected two runs or more, but found {}",
            paths.len()
        );
        let mut runs = Runs {
            names: Vec::new(),
            documents: Vec::new(),
            numbers: HashMap::new(),
            lists: BTreeMap::new(),
        };
        for (place, path) in paths.iter().enumerate() {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if runs.names.contains(&name) {
                bail!(
                    "{}: another run is called {name:?} too; rename one of the files",
                    path.display()
                );
            }
            runs.names.push(name);
            for (query, documents) in read_run(path)?.queries {
                let list = documents
                    .into_iter()
                    .map(|(name, score)| (runs.number(name), score));
                let list = list.collect();
                let lists = runs
                    .lists
                    .entry(query)
                    .or_insert_with(|| vec![Vec::new(); paths.len()]);
                lists[place] = list;
            }
        }
        let shared = runs
            .lists
            .values()
            .any(|lists| lists.iter().filter(|list| !list.is_empty()).count() > 1);
        ensure!(
            shared,
            "expected runs of the same queries, but no query is in two of them"
        );
        Ok(runs)
    }

    fn number(&mut self, document: String) -> u32 {
        let next = self.documents.len() as u32;
        let (numbers, documents) = (&mut self.numbers, &mut self.documents);
        *numbers.entry(document).or_insert_with_key(|name| {
            documents.push(name.clone());
            next
        })
    }

    /// The queries with their judgements. Documents that no run has are numbered behind the others.
    pub(super) fn judged(&self, qrels: &QrelsByName) -> JudgedQueries {
        let mut judged = JudgedQueries {
            queries: Vec::new(),
            numbers: HashMap::new(),
            absent: 0,
        };
        let mut unranked: HashMap<&str, u32> = HashMap::new();
        for (query, documents) in qrels {
            let relevant: Vec<(&String, f32)> = documents
                .iter()
                .map(|(name, grade)| (name, *grade))
                .filter(|(_, grade)| *grade > 0.0)
                .collect();
            if relevant.is_empty() {
                continue;
            }
            let Some(lists) = self.lists.get(query) else {
                judged.absent += 1;
                continue;
            };
            let mut grades = BTreeMap::new();
            for (name, grade) in relevant {
                let next = (self.documents.len() + unranked.len()) as u32;
                let number = match self.numbers.get(name) {
                    Some(number) => *number,
                    None => *unranked.entry(name).or_insert(next),
                };
                grades.insert(number, grade);
            }
            judged.numbers.insert(query.clone(), judged.queries.len());
            judged.queries.push(JudgedLists {
                lists: lists.clone(),
                grades,
            });
        }
        judged
    }

    /// Weights of a file in the order of these runs.
    pub(super) fn in_order(&self, path: &Path, found: &NamedFusion) -> Result<Fusion> {
        let set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<String>>();
        ensure!(
            set(&self.names) == set(&found.names),
            "{}: its weights are for {}, but the runs are called {}",
            path.display(),
            found.names.join(", "),
            self.names.join(", ")
        );
        let weights: BTreeMap<&String, f64> = found
            .names
            .iter()
            .zip(found.fusion.weights().iter().copied())
            .collect();
        let weights = self.names.iter().map(|name| weights[name]).collect();
        Ok(Fusion::new(found.fusion.scale(), weights)?)
    }

    /// The first `k` documents of every query.
    pub(super) fn fused<'f>(
        &self,
        k: usize,
        fusion: impl Fn(&str) -> &'f Fusion,
    ) -> Result<TrecRun> {
        let mut run = TrecRun::default();
        for (query, lists) in &self.lists {
            let mut fused = fusion(query).fuse(lists)?;
            let name = |item: u32| &self.documents[item as usize];
            // As the writer orders them: ties by falling name.
            fused.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| name(b.0).cmp(name(a.0))));
            fused.truncate(k);
            let named = fused
                .into_iter()
                .map(|(item, score)| (name(item).clone(), score));
            run.queries.insert(query.clone(), named.collect());
        }
        Ok(run)
    }
}
