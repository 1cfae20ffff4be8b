//! The registry of all passes that other machines can run: every [`Statistic`] of the library by
//! its name.
//!
//! A machine that reads rows is given names and bytes. Here they become running statistics again,
//! with the preparation that rows go through first.

use crate::data::{KeyedBy, PartialResult, Task};
use crate::evaluate::{IrrelevantCounts, RelevantScores};
use crate::execute::{
    ChosenRows, ColumnSums, Digest, KeyedSums, OuterSums, Sample, SmallestDigests, Statistic,
    WithinSums, decode,
};
use crate::linalg::{RowBuf, Rows};
use crate::methods::slr::distributed::{ClippedSums, EmbeddedRows};
use crate::model::{Model, Step};
use crate::pipeline::distributed::{LocalSteps, PairScale};
use crate::search::NearestRows;
use crate::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A pass that other machines know by name.
pub struct Pass {
    name: &'static str,
    ready: fn(&[u8]) -> Result<Box<dyn Starting>>,
}

/// All passes. A machine that lacks one of them cannot take part.
pub const ALL: &[Pass] = &[
    pass::<OuterSums>(),
    pass::<ColumnSums>(),
    pass::<KeyedSums>(),
    pass::<WithinSums>(),
    pass::<ChosenRows>(),
    pass::<Digest>(),
    pass::<SmallestDigests>(),
    pass::<PairScale>(),
    pass::<LocalSteps>(),
    pass::<NearestRows>(),
    pass::<RelevantScores>(),
    pass::<EmbeddedRows>(),
    pass::<ClippedSums>(),
    pass::<IrrelevantCounts>(),
];

const fn pass<S: Statistic + 'static>() -> Pass {
    Pass {
        name: S::NAME,
        ready: |spec| Ok(Box::new(Settings::<S>(decode(spec)?))),
    }
}

impl Pass {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// Rows as they were read, with what belongs to each.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// Number of the first row; the others follow it.
    pub first: u64,
    /// The vectors.
    pub rows: Rows<'a>,
    /// The class of each row, where [`Ready::needs_classes`].
    pub classes: Option<&'a [u32]>,
    /// The group of each row, where [`Ready::needs_groups`].
    pub groups: Option<&'a [u32]>,
}

/// A task whose settings have been read, ready to start on any number of shards.
pub struct Ready {
    statistic: Box<dyn Starting>,
    keys: KeyedBy,
    prepare: Vec<Model>,
}

impl Ready {
    /// Read a task by its name and bytes.
    pub fn new(name: &str, spec: &[u8], keys: KeyedBy, prepare: &[Vec<u8>]) -> Result<Self> {
        let known = ALL.iter().find(|pass| pass.name == name);
        let pass = known.ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(Pass::name).collect();
            Error::parameter("pass", format!("one of {}", names.join(", ")), name)
        })?;
        Ok(Ready {
            statistic: (pass.ready)(spec)?,
            keys,
            prepare: (prepare.iter())
                .map(|model| Model::from_bytes(model))
                .collect::<Result<_>>()?,
        })
    }

    /// Read a task of this process.
    pub fn task(task: &Task) -> Result<Self> {
        Self::new(task.name, &task.spec, task.keys, &task.prepare)
    }

    /// Whether rows must come with their class.
    pub fn needs_classes(&self) -> bool {
        self.keys == KeyedBy::Class
    }

    /// Whether rows must come with their group.
    pub fn needs_groups(&self) -> bool {
        let steps = self.prepare.iter().flat_map(|model| model.chain.steps());
        let mut steps = steps.filter(|step| matches!(step, Step::CentreGroups { .. }));
        self.keys == KeyedBy::Group || steps.next().is_some()
    }

    /// Begin a shard.
    pub fn start(self: &Arc<Self>, shard: u64) -> Result<Started> {
        Ok(Started {
            ready: self.clone(),
            running: self.statistic.start(shard)?,
            buffer: RowBuf::empty(1),
        })
    }
}

/// A task on its way through one shard.
pub struct Started {
    ready: Arc<Ready>,
    running: Box<dyn Running>,
    buffer: RowBuf,
}

impl Started {
    /// See some rows of the shard, in order.
    pub fn update(&mut self, incoming: &Incoming<'_>) -> Result<()> {
        let keys = match self.ready.keys {
            KeyedBy::Nothing => None,
            KeyedBy::Class => incoming.classes,
            KeyedBy::Group => incoming.groups,
        };
        if self.ready.keys != KeyedBy::Nothing
            && keys.map(<[u32]>::len) != Some(incoming.rows.len())
        {
            let found = keys.map_or(0, <[u32]>::len);
            return Err(Error::shape("keys of the rows", incoming.rows.len(), found));
        }
        let first = incoming.first;
        let rows = if self.ready.prepare.is_empty() {
            incoming.rows
        } else {
            self.buffer.clear(incoming.rows.dim());
            self.buffer.extend(incoming.rows);
            let steps = self.ready.prepare.iter();
            for step in steps.flat_map(|model| model.chain.steps()) {
                step.apply(first, incoming.groups, &mut self.buffer)?;
            }
            self.buffer.rows()
        };
        self.running.update(&Sample { first, rows, keys })
    }

    /// Whether rows that follow would change nothing, in this shard and in later ones.
    pub fn is_done(&self) -> bool {
        self.running.is_done()
    }

    /// What the shard has to say.
    pub fn close(self) -> Result<Vec<PartialResult>> {
        self.running.close()
    }
}

/// Do a part of a pass. Settings come from another machine and say what rows they are for; where they do not
/// fit these rows, that is an error of the job and not the end of the program.
fn guarded<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let problem = format!("the settings of the pass {name} do not fit the rows of the table");
        Err(Error::Data(problem))
    })
}

trait Starting: Send + Sync {
    fn start(&self, shard: u64) -> Result<Box<dyn Running>>;
}

struct Settings<S: Statistic>(S::Spec);

impl<S: Statistic + 'static> Starting for Settings<S> {
    fn start(&self, shard: u64) -> Result<Box<dyn Running>> {
        let started = guarded(S::NAME, || S::start(&self.0, shard))?;
        Ok(Box::new(Once(started)))
    }
}

trait Running: Send {
    fn update(&mut self, sample: &Sample<'_>) -> Result<()>;
    fn is_done(&self) -> bool;
    fn close(self: Box<Self>) -> Result<Vec<PartialResult>>;
}

struct Once<S>(S);

impl<S: Statistic> Running for Once<S> {
    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        guarded(S::NAME, || self.0.update(sample))
    }

    fn is_done(&self) -> bool {
        self.0.is_done()
    }

    fn close(self: Box<Self>) -> Result<Vec<PartialResult>> {
        guarded(S::NAME, || self.0.close())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::encode;

    #[test]
    fn settings_that_do_not_fit_the_rows_are_an_error_of_the_job() {
        // A point of two numbers, and rows of three.
        let spec = encode(&vec![0.5, 0.5]).unwrap();
        let ready = Ready::new(ColumnSums::NAME, &spec, KeyedBy::Nothing, &[]).unwrap();
        let mut started = Arc::new(ready).start(0).unwrap();
        let incoming = Incoming {
            first: 0,
            rows: Rows::new(&[1.0, 2.0, 3.0], 3).unwrap(),
            classes: None,
            groups: None,
        };
        let error = started.update(&incoming).unwrap_err().to_string();
        assert!(error.contains("spread do not fit the rows"), "{error}");
    }
}
