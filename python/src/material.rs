//! What studies work on, from arrays and what was told of them.

use crate::told::Told;
use crate::vectors::{Numbers, Rule, Vectors};
use metra::Result;
use metra::data::{Corpus, Groups, Interruptible, Narrowing};
use metra::metric::Storage;
use metra::study::{Collection, Material};
use std::sync::atomic::AtomicBool;

/// Vectors as the caller has them: items, and queries where they are others.
pub(crate) struct Arrays<'a> {
    pub(crate) items: Numbers<'a>,
    pub(crate) queries: Option<Numbers<'a>>,
}

/// Groups numbered as `names` has them, where there are both.
pub(crate) fn numbered(groups: Option<Groups>, names: Option<&[String]>) -> Result<Option<Groups>> {
    match (groups, names) {
        (Some(groups), Some(names)) => groups.renumbered(names).map(Some),
        (groups, _) => Ok(groups),
    }
}

/// Read vectors by a rule and work on them, until `stop` is set. `names` are the groups of a model
/// that is judged. The work is given the narrowing of the items too.
pub(crate) fn with_material<R>(
    arrays: &Arrays<'_>,
    rule: &Rule<'_>,
    told: &Told,
    names: Option<&[String]>,
    stop: &AtomicBool,
    work: impl FnOnce(&Material<'_>, Option<&Narrowing>) -> Result<R>,
) -> Result<R> {
    let items = Vectors::read(arrays.items, rule)?;
    // Queries become f32 as items do, or distances between them would mean nothing.
    let same = Rule::Apply(items.narrowing.as_ref());
    let queries = (arrays.queries.map(|queries| Vectors::read(queries, &same))).transpose()?;
    let corpus = items.corpus()?;
    let asking = queries.as_ref().map(Vectors::corpus).transpose()?;
    let corpus = Interruptible::new(&corpus, stop);
    let asking = (asking.as_ref()).map(|corpus| Interruptible::new(corpus, stop));
    let groups = numbered(told.groups(), names)?;
    let query_names = groups.as_ref().map_or(names, |groups| Some(groups.names()));
    let query_groups = numbered(told.query_groups(), query_names)?;
    let (supervision, judged_by) =
        told.supervision(corpus.len(), asking.as_ref().map(Corpus::len))?;
    let material = Material {
        items: Collection {
            corpus: &corpus,
            groups: groups.as_ref(),
        },
        queries: asking.as_ref().map(|corpus| Collection {
            corpus,
            groups: query_groups.as_ref(),
        }),
        supervision,
        judged_by,
        storage: Storage::default(),
    };
    work(&material, items.narrowing.as_ref())
}
