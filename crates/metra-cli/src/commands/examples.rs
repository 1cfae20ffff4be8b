//! `metra examples`: the small data sets that the documents use, which are part of the program, so that every
//! documented command works whichever way it was installed.

use crate::args::Common;
use crate::print;
use anyhow::{Context, Result, ensure};
use clap::Args;
use metra::internal::AtomicFile;
use serde::Serialize;
use std::fs;
use std::path::PathBuf;

/// Write the small data sets that the documentation uses.
///
/// 1,797 handwritten digits with labels, pairs, triplets, quadruplets, orderings and a taxonomy of them, and a
/// simulated click log; a README says where they come from. Files that are there already and differ are kept,
/// unless --force is given.
#[derive(Args)]
pub(crate) struct Examples {
    /// The folder; it is made if it is not there
    #[arg(default_value = "examples/data")]
    folder: PathBuf,
}

/// Names and contents of files in the crate's folder `data`.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../../data/", $name)).as_slice())),*]
    };
}

const FILES: [(&str, &[u8]); 9] = files![
    "README.md",
    "clicks.csv",
    "digits.orderings.txt",
    "digits.pairs.tsv",
    "digits.parquet",
    "digits.quadruplets.tsv",
    "digits.splits.json",
    "digits.taxonomy.tsv",
    "digits.triplets.tsv",
];

#[derive(Serialize)]
struct Written {
    folder: PathBuf,
    files: Vec<&'static str>,
}

impl Examples {
    pub(crate) fn run(self, common: &Common) -> Result<()> {
        let folder = self.folder;
        let mut missing = Vec::new();
        for (name, bytes) in FILES {
            let path = folder.join(name);
            match fs::read(&path) {
                Ok(found) if found == bytes => {}
                Ok(_) => {
                    let shown = path.display();
                    ensure!(
                        common.force,
                        "{shown}: a file with other contents is here; name another folder, or replace it with --force"
                    );
                    missing.push((path, bytes));
                }
                Err(_) => missing.push((path, bytes)),
            }
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        for (path, bytes) in missing {
            AtomicFile::write_all(&path, bytes)?;
        }
        let files = FILES.map(|(name, _)| name).to_vec();
        if common.json {
            return print::json(&Written { folder, files });
        }
        let first = folder.join("digits.parquet");
        print::fact(
            "examples",
            &format!("{} files in {}", files.len(), folder.display()),
        )?;
        print::fact(
            "try",
            &format!("metra train {} --label label", first.display()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_folder_is_in_the_program() {
        let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("data")).unwrap();
        let found: BTreeSet<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let known: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(known, found);
    }
}
