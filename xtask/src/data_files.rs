//! Vector files are small and stand where tests and examples keep theirs.
//!
//! The data sets that the slow tests read have licences of their own, so nothing made from them
//! may be committed; and a repository never forgets a large file.

use crate::Finding;

const ENDINGS: &[&str] = &[".parquet", ".npy"];

const LARGEST_BYTES: usize = 300_000;

/// Checks the place and the size of one file.
pub(crate) fn check(path: &str, bytes: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !ENDINGS.iter().any(|ending| path.ends_with(ending)) {
        return findings;
    }
    if !is_data_folder(path) {
        let message = "a vector file stands among the sources; expected it in data or tests/data \
                       of a crate or in tests/golden, and only if it may be given away";
        findings.push(Finding::new(path, 1, message));
    }
    if bytes > LARGEST_BYTES {
        let message =
            format!("the vector file has {bytes} bytes; expected at most {LARGEST_BYTES}");
        findings.push(Finding::new(path, 1, message));
    }
    findings
}

fn is_data_folder(path: &str) -> bool {
    matches!(
        path.split('/').collect::<Vec<_>>()[..],
        ["crates", _, "data", _, ..]
            | ["crates", _, "tests", "data", _, ..]
            | ["tests", "golden", _, ..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_files_in_other_places_are_found() {
        assert_eq!(check("mnist.parquet", 10).len(), 1);
        assert_eq!(check("crates/metra/src/a.npy", 10).len(), 1);
        assert_eq!(check("docs/examples/data/a.npy", 10).len(), 1);
    }

    #[test]
    fn large_vector_files_are_found() {
        assert_eq!(check("crates/metra-cli/data/a.parquet", 300_001).len(), 1);
    }

    #[test]
    fn small_vector_files_in_their_place_pass() {
        assert!(check("crates/metra-cli/data/a.parquet", 300_000).is_empty());
        assert!(check("crates/metra-files/tests/data/old/a.npy", 10).is_empty());
        assert!(check("crates/metra/src/lib.rs", 400_000).is_empty());
    }
}
