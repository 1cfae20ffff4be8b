//! What is tried for budgets of bytes: maps of some rank with a code each.

use crate::experiment::definition::ComparedMethod;
use crate::model::Space;
use crate::pipeline::registry;
use crate::training::codes::MOST_ROTATED;
use crate::training::{CodeSpec, Recipe};
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Rank of maps before product quantisation, where more dimensions are of no use to few bytes.
const PRODUCT_RANK: usize = 128;
/// A method with rank and code.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) method: ComparedMethod,
    pub(super) code: CodeSpec,
    /// Whether it learns from supervision.
    pub(super) is_learned: bool,
}

/// Collects candidates, each once.
struct Candidates {
    all: Vec<Candidate>,
    known: BTreeSet<String>,
}

impl Candidates {
    fn push(
        &mut self,
        method: &ComparedMethod,
        rank: Option<usize>,
        code: CodeSpec,
        is_learned: bool,
    ) {
        let mut method = method.clone();
        if let Some(rank) = rank {
            method.settings.insert("rank".into(), rank.to_string());
        }
        method
            .settings
            .insert(registry::CODE.into(), code.to_string());
        let ComparedMethod {
            method: name,
            settings,
            recipe,
            spaces,
            ..
        } = &method;
        let key = format!("{name} {settings:?} {recipe} {spaces:?}");
        if self.known.insert(key) {
            let candidate = Candidate {
                method,
                code,
                is_learned,
            };
            self.all.push(candidate);
        }
    }
}

/// Everything worth trying for these budgets: the vectors as they are, principal directions and the learned
/// maps, with every code that fits.
pub(super) fn candidates(
    dim: usize,
    base: Space,
    learned: &[ComparedMethod],
    budgets: &[usize],
) -> Result<Vec<Candidate>> {
    let mut found = Candidates {
        all: Vec::new(),
        known: BTreeSet::new(),
    };
    let as_is = baseline(base);
    let pca = ComparedMethod {
        method: "pca".to_owned(),
        ..as_is.clone()
    };
    for &bytes in budgets {
        for code in whole(dim, base, bytes) {
            found.push(&as_is, None, code, false);
        }
        for (code, rank) in ranked(dim, base, bytes) {
            // A map of full rank is a rotation, which is worth something to signs alone.
            if rank < dim || code == CodeSpec::Itq {
                found.push(&pca, Some(rank), code, false);
            }
            if code == CodeSpec::Int8 && rank < dim && base == Space::Cosine {
                let truncated = ComparedMethod {
                    recipe: format!("svd:{rank}").parse()?,
                    ..as_is.clone()
                };
                found.push(&truncated, None, code, false);
            }
        }
        for method in learned {
            learned_candidates(&mut found, method, dim, bytes)?;
        }
    }
    match found.all.is_empty() {
        false => Ok(found.all),
        true => {
            let expected = "a budget for which some code exists";
            Err(Error::parameter("bytes", expected, format!("{budgets:?}")))
        }
    }
}

/// Maps of a method that learns.
fn learned_candidates(
    found: &mut Candidates,
    method: &ComparedMethod,
    dim: usize,
    bytes: usize,
) -> Result<()> {
    let (entry, dim) = (registry::find(&method.method)?, method.recipe.most_dim(dim));
    let built = entry.build(&method.settings)?;
    // By cosine int8 needs no scale, so that it has a rank of its own there.
    let own = built.own_spaces();
    let first = own.first().copied().unwrap_or(Space::SquaredL2);
    let cosine = own.contains(&Space::Cosine) && first != Space::Cosine;
    for space in [Some(first), cosine.then_some(Space::Cosine)]
        .into_iter()
        .flatten()
    {
        let all = match entry.has("rank") {
            true => ranked(dim, space, bytes),
            false => {
                let all = whole(dim, space, bytes).into_iter();
                all.map(|code| (code, dim)).collect()
            }
        };
        for (code, rank) in all {
            let code = match code {
                CodeSpec::Sign if built.trains_for_codes() => CodeSpec::Bits,
                code => code,
            };
            let of_space = ComparedMethod {
                spaces: vec![space],
                ..method.clone()
            };
            let method = if code == CodeSpec::Int8 {
                &of_space
            } else {
                method
            };
            found.push(method, entry.has("rank").then_some(rank), code, true);
        }
    }
    Ok(())
}

/// The vectors as they are.
pub(super) fn baseline(space: Space) -> ComparedMethod {
    let name = match space {
        Space::Cosine => "cosine",
        _ => "euclid",
    };
    ComparedMethod {
        name: name.to_owned(),
        method: name.to_owned(),
        settings: BTreeMap::new(),
        recipe: Recipe::default(),
        grid: Vec::new(),
        spaces: vec![space],
        published: BTreeMap::new(),
    }
}

/// Codes of vectors of this dimension that take at most so many bytes.
fn whole(dim: usize, space: Space, bytes: usize) -> Vec<CodeSpec> {
    let mut codes = vec![
        CodeSpec::None,
        CodeSpec::Float16,
        CodeSpec::Int8,
        CodeSpec::Sign,
    ];
    if dim <= MOST_ROTATED {
        codes.push(CodeSpec::Itq);
        codes.push(CodeSpec::RotatedProduct { bytes });
    } else {
        codes.push(CodeSpec::Product { bytes });
    }
    codes.retain(|code| match code {
        CodeSpec::Product { bytes } | CodeSpec::RotatedProduct { bytes } => *bytes <= dim / 2,
        code => code.item_bytes(dim, space) <= bytes,
    });
    codes
}

/// Codes with the largest rank for which they take at most so many bytes.
fn ranked(dim: usize, space: Space, bytes: usize) -> Vec<(CodeSpec, usize)> {
    let scale = CodeSpec::Int8.item_bytes(0, space);
    let mut all = vec![
        (CodeSpec::Int8, bytes.saturating_sub(scale)),
        (CodeSpec::Sign, 8 * bytes),
        (CodeSpec::Itq, (8 * bytes).min(MOST_ROTATED)),
    ];
    let product = PRODUCT_RANK.min(dim);
    if bytes <= product / 2 {
        all.push((CodeSpec::RotatedProduct { bytes }, product));
    }
    all.retain(|(_, rank)| *rank > 0);
    all.into_iter()
        .map(|(code, rank)| (code, rank.min(dim)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(dim: usize, budgets: &[usize]) -> Vec<Candidate> {
        let method = ComparedMethod {
            name: "supcon".into(),
            method: "supcon".into(),
            settings: BTreeMap::new(),
            recipe: "none".parse().unwrap(),
            grid: Vec::new(),
            spaces: Vec::new(),
            published: BTreeMap::new(),
        };
        candidates(dim, Space::Cosine, &[method], budgets).unwrap()
    }

    #[test]
    fn no_candidate_takes_more_than_the_largest_budget_or_stands_twice() {
        for dim in [6, 54, 384, 2580] {
            let found = all(dim, &[8, 16, 256]);
            for candidate in &found {
                let rank = candidate.method.settings.get("rank");
                let rank = rank.map_or(dim, |rank| rank.parse().unwrap());
                assert!(rank <= dim);
                if !candidate.method.recipe.to_string().starts_with("svd") {
                    assert!(candidate.code.item_bytes(rank, Space::Cosine) <= 256);
                }
            }
            let keys: BTreeSet<String> = (found.iter())
                .map(|c| {
                    format!(
                        "{} {:?} {}",
                        c.method.method, c.method.settings, c.method.recipe
                    )
                })
                .collect();
            assert_eq!(keys.len(), found.len());
        }
    }

    #[test]
    fn learned_maps_are_tried_as_bits_and_bytes() {
        let found = all(384, &[16]);
        let learned: Vec<(String, String)> = (found.iter())
            .filter(|candidate| candidate.is_learned)
            .map(|c| (c.code.to_string(), c.method.settings["rank"].clone()))
            .collect();
        let expected = [
            ("int8", "16"),
            ("bits", "128"),
            ("itq", "128"),
            ("opq:16", "128"),
        ];
        assert_eq!(learned, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
