//! Learning from a table: by passes where a learner has a closed form, by rounds where it takes
//! steps. The learners are the library's and know nothing of it.

use crate::corpus::TableCorpus;
use crate::engine::Engine;
use crate::table::Table;
use crate::{Error, Result};
use metra::execute::{decode, digest, encode};
use metra::learn::rounds::{Course, Rounds};
use metra::learn::{PreparedCorpus, Problem, Recipe, Run, registry};
use metra::metric::{Chain, Model, Origin, Space};
use metra::supervision::Supervision;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// What to learn, and how.
#[derive(Debug, Clone)]
pub struct Fit<'a> {
    /// Name of the learner.
    pub method: &'a str,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// Preparation before it.
    pub prepare: Recipe,
    /// How mapped vectors are compared; the learner's own first choice where none is named.
    pub space: Option<Space>,
    /// Seed of all draws.
    pub seed: u64,
    /// Rounds of a learner that takes steps.
    pub rounds: u64,
    /// Rows of the sample that all shards learn from beside their own.
    pub common: usize,
    /// Column of the vectors.
    pub vectors: Option<&'a str>,
    /// Column of the classes.
    pub label: &'a str,
    /// Column of the groups.
    pub group: Option<&'a str>,
    /// File that keeps the state after every round: a run that was killed goes on from there.
    pub checkpoint: Option<&'a Path>,
}

impl Engine {
    /// Learn from all rows of a table. `after` is shown the course after every round.
    pub fn train(
        &self,
        table: Table,
        fit: &Fit<'_>,
        after: &mut dyn FnMut(&Course),
    ) -> Result<Model> {
        let entry = registry::find(fit.method)?;
        let mut corpus = TableCorpus::new(self, table, fit.vectors)?;
        let mut settings = fit.settings.clone();
        let dim = fit.prepare.most_dim(corpus.columns().vectors.1);
        entry.limit_rank(&mut settings, &[], dim);
        let learner = entry.build(&settings)?;
        let able = learner.by_passes() || learner.by_rounds().is_some();
        if !able {
            return Err(unable(fit.method));
        }
        let labels = corpus.labels(fit.label)?;
        let groups = match fit.group {
            Some(column) => Some(corpus.groups(column)?),
            None => None,
        };
        let steps = fit.prepare.fit(&corpus, groups.as_ref())?;
        let prepared = PreparedCorpus::new(&corpus, groups.as_ref(), &steps);
        let supervision = Supervision::labels(labels);
        let data = digest(&corpus)?;
        let mut run = Run::new(fit.seed);
        let map = match learner.by_rounds() {
            None => learner.fit(&Problem::new(&prepared, &supervision)?, &mut run)?,
            Some(_) => {
                let rounds = Rounds {
                    method: fit.method.to_owned(),
                    settings: settings.clone(),
                    rounds: fit.rounds,
                    common: fit.common,
                    seed: fit.seed,
                };
                let checkpoint_file = CheckpointFile {
                    file: fit.checkpoint,
                    key: key(fit, &settings, &data, &supervision)?,
                };
                let resumed = checkpoint_file.read()?;
                let mut keep = |course: &Course| {
                    checkpoint_file.write(course)?;
                    after(course);
                    Ok(())
                };
                let (map, course) = rounds.fit(&prepared, &supervision, resumed, &mut keep)?;
                run.facts.insert("rounds".into(), course.done as f64);
                run.facts.insert("scale".into(), course.ground.scale);
                map
            }
        };
        let spaces = learner.spaces().first().copied();
        let space = fit.space.or(spaces).unwrap_or(Space::SquaredL2);
        let origin = Origin {
            method: fit.method.to_owned(),
            parameters: learner.parameters(),
            prepare: fit.prepare.to_string(),
            seed: fit.seed,
            data,
            supervision: supervision.fingerprint(),
            facts: run.facts,
            held_out: None,
        };
        let dim = corpus.columns().vectors.1;
        Ok(Model::new(
            None,
            Chain::new(dim, steps, map, space)?,
            origin,
        )?)
    }
}

fn unable(method: &str) -> Error {
    let able = registry::ENTRIES.iter().filter(|entry| {
        let built = entry.build(&BTreeMap::new());
        built.is_ok_and(|learner| learner.by_passes() || learner.by_rounds().is_some())
    });
    let able: Vec<&str> = able.map(|entry| entry.name).collect();
    let able = able.join(", ");
    let expected = format!("one that works where rows lie elsewhere: {able}");
    metra::Error::parameter("method", expected, method).into()
}

/// What a checkpoint belongs to: all that the course of a training depends on.
fn key(
    fit: &Fit<'_>,
    settings: &BTreeMap<String, String>,
    data: &str,
    supervision: &Supervision,
) -> Result<[u8; 32]> {
    let all = (
        (fit.method, settings, fit.prepare.to_string()),
        (
            (fit.seed, fit.rounds, fit.common),
            data,
            supervision.fingerprint(),
        ),
        env!("CARGO_PKG_VERSION"),
    );
    Ok(*blake3::hash(&encode(&all)?).as_bytes())
}

/// Keeps the course of a training in a file.
struct CheckpointFile<'a> {
    file: Option<&'a Path>,
    key: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct CheckpointContent {
    key: [u8; 32],
    course: Course,
}

impl CheckpointFile<'_> {
    fn read(&self) -> Result<Option<Course>> {
        let Some(file) = self.file else {
            return Ok(None);
        };
        let wrong = |problem: &str| Error::table(file.display().to_string(), problem);
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error.to_string())),
        };
        let whole = bytes.split_last_chunk::<32>();
        let whole = whole.filter(|(kept, digest)| blake3::hash(kept).as_bytes() == *digest);
        let (kept, _) = whole.ok_or_else(|| wrong("is no checkpoint, or a damaged one"))?;
        let kept: CheckpointContent = decode(kept)?;
        if kept.key != self.key {
            return Err(wrong(
                "is the checkpoint of another training (data, settings, seed or version differ): \
                 remove it, or name another file",
            ));
        }
        tracing::info!(
            "going on after round {} of {}",
            kept.course.done,
            file.display()
        );
        Ok(Some(kept.course))
    }

    /// The file is replaced as a whole.
    fn write(&self, course: &Course) -> metra::Result<()> {
        let Some(file) = self.file else {
            return Ok(());
        };
        let failed = |source: std::io::Error| metra::Error::Io {
            path: file.to_path_buf(),
            source,
        };
        let mut bytes = encode(&CheckpointContent {
            key: self.key,
            course: course.clone(),
        })?;
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        let folder = file
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let mut target = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        target.write_all(&bytes).map_err(failed)?;
        target.persist(file).map_err(|e| failed(e.error))?;
        Ok(())
    }
}
