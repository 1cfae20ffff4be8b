//! Safetensors: `weight` and `bias`, the names that `torch.nn.Linear` loads its state from, and the folder of
//! sentence-transformers around them. The mapped vector is weight · x + bias.

use super::map::{Export, bias, write_error};
use crate::bytes::little_endian;
use crate::{Error, Result};
use metra::internal::{AtomicFile, AtomicFolder};
use safetensors::serialize;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

const FORMAT: &str = "a safetensors file";

/// Write the folded matrix and offset.
pub fn write_safetensors(out: impl Write, export: &Export) -> Result<()> {
    write_linear(out, export, "")
}

/// Write a folder that `sentence_transformers.models.Dense.load` reads.
pub(super) fn write_sentence_transformers(path: &Path, export: &Export) -> Result<()> {
    let folder = AtomicFolder::create(path)?;
    let mut tensors = AtomicFile::create(&folder.path().join("model.safetensors"))?;
    write_linear(&mut tensors, export, "linear.")?;
    tensors.finish()?;
    let config = json!({
        "in_features": export.input_dim(),
        "out_features": export.output_dim(),
        "bias": true,
        "activation_function": "torch.nn.modules.linear.Identity",
    });
    let text = format!("{config:#}\n");
    AtomicFile::write_all(&folder.path().join("config.json"), text.as_bytes())?;
    Ok(folder.finish()?)
}

/// The tensors, with this before their names.
fn write_linear(mut out: impl Write, export: &Export, prefix: &str) -> Result<()> {
    let map = export.matrix(FORMAT)?;
    let (rank, dim) = (map.output_dim(), map.input_dim());
    let weight = little_endian(map.weights().values());
    let bias = little_endian(&bias(&map));
    let view = |shape, bytes| TensorView::new(Dtype::F32, shape, bytes).map_err(broken);
    let tensors = [
        (format!("{prefix}weight"), view(vec![rank, dim], &weight)?),
        (format!("{prefix}bias"), view(vec![rank], &bias)?),
    ];
    // One key: the library keeps metadata without order, and files are the same bytes every time.
    let metadata = HashMap::from([("about".to_owned(), export.about())]);
    let bytes = serialize(tensors, Some(metadata)).map_err(broken)?;
    out.write_all(&bytes).map_err(broken)
}

fn broken(error: impl std::fmt::Display) -> Error {
    write_error(FORMAT, error)
}

#[cfg(test)]
mod tests {
    use super::super::map::tests::{model, two_of_three};
    use super::*;
    use metra::model::{Side, Space};
    use safetensors::SafeTensors;

    #[test]
    fn weight_and_bias_come_back() {
        let model = model(3, Vec::new(), two_of_three(), Space::SquaredL2);
        let export = Export::embedding(&model, Side::Query).unwrap();
        let mut bytes = Vec::new();
        write_safetensors(&mut bytes, &export).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let weight = file.tensor("weight").unwrap();
        assert_eq!(weight.shape(), [2, 3]);
        assert_eq!(
            weight.data(),
            little_endian(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        );
        // The map takes (−½, 1) away, so that ½ and −1 are added.
        assert_eq!(
            file.tensor("bias").unwrap().data(),
            little_endian(&[0.5, -1.0])
        );
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let about = &header.metadata().as_ref().unwrap()["about"];
        assert_eq!(
            about,
            "metra by-hand: query vectors of dimension 3 become 2, compared by euclid"
        );
    }
}
