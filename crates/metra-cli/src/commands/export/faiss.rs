//! An index of FAISS: empty, filled with items, or one that is there already with the map in front.

use super::{Done, Export};
use crate::args::{Common, SideName};
use crate::inputs::Columns;
use crate::inputs::{Loaded, in_file, load, model_groups};
use crate::interrupt;
use crate::progress::Reporter;
use anyhow::{Context, Result, bail};
use metra::internal::AtomicFile;
use metra::model::{Distance, Model, Plan, Side};
use metra_files::{Column, NarrowingRule};
use metra_stores::export::{self, FaissIndex, FaissWriter, Format, wrap_faiss, write_faiss};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// What FAISS compares by; cosines are inner products at length 1 there.
const OFFERED: [Distance; 2] = [Distance::SquaredL2, Distance::InnerProduct];

impl Export {
    pub(super) fn faiss(&self, model: &Model, common: &Common) -> Result<Done> {
        let plan = self.plan(model, &OFFERED)?;
        // Items that are given, or in an index already, are mapped: what is left to map are queries.
        let holds = self.items.is_some()
            || self.index.is_some()
            || self.way.is_some()
            || self.record.is_some();
        let side = match self.side {
            Some(SideName::Item) if holds => bail!(
                "the index holds its items, so that the map in front is that of queries: leave out \
                 --side item"
            ),
            Some(side) => side.into(),
            None if holds => Side::Query,
            None => self.side(model)?,
        };
        let export = match side {
            Side::Query => export::Export::queries(model, &plan)?,
            Side::Item => export::Export::items(model, &plan)?,
        };
        let items = match (&self.items, &self.index) {
            (Some(items), _) => self.fill(model, &plan, &export, items, common)?,
            (None, Some(index)) => self.wrap(&plan, &export, index)?,
            (None, None) => {
                let target = AtomicFile::create(&self.output)?;
                FaissWriter::create(target, &export, &plan, 0, None)?
                    .finish()?
                    .finish()?;
                0
            }
        };
        let way = Some(plan.way());
        let done = self.done(Format::Faiss, way, &export, vec![self.output.clone()]);
        Ok(Done {
            items: Some(items),
            ..done
        })
    }

    fn fill(
        &self,
        model: &Model,
        plan: &Plan,
        export: &export::Export,
        items: &Path,
        common: &Common,
    ) -> Result<u64> {
        let columns = Columns {
            vector: self.vector.clone(),
            camera: self.camera.clone(),
            id: self.id.clone(),
            ..Columns::default()
        };
        let rule = NarrowingRule::of(model.narrowing.as_ref());
        let loaded = load(items, &columns, &[], &self.filters, rule, common)?;
        let groups = model_groups(model, &loaded)?;
        let corpus = loaded.table.corpus.as_ref();
        let rows = corpus.len();
        let ids = self.id.as_deref().map(|id| ids(&loaded, id)).transpose()?;
        let mut reporter = Reporter::new();
        reporter.start("add items");
        let what = (corpus, groups.as_ref());
        let written = write_faiss(&self.output, (export, plan), what, ids, &mut |done| {
            interrupt::check()?;
            reporter.advance(done, Some(rows), || "rows".into());
            Ok(())
        });
        match written {
            // What the library says of a row is said of the file that holds it.
            Err(metra_stores::Error::Library(error)) => return Err(in_file(error, &loaded)),
            outcome => outcome?,
        }
        reporter.finish();
        Ok(rows)
    }

    fn wrap(&self, plan: &Plan, export: &export::Export, path: &Path) -> Result<u64> {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        let mut reader = BufReader::new(file);
        let index = FaissIndex::read(path, &mut reader)?;
        let mut target = AtomicFile::create(&self.output)?;
        wrap_faiss(&mut target, export, plan, path, &index, &mut reader)?;
        target.finish()?;
        Ok(index.rows)
    }
}

/// The ids of the items, which FAISS has as whole numbers.
fn ids(loaded: &Loaded, column: &str) -> Result<Vec<i64>> {
    match loaded.table.column(column)? {
        Column::Integers(ids) => Ok(ids.clone()),
        Column::Text { .. } | Column::Lists { .. } => bail!(
            "{}: column {column}: FAISS knows items by whole numbers, but these ids are not; without --id \
             items are known by the numbers of their rows",
            loaded.table.path.display()
        ),
    }
}
