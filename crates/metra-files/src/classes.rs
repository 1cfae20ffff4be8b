//! What can be said of classes as text: orderings by attributes, and trees
//! (docs/formats/supervision.md).

use crate::error::{Error, Place, Result};
use crate::lines::{fields, visit_statements};
use metra::supervision::{ClassOrdering, Labels, Tree};
use std::collections::HashMap;
use std::path::Path;

/// Orderings of the classes at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderingsFile {
    /// One for each attribute of which at least two levels are known.
    pub orderings: Vec<ClassOrdering>,
    /// Names of classes left out because no row has them any more.
    pub unknown: u64,
}

/// Read orderings: lines `attribute: A<B~C<D`, the class with least of the attribute first.
///
/// A class that no row has is an error, unless `filtered` says that rows were filtered away.
pub fn read_orderings(path: &Path, labels: &Labels, filtered: bool) -> Result<OrderingsFile> {
    let known = |name: &str| labels.names().iter().any(|known| known == name);
    let mut found = OrderingsFile {
        orderings: Vec::new(),
        unknown: 0,
    };
    let mut lines: HashMap<String, u64> = HashMap::new();
    visit_statements(path, &mut |line, text| {
        let bad = |problem: String| Error::row(path, Place::Line(line), problem);
        let Some((attribute, order)) = text.split_once(':') else {
            let problem = format!("expected an attribute, a colon and classes, but found {text:?}");
            return Err(bad(problem));
        };
        let ordering =
            ClassOrdering::parse(attribute, order.trim()).map_err(|e| bad(e.to_string()))?;
        let attribute = ordering.attribute();
        if let Some(first) = lines.insert(attribute.to_owned(), line) {
            let problem =
                format!("expected every attribute once, but {attribute:?} is also in line {first}");
            return Err(bad(problem));
        }
        let names = ordering.levels().iter().flatten();
        let unknown: Vec<&String> = names.filter(|name| !known(name)).collect();
        if let Some(name) = unknown.first()
            && !filtered
        {
            let classes: Vec<&String> = labels.names().iter().take(12).collect();
            return Err(bad(format!(
                "expected classes among {classes:?}, but found {name:?}"
            )));
        }
        found.unknown += unknown.len() as u64;
        found.orderings.extend(ordering.retain(known));
        Ok(())
    })?;
    if found.orderings.is_empty() {
        let problem = "expected orderings of classes that rows have, but found none";
        return Err(Error::file(path, problem));
    }
    Ok(found)
}

/// Read a tree: lines `child parent`. Exactly one name must be nobody's child; every class of the
/// rows must be a name of the tree, which is checked where both meet.
pub fn read_taxonomy(path: &Path) -> Result<Tree> {
    let mut edges: Vec<(String, String)> = Vec::new();
    let mut parents: HashMap<String, (String, u64)> = HashMap::new();
    visit_statements(path, &mut |line, text| {
        let bad = |problem: String| Error::row(path, Place::Line(line), problem);
        let fields = fields(text);
        let [child, parent] = fields[..] else {
            return Err(bad(format!(
                "expected child and parent (separated by a tab where names hold blanks), but found \
                 {} fields",
                fields.len()
            )));
        };
        if child.is_empty() || parent.is_empty() || child == parent {
            return Err(bad(format!(
                "expected two different names, but found {child:?} and {parent:?}"
            )));
        }
        if let Some((before, first)) = parents.get(child) {
            if before == parent {
                return Ok(());
            }
            return Err(bad(format!(
                "expected one parent for every name, but {child:?} has {parent:?} here and \
                 {before:?} in line {first}"
            )));
        }
        parents.insert(child.to_owned(), (parent.to_owned(), line));
        edges.push((child.to_owned(), parent.to_owned()));
        Ok(())
    })?;
    if edges.is_empty() {
        let problem = "expected lines of child and parent, but found none";
        return Err(Error::file(path, problem));
    }
    Tree::from_edges(&edges).map_err(|e| Error::metra(path, e))
}
