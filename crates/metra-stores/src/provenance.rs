//! The provenance of stored vectors: the model, the plan and its centre.
//!
//! A stored vector makes sense only to the model and the plan that mapped it. The record says both in a
//! few hundred bytes of JSON, which every store has a place for; the model itself is a file of its own.
//! Field for field it is the record of the Python package (`python/metra/stores/_written.py`): what one
//! of them wrote, the other searches.

use crate::bytes::little_endian;
use crate::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metra::model::{Distance, Model, Plan, Strategy};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Raised when a field changes its meaning, so that an older metra refuses instead of guessing.
const VERSION: u32 = 1;

/// The provenance of stored vectors, as a store records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// What was taken from mapped vectors, as base64 of little-endian f32.
    pub centre: Option<String>,
    /// Dimension of a stored vector.
    pub dimension: usize,
    /// What the store compares by.
    pub distance: Distance,
    /// What the identifiers are to Python: `int` or `str`.
    pub ids: String,
    /// The learner, for people who read the record.
    pub method: String,
    /// The version of the record.
    metra: u32,
    /// SHA-256 of the model's file, in hexadecimal.
    pub model: String,
    /// Whether the vectors are untransformed items, which serve any model that does not map items.
    pub raw: bool,
    /// The plan's way.
    pub way: Strategy,
}

/// SHA-256 of a model's file, which is the same wherever it was trained or loaded.
pub fn digest(model: &Model) -> Result<String> {
    let bytes = Sha256::digest(model.to_bytes()?);
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Provenance {
    /// The record of what a plan for this model writes; `whole_ids` where identifiers are whole numbers.
    pub fn new(model: &Model, plan: &Plan, whole_ids: bool) -> Result<Self> {
        // A map to as many numbers as it takes has two plans of one name: what cannot be found again
        // must not be written.
        let again = Plan::find(model, plan.way(), plan.distance(), plan.item_dim())?;
        if again.holds_input() != plan.holds_input() {
            let problem = "expected one that its record tells from others, but the map gives as many \
                           numbers as it takes: leave out --keep-input, or train with a lower rank";
            return Err(Error::found(format!("the plan {}", plan.name()), problem));
        }
        Ok(Provenance {
            centre: plan.centre().map(packed),
            dimension: plan.item_dim(),
            distance: plan.distance(),
            ids: if whole_ids { "int" } else { "str" }.into(),
            method: model.origin.method.clone(),
            metra: VERSION,
            model: digest(model)?,
            raw: plan.items_stay(),
            way: plan.way(),
        })
    }

    /// Read a record; `place` is for messages.
    pub fn from_text(text: &str, place: &str) -> Result<Self> {
        let broken = |problem: String| Error::found(place, problem);
        let value: serde_json::Value = serde_json::from_str(text)
            .map_err(|e| broken(format!("its record cannot be read: {e}")))?;
        match value.get("metra").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => {
                return Err(broken(format!(
                    "expected a record of version {VERSION}, but found {version}: another version of \
                     metra wrote it"
                )));
            }
            None => return Err(broken("its record has no version".into())),
        }
        serde_json::from_value(value).map_err(|e| broken(format!("its record cannot be read: {e}")))
    }

    /// The record as JSON with sorted keys.
    pub fn to_text(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|e| Error::found("the record of a model", e.to_string()))
    }

    /// The plan by which the vectors were written, for the same model.
    pub fn plan(&self, model: &Model, place: &str) -> Result<Plan> {
        let found = |problem: String| Error::found(place, problem);
        let own = digest(model)?;
        if own != self.model {
            return Err(found(format!(
                "it was written by {}, but this is {}: use the model that wrote it, or another \
                 column",
                self.who(),
                named(&own, &model.origin.method)
            )));
        }
        let plan = Plan::find(model, self.way, self.distance, self.dimension)
            .map_err(|e| found(format!("its record names a plan that is unknown: {e}")))?;
        match &self.centre {
            None => Ok(plan),
            Some(centre) => {
                let centre = unpacked(centre)
                    .ok_or_else(|| found("the centre in its record cannot be read".into()))?;
                Ok(plan.with_centre(centre)?)
            }
        }
    }

    /// The model for people: the beginning of its digest and its method.
    pub fn who(&self) -> String {
        named(&self.model, &self.method)
    }
}

fn named(model: &str, method: &str) -> String {
    let short: String = model.chars().take(12).collect();
    format!("the model {short} ({method})")
}

fn packed(centre: &[f32]) -> String {
    STANDARD.encode(little_endian(centre))
}

fn unpacked(text: &str) -> Option<Vec<f32>> {
    let bytes = STANDARD.decode(text).ok()?;
    let (values, rest) = bytes.as_chunks::<4>();
    rest.is_empty()
        .then(|| values.iter().map(|v| f32::from_le_bytes(*v)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use metra::model::{Chain, Origin, Space};

    /// What the Python package writes (`Provenance.to_text` with json.dumps), centre [1, −2, 0.5].
    const PYTHON: &str = r#"{"centre": "AACAPwAAAMAAAAA/", "dimension": 4, "distance": "ip", "ids": "int", "method": "warca", "metra": 1, "model": "MODEL", "raw": false, "way": "extra-coordinate"}"#;

    fn model() -> Model {
        let origin = Origin {
            method: "warca".into(),
            ..Origin::default()
        };
        Model::new(None, Chain::identity(3, Space::SquaredL2), origin).unwrap()
    }

    #[test]
    fn what_python_wrote_is_read_and_written_again() {
        let model = model();
        let text = PYTHON.replace("MODEL", &digest(&model).unwrap());
        let record = Provenance::from_text(&text, "here").unwrap();
        let plan = record.plan(&model, "here").unwrap();
        assert_eq!(plan.way(), Strategy::ExtraCoordinate);
        assert_eq!(plan.centre(), Some(&[1.0, -2.0, 0.5][..]));
        assert_eq!(Provenance::new(&model, &plan, true).unwrap(), record);
        let ours = record.to_text().unwrap();
        let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(same(&ours), same(&text));
    }

    #[test]
    fn another_model_and_broken_records_are_named() {
        let model = model();
        let record = Provenance::from_text(PYTHON, "column c").unwrap();
        let message = record.plan(&model, "column c").unwrap_err().to_string();
        assert!(
            message.contains("column c: it was written by the model MODEL (warca)"),
            "{message}"
        );
        let newer = PYTHON.replace(r#""metra": 1"#, r#""metra": 2"#);
        let message = Provenance::from_text(&newer, "column c")
            .unwrap_err()
            .to_string();
        assert!(message.contains("version 1, but found 2"), "{message}");
        assert!(Provenance::from_text("{}", "c").is_err());
        assert!(Provenance::from_text("{", "c").is_err());
        let own = PYTHON.replace("MODEL", &digest(&model).unwrap());
        for wrong in [own.replace("AACAPwAA", "AACAPw"), own.replace("4,", "9,")] {
            let record = Provenance::from_text(&wrong, "c").unwrap();
            assert!(record.plan(&model, "c").is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_digest_is_the_hash_of_the_bytes() {
        // SHA-256 of nothing, from FIPS 180: the way from bytes to text.
        let empty: String = Sha256::digest(b"")
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert!(
            empty.starts_with("e3b0c44298fc1c149afbf4c8996fb924"),
            "{empty}"
        );
        assert_eq!(digest(&model()).unwrap().len(), 64);
    }
}
