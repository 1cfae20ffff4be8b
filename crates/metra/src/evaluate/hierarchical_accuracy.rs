//! Hierarchical accuracy: taking a poodle for a beagle is a smaller mistake than taking it for a
//! chair.
//!
//! The error of a class found is the height of its lowest common ancestor with the true class, the
//! height of a node being the steps down to the farthest leaf below it: the hierarchical cost of
//! Deng, Berg, Li & Fei-Fei ("What does classifying more than 10,000 image categories tell us?",
//! ECCV 2010), which Verma, Mahajan, Sellamanickam & Nair report for learned metrics ("Learning
//! hierarchical similarity metrics", CVPR 2012). Departs from them: it is divided by the height of
//! the root and taken from 1, so that it stands beside accuracy and larger is better. Heights are
//! those of the whole tree, so that a part of the rows does not change what a mistake counts.

use crate::Result;
use crate::supervision::{Labels, Tree};

/// Classes of asked rows and classes that can be found, as nodes of one tree.
#[derive(Debug, Clone)]
pub struct HierarchicalAccuracy<'a> {
    tree: &'a Tree,
    query: Vec<u32>,
    found: Vec<u32>,
    root_height: f64,
}

impl<'a> HierarchicalAccuracy<'a> {
    /// The classes of `query` and of `found`, each numbered for itself, must be nodes of the tree.
    pub(crate) fn new(tree: &'a Tree, query: &Labels, found: &Labels) -> Result<Self> {
        Ok(HierarchicalAccuracy {
            tree,
            root_height: f64::from(tree.root_height()),
            query: tree.nodes(query)?,
            found: tree.nodes(found)?,
        })
    }

    /// 1 − height of the lowest common ancestor / height of the root: 1 for the right class,
    /// wherever in the tree it hangs, and 0 where only the root joins the two or no class was
    /// found. O(depth of the tree).
    pub(crate) fn accuracy(&self, query: u32, found: u32) -> f64 {
        let class = self.query.get(query as usize);
        let (Some(&query), Some(&found)) = (class, self.found.get(found as usize)) else {
            return 0.0;
        };
        // An inner node has a height, but a class that was found is no mistake.
        if query == found {
            return 1.0;
        }
        let meeting = self.tree.common_ancestor(query, found);
        // Two different nodes have a root above a leaf, so its height is at least 1.
        1.0 - f64::from(self.tree.height(meeting)) / self.root_height
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_by_hand() {
        // thing > (animal > (dog > (poodle, beagle), cat > tabby), chair): heights 3, 2, 1, 1, 0.
        let edges = [
            ("poodle", "dog"),
            ("beagle", "dog"),
            ("tabby", "cat"),
            ("dog", "animal"),
            ("cat", "animal"),
            ("animal", "thing"),
            ("chair", "thing"),
        ];
        let tree = Tree::from_edges(&edges).unwrap();
        let query = Labels::from_names(&["poodle", "dog", "chair"]).unwrap();
        let found = Labels::from_names(&["poodle", "beagle", "tabby", "dog", "chair"]).unwrap();
        let accuracy = HierarchicalAccuracy::new(&tree, &query, &found).unwrap();
        let number = |labels: &Labels, name: &str| {
            let mut classes = 0..labels.classes() as u32;
            classes.find(|class| labels.name(*class) == name).unwrap()
        };
        let third = 1.0 / 3.0;
        for (is, taken_for, expected) in [
            ("poodle", "poodle", 1.0),
            ("poodle", "beagle", 1.0 - third),
            ("poodle", "tabby", 1.0 - 2.0 * third),
            ("poodle", "chair", 0.0),
            // Too general or too special: they meet at dog, of height 1.
            ("poodle", "dog", 1.0 - third),
            ("dog", "poodle", 1.0 - third),
            // An inner node that was found is right, although its height is 1.
            ("dog", "dog", 1.0),
            ("chair", "poodle", 0.0),
        ] {
            let value = accuracy.accuracy(number(&query, is), number(&found, taken_for));
            assert!(
                (value - expected).abs() < 1e-12,
                "{is} as {taken_for}: {value}"
            );
        }
        assert_eq!(accuracy.accuracy(0, u32::MAX), 0.0);
        let sofa = Labels::from_names(&["sofa"]).unwrap();
        assert!(HierarchicalAccuracy::new(&tree, &sofa, &found).is_err());
    }
}
