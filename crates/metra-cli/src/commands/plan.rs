//! `metra plan`: what a vector store must hold and be asked so that it ranks as the model does.

use crate::args::{Common, PlanArgs};
use crate::inputs::Columns;
use crate::inputs::{Loaded, in_file, load, model_groups};
use crate::print;
use anyhow::{Result, ensure};
use clap::Args;
use metra::data::{Batch, Groups};
use metra::internal::Stream;
use metra::linalg::RowBuf;
use metra::model::{Element, Embedding, Model, Plan, PlanReport, Store, agreement};
use metra_files::{Filter, NarrowingRule};
use serde::Serialize;
use std::path::PathBuf;

/// Rows that ask and rows that are ranked where a plan is verified.
const QUERIES: usize = 50;
const ITEMS: usize = 1000;

/// Say how a vector store can serve a model, what each way costs, and verify the chosen one.
///
/// Every way that the metric has is listed with its cost, or with the reason why it does not serve.
/// With --sample, rows of a file go through the chosen plan, and the share of pairs of items that the
/// store would order as the metric does is printed.
#[derive(Args)]
pub(crate) struct PlanVerb {
    /// The model file
    model: PathBuf,
    /// The store: any, pgvector, faiss, lancedb, qdrant, milvus or chroma
    #[arg(long, default_value = "any")]
    store: Store,
    /// How the store keeps numbers (pgvector: vector, halfvec or bit)
    #[arg(long = "type", value_name = "TYPE")]
    element: Option<String>,
    /// Search exactly: an index's limits on dimensions do not count
    #[arg(long)]
    no_index: bool,
    #[command(flatten)]
    constraint_args: PlanArgs,
    /// Verify on rows of this file (.parquet, .npy, .csv, .jsonl, …)
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
    /// Rows of this file ask (default: other rows of the sample; needed where queries are vectors of another model)
    #[arg(long, value_name = "FILE", requires = "sample")]
    query: Option<PathBuf>,
    /// Column of vectors in the file of --query, where it is not that of the sample
    #[arg(long, value_name = "COLUMN", requires = "query")]
    query_vector: Option<String>,
    #[command(flatten)]
    columns: Columns,
    /// Keep only rows of the sample with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Seed of the rows drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Serialize)]
struct Shown {
    metric: String,
    store: &'static str,
    ways: Vec<Strategy>,
    chosen: Option<Strategy>,
    /// What to store and ask, for people.
    description: Option<String>,
    agreement: Option<Agreement>,
}

#[derive(Serialize, Clone)]
struct Strategy {
    way: String,
    distance: Option<String>,
    dimensions: Option<usize>,
    bytes: Option<usize>,
    items_stay: Option<bool>,
    exact: Option<bool>,
    refusal: Option<String>,
}

#[derive(Serialize)]
struct Agreement {
    share: f64,
    queries: usize,
    items: usize,
    centred: bool,
}

impl PlanVerb {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let model = Model::load(&self.model)?;
        let element = self.store.element(self.element.as_deref())?;
        let constraints = self.constraint_args.constraints(self.store.distances)?;
        let mut constraints = element.constrain(!self.no_index, constraints);
        // Of metrics that no store has, candidates are better than nothing, and it is said.
        constraints.candidates = true;
        let survey = Plan::survey(&model, &constraints)?;
        let chosen = survey.iter().find(|found| found.refusal.is_none());
        let plan = chosen.and_then(|found| found.plan.clone());
        let (plan, agreement) = match (plan, &self.sample) {
            (Some(plan), Some(_)) => {
                let (plan, agreement) = self.verify(&model, plan, common)?;
                (Some(plan), Some(agreement))
            }
            (plan, _) => (plan, None),
        };
        let shown = Shown {
            metric: format!(
                "{} dimensions to {}, compared by {}",
                print::input_dimensions(&model.chain),
                model.chain.output_dim(),
                model.chain.space()
            ),
            store: self.store.name,
            ways: survey.iter().map(|found| way(found, element)).collect(),
            chosen: chosen.map(|found| way(found, element)),
            description: plan.as_ref().map(|plan| plan.describe_as(element)),
            agreement,
        };
        if common.json {
            print::json(&shown)?;
        } else {
            self.print(&shown, element)?;
        }
        if plan.is_none() {
            // The error has every reason; text has shown them as a table already.
            Plan::choose_for_model(&model, &constraints)?;
        }
        Ok(())
    }

    fn print(&self, shown: &Shown, element: &Element) -> Result<()> {
        print::fact("metric", &shown.metric)?;
        let names: Vec<_> = self.store.distances.iter().map(|d| d.to_string()).collect();
        let mut store = format!("{} by {}", self.store, names.join(", "));
        if let Some(most) = element.most(!self.no_index) {
            let what = if self.no_index {
                "a column"
            } else {
                "an index"
            };
            store += &format!("; {what} of {} takes {most} dimensions", element.name);
        }
        print::fact("store", &store)?;
        if let Some(note) = self.store.note {
            print::fact("", note)?;
        }
        print::line("")?;
        print::line("  way              by    dimension   bytes  items    order")?;
        let mut taken = false;
        for way in &shown.ways {
            let fits = way.refusal.is_none();
            let mark = if fits && !taken { '*' } else { ' ' };
            taken |= fits;
            let number = |value: Option<usize>| value.map_or("-".into(), |v| v.to_string());
            print::line(
                format!(
                    "{mark} {:<16} {:<7} {:>7} {:>7}  {:<7}  {}",
                    way.way,
                    way.distance.as_deref().unwrap_or("-"),
                    number(way.dimensions),
                    number(way.bytes),
                    match way.items_stay {
                        Some(true) => "stay",
                        Some(false) => "written",
                        None => "-",
                    },
                    match way.exact {
                        Some(true) => "exact",
                        Some(false) => "candidates",
                        None => "-",
                    }
                )
                .trim_end(),
            )?;
            if let Some(refusal) = &way.refusal {
                print::line(&format!("      not: {refusal}"))?;
            }
        }
        if let Some(description) = &shown.description {
            print::line("")?;
            print::line(description)?;
        }
        match &shown.agreement {
            Some(found) => print::line(&format!(
                "verified {:.6} of the pairs that the metric tells apart are ordered alike ({} \
                 queries, {} items{})",
                found.share,
                print::count(found.queries as u64),
                print::count(found.items as u64),
                if found.centred {
                    ", centred on the items"
                } else {
                    ""
                }
            )),
            None if shown.description.is_some() => {
                print::line("verified not yet: give rows of yours with --sample FILE")
            }
            None => Ok(()),
        }
    }

    /// The plan as it would be used, and how well it keeps the order of rows of the sample.
    fn verify(&self, model: &Model, plan: Plan, common: &Common) -> Result<(Plan, Agreement)> {
        let read = |path: &PathBuf, columns: &Columns| {
            let rule = NarrowingRule::of(model.narrowing.as_ref());
            load(path, columns, &[], &self.filters, rule, common)
        };
        let Some(sample) = &self.sample else {
            anyhow::bail!("name rows to verify on with --sample");
        };
        let sample = read(sample, &self.columns)?;
        let of_queries = self.columns.of_queries(self.query_vector.as_deref());
        let asking = (self.query.as_ref()).map(|path| read(path, &of_queries));
        let asking = asking.transpose()?;
        ensure!(
            asking.is_some() || model.chain.query_preprocessing().is_none(),
            "queries are vectors of another model than items: name some with --query"
        );
        let rows = sample.table.corpus.len();
        ensure!(
            rows >= 3,
            "a plan is verified on at least 3 rows, but {} has {rows}",
            sample.table.path.display()
        );
        let apart = asking.is_none();
        let queries = if apart {
            QUERIES.min(rows as usize / 3)
        } else {
            0
        };
        let wanted = ITEMS.min(rows as usize - queries) + queries;
        let mut stream = Stream::new(self.seed, "plan sample", 0);
        let drawn = stream.choose(rows, wanted);
        let (own, items) = drawn.split_at(queries);
        let items = Drawn::new(model, &sample, items)?;
        let queries = match &asking {
            None => Drawn::new(model, &sample, own)?,
            Some(asking) => {
                let rows = asking.table.corpus.len();
                let count = QUERIES.min(rows as usize);
                Drawn::new(model, asking, &stream.choose(rows, count))?
            }
        };
        let named = |error| in_file(error, &sample);
        // Signs have no free origin.
        let plan = match self.store.element(self.element.as_deref())?.bits {
            1 => plan,
            _ => (plan.centred_where_needed(&model.chain, &items.batch())).map_err(named)?,
        };
        let share = agreement(&model.chain, &plan, &queries.batch(), &items.batch());
        let agreement = Agreement {
            share: share.map_err(named)?,
            queries: queries.rows.len(),
            items: items.rows.len(),
            centred: plan.centre().is_some(),
        };
        Ok((plan, agreement))
    }
}

fn way(found: &PlanReport, element: &Element) -> Strategy {
    let plan = found.plan.as_ref();
    Strategy {
        way: found.way.to_string(),
        distance: plan.map(|plan| plan.distance().to_string()),
        dimensions: plan.map(Plan::item_dim),
        bytes: plan.map(|plan| element.bytes(plan.item_dim())),
        items_stay: plan.map(Plan::items_stay),
        exact: plan.map(|plan| plan.ranks_again().is_none() && element.bits > 1),
        refusal: found.refusal.clone(),
    }
}

/// Rows drawn from a file, with their groups where the model needs them.
struct Drawn {
    rows: RowBuf,
    groups: Option<Vec<u32>>,
}

impl Drawn {
    fn new(model: &Model, loaded: &Loaded, drawn: &[u64]) -> Result<Self> {
        let mut rows = RowBuf::empty(loaded.table.corpus.dim());
        loaded.table.corpus.gather(drawn, &mut rows)?;
        let of = |groups: Groups| drawn.iter().map(|row| groups.of()[*row as usize]).collect();
        Ok(Drawn {
            rows,
            groups: model_groups(model, loaded)?.map(of),
        })
    }

    fn batch(&self) -> Batch<'_> {
        Batch {
            rows: self.rows.rows(),
            groups: self.groups.as_deref(),
        }
    }
}
