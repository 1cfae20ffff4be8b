//! What is to be learned, from the command's arguments: shared by verbs that train one method.

use crate::args::assignment;
use crate::judging::JudgedBy;
use crate::subject::Read;
use anyhow::Result;
use clap::Args;
use metra::learn::{Recipe, registry};
use metra::metric::Space;
use metra::study::Study;
use std::collections::BTreeMap;

/// A method with its settings.
#[derive(Args)]
pub(crate) struct Learning {
    /// What learns; `metra methods` lists them
    #[arg(long, default_value = "warca")]
    pub(crate) method: String,
    /// Numbers in a mapped vector; short for --set rank=N
    #[arg(long, value_name = "N")]
    pub(crate) rank: Option<usize>,
    /// Set a parameter of the method (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) settings: Vec<(String, String)>,
    /// Try these values on the validation part: a parameter's, or `prepare` (repeatable)
    #[arg(long = "tune", value_name = "NAME=A,B,C", value_parser = assignment)]
    pub(crate) grid: Vec<(String, String)>,
    /// Preparation before the method, steps joined by +; `metra methods` lists them
    #[arg(long, value_name = "STEPS", default_value = "none")]
    pub(crate) prepare: Recipe,
    /// Scores after the map to choose among, by comma (default: euclid, cosine and dot)
    #[arg(long, value_name = "SCORES", value_delimiter = ',')]
    pub(crate) score: Vec<Space>,
    /// The base to beat: euclid or cosine (default: the better one on the validation part)
    #[arg(long, value_name = "SCORE")]
    pub(crate) base: Option<Space>,
}

impl Learning {
    /// The settings given.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings: BTreeMap<String, String> = self.settings.iter().cloned().collect();
        if let Some(rank) = self.rank {
            settings.insert("rank".into(), rank.to_string());
        }
        settings
    }

    /// The study of what was read.
    pub(crate) fn study<'m>(
        &self,
        read: &'m Read<'m>,
        judged_by: &JudgedBy,
        seed: u64,
    ) -> Result<Study<'m>> {
        let material = &read.material;
        let (judging, criterion) = judged_by.judging(read, seed)?;
        let mut settings = self.settings();
        let grid: Vec<(String, Vec<String>)> = (self.grid.iter())
            .map(|(name, values)| (name.clone(), values.split(',').map(str::to_owned).collect()))
            .collect();
        let entry = registry::find(&self.method)?;
        let dim = self.prepare.most_dim(material.items.corpus.dim());
        entry.limit_rank(&mut settings, &grid, dim);
        entry.build(&settings)?;
        Ok(Study {
            material,
            method: self.method.clone(),
            settings,
            recipe: self.prepare.clone(),
            grid,
            spaces: self.score.clone(),
            base: self.base,
            judging,
            criterion,
            seed,
        })
    }
}
