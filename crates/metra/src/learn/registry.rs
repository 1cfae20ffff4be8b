//! All learners by name: what `metra methods` lists and every front end builds from.

use super::qwise::{Attributes, Qwise, RankSvm};
use super::slr::{Slr, SlrAdapter};
use super::warca::{KernelWarca, Warca};
use super::{
    Checked, Cosine, Euclid, Frml, Itml, KernelLfda, KernelPcca, Kissme, Lda, Learner, Lfda, Lmnn,
    Loreta, Mfa, Mlapg, Mlr, MultiSimilarity, Nca, Oasis, Parameter, Parameters, Pca, Pcca,
    ProxyAnchor, SupCon, Svmml, Whitening, Xqda,
};
use crate::supervision::Supervision;
use crate::{Error, Result};
use std::collections::BTreeMap;

/// One learner of the registry.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One sentence on what it does.
    pub summary: &'static str,
    /// What it learns from.
    pub needs: &'static str,
    /// Its parameters.
    pub parameters: fn() -> Vec<Parameter>,
    /// Values worth trying on a validation part where nobody says which.
    pub grid: &'static [(&'static str, &'static [&'static str])],
    build: Build,
}

type Build = fn(&BTreeMap<String, String>) -> Result<Box<dyn Learner>>;

/// All learners, simplest first.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "euclid",
        summary: "Euclidean distance between the vectors as they are.",
        needs: "nothing",
        parameters: Euclid::describe,
        grid: &[],
        build: |values| boxed(read::<Euclid>(values)?.check()),
    },
    Entry {
        name: "cosine",
        summary: "Cosine between the vectors as they are.",
        needs: "nothing",
        parameters: Cosine::describe,
        grid: &[],
        build: |values| boxed(read::<Cosine>(values)?.check()),
    },
    Entry {
        name: "pca",
        summary: "Projection onto the directions of largest variance.",
        needs: "nothing",
        parameters: Pca::describe,
        grid: &[],
        build: |values| boxed(read::<Pca>(values)?.check()),
    },
    Entry {
        name: "whitening",
        summary: "PCA with every direction divided by its deviation.",
        needs: "nothing",
        parameters: Whitening::describe,
        grid: &[("ridge", &["0.01", "0.1", "1"])],
        build: |values| boxed(read::<Whitening>(values)?.check()),
    },
    Entry {
        name: "lda",
        summary: "Directions in which classes differ most relative to their inner spread.",
        needs: "labels",
        parameters: Lda::describe,
        grid: &[("ridge", &["0.01", "0.1", "1"])],
        build: |values| boxed(read::<Lda>(values)?.check()),
    },
    Entry {
        name: "kissme",
        summary: "Log-ratio of the Gaussians of relevant and irrelevant differences, after PCA.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Kissme::describe,
        grid: &[("rank", &["32", "64"]), ("ridge", &["0.01", "0.1"])],
        build: |values| boxed(read::<Kissme>(values)?.check()),
    },
    Entry {
        name: "xqda",
        summary: "The same log-ratio in the directions that separate irrelevant pairs most.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Xqda::describe,
        grid: &[("ridge", &["0.01", "0.03", "0.1", "0.3"])],
        build: |values| boxed(read::<Xqda>(values)?.check()),
    },
    Entry {
        name: "lfda",
        summary: "Directions in which classes differ most relative to the spread of near rows inside.",
        needs: "labels",
        parameters: Lfda::describe,
        grid: &[("ridge", &["0.01", "0.1", "1"])],
        build: |values| boxed(read::<Lfda>(values)?.check()),
    },
    Entry {
        name: "kernel-lfda",
        summary: "LFDA after a kernel: for histograms compared by χ² above all.",
        needs: "labels",
        parameters: KernelLfda::describe,
        grid: &[("ridge", &["0.01", "0.03", "0.1"])],
        build: |values| boxed(read::<KernelLfda>(values)?.check()),
    },
    Entry {
        name: "mfa",
        summary: "Directions that part near rows of different classes and keep near ones of a class.",
        needs: "labels",
        parameters: Mfa::describe,
        grid: &[("ridge", &["0.01", "0.1", "1"])],
        build: |values| boxed(read::<Mfa>(values)?.check()),
    },
    Entry {
        name: "lmnn",
        summary: "Low-rank Mahalanobis distance with a margin around the nearest rows of a class.",
        needs: "labels",
        parameters: Lmnn::describe,
        grid: &[("margin", &["0.1", "0.3", "1"]), ("pull", &["0.2", "0.5"])],
        build: |values| boxed(read::<Lmnn>(values)?.check()),
    },
    Entry {
        name: "nca",
        summary: "Low-rank map under which rows most likely pick neighbours of their own class.",
        needs: "labels",
        parameters: Nca::describe,
        grid: &[("rank", &["16", "32"]), ("lambda", &["0", "1e-4", "1e-3"])],
        build: |values| boxed(read::<Nca>(values)?.check()),
    },
    Entry {
        name: "itml",
        summary: "Matrix nearest to Euclid that keeps bounds on the distances of pairs.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Itml::describe,
        grid: &[("gamma", &["0.1", "1", "10"])],
        build: |values| boxed(read::<Itml>(values)?.check()),
    },
    Entry {
        name: "oasis",
        summary: "Bilinear similarity from triplets by passive-aggressive steps.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Oasis::describe,
        grid: &[("cost", &["0.01", "0.1", "1"])],
        build: |values| boxed(read::<Oasis>(values)?.check()),
    },
    Entry {
        name: "loreta",
        summary: "Semidefinite similarity of fixed rank from triplets, on its manifold.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Loreta::describe,
        grid: &[("rate", &["0.01", "0.03", "0.1"])],
        build: |values| boxed(read::<Loreta>(values)?.check()),
    },
    Entry {
        name: "mlr",
        summary: "Semidefinite metric by a structural SVM over whole rankings.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Mlr::describe,
        grid: &[("cost", &["1", "100", "10000"])],
        build: |values| boxed(read::<Mlr>(values)?.check()),
    },
    Entry {
        name: "mlapg",
        summary: "Semidefinite metric by a logistic loss over all pairs.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Mlapg::describe,
        grid: &[("lambda", &["0", "1e-3", "1e-2"])],
        build: |values| boxed(read::<Mlapg>(values)?.check()),
    },
    Entry {
        name: "svmml",
        summary: "Decision with a locally adaptive threshold, by a squared hinge over all pairs.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Svmml::describe,
        grid: &[("lambda", &["1e-4", "1e-3", "1e-2"])],
        build: |values| boxed(read::<Svmml>(values)?.check()),
    },
    Entry {
        name: "pcca",
        summary: "Low-rank map that keeps similar pairs within a threshold (rPCCA).",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Pcca::describe,
        grid: &[("lambda", &["1e-6", "1e-5", "1e-4"])],
        build: |values| boxed(read::<Pcca>(values)?.check()),
    },
    Entry {
        name: "kernel-pcca",
        summary: "rPCCA after a kernel: for histograms compared by χ² above all.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: KernelPcca::describe,
        grid: &[("lambda", &["1e-6", "1e-5", "1e-4"])],
        build: |values| boxed(read::<KernelPcca>(values)?.check()),
    },
    Entry {
        name: "warca",
        summary: "Low-rank Mahalanobis distance that puts relevant items at the top of the ranking.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Warca::describe,
        grid: &[("margin", &["0.15", "0.5"]), ("lambda", &["1e-4", "1e-2"])],
        build: |values| boxed(read::<Warca>(values)?.check()),
    },
    Entry {
        name: "kernel-warca",
        summary: "WARCA after a kernel: for histograms compared by χ² above all.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: KernelWarca::describe,
        grid: &[("margin", &["1", "1.4"]), ("start", &["pca", "lda"])],
        build: |values| boxed(read::<KernelWarca>(values)?.check()),
    },
    Entry {
        name: "frml",
        summary: "Mahalanobis distance of fixed rank by the WARP or AUC loss, on its manifold.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: Frml::describe,
        grid: &[("rate", &["0.1", "0.3", "1"])],
        build: |values| boxed(read::<Frml>(values)?.check()),
    },
    Entry {
        name: "multi-similarity",
        summary: "Low-rank map by cosine: pairs of a batch weighted by how hard they are.",
        needs: "labels, relevance judgements or similar pairs",
        parameters: MultiSimilarity::describe,
        grid: &[("epsilon", &["0.3", "2"]), ("rate", &["0.003", "0.01"])],
        build: |values| boxed(read::<MultiSimilarity>(values)?.check()),
    },
    Entry {
        name: "supcon",
        summary: "Low-rank map by cosine: relevant items stand out in a batch (InfoNCE).",
        needs: "labels, relevance judgements or similar pairs",
        parameters: SupCon::describe,
        grid: &[
            ("temperature", &["0.1", "0.2"]),
            ("rate", &["0.001", "0.003"]),
        ],
        build: |values| boxed(read::<SupCon>(values)?.check()),
    },
    Entry {
        name: "proxy-anchor",
        summary: "Low-rank map by cosine, with one learned point a class.",
        needs: "labels",
        parameters: ProxyAnchor::describe,
        grid: &[("alpha", &["4", "8", "16"])],
        build: |values| boxed(read::<ProxyAnchor>(values)?.check()),
    },
    Entry {
        name: "slr",
        summary: "Bilinear similarity regressed to relevance over all pairs, in closed form.",
        needs: "labels or relevance judgements",
        parameters: Slr::describe,
        grid: &[("ridge", &["0.01", "0.1", "1"])],
        build: |values| boxed(read::<Slr>(values)?.check()),
    },
    Entry {
        name: "slr-adapter",
        summary: "Map of queries alone, regressed towards the identity; items stay as they are.",
        needs: "labels or relevance judgements",
        parameters: SlrAdapter::describe,
        grid: &[("ridge", &["0.1", "0.3", "1"])],
        build: |values| boxed(read::<SlrAdapter>(values)?.check()),
    },
    Entry {
        name: "qwise",
        summary: "Weights of columns or blocks, or a matrix, from comparisons of pairs.",
        needs: "quadruplets, triplets, pairs, labels, judgements or a taxonomy",
        parameters: Qwise::describe,
        grid: &[("lambda", &["1e-5", "1e-4", "1e-3"])],
        build: |values| boxed(read::<Qwise>(values)?.check()),
    },
    Entry {
        name: "attributes",
        summary: "One number an attribute, from orderings of classes by it.",
        needs: "orderings of classes",
        parameters: Attributes::describe,
        grid: &[("lambda", &["0.003", "0.01"])],
        build: |values| boxed(read::<Attributes>(values)?.check()),
    },
    Entry {
        name: "rank-svm",
        summary: "One linear ranking function an attribute, by squared hinges over pairs.",
        needs: "orderings of classes",
        parameters: RankSvm::describe,
        grid: &[("lambda", &["0.003", "0.01", "0.03"])],
        build: |values| boxed(read::<RankSvm>(values)?.check()),
    },
];

/// The entry with this name.
pub fn find(name: &str) -> Result<&'static Entry> {
    ENTRIES.iter().find(|e| e.name == name).ok_or_else(|| {
        let names: Vec<&str> = ENTRIES.iter().map(|e| e.name).collect();
        Error::parameter(
            "method",
            format!("one of {}", names.join(", ")),
            format!("{name:?}"),
        )
    })
}

impl Entry {
    /// The learner with these parameters; those not named keep their defaults.
    pub fn build(&self, values: &BTreeMap<String, String>) -> Result<Box<dyn Learner>> {
        (self.build)(values)
    }

    /// Set the rank to the vectors' dimension where the default is greater and nobody said
    /// otherwise: it would be an error nobody made. A kernel's space has more dimensions.
    pub fn limit_rank(
        &self,
        settings: &mut BTreeMap<String, String>,
        grid: &[(String, Vec<String>)],
        dim: usize,
    ) {
        let tuned = grid.iter().any(|(name, _)| name == "rank");
        let default = (self.parameters)().into_iter().find(|p| p.name == "rank");
        let default = default.and_then(|p| p.default.parse::<usize>().ok());
        let said = tuned || settings.contains_key("rank");
        if default.is_some_and(|rank| rank > dim) && !said && !self.has("kernel") {
            settings.insert("rank".into(), dim.to_string());
        }
    }

    /// Values worth trying of the parameters that are not fixed.
    pub fn open_grid(&self, fixed: &BTreeMap<String, String>) -> Vec<(String, Vec<String>)> {
        (self.grid.iter())
            .filter(|(name, _)| !fixed.contains_key(*name))
            .map(|(name, values)| {
                let values = values.iter().map(|v| (*v).to_owned()).collect();
                ((*name).to_owned(), values)
            })
            .collect()
    }

    /// Whether it can learn from this.
    pub fn learns_from(&self, supervision: &Supervision) -> bool {
        let words: &[&str] = match supervision {
            Supervision::Labels(_) => &["labels"],
            Supervision::Judgements(_) => &["judgements"],
            Supervision::Comparisons(_) => &["quadruplets"],
            Supervision::Orderings(_) => &["labels", "orderings"],
            Supervision::Taxonomy(_) => &["labels", "taxonomy"],
        };
        self.needs == "nothing" || words.iter().any(|word| self.needs.contains(word))
    }

    /// Whether it has a parameter of this name.
    pub fn has(&self, parameter: &str) -> bool {
        (self.parameters)().iter().any(|p| p.name == parameter)
    }
}

fn read<P: Parameters>(values: &BTreeMap<String, String>) -> Result<P> {
    let mut parameters = P::default();
    for (name, value) in values {
        parameters.set(name, value)?;
    }
    Ok(parameters)
}

fn boxed<P>(checked: Result<Checked<P>>) -> Result<Box<dyn Learner>>
where
    Checked<P>: Learner + 'static,
{
    Ok(Box::new(checked?))
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
