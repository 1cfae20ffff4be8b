//! What every feature is: a fixed number of f32 for any picture.

use crate::Picture;

/// A feature of whole pictures.
pub trait Describe: Send + Sync {
    /// How many numbers it gives.
    fn dimension(&self) -> usize;

    /// The numbers of one picture: finite, the same on any thread.
    fn describe(&self, picture: &Picture) -> Vec<f32>;
}

/// Several features, one after the other.
pub struct JoinedFeatures(pub Vec<Box<dyn Describe>>);

impl Describe for JoinedFeatures {
    fn dimension(&self) -> usize {
        self.0.iter().map(|part| part.dimension()).sum()
    }

    fn describe(&self, picture: &Picture) -> Vec<f32> {
        let parts = self.0.iter().map(|part| part.describe(picture));
        parts.collect::<Vec<_>>().concat()
    }
}
