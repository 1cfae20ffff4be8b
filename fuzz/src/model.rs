//! Model files: read, used on both sides, planned for stores, exported, written again.

use crate::{Outcome, Reading};
use metra::data::Batch;
use metra::linalg::{RowBuf, Rows};
use metra::model::{Embedding, Model, Plan, Side};
use metra_stores::export::{Export, write_header, write_onnx, write_safetensors};

/// Input dimensions up to which a model is used: a file of some kilobytes may well ask for a row of
/// megabytes, and that is its good right.
const MOST_COLUMNS: usize = 4096;

pub(crate) fn model(bytes: &[u8]) -> Outcome {
    let model = Model::from_bytes(bytes).ok()?;
    use_it(&model)
}

/// As [`model`], after the digest was made to fit: what somebody would do who forges a file.
pub(crate) fn repaired(bytes: &[u8]) -> Outcome {
    let model = match Model::from_bytes(bytes) {
        Ok(model) => model,
        Err(error) => Model::from_bytes(&with_digest(bytes, &error.to_string())?).ok()?,
    };
    use_it(&model)
}

/// The bytes with the digest that the error says they have, in place of the one that they claim.
fn with_digest(bytes: &[u8], error: &str) -> Option<Vec<u8>> {
    let (_, rest) = error.split_once("the digest is ")?;
    let (found, rest) = rest.split_once(", but the file says \"")?;
    let claimed = rest.strip_suffix('"')?;
    if claimed.len() != found.len() {
        return None;
    }
    let at = (bytes.windows(claimed.len())).position(|part| part == claimed.as_bytes())?;
    let mut fixed = bytes.to_vec();
    fixed[at..at + found.len()].copy_from_slice(found.as_bytes());
    Some(fixed)
}

fn use_it(model: &Model) -> Outcome {
    let mut reading = Reading::default();
    reading.text(&model.origin.method);
    let dims = [Side::Item, Side::Query].map(|side| model.chain.dim_of(side));
    if dims.iter().all(|dim| *dim <= MOST_COLUMNS) {
        let values =
            dims.map(|dim| -> Vec<f32> { (0..2 * dim).map(|at| (at % 7) as f32 * 0.25).collect() });
        let groups = model.chain.group_names().map(|_| [0, 0]);
        let batch = |side: usize| Batch {
            rows: Rows::new(&values[side], dims[side]).expect("two rows"),
            groups: groups.as_ref().map(|groups| &groups[..]),
        };
        let (items, queries) = (batch(0), batch(1));
        let mut mapped = RowBuf::empty(1);
        for side in [Side::Item, Side::Query] {
            let done = match side {
                Side::Item => model.chain.embed_items(0, &items, &mut mapped),
                Side::Query => model.chain.embed_queries(0, &queries, &mut mapped),
            };
            match done {
                Ok(()) => reading.numbers(mapped.rows().values()),
                Err(error) => reading.text(&error.to_string()),
            }
        }
        let _ = model.chain.dissimilarity(&queries, &items, &mut Vec::new());
        for plan in Plan::all_for_model(model).unwrap_or_default() {
            let _ = plan.map_items(0, &items, &mut mapped);
            let _ = plan.describe();
        }
    }
    if let Ok(export) = Export::embedding(model, Side::Item) {
        let _ = write_onnx(&mut Vec::new(), &export);
        let _ = write_safetensors(&mut Vec::new(), &export);
        let _ = write_header(&mut Vec::new(), &export, "model");
    }
    let again = model
        .to_bytes()
        .expect("a model that was read can be written");
    let read = Model::from_bytes(&again).expect("a model that was written can be read");
    assert_eq!(again, read.to_bytes().expect("the same model"));
    reading.done()
}
