//! How plans with our operators are written and read: ours behind a mark, all else by Ballista.

use super::{AssignExec, AssignWork, FoldExec, GatherExec, MergeExec, Work};
use crate::cluster::hello;
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use metra::execute::{decode, encode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How plans with our operators are written and read on every machine.
pub(crate) fn codec() -> Arc<dyn PhysicalExtensionCodec> {
    Arc::new(Codec::default())
}

/// Begins the bytes of an operator of ours. No message of Ballista's begins like this: the first
/// byte would be a field of a kind that does not exist.
const MARK: &[u8] = b"\x07metra";

#[derive(Debug, Default)]
struct Codec {
    others: BallistaPhysicalExtensionCodec,
}

/// Our operators without their inputs.
#[derive(Serialize, Deserialize)]
enum Node {
    Fold(Work),
    Merge,
    Assign(AssignWork),
    Gather(String),
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(hello) = hello::decode(buf, inputs) {
            return hello;
        }
        let Some(bytes) = buf.strip_prefix(MARK) else {
            return self.others.try_decode(buf, inputs, ctx, proto_converter);
        };
        let [input] = inputs else {
            return internal_err!("expected one input, but found {}", inputs.len());
        };
        let node = decode(bytes).map_err(|e| DataFusionError::External(Box::new(e)))?;
        Ok(match node {
            Node::Fold(work) => Arc::new(FoldExec::new(input.clone(), Arc::new(work))),
            Node::Merge => Arc::new(MergeExec::new(input.clone())),
            Node::Assign(work) => Arc::new(AssignExec::new(input.clone(), Arc::new(work))),
            Node::Gather(folder) => Arc::new(GatherExec::new(input.clone(), folder)),
        })
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if hello::encode(node.as_ref(), buf) {
            return Ok(());
        }
        let ours = if let Some(fold) = node.downcast_ref::<FoldExec>() {
            Node::Fold(fold.work().clone())
        } else if node.downcast_ref::<MergeExec>().is_some() {
            Node::Merge
        } else if let Some(assign) = node.downcast_ref::<AssignExec>() {
            Node::Assign(assign.work().clone())
        } else if let Some(gather) = node.downcast_ref::<GatherExec>() {
            Node::Gather(gather.folder().to_owned())
        } else {
            return self.others.try_encode(node, buf, proto_converter);
        };
        let bytes = encode(&ours).map_err(|e| DataFusionError::External(Box::new(e)))?;
        buf.extend_from_slice(MARK);
        buf.extend(bytes);
        Ok(())
    }
}
