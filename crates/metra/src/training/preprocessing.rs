//! Fitted preprocessing: a recipe such as `sqrt+centre+pca:100`, fitted on the training part and
//! recorded in the model.

use super::ParameterValue;
use super::kernel::{KernelAxes, KernelKind, KernelSpec};
use super::prepared_corpus::PreparedCorpus;
use super::principal_axes::{PrincipalAxes, principal_axes, usable};
use super::truncated_svd::leading_directions;
use crate::data::{Corpus, ElementMap, Groups, Keys};
use crate::execute::{keyed_sums, spread};
use crate::linalg::RowBuf;
use crate::model::{LowRank, Step};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// One word of a recipe.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ingredient {
    Element(ElementMap),
    NormaliseEach,
    Centre,
    CentreGroups,
    Scale,
    Pca { size: Components },
    Whiten { size: Components },
    Svd { size: usize },
    Kernel { kind: KernelKind, landmarks: usize },
}

/// How many principal components are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Components {
    Count(usize),
    /// As few as hold this percentage of the variance.
    Percent(f64),
}

impl Components {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => (percent.parse().ok())
                .filter(|percent| *percent > 0.0 && *percent <= 100.0)
                .map(Components::Percent),
            None => (text.parse().ok())
                .filter(|count| *count > 0)
                .map(Components::Count),
        }
    }

    /// So many of those that there are.
    fn of(self, axes: &PrincipalAxes) -> Result<usize> {
        match self {
            Components::Count(count) => usable(count, axes.rank()),
            Components::Percent(percent) => {
                let total: f64 = axes.variances.iter().sum();
                let mut kept = 0.0;
                let enough = axes.variances.iter().position(|variance| {
                    kept += variance;
                    // Percentages are decimal: 1e-12 is far below what one can mean.
                    kept >= total * (percent / 100.0 - 1e-12)
                });
                usable(enough.map_or(axes.rank(), |last| last + 1), axes.rank())
            }
        }
    }
}

impl fmt::Display for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Components::Count(count) => write!(f, "{count}"),
            Components::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Preprocessing to be fitted: steps joined by `+`, in order. `none` is the empty recipe.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recipe(Vec<Ingredient>);

/// Words that recipes may use, with their meanings.
pub const WORDS: &[(&str, &str)] = &[
    ("none", "the input vectors"),
    ("l2", "divide each vector by its length"),
    (
        "l2-each",
        "divide each of several vectors of a row (--vector title,body) by its own length",
    ),
    ("sqrt", "square root of each value (histograms)"),
    ("log:A", "log(1 + A·x) of each value"),
    ("centre", "subtract the training mean"),
    (
        "centre-groups",
        "subtract the training mean of the row's group (camera)",
    ),
    (
        "scale",
        "divide each column by its standard deviation in training",
    ),
    (
        "pca:R",
        "PCA to R components; pca:95% keeps as few as hold 95 % of the variance",
    ),
    (
        "whiten:R",
        "PCA to R components (or a share, as in pca:95%), each scaled to unit variance",
    ),
    (
        "svd:R",
        "truncated SVD to R components, without centring (sparse vectors of many dimensions)",
    ),
    (
        "chi2:N",
        "approximate χ² feature map (histograms): 2N + 1 features per value, N = 1, 2 or 3",
    ),
    (
        "kernel:K:L",
        "kernel PCA coordinates for kernel K (linear, rbf, chi2, exp-chi2, intersection) with at \
         most L landmarks",
    ),
];

impl Recipe {
    /// Whether the data decide how many numbers are left.
    pub(crate) fn keeps_a_share(&self) -> bool {
        let is_share = |size: &Components| matches!(size, Components::Percent(_));
        self.0.iter().any(|ingredient| match ingredient {
            Ingredient::Pca { size } | Ingredient::Whiten { size } => is_share(size),
            _ => false,
        })
    }

    /// Whether several vectors of a row are as many after it.
    pub(crate) fn keeps_vectors(&self) -> bool {
        self.0.iter().all(|ingredient| match ingredient {
            Ingredient::Element(map) => !matches!(map, ElementMap::ChiSquare { .. }),
            Ingredient::NormaliseEach
            | Ingredient::Centre
            | Ingredient::CentreGroups
            | Ingredient::Scale => true,
            Ingredient::Pca { .. }
            | Ingredient::Whiten { .. }
            | Ingredient::Svd { .. }
            | Ingredient::Kernel { .. } => false,
        })
    }

    /// The steps, where each looks at every row by itself and there is nothing to fit.
    pub(crate) fn row_by_row(&self) -> Option<Vec<Step>> {
        let steps = self.0.iter().map(|ingredient| match ingredient {
            Ingredient::Element(map) => Some(Step::Element(*map)),
            _ => None,
        });
        steps.collect()
    }

    /// Most numbers in a prepared vector of `input` numbers.
    pub fn most_dim(&self, input: usize) -> usize {
        (self.0.iter()).fold(input, |dim, ingredient| match ingredient {
            Ingredient::Element(map) => map.output_dim(dim),
            Ingredient::NormaliseEach
            | Ingredient::Centre
            | Ingredient::CentreGroups
            | Ingredient::Scale => dim,
            Ingredient::Pca { size } | Ingredient::Whiten { size } => match size {
                Components::Count(count) => dim.min(*count),
                Components::Percent(_) => dim,
            },
            Ingredient::Svd { size } => dim.min(*size),
            Ingredient::Kernel { landmarks, .. } => *landmarks,
        })
    }
}

impl FromStr for Recipe {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut ingredients = Vec::new();
        for word in text.split('+').map(str::trim) {
            let (name, value) = match word.split_once(':') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let wrong = || {
                let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
                Error::parameter(
                    "a step of preparation",
                    format!("one of {}", words.join(", ")),
                    format!("{word:?}"),
                )
            };
            let number = || {
                value
                    .and_then(|v| v.parse::<usize>().ok())
                    .filter(|v| *v > 0)
            };
            ingredients.push(match (name, value) {
                ("none", None) => continue,
                ("l2", None) => Ingredient::Element(ElementMap::Normalise),
                ("l2-each", None) => Ingredient::NormaliseEach,
                ("sqrt", None) => Ingredient::Element(ElementMap::SquareRoot),
                ("log", _) => {
                    let factor = value.map_or(Some(1.0), |v| v.parse::<f32>().ok());
                    let factor = factor
                        .filter(|f| f.is_finite() && *f > 0.0)
                        .ok_or_else(wrong)?;
                    Ingredient::Element(ElementMap::Log { factor })
                }
                ("centre", None) => Ingredient::Centre,
                ("centre-groups", None) => Ingredient::CentreGroups,
                ("scale", None) => Ingredient::Scale,
                ("pca", _) => Ingredient::Pca {
                    size: value.and_then(Components::parse).ok_or_else(wrong)?,
                },
                ("whiten", _) => Ingredient::Whiten {
                    size: value.and_then(Components::parse).ok_or_else(wrong)?,
                },
                ("svd", _) => Ingredient::Svd {
                    size: number().ok_or_else(wrong)?,
                },
                ("chi2", _) => {
                    let order = number().filter(|n| *n <= 3).ok_or_else(wrong)?;
                    let order = order as u32;
                    Ingredient::Element(ElementMap::ChiSquare { order })
                }
                ("kernel", Some(value)) => {
                    let (kind, landmarks) = value.split_once(':').ok_or_else(wrong)?;
                    let kind = (KernelKind::parse(kind))
                        .filter(|k| !matches!(k, KernelKind::Precomputed | KernelKind::Polynomial))
                        .ok_or_else(wrong)?;
                    let landmarks = landmarks.parse().ok().filter(|l: &usize| *l >= 2);
                    Ingredient::Kernel {
                        kind,
                        landmarks: landmarks.ok_or_else(wrong)?,
                    }
                }
                _ => return Err(wrong()),
            });
        }
        Ok(Recipe(ingredients))
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, ingredient) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("+")?;
            }
            match ingredient {
                Ingredient::Element(ElementMap::Normalise) => f.write_str("l2")?,
                Ingredient::Element(ElementMap::SquareRoot) => f.write_str("sqrt")?,
                Ingredient::Element(ElementMap::Log { factor }) => write!(f, "log:{factor}")?,
                Ingredient::NormaliseEach => f.write_str("l2-each")?,
                Ingredient::Centre => f.write_str("centre")?,
                Ingredient::CentreGroups => f.write_str("centre-groups")?,
                Ingredient::Scale => f.write_str("scale")?,
                Ingredient::Pca { size } => write!(f, "pca:{size}")?,
                Ingredient::Whiten { size } => write!(f, "whiten:{size}")?,
                Ingredient::Svd { size } => write!(f, "svd:{size}")?,
                Ingredient::Element(ElementMap::ChiSquare { order }) => write!(f, "chi2:{order}")?,
                Ingredient::Kernel { kind, landmarks } => {
                    write!(f, "kernel:{}:{landmarks}", kind.show())?;
                }
            }
        }
        Ok(())
    }
}

impl Recipe {
    /// Fit on the training rows, each of which is one vector.
    pub fn fit(&self, corpus: &dyn Corpus, groups: Option<&Groups>) -> Result<Vec<Step>> {
        self.fit_vectors(corpus, groups, &[])
    }

    /// The same where a row may be several vectors: of these dimensions, or one vector where there are none.
    pub(crate) fn fit_vectors(
        &self,
        corpus: &dyn Corpus,
        groups: Option<&Groups>,
        vector_dims: &[usize],
    ) -> Result<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        for ingredient in &self.0 {
            let step = {
                let so_far = PreparedCorpus::new(corpus, groups, &steps);
                let vector_dims = vectors_after(vector_dims, &steps);
                fit_one(*ingredient, &so_far, groups, vector_dims)?
            };
            steps.push(step);
        }
        Ok(steps)
    }
}

/// What the vectors of a row are after these steps: nothing where it was one vector, or is mixed by now.
pub(crate) fn vectors_after<'d>(vector_dims: &'d [usize], steps: &[Step]) -> &'d [usize] {
    let keeps = |step: &Step| match step {
        Step::Element(ElementMap::ChiSquare { .. }) | Step::Project(_) | Step::Kernel(_) => false,
        Step::Element(_)
        | Step::Centre { .. }
        | Step::CentreGroups { .. }
        | Step::Scale { .. }
        | Step::NormaliseEach { .. } => true,
    };
    match steps.iter().all(keeps) {
        true => vector_dims,
        false => &[],
    }
}

fn fit_one(
    ingredient: Ingredient,
    corpus: &dyn Corpus,
    groups: Option<&Groups>,
    vector_dims: &[usize],
) -> Result<Step> {
    Ok(match ingredient {
        Ingredient::Element(map) => Step::Element(map),
        Ingredient::NormaliseEach if vector_dims.is_empty() => {
            return Err(Error::parameter(
                "prepare",
                "without l2-each here: a row is one vector (--vector title,body reads two), or an earlier step mixes its \
                 vectors",
                "l2-each",
            ));
        }
        Ingredient::NormaliseEach => Step::NormaliseEach {
            dims: vector_dims.to_vec(),
        },
        Ingredient::Centre => Step::Centre {
            mean: spread(corpus)?.mean.iter().map(|m| *m as f32).collect(),
        },
        Ingredient::CentreGroups => {
            let groups = groups.ok_or_else(|| {
                Error::parameter(
                    "prepare",
                    "without centre-groups where no group column (the camera) is given",
                    "centre-groups",
                )
            })?;
            let sums = keyed_sums(corpus, Keys::Group(groups.of()), groups.names().len())?;
            let mut means = RowBuf::zeros(groups.names().len(), corpus.dim());
            for group in 0..groups.names().len() {
                for (target, mean) in means.row_mut(group).iter_mut().zip(sums.mean(group)) {
                    *target = mean as f32;
                }
            }
            Step::CentreGroups {
                names: groups.names().to_vec(),
                means,
            }
        }
        Ingredient::Scale => Step::Scale {
            // A constant column stays as it is: dividing by 0 would make it NaN.
            factors: (spread(corpus)?.deviation.iter())
                .map(|d| if *d > 0.0 { (1.0 / d) as f32 } else { 1.0 })
                .map(|f| if f.is_finite() { f } else { 1.0 })
                .collect(),
        },
        Ingredient::Pca { size } => {
            let axes = principal_axes(corpus)?;
            let rank = size.of(&axes)?;
            Step::Project(LowRank::centred(axes.basis.leading_rows(rank), &axes.mean)?)
        }
        Ingredient::Whiten { size } => {
            let axes = principal_axes(corpus)?;
            let rank = size.of(&axes)?;
            Step::Project(axes.whitening(rank, 0.01)?)
        }
        Ingredient::Svd { size } => {
            Step::Project(LowRank::new(leading_directions(corpus, size)?, None)?)
        }
        Ingredient::Kernel { kind, landmarks } => {
            let spec = KernelSpec {
                kernel: kind,
                landmarks,
                ..KernelSpec::default()
            };
            KernelAxes::new(corpus, spec, 0)?.step()?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;

    fn corpus(values: &[f32], dim: usize) -> MemoryCorpus {
        MemoryCorpus::new(RowBuf::from_values(values.to_vec(), dim).unwrap()).unwrap()
    }

    #[test]
    fn recipes_are_read_and_written() {
        for text in [
            "none",
            "sqrt+centre",
            "log:1000+centre-groups+pca:20",
            "l2+scale+whiten:3",
            "pca:95%",
            "svd:20",
            "whiten:99.5%",
        ] {
            assert_eq!(text.parse::<Recipe>().unwrap().to_string(), text);
        }
        for text in [
            "", "sqr", "pca", "pca:0", "pca:0%", "pca:101%", "pca:NaN%", "pca:9.5", "log:-1",
            "scale:2",
        ] {
            assert!(text.parse::<Recipe>().is_err(), "{text}");
        }
    }

    #[test]
    fn recipes_know_how_many_numbers_they_leave() {
        for (text, expected) in [
            ("sqrt+pca:10", 10),
            ("pca:99+l2", 64),
            ("pca:95%", 64),
            ("chi2:1", 192),
        ] {
            assert_eq!(
                text.parse::<Recipe>().unwrap().most_dim(64),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn steps_are_fitted_in_order() {
        // sqrt gives (1, 2), (3, 2); centred (-1, 0), (1, 0); deviations 1 and 0 (constant).
        let rows = corpus(&[1.0, 4.0, 9.0, 4.0], 2);
        let steps = "sqrt+centre+scale"
            .parse::<Recipe>()
            .unwrap()
            .fit(&rows, None)
            .unwrap();
        let prepared = PreparedCorpus::new(&rows, None, &steps);
        let mut out = RowBuf::empty(2);
        prepared.gather(&[1, 0], &mut out).unwrap();
        assert_eq!(out.values(), &[1.0, 0.0, -1.0, 0.0]);
    }

    #[test]
    fn a_share_of_the_variance_is_kept() {
        // Variances as 16 to 9 to 1: shares of 61.5, 34.6 and 3.8 %.
        let rows = [4.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0];
        let both: Vec<f32> = rows.iter().copied().chain(rows.map(|v| -v)).collect();
        let rows = corpus(&both, 3);
        for (text, dim) in [
            ("pca:61%", 1),
            ("pca:62%", 2),
            ("pca:96%", 2),
            ("whiten:97%", 3),
            ("pca:100%", 3),
        ] {
            let steps = text.parse::<Recipe>().unwrap().fit(&rows, None).unwrap();
            assert_eq!(
                PreparedCorpus::new(&rows, None, &steps).dim(),
                dim,
                "{text}"
            );
        }
    }

    #[test]
    fn groups_are_centred_apart() {
        let rows = corpus(&[1.0, 3.0, 10.0, 30.0], 1);
        let groups = Groups::new(&["a", "a", "b", "b"]);
        let recipe: Recipe = "centre-groups".parse().unwrap();
        let steps = recipe.fit(&rows, Some(&groups)).unwrap();
        let prepared = PreparedCorpus::new(&rows, Some(&groups), &steps);
        let mut seen = Vec::new();
        prepared
            .scan(0..4, &mut |_, rows| {
                seen.extend_from_slice(rows.values());
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, vec![-1.0, 1.0, -10.0, 10.0]);
        assert!(recipe.fit(&rows, None).is_err());
    }

    #[test]
    fn kernels_and_the_chi_square_map_are_fitted_saved_and_loaded() {
        use crate::model::{Chain, Embedding, Map, Model, Origin, Space};
        let mut stream = crate::random::Stream::new(2, "test", 0);
        let values = (0..40 * 5).map(|_| stream.unit() as f32).collect();
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 5).unwrap()).unwrap();
        for (text, dim) in [
            ("chi2:2", 25),
            ("kernel:exp-chi2:10", 9),
            ("chi2:1+kernel:rbf:8", 7),
        ] {
            let recipe: Recipe = text.parse().unwrap();
            assert_eq!(recipe.to_string(), text);
            let steps = recipe.fit(&corpus, None).unwrap();
            assert_eq!(
                PreparedCorpus::new(&corpus, None, &steps).dim(),
                dim,
                "{text}"
            );
            let chain = Chain::new(5, steps, Map::Identity, Space::SquaredL2).unwrap();
            assert_eq!(chain.output_dim(), dim);
            let model = Model::new(None, chain, Origin::default()).unwrap();
            let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            assert_eq!(loaded, model, "{text}");
        }
        for wrong in [
            "chi2",
            "chi2:4",
            "kernel:rbf",
            "kernel:precomputed:9",
            "kernel:rbf:1",
        ] {
            assert!(wrong.parse::<Recipe>().is_err(), "{wrong}");
        }
    }
}
