//! A store's distances, the strategies for serving a metric, and the user's constraints on a plan.

use crate::model::Space;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a vector store compares by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Distance {
    /// Euclidean distance, squared or not: the order is the same. Smaller is nearer.
    #[serde(rename = "l2")]
    SquaredL2,
    /// Inner product. Larger is nearer.
    #[serde(rename = "ip")]
    InnerProduct,
    /// Cosine: the inner product of the vectors divided by their lengths. Larger is nearer.
    #[serde(rename = "cosine")]
    Cosine,
}

/// How a metric is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Both sides go through the metric's maps.
    Mapped,
    /// Items stay as they are; the query carries the whole metric.
    QueryOnly,
    /// Items have one number more, which holds their own part of a squared distance.
    ExtraCoordinate,
    /// Items are divided by the length that they have after the map.
    Rescaled,
    /// Both sides go through the maps and the store finds candidates, which the metric ranks again:
    /// the only way that is not exact by itself.
    Candidates,
}

/// What a plan has to keep to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanConstraints {
    /// What the store can compare by.
    pub distances: Vec<Distance>,
    /// Whether the item vectors in the store must stay as they are, to the last number.
    pub keep_items: bool,
    /// Whether stored vectors must begin with the input vector, so that another model changes one
    /// number of each at most.
    pub keep_input: bool,
    /// The greatest dimension of a stored vector, where the store or its index has a limit.
    pub most_dimensions: Option<usize>,
    /// Whether the store keeps the sign of each number alone.
    pub signs_only: bool,
    /// The only way that will do, if not any.
    pub way: Option<Strategy>,
    /// Whether candidates will do, which the metric ranks again, for metrics that no store has.
    pub candidates: bool,
}

impl Distance {
    /// All of them.
    pub const ALL: [Distance; 3] = [
        Distance::SquaredL2,
        Distance::InnerProduct,
        Distance::Cosine,
    ];

    /// The space with the same order.
    pub(crate) fn space(self) -> Space {
        match self {
            Distance::SquaredL2 => Space::SquaredL2,
            Distance::InnerProduct => Space::InnerProduct,
            Distance::Cosine => Space::Cosine,
        }
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Distance::SquaredL2 => "l2",
            Distance::InnerProduct => "ip",
            Distance::Cosine => "cosine",
        })
    }
}

impl FromStr for Distance {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Distance::ALL.into_iter().find(|d| d.to_string() == name);
        found.ok_or_else(|| Error::parameter("distance", "l2, ip or cosine", name))
    }
}

impl Strategy {
    /// All of them.
    pub(crate) const ALL: [Strategy; 5] = [
        Strategy::Mapped,
        Strategy::QueryOnly,
        Strategy::ExtraCoordinate,
        Strategy::Rescaled,
        Strategy::Candidates,
    ];
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::Mapped => "mapped",
            Strategy::QueryOnly => "query-only",
            Strategy::ExtraCoordinate => "extra-coordinate",
            Strategy::Rescaled => "rescaled",
            Strategy::Candidates => "candidates",
        })
    }
}

impl FromStr for Strategy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Strategy::ALL.into_iter().find(|w| w.to_string() == name);
        found.ok_or_else(|| {
            let expected = "mapped, query-only, extra-coordinate, rescaled or candidates";
            Error::parameter("way", expected, name)
        })
    }
}

impl Default for PlanConstraints {
    /// A store with all three distances and no limits.
    fn default() -> Self {
        PlanConstraints {
            distances: Distance::ALL.to_vec(),
            keep_items: false,
            keep_input: false,
            most_dimensions: None,
            signs_only: false,
            way: None,
            candidates: false,
        }
    }
}

impl fmt::Display for PlanConstraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.distances.iter().map(Distance::to_string).collect();
        write!(f, "in a store that offers {}", names.join(", "))?;
        if self.keep_items {
            f.write_str(", with items kept as they are")?;
        }
        if self.keep_input {
            f.write_str(", with the input in front of every stored vector")?;
        }
        if let Some(most) = self.most_dimensions {
            write!(f, ", in at most {most} dimensions")?;
        }
        if self.signs_only {
            f.write_str(", as bits")?;
        }
        match self.way {
            Some(way) => write!(f, ", by the way {way}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for distance in Distance::ALL {
            assert_eq!(distance.to_string().parse::<Distance>().unwrap(), distance);
            let json = serde_json::to_string(&distance).unwrap();
            assert_eq!(json, format!("\"{distance}\""));
            assert_eq!(serde_json::from_str::<Distance>(&json).unwrap(), distance);
        }
        for way in Strategy::ALL {
            assert_eq!(way.to_string().parse::<Strategy>().unwrap(), way);
            assert_eq!(serde_json::to_string(&way).unwrap(), format!("\"{way}\""));
        }
        assert_eq!(
            "dot".parse::<Distance>().unwrap_err().to_string(),
            "distance must be l2, ip or cosine, but is dot"
        );
        assert!("both".parse::<Strategy>().is_err());
    }
}
