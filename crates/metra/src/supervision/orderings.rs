//! Orderings of classes by attributes: "tall buildings look less natural than streets". They are
//! said of classes and hold, roughly, for their rows (Parikh & Grauman, ICCV 2011).

use super::labels::Labels;
use crate::data::RowId;
use crate::{Error, Result};
use std::collections::HashMap;

/// Classes by how much of one attribute they have, such as `T<I~S<H`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassOrdering {
    attribute: String,
    /// Names of classes, least first; classes of one level have equally much.
    levels: Vec<Vec<String>>,
}

impl ClassOrdering {
    /// Read classes joined by `<` (less of the attribute) and `~` (equally much).
    pub fn parse(attribute: &str, text: &str) -> Result<Self> {
        let attribute = attribute.trim();
        let wrong = |problem: String| Error::Data(format!("ordering by {attribute:?}: {problem}"));
        if attribute.is_empty() {
            return Err(Error::Data(
                "an ordering has no name of its attribute".into(),
            ));
        }
        let mut seen = HashMap::new();
        let mut levels = Vec::new();
        for (level, part) in text.split('<').enumerate() {
            let mut classes = Vec::new();
            for name in part.split('~') {
                let name = name.trim();
                if name.is_empty() {
                    return Err(wrong(format!(
                        "expected classes joined by < and ~, but found {text:?}"
                    )));
                }
                if seen.insert(name.to_owned(), level).is_some() {
                    return Err(wrong(format!("names class {name:?} twice")));
                }
                classes.push(name.to_owned());
            }
            levels.push(classes);
        }
        if levels.len() < 2 {
            return Err(wrong(format!(
                "expected at least two levels (A<B), but found {text:?}"
            )));
        }
        Ok(ClassOrdering {
            attribute: attribute.to_owned(),
            levels,
        })
    }

    /// The same without the classes for which `keep` does not hold; `None` where fewer than two
    /// levels are left, which order nothing.
    pub fn retain(mut self, keep: impl Fn(&str) -> bool) -> Option<Self> {
        for level in &mut self.levels {
            level.retain(|name| keep(name));
        }
        self.levels.retain(|level| !level.is_empty());
        (self.levels.len() > 1).then_some(self)
    }

    /// Where a class lies on the attribute's scale, from where others do (Parikh & Grauman, Sec. 3.3): with those of
    /// its own level; else halfway between the nearest levels below and above; else beyond the nearest one by the mean
    /// distance of neighbours on the scale. A class that is not named lies at the mean of all; `None` where nothing is
    /// known.
    pub(crate) fn place(&self, class: &str, known: &[(&str, f64)]) -> Option<f64> {
        let mean = |places: &[f64]| -> Option<f64> {
            (!places.is_empty()).then(|| places.iter().sum::<f64>() / places.len() as f64)
        };
        let of_level = |level: &Vec<String>| -> Option<f64> {
            let known = known
                .iter()
                .filter(|(name, _)| level.iter().any(|l| l == name));
            mean(&known.map(|(_, place)| *place).collect::<Vec<f64>>())
        };
        let all: Vec<f64> = known.iter().map(|(_, place)| *place).collect();
        let is_here = |level: &Vec<String>| level.iter().any(|name| name == class);
        let Some(own) = self.levels.iter().position(is_here) else {
            return mean(&all);
        };
        if let Some(place) = of_level(&self.levels[own]) {
            return Some(place);
        }
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let gap = (most - least) / all.len().saturating_sub(1).max(1) as f64;
        let below = self.levels[..own].iter().rev().find_map(of_level);
        let above = self.levels[own + 1..].iter().find_map(of_level);
        match (below, above) {
            (Some(below), Some(above)) => Some((below + above) / 2.0),
            (Some(below), None) => Some(below + gap),
            (None, Some(above)) => Some(above - gap),
            (None, None) => mean(&all),
        }
    }

    /// Name of the attribute.
    pub fn attribute(&self) -> &str {
        &self.attribute
    }

    /// Names of classes, least first.
    pub fn levels(&self) -> &[Vec<String>] {
        &self.levels
    }
}

/// Rows with a class each, and orderings of the classes by attributes.
#[derive(Debug, Clone)]
pub struct Orderings {
    labels: Labels,
    orderings: Vec<ClassOrdering>,
    /// Level of each class for each attribute; `None` where the ordering does not name it.
    levels: Vec<Vec<Option<u32>>>,
}

impl Orderings {
    /// Rows' classes and orderings of these.
    pub fn new(labels: Labels, orderings: Vec<ClassOrdering>) -> Result<Self> {
        if orderings.is_empty() {
            return Err(Error::Data(
                "expected at least one ordering, found 0".into(),
            ));
        }
        for (number, ordering) in orderings.iter().enumerate() {
            if (orderings[..number].iter()).any(|o| o.attribute == ordering.attribute) {
                let attribute = &ordering.attribute;
                return Err(Error::Data(format!(
                    "attribute {attribute:?} is ordered twice"
                )));
            }
        }
        let classes: HashMap<&str, u32> = (0..labels.classes() as u32)
            .map(|class| (labels.name(class), class))
            .collect();
        for ordering in &orderings {
            for name in ordering.levels.iter().flatten() {
                if !classes.contains_key(name.as_str()) {
                    let mut known: Vec<&str> = classes.keys().copied().collect();
                    known.sort_unstable();
                    known.truncate(12);
                    return Err(Error::Data(format!(
                        "ordering by {:?}: expected classes among {known:?}, but found {name:?}",
                        ordering.attribute
                    )));
                }
            }
        }
        Ok(Self::build(labels, orderings))
    }

    fn build(labels: Labels, orderings: Vec<ClassOrdering>) -> Self {
        let levels = (orderings.iter())
            .map(|ordering| {
                let of: HashMap<&str, u32> = (ordering.levels.iter().enumerate())
                    .flat_map(|(level, names)| {
                        names.iter().map(move |n| (n.as_str(), level as u32))
                    })
                    .collect();
                (0..labels.classes() as u32)
                    .map(|class| of.get(labels.name(class)).copied())
                    .collect()
            })
            .collect();
        Orderings {
            labels,
            orderings,
            levels,
        }
    }

    /// The rows' classes.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The orderings as given.
    pub fn orderings(&self) -> &[ClassOrdering] {
        &self.orderings
    }

    /// Number of attributes.
    pub fn attributes(&self) -> usize {
        self.orderings.len()
    }

    /// How much of an attribute a class has, counted from 0; `None` where it was not said.
    pub fn level(&self, attribute: usize, class: u32) -> Option<u32> {
        self.levels[attribute][class as usize]
    }

    /// The same of some rows. Orderings may then name classes that no row has any more.
    pub fn select(&self, rows: &[RowId]) -> Result<Self> {
        Ok(Self::build(
            self.labels.select(rows)?,
            self.orderings.clone(),
        ))
    }

    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) {
        hasher.update(b"orderings");
        self.labels.hash(hasher);
        for (ordering, levels) in self.orderings.iter().zip(&self.levels) {
            hasher.update(&(ordering.attribute.len() as u64).to_le_bytes());
            hasher.update(ordering.attribute.as_bytes());
            for level in levels {
                hasher.update(&level.map_or(u32::MAX, |l| l).to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_by_hand() {
        let ordering = ClassOrdering::parse("natural", "T<I ~ S<H").unwrap();
        let labels = Labels::from_names(&["H", "I", "S", "T", "X"]).unwrap();
        let orderings = Orderings::new(labels, vec![ordering]).unwrap();
        let level = |name: &str| {
            let class = (0..5).find(|c| orderings.labels().name(*c) == name);
            orderings.level(0, class.unwrap())
        };
        assert_eq!(
            (level("T"), level("I"), level("S")),
            (Some(0), Some(1), Some(1))
        );
        assert_eq!((level("H"), level("X")), (Some(2), None));
        let some = orderings.orderings()[0].clone().retain(|name| name != "T");
        let levels = some.unwrap().levels().to_vec();
        assert_eq!(levels, [vec!["I".to_owned(), "S".into()], vec!["H".into()]]);
        let one = orderings.orderings()[0].clone().retain(|name| name == "T");
        assert!(one.is_none());
        let part = orderings.select(&[0, 4]).unwrap();
        assert_eq!(part.labels().classes(), 2);
        assert_eq!((part.level(0, 0), part.level(0, 1)), (Some(2), None));
    }

    #[test]
    fn unseen_classes_are_placed_by_hand() {
        let ordering = ClassOrdering::parse("natural", "T<I~S<H<C~O").unwrap();
        // Mean distance of neighbours: (9 − 1)/3.
        let known = [("I", 1.0), ("S", 3.0), ("C", 9.0), ("X", 5.0)];
        let place = |class| ordering.place(class, &known).unwrap();
        assert_eq!(place("H"), (2.0 + 9.0) / 2.0);
        assert_eq!(place("O"), 9.0);
        assert_eq!(place("T"), 2.0 - 8.0 / 3.0);
        assert_eq!(place("Y"), 4.5);
        assert_eq!(ordering.place("C", &known[..2]), Some(2.0 + 2.0));
        assert_eq!(ordering.place("C", &[("X", 5.0)]), Some(5.0));
        assert_eq!(ordering.place("C", &[]), None);
    }

    #[test]
    fn bad_orderings_are_named() {
        let error = |text| {
            ClassOrdering::parse("smiling", text)
                .unwrap_err()
                .to_string()
        };
        assert!(error("A<<B").contains("joined by < and ~"));
        assert!(error("A<B~A").contains("names class \"A\" twice"));
        assert!(error("A~B").contains("at least two levels"));
        let labels = Labels::from_names(&["A", "B"]).unwrap();
        let ordering = ClassOrdering::parse("smiling", "A<C").unwrap();
        let error = Orderings::new(labels, vec![ordering]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ordering by \"smiling\": expected classes among [\"A\", \"B\"], but found \"C\""
        );
    }
}
