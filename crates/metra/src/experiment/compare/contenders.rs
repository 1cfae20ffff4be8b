//! The default list of methods of a comparison, with their grids.

use crate::Result;
use crate::dataset::Dataset;
use crate::experiment::definition::ComparedMethod;
use crate::pipeline::registry;
use crate::training::Recipe;
use std::collections::{BTreeMap, BTreeSet};

impl ComparedMethod {
    /// A method with the registry's grid, on prepared vectors.
    pub fn usual(name: String, method: &str, recipe: Recipe) -> Result<Self> {
        Ok(ComparedMethod {
            name,
            method: method.to_owned(),
            settings: BTreeMap::new(),
            recipe,
            grid: registry::find(method)?.open_grid(&BTreeMap::new()),
            spaces: Vec::new(),
            published: BTreeMap::new(),
        })
    }

    /// Lower ranks of the registry's grid that the vectors do not have: nobody asked for them.
    pub(crate) fn limit_grid(&mut self, dim: usize) -> Result<()> {
        let entry = registry::find(&self.method)?;
        let usual = entry.open_grid(&BTreeMap::new());
        if entry.has("kernel") {
            return Ok(());
        }
        for tried in &mut self.grid {
            if tried.0 == "rank" && usual.contains(tried) {
                let rank = |value: &String| value.parse().map_or(dim, |rank: usize| rank.min(dim));
                let ranks: BTreeSet<usize> = tried.1.iter().map(rank).collect();
                tried.1 = ranks.iter().map(ToString::to_string).collect();
            }
        }
        Ok(())
    }

    /// The methods named, or without names all that can learn from this and have no kernel; the
    /// baselines always compete, on the vectors as they are and as prepared.
    pub fn contenders(named: &[String], data: &Dataset<'_>, prepare: &Recipe) -> Result<Vec<Self>> {
        let two_spaces = data.has_two_spaces();
        let mut chosen: Vec<&str> = data.baselines().to_vec();
        if named.is_empty() {
            let fitting = (registry::ENTRIES.iter())
                .filter(|entry| entry.learns_from(data.supervision()) && !entry.has("kernel"))
                .filter(|entry| entry.two_spaces || !two_spaces)
                .filter(|entry| {
                    !entry.several_vectors
                        || (!data.vector_dims().is_empty() && prepare.keeps_vectors())
                });
            chosen.extend(fitting.map(|entry| entry.name));
        } else {
            for name in named {
                chosen.push(registry::find(name)?.name);
            }
        }
        let mut seen = BTreeSet::new();
        chosen.retain(|name| seen.insert(*name));
        let mut methods = Vec::new();
        for name in chosen {
            let is_base = data.baselines().contains(&name);
            let plain = match is_base {
                true => Recipe::default(),
                false => prepare.clone(),
            };
            methods.push(ComparedMethod::usual(name.to_owned(), name, plain)?);
            if is_base && *prepare != Recipe::default() {
                let prepared = format!("{name} after {prepare}");
                methods.push(ComparedMethod::usual(prepared, name, prepare.clone())?);
            }
        }
        Ok(methods)
    }
}
