//! Images, by what their bytes say they are.

use crate::{Outcome, Reading};
use metra_images::Limits;
use metra_images::decode::decode_bytes;
use std::path::Path;

pub(crate) fn image(bytes: &[u8]) -> Outcome {
    let limits = Limits {
        pixels: 1 << 20,
        bytes: 1 << 20,
    };
    let picture = decode_bytes(bytes, Path::new("input.png"), limits).ok()?;
    assert!(u64::from(picture.width()) * u64::from(picture.height()) <= limits.pixels);
    let mut reading = Reading::default();
    reading.0.update(picture.as_raw());
    reading.done()
}
