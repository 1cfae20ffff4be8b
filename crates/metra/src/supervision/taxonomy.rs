//! Class trees: a poodle is nearer to another dog than to a cat, and to a cat than to a chair.

use super::labels::Labels;
use crate::data::RowId;
use crate::{Error, Result};
use std::collections::HashMap;

/// A rooted tree of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    names: Vec<String>,
    /// Number of each node's parent; the root is its own.
    parents: Vec<u32>,
    depths: Vec<u32>,
    /// Steps down to the farthest leaf below each node.
    heights: Vec<u32>,
}

impl Tree {
    /// From (child, parent) pairs. Exactly one name must be nobody's child: the root.
    pub fn from_edges<S: AsRef<str>>(edges: &[(S, S)]) -> Result<Self> {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut names: Vec<String> = Vec::new();
        for name in edges.iter().flat_map(|(c, p)| [c.as_ref(), p.as_ref()]) {
            numbers.entry(name).or_insert_with(|| {
                names.push(name.to_owned());
                names.len() as u32 - 1
            });
        }
        let mut parents = vec![u32::MAX; names.len()];
        for (child, parent) in edges {
            let (child, parent) = (numbers[child.as_ref()], numbers[parent.as_ref()]);
            let known = &mut parents[child as usize];
            if *known != u32::MAX && *known != parent {
                return Err(Error::Data(format!(
                    "taxonomy: {:?} has two parents, {:?} and {:?}: expected a tree",
                    names[child as usize], names[*known as usize], names[parent as usize]
                )));
            }
            *known = parent;
        }
        let roots: Vec<usize> = (0..names.len())
            .filter(|n| parents[*n] == u32::MAX || parents[*n] == *n as u32)
            .collect();
        let [root] = roots[..] else {
            let found: Vec<&String> = roots.iter().take(5).map(|r| &names[*r]).collect();
            return Err(Error::Data(format!(
                "taxonomy: expected one root (a name that is nobody's child), but found {}: {found:?}",
                roots.len()
            )));
        };
        parents[root] = root as u32;
        let mut depths = vec![u32::MAX; names.len()];
        depths[root] = 0;
        for start in 0..names.len() {
            let mut path = Vec::new();
            let mut node = start;
            while depths[node] == u32::MAX {
                path.push(node);
                node = parents[node] as usize;
                if path.len() > names.len() {
                    return Err(Error::Data(format!(
                        "taxonomy: {:?} is its own ancestor: expected a tree",
                        names[start]
                    )));
                }
            }
            let mut depth = depths[node];
            for node in path.into_iter().rev() {
                depth += 1;
                depths[node] = depth;
            }
        }
        let mut deepest_first: Vec<usize> = (0..names.len()).collect();
        deepest_first.sort_by_key(|node| std::cmp::Reverse(depths[*node]));
        let mut heights = vec![0; names.len()];
        for node in deepest_first.into_iter().filter(|node| *node != root) {
            let parent = parents[node] as usize;
            heights[parent] = heights[parent].max(heights[node] + 1);
        }
        Ok(Tree {
            names,
            parents,
            depths,
            heights,
        })
    }

    /// Node numbers of the classes of some labels; every class must be a node.
    pub fn nodes(&self, labels: &Labels) -> Result<Vec<u32>> {
        let known: HashMap<&str, u32> = (self.names.iter().zip(0..))
            .map(|(name, node)| (name.as_str(), node))
            .collect();
        (0..labels.classes() as u32)
            .map(|class| {
                let name = labels.name(class);
                known.get(name).copied().ok_or_else(|| {
                    Error::Data(format!(
                        "taxonomy: expected every class as a node, but class {name:?} is none"
                    ))
                })
            })
            .collect()
    }

    /// The deepest node that two nodes both lie below, a node lying below itself.
    pub(crate) fn common_ancestor(&self, a: u32, b: u32) -> u32 {
        let (mut a, mut b) = (a as usize, b as usize);
        while a != b {
            if self.depths[a] >= self.depths[b] {
                a = self.parents[a] as usize;
            } else {
                b = self.parents[b] as usize;
            }
        }
        a as u32
    }

    /// Steps down from a node to the farthest leaf below it: 0 for a leaf.
    pub fn height(&self, node: u32) -> u32 {
        self.heights[node as usize]
    }

    /// The height of the root, which no other node has.
    pub(crate) fn root_height(&self) -> u32 {
        self.heights.iter().copied().max().unwrap_or(0)
    }

    /// Steps up from the deeper of two nodes to where their ways to the root meet.
    fn kinship(&self, a: u32, b: u32) -> u32 {
        let deepest = self.depths[a as usize].max(self.depths[b as usize]);
        deepest - self.depths[self.common_ancestor(a, b) as usize]
    }
}

/// Rows with a class each, and the tree whose nodes the classes are.
#[derive(Debug, Clone)]
pub struct Taxonomy {
    labels: Labels,
    tree: Tree,
    /// Kinship of every two classes, row-major.
    kinship: Vec<u32>,
}

impl Taxonomy {
    /// Rows' classes and the tree; every class must be one of its nodes.
    pub fn new(labels: Labels, tree: Tree) -> Result<Self> {
        let nodes = tree.nodes(&labels)?;
        let kinship = (nodes.iter())
            .flat_map(|a| nodes.iter().map(|b| tree.kinship(*a, *b)))
            .collect();
        Ok(Taxonomy {
            labels,
            tree,
            kinship,
        })
    }

    /// The rows' classes.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// How far two classes are apart: 0 for the same, 1 for siblings, 2 for cousins, and so on.
    pub fn kinship(&self, a: u32, b: u32) -> u32 {
        self.kinship[a as usize * self.labels.classes() + b as usize]
    }

    /// The same of some rows.
    pub fn select(&self, rows: &[RowId]) -> Result<Self> {
        Taxonomy::new(self.labels.select(rows)?, self.tree.clone())
    }

    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) {
        hasher.update(b"taxonomy");
        self.labels.hash(hasher);
        hasher.update(bytemuck::cast_slice(&self.kinship));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [(&str, &str); 7] = [
        ("poodle", "dog"),
        ("beagle", "dog"),
        ("tabby", "cat"),
        ("dog", "animal"),
        ("cat", "animal"),
        ("animal", "thing"),
        ("chair", "thing"),
    ];

    #[test]
    fn kinship_by_hand() {
        let tree = Tree::from_edges(&EDGES).unwrap();
        let labels = Labels::from_names(&["beagle", "chair", "poodle", "tabby"]).unwrap();
        let taxonomy = Taxonomy::new(labels, tree).unwrap();
        // Classes in order of name: beagle 0, chair 1, poodle 2, tabby 3.
        assert_eq!(taxonomy.kinship(0, 0), 0);
        assert_eq!(taxonomy.kinship(0, 2), 1);
        assert_eq!(taxonomy.kinship(2, 3), 2);
        // Both lie deep below the root, where chair hangs: three steps up from the deeper one.
        assert_eq!((taxonomy.kinship(3, 1), taxonomy.kinship(1, 3)), (3, 3));
    }

    #[test]
    fn heights_by_hand() {
        let tree = Tree::from_edges(&EDGES).unwrap();
        let labels = Labels::from_names(&["animal", "chair", "dog", "poodle", "thing"]).unwrap();
        let nodes = tree.nodes(&labels).unwrap();
        // A leaf 0, dog 1 (poodle), animal 2 (dog, poodle), thing 3.
        let heights: Vec<u32> = nodes.iter().map(|node| tree.height(*node)).collect();
        assert_eq!(heights, [2, 0, 1, 0, 3]);
        assert_eq!(tree.root_height(), 3);
        let [animal, chair, dog, poodle, thing] = nodes[..] else {
            panic!("five classes");
        };
        assert_eq!(tree.common_ancestor(poodle, dog), dog);
        assert_eq!(tree.common_ancestor(animal, poodle), animal);
        assert_eq!(tree.common_ancestor(chair, poodle), thing);
    }

    #[test]
    fn what_is_no_tree_is_named() {
        let error = |edges: &[(&str, &str)]| Tree::from_edges(edges).unwrap_err().to_string();
        assert!(error(&[("a", "b"), ("a", "c"), ("c", "b")]).contains("two parents"));
        assert!(error(&[("a", "b"), ("c", "d")]).contains("one root"));
        assert!(error(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "e")]).contains("own ancestor"));
        let labels = Labels::from_names(&["sofa"]).unwrap();
        let error = Taxonomy::new(labels, Tree::from_edges(&EDGES).unwrap()).unwrap_err();
        assert!(error.to_string().contains("class \"sofa\" is none"));
    }
}
