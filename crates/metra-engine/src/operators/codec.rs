//! How plans with our operators are written and read: ours behind a mark, all else by Ballista.

use super::StageExec;
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion_proto::physical_plan::{
    DefaultPhysicalProtoConverter, PhysicalExtensionCodec, PhysicalProtoConverterExtension,
};
use metra::internal::{decode, encode};
use std::sync::Arc;

/// How plans with our operators are written and read on every machine.
pub(crate) fn codec() -> Arc<dyn PhysicalExtensionCodec> {
    Arc::new(Codec::default())
}

/// Begins the bytes of an operator of this crate. No message of Ballista's begins like this: the first
/// byte would be a field of a kind that does not exist.
const MARK: &[u8] = b"\x07metra";

#[derive(Debug, Default)]
struct Codec {
    others: BallistaPhysicalExtensionCodec,
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(bytes) = buf.strip_prefix(MARK) else {
            return self.others.try_decode(buf, inputs, ctx, proto_converter);
        };
        let [input] = inputs else {
            return internal_err!("expected one input, but found {}", inputs.len());
        };
        let stage = decode(bytes).map_err(|e| DataFusionError::External(Box::new(e)))?;
        Ok(Arc::new(StageExec::new(input.clone(), Arc::new(stage))))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(ours) = node.downcast_ref::<StageExec>() else {
            return self.others.try_encode(node, buf, proto_converter);
        };
        let bytes = encode(ours.stage()).map_err(|e| DataFusionError::External(Box::new(e)))?;
        buf.extend_from_slice(MARK);
        buf.extend(bytes);
        Ok(())
    }
}

/// What an executor makes of the bytes of an operator, in words.
pub(crate) fn decode_stage(bytes: &[u8]) -> Result<String> {
    let input = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
    let (context, converter) = (TaskContext::default(), DefaultPhysicalProtoConverter {});
    let plan = codec().try_decode(bytes, &[input], &context, &converter)?;
    Ok(displayable(plan.as_ref()).one_line().to_string())
}
