//! A pass of the library over the rows of a shard: by name, with settings by value or by address.

use crate::carried::Carried;
use crate::columns::{Names, Vectors, column};
use crate::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use metra::data::{KeyedBy, SCAN_ROWS};
use metra::execute::decode;
use metra::passes::{Incoming, Ready, Started};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A pass as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PassWork {
    /// Name of the pass.
    pub(crate) name: String,
    /// Its settings.
    pub(crate) spec: Carried,
    /// What rows are keyed by.
    pub(crate) keys: Keyed,
    /// Models whose preparation comes first.
    pub(crate) prepare: Vec<Carried>,
    /// Column of the vectors, and their length.
    pub(crate) vectors: (String, u64),
    /// Column of the classes, with their names.
    pub(crate) classes: Option<(String, Carried)>,
    /// Column of the groups, with their names.
    pub(crate) groups: Option<(String, Carried)>,
}

/// [`KeyedBy`] as it travels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Keyed {
    /// There are no keys.
    Nothing,
    /// By class.
    Class,
    /// By group.
    Group,
}

impl From<KeyedBy> for Keyed {
    fn from(by: KeyedBy) -> Self {
        match by {
            KeyedBy::Nothing => Keyed::Nothing,
            KeyedBy::Class => Keyed::Class,
            KeyedBy::Group => Keyed::Group,
        }
    }
}

impl From<Keyed> for KeyedBy {
    fn from(by: Keyed) -> Self {
        match by {
            Keyed::Nothing => KeyedBy::Nothing,
            Keyed::Class => KeyedBy::Class,
            Keyed::Group => KeyedBy::Group,
        }
    }
}

/// A pass with its settings read, and buffers.
pub(crate) struct PassTool {
    ready: Arc<Ready>,
    vectors: Vectors,
    column: (String, usize),
    classes: Option<Keyring>,
    groups: Option<Keyring>,
}

/// Turns a column into keys.
struct Keyring {
    column: String,
    names: Names,
    keys: Vec<u32>,
}

impl PassTool {
    pub(crate) async fn new(work: &PassWork, runtime: &RuntimeEnv) -> Result<Self> {
        let spec = work.spec.unpack(runtime).await?;
        let mut prepare = Vec::with_capacity(work.prepare.len());
        for model in &work.prepare {
            prepare.push(model.unpack(runtime).await?);
        }
        let ready = Ready::new(&work.name, &spec, work.keys.into(), &prepare)?;
        let keyring = async |wanted: bool, of: &Option<(String, Carried)>| match of {
            Some((column, names)) if wanted => {
                let names: Vec<String> = decode(&names.unpack(runtime).await?)?;
                Ok::<_, Error>(Some(Keyring {
                    names: Names::new(column, &names),
                    column: column.clone(),
                    keys: Vec::new(),
                }))
            }
            _ => Ok(None),
        };
        Ok(PassTool {
            classes: keyring(ready.needs_classes(), &work.classes).await?,
            groups: keyring(ready.needs_groups(), &work.groups).await?,
            ready: Arc::new(ready),
            vectors: Vectors::default(),
            column: (work.vectors.0.clone(), work.vectors.1 as usize),
        })
    }

    pub(crate) fn start(&self, shard: u64) -> Result<Started> {
        Ok(self.ready.start(shard)?)
    }

    pub(crate) fn update(
        &mut self,
        started: &mut Started,
        batch: &RecordBatch,
        first: u64,
    ) -> Result<()> {
        for keyring in [&mut self.classes, &mut self.groups].into_iter().flatten() {
            let array = column(batch, &keyring.column)?;
            keyring.names.keys(array, first, &mut keyring.keys)?;
        }
        let (name, dim) = &self.column;
        let rows = (self.vectors).rows(column(batch, name)?, *dim, first)?;
        let classes = self.classes.as_ref().map(|ring| ring.keys.as_slice());
        let groups = self.groups.as_ref().map(|ring| ring.keys.as_slice());
        // As many rows at once as a scan of the library shows.
        for start in (0..rows.len()).step_by(SCAN_ROWS) {
            let end = rows.len().min(start + SCAN_ROWS);
            started.update(&Incoming {
                first: first + start as u64,
                rows: rows.slice(start, end),
                classes: classes.map(|keys| &keys[start..end]),
                groups: groups.map(|keys| &keys[start..end]),
            })?;
        }
        Ok(())
    }
}
