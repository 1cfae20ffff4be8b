//! Real data sets, where there are some: set METRA_DATA to their folder.

use crate::{options, read};
use metra_files::{read_qrels_by_name, read_splits};

#[test]
#[ignore = "needs the data sets of METRA_DATA"]
fn all_files_of_metra_data_are_read() {
    let Some(folder) = metra_testing::data() else {
        return;
    };
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".parquet") {
            let table = read(&path, &options(&["label"], &[])).unwrap();
            let labels = table.columns["label"].to_labels().unwrap();
            assert_eq!(labels.len() as u64, table.corpus.len());
            println!(
                "{name}: {} × {} {}, {} labels, {:?}",
                table.corpus.len(),
                table.corpus.dim(),
                table.element_type,
                labels.classes(),
                table.notes
            );
        } else if name.ends_with(".splits.json") {
            println!(
                "{name}: {} splits",
                read_splits(&path).unwrap().splits.len()
            );
        } else if name.ends_with("qrels.tsv") {
            println!(
                "{name}: {} queries",
                read_qrels_by_name(&path).unwrap().len()
            );
        }
    }
}
