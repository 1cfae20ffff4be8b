//! The text description of a plan: what to store, how to query, what it costs and where it fails.

use super::{Distance, Element, Form, Plan};

impl Plan {
    /// What to store, what to ask and what it costs with numbers of four bytes, in lines of text.
    pub fn describe(&self) -> String {
        self.describe_as(&Element::SINGLE)
    }

    /// The same for a store that keeps numbers in another form.
    pub fn describe_as(&self, element: &Element) -> String {
        let (store, ask) = self.both_sides();
        let bits = element.bits == 1;
        let (store, ask) = match bits {
            true => (
                "the signs of mapped items, as bits",
                "the signs of the mapped query for candidates, then the mapped query",
            ),
            false => (store, ask),
        };
        let compare = match self.distance {
            _ if bits => {
                "candidates by Hamming distance (smaller is nearer), then by inner product with what bits \
                 stand for (larger is nearer)"
            }
            Distance::SquaredL2 => "l2 (Euclidean distance, squared or not); smaller is nearer",
            Distance::InnerProduct => "ip (inner product); larger is nearer",
            Distance::Cosine => "cosine; larger is nearer, and lengths do not count",
        };
        let work = if self.items_stay() {
            "nothing to write: an index by this distance over the items serves as it is"
        } else if self.holds_input() {
            "every item is written, and the index built, again; another model then changes one \
             number of each"
        } else {
            "every item is written, and the index built, again"
        };
        let order = match self.ranks_again() {
            _ if bits => {
                "approximate: the Hamming distance finds several times as many candidates as are wanted, \
                 which are put into the metric's own order"
            }
            None => {
                "exact: the metric's own, wherever scores differ by more than 1e-5 of their range"
            }
            Some(_) => {
                "approximate: fetch several times as many candidates as are wanted and rank \
                        them again by the metric"
            }
        };
        let dim = self.item_dim();
        let mut text = format!(
            "way      {}\nstore    {store}\nask      {ask}\ncompare  {compare}\ncost     {dim} \
             dimensions, {} bytes an item as {} (the input has {}); {work}\norder    {order}",
            self.way(),
            element.bytes(dim),
            element.name,
            self.input_dim(),
        );
        for warning in self.warnings(element) {
            text += "\nwarning  ";
            text += &warning;
        }
        text
    }

    /// What breaks the order although the store takes it without an error.
    pub(crate) fn warnings(&self, element: &Element) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.distance == Distance::InnerProduct && element.bits > 1 {
            let lost = match self.form {
                Form::MappedAndNorm | Form::InputAndNorm(_) => {
                    Some("the last coordinate holds each item's own part of the distance")
                }
                Form::Rescaled(_) => Some("their lengths carry the metric"),
                Form::Mapped { .. } | Form::Input(_) => {
                    Some("the inner product depends on lengths")
                }
                Form::UnitLength | Form::Candidates => None,
            };
            if let Some(lost) = lost {
                warnings.push(format!(
                    "stored vectors must not be normalised, by you or by a store told `cosine`: {lost}"
                ));
            }
        }
        if let Form::MappedAndNorm | Form::InputAndNorm(_) = self.form {
            // Measured: docs/decisions/local-index.md.
            warnings.push(
                "a graph index (HNSW) by inner product links everything to the longest vectors and can \
                 miss nearly all neighbours in this form: measure its recall, search exactly, or take \
                 mapped by l2"
                    .into(),
            );
        }
        if (2..32).contains(&element.bits) {
            warnings.push(format!(
                "{} rounds what is stored: nearly equal scores change places",
                element.name
            ));
        }
        warnings
    }

    fn both_sides(&self) -> (&'static str, &'static str) {
        let definite = self.signs.is_definite();
        match &self.form {
            Form::Mapped { untouched: true } if self.items_stay() => {
                ("the items as they are", "the mapped query")
            }
            Form::Mapped { .. } | Form::Candidates => ("mapped items z", "the mapped query"),
            Form::UnitLength => (
                "mapped items at length 1, z/|z|",
                "the mapped query at length 1",
            ),
            Form::MappedAndNorm if definite => (
                "mapped items and one coordinate, (z, -|z|^2/2)",
                "the mapped query and a 1",
            ),
            Form::MappedAndNorm => (
                "mapped items and one coordinate, (z, -z'Sz/2) with S the signs of directions",
                "the mapped query with signs, and a 1: (Sz, 1)",
            ),
            Form::Input(_) => (
                "the items as they are",
                "the mapped query taken back by the map of items, A'z",
            ),
            Form::InputAndNorm(_) if definite => (
                "the items with one coordinate added, (x, -|z|^2/2)",
                "the mapped query taken back by the map of items, and a 1: (A'z, 1)",
            ),
            Form::InputAndNorm(_) => (
                "the items with one coordinate added, (x, -z'Sz/2) with S the signs of directions",
                "the mapped query taken back by the map of items, and a 1: (A'Sz, 1)",
            ),
            Form::Rescaled(input) if input.affine.is_linear() => (
                "items divided by their mapped length, x/|z|",
                "the mapped query taken back by the map of items, A'z/|z|",
            ),
            Form::Rescaled(_) => (
                "items and a 1 divided by their mapped length, (x, 1)/|z|",
                "the mapped query taken back by the map of items, (A'z, z.b)/|z|",
            ),
        }
    }
}
