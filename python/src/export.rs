//! A model's map as a file for other programs: what `metra export` writes.

use crate::errors::{from_stores, raised};
use crate::model::Model;
use crate::plan::Plan;
use crate::vectors::{Given, Names, Numbers, Vectors};
use crate::working::work;
use metra::internal::{AtomicFile, Interruptible};
use metra::model::{Distance, PlanConstraints, Side};
use metra::{Error, Result};
use metra_stores::export::{Export, Format, SqlColumns, c_name, write_faiss, write_sql};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// What to write, as words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wish {
    format: Option<String>,
    side: Option<String>,
    normalize: bool,
    name: Option<String>,
    table: String,
    column: String,
    id_column: String,
    ids: Option<Vec<i64>>,
    cameras: Option<Names>,
}

/// Write a model's map; gives the files that were written. Files that compare follow the plan, or the best
/// for them.
#[pyfunction]
#[pyo3(signature = (model, path, wish, plan=None, items=None))]
pub(crate) fn export(
    py: Python<'_>,
    model: Py<Model>,
    path: PathBuf,
    wish: Wish,
    plan: Option<Py<Plan>>,
    items: Option<Given<'_>>,
) -> PyResult<Vec<PathBuf>> {
    if plan
        .as_ref()
        .is_some_and(|plan| plan.get().model.get().0 != model.get().0)
    {
        let expected = "one of this model";
        return Err(raised(Error::parameter("plan", expected, "of another")));
    }
    let order = ExportOrder {
        model: model.get(),
        path: &path,
        wish: &wish,
        plan: plan.as_ref().map(|plan| &plan.get().plan),
        items: items.as_ref().map(Given::numbers).transpose()?,
    };
    work(py, None, None, |channel| order.write(channel.stop()))
}

struct ExportOrder<'a> {
    model: &'a Model,
    path: &'a Path,
    wish: &'a Wish,
    plan: Option<&'a metra::model::Plan>,
    items: Option<Numbers<'a>>,
}

impl ExportOrder<'_> {
    fn write(&self, stop: &AtomicBool) -> Result<Vec<PathBuf>> {
        let format = match &self.wish.format {
            Some(format) => format.parse(),
            None => Format::of_path(self.path),
        };
        let format = format.map_err(from_stores)?;
        self.fits(format)?;
        match format {
            Format::Map(format) => {
                let model = &self.model.0;
                let export = match self.plan {
                    Some(plan) => Export::queries(model, plan),
                    None => Export::embedding(model, self.side()?),
                };
                let export = match self.wish.normalize {
                    true => export.map(Export::at_unit_length),
                    false => export,
                };
                let written = export.and_then(|e| format.write(self.path, &e, &self.name()));
                written.map_err(from_stores)
            }
            Format::Faiss => self.faiss(stop),
            Format::Sql => self.sql(),
        }
    }

    /// What one format has no place for is not silently left out.
    fn fits(&self, format: Format) -> Result<()> {
        let wish = self.wish;
        let is_map = matches!(format, Format::Map(_));
        let misplaced = [
            (
                "items",
                self.items.is_some() && format != Format::Faiss,
                "no format but faiss holds items",
            ),
            (
                "ids",
                wish.ids.is_some() && self.items.is_none(),
                "they are those of items",
            ),
            (
                "cameras",
                wish.cameras.is_some() && self.items.is_none(),
                "they are those of items",
            ),
            (
                "normalize",
                wish.normalize && !is_map,
                "an index divides where its plan says so",
            ),
            (
                "side",
                wish.side.is_some() && (!is_map || self.plan.is_some()),
                "a plan, which files that compare follow, maps queries",
            ),
        ];
        for (name, is_misplaced, reason) in misplaced {
            if is_misplaced {
                return Err(Error::parameter(name, format!("absent: {reason}"), "given"));
            }
        }
        Ok(())
    }

    fn faiss(&self, stop: &AtomicBool) -> Result<Vec<PathBuf>> {
        let Some(items) = self.items else {
            let expected = "given: an index of FAISS is written with its items";
            return Err(Error::parameter("items", expected, "absent"));
        };
        // FAISS has no cosine; such models are inner products at length 1 there.
        let plan = self.plan(&[Distance::SquaredL2, Distance::InnerProduct])?;
        let export = Export::queries(&self.model.0, &plan).map_err(from_stores)?;
        let vectors = Vectors::read(items, &self.model.rule())?;
        let (corpus, groups) = (
            vectors.corpus()?,
            self.model.groups(self.wish.cameras.as_ref())?,
        );
        let corpus = Interruptible::new(&corpus, stop);
        let what = (&corpus as _, groups.as_ref());
        let ids = self.wish.ids.clone();
        write_faiss(self.path, (&export, &plan), what, ids, &mut |_| Ok(()))
            .map_err(from_stores)?;
        Ok(vec![self.path.to_owned()])
    }

    fn sql(&self) -> Result<Vec<PathBuf>> {
        let plan = self.plan(&Distance::ALL)?;
        let wish = self.wish;
        let write = || {
            let export = Export::queries(&self.model.0, &plan)?;
            let columns = SqlColumns {
                table: wish.table.parse()?,
                id: wish.id_column.clone(),
                column: wish.column.clone(),
            };
            let mut target = AtomicFile::create(self.path)?;
            write_sql(&mut target, &export, &plan, &columns, &self.name())?;
            Ok(target.finish()?)
        };
        write().map_err(from_stores)?;
        Ok(vec![self.path.to_owned()])
    }

    fn plan(&self, distances: &[Distance]) -> Result<metra::model::Plan> {
        if let Some(plan) = self.plan {
            if !distances.contains(&plan.distance()) {
                let expected = "by a distance that the format has";
                return Err(Error::parameter("plan", expected, plan.distance()));
            }
            return Ok(plan.clone());
        }
        let constraints = PlanConstraints {
            distances: distances.to_vec(),
            ..PlanConstraints::default()
        };
        metra::model::Plan::choose_for_model(&self.model.0, &constraints)
    }

    /// The side asked for; one must be named where the two differ.
    fn side(&self) -> Result<Side> {
        match self.wish.side.as_deref() {
            Some("query") => Ok(Side::Query),
            Some("item") => Ok(Side::Item),
            None if !self.model.chain().has_two_sides() => Ok(Side::Query),
            given => {
                let expected = "query or item, where queries and items are mapped differently";
                Err(Error::parameter(
                    "side",
                    expected,
                    given.unwrap_or("absent"),
                ))
            }
        }
    }

    /// What names in the file begin with.
    fn name(&self) -> String {
        self.wish.name.clone().unwrap_or_else(|| {
            let stem = self.path.file_stem().unwrap_or_default();
            c_name(&stem.to_string_lossy())
        })
    }
}
