//! A pass of the library over the rows of a shard: by name, with settings by value or by address.

use crate::columns::{Names, Vectors, column};
use crate::payload::Payload;
use crate::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use metra::internal::decode;
use metra::internal::{Incoming, Ready, Started};
use metra::internal::{KeyedBy, scan_rows};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A pass as a plan encodes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PassWork {
    /// Name of the pass.
    pub(crate) name: String,
    /// Its settings.
    pub(crate) spec: Payload,
    /// What rows are keyed by.
    pub(crate) keys: KeySource,
    /// Models whose preparation comes first.
    pub(crate) prepare: Vec<Payload>,
    /// Column of the vectors, and their length.
    pub(crate) vectors: (String, u64),
    /// Column of the classes, with their names.
    pub(crate) classes: Option<(String, Payload)>,
    /// Column of the groups, with their names.
    pub(crate) groups: Option<(String, Payload)>,
}

/// [`KeyedBy`] as a plan encodes it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum KeySource {
    /// There are no keys.
    Nothing,
    /// By class.
    Class,
    /// By group.
    Group,
}

impl From<KeyedBy> for KeySource {
    fn from(by: KeyedBy) -> Self {
        match by {
            KeyedBy::Nothing => KeySource::Nothing,
            KeyedBy::Class => KeySource::Class,
            KeyedBy::Group => KeySource::Group,
        }
    }
}

impl From<KeySource> for KeyedBy {
    fn from(by: KeySource) -> Self {
        match by {
            KeySource::Nothing => KeyedBy::Nothing,
            KeySource::Class => KeyedBy::Class,
            KeySource::Group => KeyedBy::Group,
        }
    }
}

/// A pass with its settings read, and buffers.
pub(crate) struct PassTool {
    ready: Arc<Ready>,
    vectors: Vectors,
    column: (String, usize),
    classes: Option<KeyColumn>,
    groups: Option<KeyColumn>,
}

/// Turns a column into keys.
struct KeyColumn {
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
        let key_column = async |wanted: bool, of: &Option<(String, Payload)>| match of {
            Some((column, names)) if wanted => {
                let names: Vec<String> = decode(&names.unpack(runtime).await?)?;
                Ok::<_, Error>(Some(KeyColumn {
                    names: Names::new(column, &names),
                    column: column.clone(),
                    keys: Vec::new(),
                }))
            }
            _ => Ok(None),
        };
        Ok(PassTool {
            classes: key_column(ready.needs_classes(), &work.classes).await?,
            groups: key_column(ready.needs_groups(), &work.groups).await?,
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
        for key_column in [&mut self.classes, &mut self.groups].into_iter().flatten() {
            let array = column(batch, &key_column.column)?;
            key_column.names.keys(array, first, &mut key_column.keys)?;
        }
        let (name, dim) = &self.column;
        let rows = (self.vectors).rows(column(batch, name)?, *dim, first)?;
        let classes = self.classes.as_ref().map(|ring| ring.keys.as_slice());
        let groups = self.groups.as_ref().map(|ring| ring.keys.as_slice());
        // As many rows at once as a scan of the library shows.
        let block = scan_rows(*dim);
        for start in (0..rows.len()).step_by(block) {
            let end = rows.len().min(start + block);
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
