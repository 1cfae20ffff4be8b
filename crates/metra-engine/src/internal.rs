//! What the fuzz targets use beside the public interface. Nothing here is promised to stay.

use crate::Result;
use crate::error::from_engine;
use crate::stores::Place;

/// What an executor makes of the bytes of an operator, in words.
pub fn decode_stage(bytes: &[u8]) -> Result<String> {
    crate::operators::decode_stage(bytes).map_err(|e| from_engine("reading an operator", e))
}

/// Where a table's address leads.
pub fn place(address: &str) -> Result<String> {
    Ok(Place::parse(address)?.address())
}
