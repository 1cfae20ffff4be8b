//! Where tables lie: the object stores that every machine knows.

use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use std::sync::Arc;

/// The stores by the beginning of their addresses.
pub fn registry() -> Arc<dyn ObjectStoreRegistry> {
    Arc::new(DefaultObjectStoreRegistry::new())
}
