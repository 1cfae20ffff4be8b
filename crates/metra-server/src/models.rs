//! The models that are served: loaded whole, found by name, replaced all at once.

use crate::canary::Canary;
use crate::drift::Drift;
use crate::index::ServedIndex;
use crate::marks::{Mark, marks_of_model};
use crate::options::ModelEntry;
use crate::refusal::Refusal;
use crate::rows::SideName;
use crate::{Error, Result};
use metra::linalg::RowBuf;
use metra::model::{Model, Side};
use metra_stores::index::Verify;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything that is served at one time.
#[derive(Default)]
pub(crate) struct Catalogue {
    /// By `name@version`.
    versions: BTreeMap<String, Arc<ServedModel>>,
    /// The version that a name alone means: the one listed last.
    names: BTreeMap<String, Arc<ServedModel>>,
}

/// A model with what belongs to it.
pub(crate) struct ServedModel {
    pub(crate) entry: ModelEntry,
    /// What answers call it.
    pub(crate) id: String,
    /// The beginning of the model file's digest.
    pub(crate) digest: String,
    pub(crate) model: Model,
    pub(crate) index: Option<ServedIndex>,
    pub(crate) canary: Option<Canary>,
    pub(crate) drift: Option<Drift>,
    /// Its files, as they were when it was loaded.
    marks: Vec<Mark>,
}

impl Catalogue {
    /// Load all models but those whose files are the same as earlier.
    pub(crate) fn load(
        entries: Vec<ModelEntry>,
        verify: Verify,
        earlier: &Catalogue,
    ) -> Result<Self> {
        let mut catalogue = Catalogue::default();
        for entry in entries {
            let marks = marks_of_model(&entry);
            let same = |served: &&Arc<ServedModel>| served.entry == entry && served.marks == marks;
            let served = match earlier.all().find(same) {
                Some(served) => Arc::clone(served),
                None => Arc::new(ServedModel::load(entry, marks, verify)?),
            };
            let (name, id) = (served.entry.name.clone(), served.id.clone());
            catalogue.names.insert(name, Arc::clone(&served));
            if catalogue.versions.insert(id.clone(), served).is_some() {
                let problem = "expected each name and version once, but found it twice";
                return Err(Error::setting(id, problem));
            }
        }
        Ok(catalogue)
    }

    /// All models, in the order of their names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ServedModel>> {
        self.versions.values()
    }

    /// Whether a model is among them, named with its version.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.versions.contains_key(id)
    }

    /// Whether this very model is among them.
    pub(crate) fn holds(&self, model: &Arc<ServedModel>) -> bool {
        self.all().any(|served| Arc::ptr_eq(served, model))
    }

    /// The model of a request. Where there is only one name, a request need not say it.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<Arc<ServedModel>, Refusal> {
        let found = match name {
            Some(name) => self.names.get(name).or_else(|| self.versions.get(name)),
            None if self.names.len() == 1 => self.names.values().next(),
            None => None,
        };
        found.cloned().ok_or_else(|| {
            let known: Vec<&str> = self.versions.keys().map(String::as_str).collect();
            let known = known.join(", ");
            match name {
                Some(name) => {
                    let name: String = name.chars().take(80).collect();
                    Refusal::unknown(format!(
                        "expected a model among {known}, but found {name:?}"
                    ))
                }
                None => Refusal::bad(format!("expected \"model\" to name one of {known}")),
            }
        })
    }
}

impl ServedModel {
    fn load(entry: ModelEntry, marks: Vec<Mark>, verify: Verify) -> Result<Self> {
        check_name(&entry)?;
        let bytes = std::fs::read(&entry.file).map_err(|e| Error::io(&entry.file, e))?;
        let digest = blake3::hash(&bytes).to_hex()[..12].to_owned();
        let wrong = |source| Error::Model {
            path: entry.file.clone(),
            source,
        };
        let model = Model::from_bytes(&bytes).map_err(wrong)?;
        let index = match &entry.index {
            Some(folder) => Some(ServedIndex::open(folder, &entry, &model, verify)?),
            None => None,
        };
        let version = entry.version.clone().unwrap_or_else(|| digest.clone());
        let canary = match (&entry.canary, &index) {
            (Some(canary), Some(index)) => Some(Canary::read(canary, &model, index)?),
            (Some(canary), None) => {
                let problem = "judged queries need an index to be ranked in";
                return Err(Error::file(&canary.queries.file, problem));
            }
            (None, _) => None,
        };
        let reference = entry.reference.as_ref();
        let drift = reference.map(|reference| Drift::from_reference(reference, &model));
        Ok(ServedModel {
            id: format!("{}@{version}", entry.name),
            digest,
            model,
            index,
            canary,
            drift: drift.transpose()?,
            entry,
            marks,
        })
    }

    /// The side that a request is about: it must say so where it matters.
    pub(crate) fn side(&self, side: Option<SideName>) -> Result<Side, Refusal> {
        match side {
            Some(SideName::Query) => Ok(Side::Query),
            Some(SideName::Item) => Ok(Side::Item),
            None if !self.model.chain.has_two_sides() => Ok(Side::Query),
            None => Err(Refusal::bad(
                "expected \"side\" to be \"query\" or \"item\": this model maps them otherwise",
            )),
        }
    }

    /// Let the watch on drift see the vectors of a request, before and after the map, unless they are items.
    pub(crate) fn observe(&self, side: Option<SideName>, rows: &RowBuf, mapped: &RowBuf) {
        if let Some(drift) = self.drift.as_ref().filter(|_| side != Some(SideName::Item)) {
            drift.observe(rows.rows(), mapped.rows());
        }
    }
}

/// Names go into addresses, logs and metrics.
fn check_name(entry: &ModelEntry) -> Result<()> {
    let parts = [Some(&entry.name), entry.version.as_ref()];
    for part in parts.into_iter().flatten() {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if part.is_empty() || part.len() > 64 || !part.chars().all(known) {
            let problem = "expected a name of 1 to 64 letters, digits, '-', '_' and '.'";
            return Err(Error::setting(format!("{part:?}"), problem));
        }
    }
    Ok(())
}
