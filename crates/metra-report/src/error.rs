//! The error type of the crate.

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The page's template cannot be filled. Results of any content fill it, so this is a mistake
    /// of this crate.
    #[error("the report's page cannot be written: {0}")]
    Page(#[from] minijinja::Error),
}
