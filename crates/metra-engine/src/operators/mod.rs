//! Operators of our own in an engine's plan, and how they travel.

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use std::sync::Arc;

/// How plans with our operators are written and read on every machine.
pub fn codec() -> Arc<dyn PhysicalExtensionCodec> {
    Arc::new(BallistaPhysicalExtensionCodec::default())
}
