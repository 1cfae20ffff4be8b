//! Who carries plans out: DataFusion on the threads of this process, or a cluster of Ballista's.
//!
//! Both are given the same plan of the same operators over the same shards, so both give the same
//! bytes. The face of this crate is synchronous; what waits for others waits here.

use crate::cluster::{Cluster, JobProgress};
use crate::error::from_engine;
use crate::operators::{
    EmbedWork, PassWork, ShardFile, Stage, StageExec, Work, blocks, part_name, shard_and_first,
};
use crate::output_folder::OutputFolder;
use crate::payload::Payload;
use crate::stores::{self, Place};
use crate::table::{Cut, ShardedTable};
use crate::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, collect};
use datafusion::prelude::SessionConfig;
use futures::TryStreamExt;
use metra::internal::Ready;
use metra::internal::{PartialResult, Task};
use metra::internal::{decode, encode};
use metra::model::Model;
use object_store::path::Path as StorePath;
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Numbers in a batch of vectors: about 4 MB.
const BATCH_NUMBERS: usize = 1 << 20;
/// Tasks that merge, where there is more than one.
const MERGING: usize = 4;

/// Carries passes over tables out.
pub struct Engine {
    tokio: tokio::runtime::Runtime,
    environment: Arc<RuntimeEnv>,
    backend: Backend,
    scratch: Option<Place>,
    stop: Option<Arc<AtomicBool>>,
    watch: Option<Box<dyn Fn(PassProgress) + Send + Sync>>,
}

enum Backend {
    /// On so many threads of this process.
    Here(usize),
    Cluster(Box<Cluster>),
}

/// How far a pass is.
#[derive(Debug, Clone, PartialEq)]
pub struct PassProgress {
    /// What is being done.
    pub doing: String,
    /// Tasks that are done.
    pub done: u64,
    /// All tasks, as far as they are known.
    pub tasks: u64,
}

/// The columns of a table that passes read.
#[derive(Debug, Clone)]
pub struct TableColumns {
    /// The vectors, and their length.
    pub vectors: (String, usize),
    /// The classes with their names, in the order of their numbers.
    pub classes: Option<(String, Vec<String>)>,
    /// The groups with their names, in the order of their numbers.
    pub groups: Option<(String, Vec<String>)>,
}

/// What to embed and where to.
pub struct Embed<'a> {
    /// The model.
    pub model: &'a Model,
    /// Column of the vectors, and their length.
    pub vectors: (String, usize),
    /// Column of the groups, where the model wants one.
    pub groups: Option<&'a str>,
    /// TableColumns that are written along.
    pub kept: Vec<String>,
    /// Whether rows are queries.
    pub as_queries: bool,
    /// Whether numbers are written as f16.
    pub half: bool,
    /// Address of the folder.
    pub folder: &'a str,
    /// Whether files that lie there are replaced.
    pub replace: bool,
}

impl Engine {
    /// DataFusion in this process, on so many threads.
    pub fn here(threads: usize) -> Result<Engine> {
        Self::at(Backend::Here(threads.max(1)))
    }

    /// A cluster, by the address of its scheduler (`df://host:port`).
    pub fn cluster(address: &str) -> Result<Engine> {
        Self::at(Backend::Cluster(Box::new(Cluster::connect(address)?)))
    }

    fn at(backend: Backend) -> Result<Engine> {
        let threads = match backend {
            Backend::Here(threads) => threads,
            Backend::Cluster(_) => 1,
        };
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build();
        Ok(Engine {
            tokio: tokio.map_err(|e| Error::engine("starting the engine", e))?,
            environment: stores::runtime()?,
            backend,
            scratch: None,
            stop: None,
            watch: None,
        })
    }

    /// The same, telling how far passes are.
    pub fn with_watch(mut self, watch: impl Fn(PassProgress) + Send + Sync + 'static) -> Engine {
        self.watch = Some(Box::new(watch));
        self
    }

    /// The same with a folder for settings that are too large for a plan.
    pub fn with_scratch(mut self, address: &str) -> Result<Engine> {
        self.scratch = Some(Place::parse(&stores::folder(address))?);
        Ok(self)
    }

    /// The same, ending with [`metra::Error::Interrupted`] once `stop` is set.
    pub fn with_stop(mut self, stop: Arc<AtomicBool>) -> Engine {
        self.stop = Some(stop);
        self
    }

    /// The layout of a table, cut into shards.
    pub fn open(&self, address: &str, cut: Cut) -> Result<ShardedTable> {
        self.wait(ShardedTable::open(address, cut, &self.environment))
    }

    /// The rows of a table whose column has this value. Row groups that cannot have one are not
    /// read; the rows of the others are counted once, so that they have numbers of their own.
    pub fn filter(&self, table: &ShardedTable, column: &str, value: &str) -> Result<ShardedTable> {
        let filtered = table.filtered(column, value)?;
        let mut rows: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let all: Vec<usize> = (0..table.shards()).collect();
        self.read(&filtered, &[column], &all, &mut |batch| {
            *rows.entry(shard_and_first(batch)?).or_default() += batch.num_rows() as u64;
            Ok(ControlFlow::Continue(()))
        })?;
        let rows_of = |shard, first| rows.get(&(shard, first)).copied().unwrap_or(0);
        Ok(filtered.numbered(rows_of))
    }

    /// Run a pass over all rows of a table that it is about, and merge what its shards say.
    pub fn run(
        &self,
        table: &ShardedTable,
        columns: &TableColumns,
        task: &Task,
    ) -> Result<Vec<PartialResult>> {
        let shards = match &task.rows {
            None => (0..table.shards()).collect(),
            Some(rows) => table.shards_with(rows),
        };
        // TableColumns that the pass does not ask for are not read.
        let ready = Ready::task(task)?;
        let columns = TableColumns {
            vectors: columns.vectors.clone(),
            classes: (columns.classes.clone()).filter(|_| ready.needs_classes()),
            groups: (columns.groups.clone()).filter(|_| ready.needs_groups()),
        };
        let work = Work::Pass(self.wait(self.work(&columns, task))?);
        let mut read = vec![columns.vectors.0.as_str()];
        let keyed = [&columns.classes, &columns.groups].into_iter().flatten();
        read.extend(keyed.map(|(column, _)| column.as_str()));
        let doing = format!("the pass \"{}\" over {}", task.name, table.address());
        self.fold(table, &read, columns.vectors.1, &shards, work, &doing)
    }

    /// Embed all rows of a table and write them to a folder, one file per shard. TableColumns `kept` are
    /// written along. Gives the rows and bytes written.
    pub fn embed(&self, table: &ShardedTable, embed: &Embed<'_>) -> Result<(u64, u64)> {
        let bytes = embed.model.to_bytes()?;
        let model = self.pack(bytes);
        let folder = stores::folder(embed.folder);
        let place = Place::parse(&folder)?;
        let output = self.begin_folder(place, table, embed.replace)?;
        let (name, dim) = &embed.vectors;
        let work = Work::Embed(EmbedWork {
            model: self.wait(model)?,
            vectors: (name.clone(), *dim as u64),
            groups: embed.groups.map(str::to_owned),
            kept: embed.kept.clone(),
            as_queries: embed.as_queries,
            half: embed.half,
            folder: Place::parse(&folder)?.address(),
        });
        let mut read = vec![name.as_str()];
        read.extend(embed.kept.iter().map(String::as_str));
        read.extend(embed.groups);
        let shards: Vec<usize> = (0..table.shards()).collect();
        let doing = format!("embedding {}", table.address());
        let parts = self.fold(table, &read, *dim, &shards, work, &doing)?;
        let written = written(parts)?;
        let rows: u64 = written.iter().map(|(_, written)| written.rows).sum();
        let size = written.iter().map(|(_, written)| written.bytes).sum();
        if rows != table.len() {
            let what = format!("rows written to {folder}");
            return Err(metra::Error::shape(what, table.len(), rows).into());
        }
        let named = |(shard, file)| (part_name(shard), file);
        self.wait(output.finish(written.into_iter().map(named).collect()))?;
        Ok((rows, size))
    }

    /// Begin to write the rows of a table to a folder.
    pub(crate) fn begin_folder(
        &self,
        place: Place,
        table: &ShardedTable,
        replace: bool,
    ) -> Result<OutputFolder<'_>> {
        let reads = |file: &StorePath| table.reads(file);
        self.wait(OutputFolder::begin(
            place,
            reads,
            replace,
            &self.environment,
        ))
    }

    /// Carry out a plan that writes files, and tell what each shard wrote.
    pub(crate) fn written(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        doing: &str,
    ) -> Result<Vec<(u64, ShardFile)>> {
        written(blocks::whole(&self.execute(plan, doing)?)?)
    }

    /// Bytes as a payload of a plan. A plan that stays in this process holds them itself.
    pub(crate) async fn pack(&self, bytes: Vec<u8>) -> Result<Payload> {
        match self.backend {
            Backend::Here(_) => Ok(Payload::Inline(bytes)),
            Backend::Cluster(_) => {
                Payload::pack(bytes, self.scratch.as_ref(), &self.environment).await
            }
        }
    }

    /// Do some work on the rows of shards and merge what they say.
    fn fold(
        &self,
        table: &ShardedTable,
        columns: &[&str],
        dim: usize,
        shards: &[usize],
        work: Work,
        doing: &str,
    ) -> Result<Vec<PartialResult>> {
        let failed = |e| Error::engine(format!("planning {doing}"), e);
        let mut read: Vec<&str> = Vec::new();
        for column in columns {
            if !read.contains(column) {
                read.push(column);
            }
        }
        let rows = BATCH_NUMBERS / dim.max(1);
        let rows = rows.next_power_of_two().clamp(1024, 8192);
        let scan = table.scan(&read, shards, self.partitions(shards.len()), Some(rows))?;
        let folded = Arc::new(StageExec::new(scan, Arc::new(Stage::Fold(work))));
        let schema = folded.schema();
        let by_block = vec![
            col("part", &schema).map_err(failed)?,
            col("block", &schema).map_err(failed)?,
        ];
        let exchange = RepartitionExec::try_new(folded, Partitioning::Hash(by_block, MERGING));
        let exchange = Arc::new(exchange.map_err(failed)?);
        let merged = StageExec::new(exchange, Arc::new(Stage::Merge));
        blocks::whole(&self.execute(Arc::new(merged), doing)?)
    }

    async fn work(&self, columns: &TableColumns, task: &Task) -> Result<PassWork> {
        let pack = |bytes| self.pack(bytes);
        let mut prepare = Vec::new();
        for model in &task.prepare {
            prepare.push(pack(model.clone()).await?);
        }
        let names = async |of: &Option<(String, Vec<String>)>| match of {
            None => Ok::<_, Error>(None),
            Some((column, names)) => Ok(Some((column.clone(), pack(encode(names)?).await?))),
        };
        Ok(PassWork {
            name: task.name.to_owned(),
            spec: pack(task.spec.clone()).await?,
            keys: task.keys.into(),
            prepare,
            vectors: (columns.vectors.0.clone(), columns.vectors.1 as u64),
            classes: names(&columns.classes).await?,
            groups: names(&columns.groups).await?,
        })
    }

    /// Tasks of a scan over so many shards: on a cluster one each, so that a lost one costs a shard.
    pub(crate) fn partitions(&self, shards: usize) -> usize {
        match self.backend {
            Backend::Here(threads) => threads.min(shards).max(1),
            Backend::Cluster(_) => shards,
        }
    }

    /// Carry out a plan and collect what comes of it.
    fn execute(&self, plan: Arc<dyn ExecutionPlan>, doing: &str) -> Result<Vec<RecordBatch>> {
        match &self.backend {
            Backend::Here(_) => self.wait(async {
                let found = collect(plan, self.context()).await;
                found.map_err(|e| from_engine(doing, e))
            }),
            Backend::Cluster(cluster) => {
                let watch = |progress: JobProgress| {
                    if let Some(watch) = &self.watch {
                        watch(PassProgress {
                            doing: doing.to_owned(),
                            done: progress.tasks_done,
                            tasks: progress.tasks,
                        });
                    }
                };
                cluster.run(plan, doing, &watch, self.stop.as_deref())
            }
        }
    }

    fn context(&self) -> Arc<TaskContext> {
        let mut config = SessionConfig::new();
        config
            .options_mut()
            .execution
            .enable_file_stream_work_stealing = false;
        let context = TaskContext::default().with_session_config(config);
        Arc::new(context.with_runtime(self.environment.clone()))
    }

    /// Show batches of some columns to this process, in the order of the table, until it has seen
    /// enough.
    pub fn read(
        &self,
        table: &ShardedTable,
        columns: &[&str],
        shards: &[usize],
        visit: &mut dyn FnMut(&RecordBatch) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let plan = table.scan(columns, shards, 1, None)?;
        let doing = format!("reading {}", table.address());
        let failed = |e| from_engine(&doing, e);
        self.wait(async {
            let mut batches = plan.execute(0, self.context()).map_err(failed)?;
            while let Some(batch) = batches.try_next().await.map_err(failed)? {
                if visit(&batch)?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Wait for something, unless somebody asks to stop.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        let stop = self.stop.clone();
        self.tokio.block_on(async {
            tokio::pin!(future);
            loop {
                let pause = tokio::time::sleep(Duration::from_millis(50));
                tokio::select! {
                    found = &mut future => return found,
                    () = pause => {}
                }
                if stop
                    .as_ref()
                    .is_some_and(|stop| stop.load(Ordering::Relaxed))
                {
                    return Err(Error::Library(metra::Error::Interrupted));
                }
            }
        })
    }
}

/// What shards say that they have written.
fn written(parts: Vec<PartialResult>) -> Result<Vec<(u64, ShardFile)>> {
    let mut written = Vec::new();
    for part in parts {
        for (shard, _, words) in part.into_bytes()? {
            written.push((shard, decode(&words)?));
        }
    }
    Ok(written)
}
