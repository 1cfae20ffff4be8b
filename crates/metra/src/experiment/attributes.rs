//! How far learned attributes agree with the orderings on rows that were not learned from.

use crate::dataset::Dataset;
use crate::evaluate::PairwiseOrderAccuracy;
use crate::model::{Chain, Side};
use crate::supervision::Supervision;
use crate::{Error, Result};

impl Dataset<'_> {
    /// For every attribute of the orderings how many pairs of these rows its score orders right;
    /// `None` for an attribute that orders no two of them. `outputs` are the names of the numbers
    /// that the metric maps to. Needs orderings.
    pub fn ordered(
        &self,
        chain: &Chain,
        outputs: &[String],
        units: &[u64],
    ) -> Result<Vec<(String, Option<PairwiseOrderAccuracy>)>> {
        let Supervision::Orderings(orderings) = self.supervision() else {
            return Err(Error::Data(format!(
                "judging attributes needs orderings of classes, but there are only {}",
                self.supervision().describe()
            )));
        };
        let scores = self.embed_items(chain, Side::Item, Some(units))?;
        let labels = orderings.labels().of();
        let mut found = Vec::with_capacity(orderings.attributes());
        for (number, ordering) in orderings.orderings().iter().enumerate() {
            let name = ordering.attribute();
            let column = outputs.iter().position(|output| output == name);
            let column = column.ok_or_else(|| {
                let expected = format!("one that the model has ({})", outputs.join(", "));
                Error::parameter("attribute", expected, format!("{name:?}"))
            })?;
            let column = scores.column(column)?;
            let levels: Vec<Option<u32>> = (units.iter())
                .map(|unit| orderings.level(number, labels[*unit as usize]))
                .collect();
            found.push((
                name.to_owned(),
                PairwiseOrderAccuracy::of(&column, &levels)?,
            ));
        }
        Ok(found)
    }
}
