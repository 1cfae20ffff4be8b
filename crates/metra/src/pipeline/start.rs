//! A pipeline that starts from the map of an earlier model.

use super::{Pipeline, registry};
use crate::data::Groups;
use crate::dataset::Dataset;
use crate::model::{Map, Model, StartedFrom, Step, TrainingRows};
use crate::training::Recipe;
use crate::{Error, Result};

/// The model that training starts from.
pub(super) struct EarlierModel {
    model: Model,
    /// BLAKE3 hash of its file.
    file: String,
}

impl EarlierModel {
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn map(&self) -> &Map {
        self.model.chain.map()
    }

    /// Its preprocessing, which must be what `recipe` names, and of such vectors as these.
    pub(super) fn steps(&self, recipe: &Recipe, data: &Dataset<'_>) -> Result<Vec<Step>> {
        let model = &self.model;
        if recipe.to_string() != model.origin.prepare {
            let expected = format!("a model of vectors prepared by {recipe}");
            return Err(Error::parameter("from", expected, &model.origin.prepare));
        }
        if model.input_dim() != data.dim() {
            let what = "dimension of the vectors, as the model to start from takes them";
            return Err(Error::shape(what, model.input_dim(), data.dim()));
        }
        if model.narrowing.as_ref() != data.narrowing() {
            let expected = "vectors whose f64 values are narrowed to f32 as the model does it";
            return Err(Error::parameter("from", expected, "another way"));
        }
        // Means of groups are found by number.
        if let Some(names) = model.chain.group_names() {
            let is_same = |groups: Option<&Groups>| groups.is_some_and(|g| g.names() == names);
            if !is_same(data.item_groups()) || !is_same(data.query_groups()) {
                let names = names.join(", ");
                let expected =
                    format!("groups of rows that are numbered as the model does it ({names})");
                return Err(Error::parameter("from", expected, "others"));
            }
        }
        Ok(model.chain.steps().to_vec())
    }

    /// What the record of a model that started here says of it.
    pub(super) fn record(&self) -> StartedFrom {
        let (data, supervision) = self.model.origin.first_data();
        StartedFrom {
            file: self.file.clone(),
            first_data: data.to_owned(),
            first_supervision: supervision.to_owned(),
        }
    }

    /// What both have learned from. Where this model does not say, nothing can be said.
    pub(super) fn training_with(&self, more: &TrainingRows) -> Option<TrainingRows> {
        self.model.training.as_ref().map(|rows| rows.and(more))
    }
}

impl Pipeline {
    /// Start from the map of an earlier model instead of anew, on vectors prepared as that model prepares them. The
    /// new model knows the rows that the earlier one learned from as its own.
    ///
    /// ```
    /// use metra::{Dataset, Pipeline, methods::Warca};
    /// # use metra::{data::synthetic::Nuisance, supervision::Labels};
    /// # let set = Nuisance { classes: 10, signal: 4, noise: 12, seed: 7 }.rows(200);
    /// # let labels = Labels::from_numbers(&set.classes)?;
    /// let data = Dataset::builder(&set.corpus).labels(labels).build()?;
    /// let warca = Warca { rank: 4, ..Warca::default() };
    /// let first = Pipeline::new(warca.clone()).fit(&data)?;
    /// let second = Pipeline::new(warca).start_from(&first)?.fit(&data)?;
    /// assert_eq!(second.output_dim(), 4);
    /// # Ok::<(), metra::Error>(())
    /// ```
    pub fn start_from(mut self, model: &Model) -> Result<Self> {
        if !self.method.starts_from_model() {
            let able = registry::names(|method| method.starts_from_model());
            let expected = format!(
                "left out for {}: only {able} start from a model",
                self.method.name()
            );
            return Err(Error::parameter("from", expected, &model.origin.method));
        }
        self.start = Some(EarlierModel {
            model: model.clone(),
            file: blake3::hash(&model.to_bytes()?).to_string(),
        });
        Ok(self)
    }
}
