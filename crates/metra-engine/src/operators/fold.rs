//! The operator that does some work on every shard of its input and says what came of it.
//!
//! A partition may hold several shards one after the other; each is folded alone
//! and leaves as blocks as soon as it ends.

use super::blocks::{of_shard, schema};
use super::embed::{EmbedTool, EmbedWork, Embedding};
use super::pass::{PassTool, PassWork};
use super::pause::{hold, pause};
use super::{Position, shard_and_first};
use crate::error::{from_engine, within};
use crate::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;
use metra::internal::Started;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// The work on the rows of every shard, as a plan encodes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Work {
    /// A pass of the library.
    Pass(PassWork),
    /// The rows embedded, written to one file per shard.
    Embed(EmbedWork),
}

impl Work {
    pub(super) fn name(&self) -> &str {
        match self {
            Work::Pass(pass) => &pass.name,
            Work::Embed(_) => "embedded rows",
        }
    }
}

/// Do the work on every shard of a partition.
pub(super) fn run(
    work: Work,
    input: SendableRecordBatchStream,
    runtime: Arc<RuntimeEnv>,
) -> SendableRecordBatchStream {
    let folding = FoldStream {
        input,
        work,
        runtime,
        tool: None,
        position: Position::default(),
        open: None,
        done: VecDeque::new(),
        is_over: false,
    };
    let blocks = futures::stream::try_unfold(folding, |mut folding| async move {
        let batch = folding.next().await.map_err(within)?;
        Ok::<_, DataFusionError>(batch.map(|batch| (batch, folding)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema(), blocks))
}

/// The state of one partition.
struct FoldStream {
    input: SendableRecordBatchStream,
    work: Work,
    runtime: Arc<RuntimeEnv>,
    tool: Option<Tool>,
    position: Position,
    open: Option<OpenShard>,
    done: VecDeque<RecordBatch>,
    is_over: bool,
}

/// The work with its settings read.
enum Tool {
    Pass(Box<PassTool>),
    Embed(Box<EmbedTool>),
}

/// The shard that is being read.
struct OpenShard {
    shard: u64,
    folded: ShardState,
}

/// The state of its work.
enum ShardState {
    Pass(Started),
    Embed(Box<Embedding>),
}

impl FoldStream {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.done.pop_front() {
                return Ok(Some(batch));
            }
            if self.is_over {
                return Ok(None);
            }
            if self.tool.is_none() {
                self.tool = Some(match &self.work {
                    Work::Pass(work) => {
                        Tool::Pass(Box::new(PassTool::new(work, &self.runtime).await?))
                    }
                    Work::Embed(work) => {
                        Tool::Embed(Box::new(EmbedTool::new(work, &self.runtime).await?))
                    }
                });
            }
            let next = self.input.try_next().await;
            match next.map_err(|e| from_engine("reading rows", e))? {
                Some(batch) => {
                    self.see(&batch).await?;
                    let open = self.open.as_ref().map(|open| &open.folded);
                    if matches!(open, Some(ShardState::Pass(started)) if started.is_done()) {
                        // Nothing that follows is asked for, so that it is not read.
                        self.is_over = true;
                        self.close().await?;
                    }
                }
                None => {
                    self.is_over = true;
                    self.close().await?;
                }
            }
        }
    }

    async fn see(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let (shard, _) = shard_and_first(batch)?;
        let row = self.position.row_of(batch)?;
        if self.open.as_ref().is_some_and(|open| open.shard != shard) {
            self.close().await?;
        }
        let Some(tool) = &mut self.tool else {
            return Err(Error::engine("folding a shard", "there are no settings"));
        };
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(OpenShard {
                shard,
                folded: match tool {
                    Tool::Pass(pass) => ShardState::Pass(pass.start(shard)?),
                    Tool::Embed(embed) => ShardState::Embed(Box::new(embed.start(shard)?)),
                },
            }),
        };
        match (tool, &mut open.folded) {
            (Tool::Pass(pass), ShardState::Pass(started)) => pass.update(started, batch, row),
            (Tool::Embed(embed), ShardState::Embed(embedding)) => {
                embed.update(embedding, batch, row)
            }
            _ => Err(Error::engine("folding a shard", "the work has changed")),
        }
    }

    async fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        pause("METRA_TEST_PAUSE_FOLD").await;
        hold(self.work.name()).await;
        let parts = match open.folded {
            ShardState::Pass(started) => started.close()?,
            ShardState::Embed(embedding) => embedding.close(&self.runtime).await?,
        };
        let blocks = of_shard(open.shard, parts);
        (self.done).extend(blocks.map_err(|e| Error::engine("writing a result", e))?);
        Ok(())
    }
}
