//! `metra serve` as a real process.

mod answers;
mod life;
mod misuse;
mod quality;
mod server;

use crate::folder::Folder;
use crate::{SET, rows};
use metra::linalg::RowBuf;
use metra_files::Column;
use serde_json::Value;
use server::{Answer, Server};

/// A model, items with ids and labels, an index of them, and queries.
pub(super) fn prepared(folder: &Folder) -> RowBuf {
    let (items, classes) = rows(SET, 300);
    let id = |row: usize| format!("item-{row}");
    let columns = [
        (
            "label",
            Column::from_texts(classes.iter().map(|class| format!("class-{class}"))),
        ),
        ("id", Column::from_texts((0..300).map(id))),
    ];
    folder.write_parquet("items.parquet", &items, &columns);
    folder.good(
        "train items.parquet --label label --method lda --rank 6 -o m.safetensors",
        &[],
    );
    folder.good(
        "index m.safetensors items.parquet --id id --label label -o idx",
        &[],
    );
    let all = rows(SET, 320).0;
    let queries = all.rows().slice(300, 320).values().to_vec();
    let queries = RowBuf::from_values(queries, SET.dim()).unwrap();
    let names = [(
        "id",
        Column::from_texts((0..20).map(|row| format!("q-{row}"))),
    )];
    folder.write_parquet("queries.parquet", &queries, &names);
    queries
}

/// Rows as JSON.
pub(super) fn vectors(rows: &RowBuf) -> serde_json::Value {
    rows.rows()
        .iter()
        .map(<[f32]>::to_vec)
        .collect::<Vec<_>>()
        .into()
}

/// The message of a server that does not start. Without a terminal the log is JSON, and so are errors.
pub(super) fn refusal_of(folder: &Folder, line: &str) -> String {
    let output = folder.run(line, &[]);
    let error = crate::folder::text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}\n{error}");
    let entry = error.lines().find(|line| line.contains("\"ERROR\""));
    let entry: Value =
        serde_json::from_str(entry.unwrap_or_else(|| panic!("{line}: {error}"))).unwrap();
    entry["message"].as_str().unwrap().to_owned()
}
