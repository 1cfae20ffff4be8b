//! All methods by name: what `metra methods` lists and every front end builds from.

use crate::methods::qwise::{Attributes, Qwise, RankSvm};
use crate::methods::slr::{Slr, SlrAdapter};
use crate::methods::warca::{KernelWarca, Warca};
use crate::methods::{
    Adapter, Cca, Cosine, Euclid, Frml, Itml, KernelLfda, KernelPcca, Kissme, Lda, Lfda, Lmnn,
    Loreta, Mfa, Mlapg, Mlr, MultiSimilarity, Nca, Oasis, Pca, Pcca, Procrustes, ProxyAnchor,
    SupCon, Svmml, VectorWeights, Whitening, Xqda,
};
use crate::supervision::{Supervision, SupervisionKind};
use crate::training::parameters::did_you_mean;
use crate::training::{AnyMethod, CodeSpec, Method, Parameter, TwoModels};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// The setting that says how items are held: a pipeline's own, beside those of its method.
pub const CODE: &str = "code";

/// One method of the registry.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One sentence on what it does.
    pub summary: &'static str,
    /// What it learns from; nothing for a method that uses vectors alone.
    pub needs: &'static [SupervisionKind],
    /// Its parameters.
    pub parameters: fn() -> Vec<Parameter>,
    /// Values worth trying on a validation part where nobody says which.
    pub grid: &'static [(&'static str, &'static [&'static str])],
    /// What the preset `paper` sets: the settings of the publication, where it states some.
    pub paper: &'static [(&'static str, &'static str)],
    /// Whether training tries these where nobody names settings.
    pub tries_grid: bool,
    /// Whether it can start from the map of an earlier model.
    pub starts_from_model: bool,
    /// Whether it learns from queries and items that are vectors of two models.
    pub two_spaces: bool,
    /// Whether it learns only from rows of several vectors.
    pub several_vectors: bool,
    build: Build,
}

type Build = fn(&BTreeMap<String, String>) -> Result<Box<dyn AnyMethod>>;

/// All methods, simplest first.
pub const ENTRIES: &[Entry] = &[
    Entry::of::<Euclid>(),
    Entry::of::<Cosine>(),
    Entry::of::<Pca>(),
    Entry::of::<Whitening>(),
    Entry::of::<VectorWeights>(),
    Entry::of::<Lda>(),
    Entry::of::<Kissme>(),
    Entry::of::<Xqda>(),
    Entry::of::<Cca>(),
    Entry::of::<Procrustes>(),
    Entry::of::<Lfda>(),
    Entry::of::<KernelLfda>(),
    Entry::of::<Mfa>(),
    Entry::of::<Lmnn>(),
    Entry::of::<Nca>(),
    Entry::of::<Itml>(),
    Entry::of::<Oasis>(),
    Entry::of::<Loreta>(),
    Entry::of::<Mlr>(),
    Entry::of::<Mlapg>(),
    Entry::of::<Svmml>(),
    Entry::of::<Pcca>(),
    Entry::of::<KernelPcca>(),
    Entry::of::<Warca>(),
    Entry::of::<KernelWarca>(),
    Entry::of::<Frml>(),
    Entry::of::<MultiSimilarity>(),
    Entry::of::<SupCon>(),
    Entry::of::<ProxyAnchor>(),
    Entry::of::<Slr>(),
    Entry::of::<SlrAdapter>(),
    Entry::of::<Adapter>(),
    Entry::of::<Qwise>(),
    Entry::of::<Attributes>(),
    Entry::of::<RankSvm>(),
];

/// The entry with this name.
pub fn find(name: &str) -> Result<&'static Entry> {
    ENTRIES.iter().find(|e| e.name == name).ok_or_else(|| {
        let names: Vec<&str> = ENTRIES.iter().map(|e| e.name).collect();
        let found = format!("{name:?}{}", did_you_mean(name, &names));
        Error::parameter("method", format!("one of {}", names.join(", ")), found)
    })
}

/// The method where nobody names one: with relevance judgements one that keeps what the vectors know about
/// items without any.
pub fn default_for(judged: bool) -> &'static Entry {
    const ADAPTER: &Entry = &Entry::of::<Adapter>();
    const WARCA: &Entry = &Entry::of::<Warca>();
    if judged { ADAPTER } else { WARCA }
}

/// Names of the methods that hold a condition with their defaults, separated by commas.
pub(crate) fn names(holds: impl Fn(&dyn AnyMethod) -> bool) -> String {
    let able = ENTRIES.iter().filter(|entry| {
        let built = entry.build(&BTreeMap::new());
        built.is_ok_and(|method| holds(method.as_ref()))
    });
    able.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

impl Entry {
    const fn of<M: Method>() -> Self {
        Entry {
            name: M::NAME,
            summary: M::SUMMARY,
            needs: M::NEEDS,
            parameters: M::describe,
            grid: M::GRID,
            paper: M::PAPER,
            tries_grid: M::TRIES_GRID,
            starts_from_model: M::STARTS_FROM_MODEL,
            several_vectors: M::SEVERAL_VECTORS,
            two_spaces: !matches!(M::TWO_MODELS, TwoModels::Refuse),
            build: |values| Ok(Box::new(M::from_values(values)?.checked()?)),
        }
    }

    /// The method with these parameters; those not named keep their defaults, or what `preset` sets. The code
    /// must be one, and is not the method's.
    pub fn build(&self, values: &BTreeMap<String, String>) -> Result<Box<dyn AnyMethod>> {
        let mut values = values.clone();
        self.expand_preset(&mut values)?;
        if let Some(code) = values.remove(CODE) {
            code.parse::<CodeSpec>()?;
        }
        (self.build)(&values)
    }

    /// Put the settings that `preset` stands for in its place; what is set beside it stays.
    fn expand_preset(&self, settings: &mut BTreeMap<String, String>) -> Result<()> {
        let Some(preset) = settings.remove("preset") else {
            return Ok(());
        };
        if preset != "paper" || self.paper.is_empty() {
            let expected = match self.paper {
                [] => format!("left out: {} has none", self.name),
                _ => "paper".to_owned(),
            };
            return Err(Error::parameter("preset", expected, preset));
        }
        for (name, value) in self.paper {
            let known = settings.entry((*name).to_owned());
            known.or_insert_with(|| (*value).to_owned());
        }
        Ok(())
    }

    /// Expand the preset, and set the rank to the vectors' dimension where the default or the preset's is greater
    /// and nobody said otherwise: it would be an error nobody made. A kernel's space has more dimensions.
    pub fn settle(
        &self,
        settings: &mut BTreeMap<String, String>,
        grid: &[(String, Vec<String>)],
        dim: usize,
    ) -> Result<()> {
        let tuned = grid.iter().any(|(name, _)| name == "rank");
        let chosen = tuned || settings.contains_key("rank");
        self.expand_preset(settings)?;
        let default = (self.parameters)().into_iter().find(|p| p.name == "rank");
        let rank = settings.get("rank").cloned().or(default.map(|p| p.default));
        let rank = rank.and_then(|rank| rank.parse::<usize>().ok());
        if rank.is_some_and(|rank| rank > dim) && !chosen && !self.has("kernel") {
            settings.insert("rank".into(), dim.to_string());
        }
        Ok(())
    }

    /// Values worth trying of the parameters that are not fixed.
    pub fn open_grid(&self, fixed: &BTreeMap<String, String>) -> Vec<(String, Vec<String>)> {
        let preset = fixed.get("preset").map_or(&[][..], |_| self.paper);
        let is_fixed =
            |name: &str| fixed.contains_key(name) || preset.iter().any(|(set, _)| *set == name);
        (self.grid.iter())
            .filter(|(name, _)| !is_fixed(name))
            .map(|(name, values)| {
                let values = values.iter().map(|v| (*v).to_owned()).collect();
                ((*name).to_owned(), values)
            })
            .collect()
    }

    /// Whether it can learn from this.
    pub(crate) fn learns_from(&self, supervision: &Supervision) -> bool {
        let given = supervision.kinds();
        self.needs.is_empty() || self.needs.iter().any(|kind| given.contains(kind))
    }

    /// Whether it has a parameter of this name.
    pub fn has(&self, parameter: &str) -> bool {
        (self.parameters)().iter().any(|p| p.name == parameter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_builds_with_its_defaults_and_keeps_its_name() {
        for entry in ENTRIES {
            let learner = entry.build(&BTreeMap::new()).unwrap();
            assert_eq!(learner.name(), entry.name);
            let listed: Vec<_> = (entry.parameters)().iter().map(|p| p.name).collect();
            assert!(
                learner
                    .parameters()
                    .keys()
                    .all(|k| listed.contains(&k.as_str()))
            );
            for (name, values) in entry.grid {
                for value in *values {
                    let settings = BTreeMap::from([((*name).to_owned(), (*value).to_owned())]);
                    assert!(
                        entry.build(&settings).is_ok(),
                        "{}: {name}={value}",
                        entry.name
                    );
                }
            }
            // What a learner records can be set again.
            assert!(entry.build(&learner.parameters()).is_ok());
        }
    }

    #[test]
    fn a_preset_sets_what_nobody_set() {
        let settings = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            owned.collect()
        };
        for entry in ENTRIES.iter().filter(|entry| !entry.paper.is_empty()) {
            let built = entry.build(&settings(&[("preset", "paper")])).unwrap();
            let found = built.parameters();
            for (name, value) in entry.paper {
                let set = entry.build(&settings(&[(name, value)])).unwrap();
                assert_eq!(found[*name], set.parameters()[*name], "{}", entry.name);
            }
        }
        // Lim & Lanckriet, Sec. 5.1, and Jose & Fleuret, Sec. 4.2.
        let found = |name: &str, more: &[(&str, &str)]| {
            let all = [&[("preset", "paper")], more].concat();
            find(name)
                .unwrap()
                .build(&settings(&all))
                .unwrap()
                .parameters()
        };
        assert_eq!(found("warca", &[])["steps"], "2000");
        assert_eq!(found("frml", &[])["batch"], "5");
        assert_eq!(found("warca", &[("steps", "10")])["steps"], "10");
        for (name, preset) in [("warca", "papers"), ("lda", "paper")] {
            let refused = find(name).unwrap().build(&settings(&[("preset", preset)]));
            assert!(refused.err().unwrap().to_string().contains("preset"));
        }
        // A rank that nobody named fits the vectors.
        for (given, rank) in [(&[][..], "7"), (&[("rank", "9")], "9")] {
            let mut all = settings(&[&[("preset", "paper")], given].concat());
            find("slr").unwrap().settle(&mut all, &[], 7).unwrap();
            assert_eq!(
                (all["rank"].as_str(), all.contains_key("preset")),
                (rank, false)
            );
        }
        let grid = find("warca")
            .unwrap()
            .open_grid(&settings(&[("preset", "paper")]));
        assert!(grid.iter().all(|(name, _)| name != "margin"));
    }

    #[test]
    fn an_open_grid_leaves_out_what_is_fixed() {
        let fixed = BTreeMap::from([("margin".to_owned(), "1".to_owned())]);
        let grid = find("warca").unwrap().open_grid(&fixed);
        assert!(grid.iter().all(|(name, _)| name != "margin"));
        assert!(grid.iter().any(|(name, _)| name == "lambda"));
    }

    #[test]
    fn unknown_names_are_errors_that_list_the_known() {
        let error = find("nearest").err().unwrap().to_string();
        assert!(error.contains("warca"), "{error}");
        let values = BTreeMap::from([("lamda".to_owned(), "1".to_owned())]);
        let error = find("warca")
            .unwrap()
            .build(&values)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("lambda"), "{error}");
    }
}
