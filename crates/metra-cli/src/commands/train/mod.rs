//! `metra train`: choose on a validation part, judge once on a test part, save the model.

mod parts;
mod report;

use self::report::{
    PooledReport, Report, SplitReport, describe, print_pooled, print_split, print_summary,
};
use crate::args::{Columns, Common, Compared, Judged, assignment};
use crate::load::{Loaded, in_file, load, load_judged, protocol_for};
use crate::progress::Reporter;
use crate::timing::{Timing, product_seconds, timed};
use crate::told::{Sources, told};
use crate::{STOP, print};
use anyhow::{Result, bail, ensure};
use clap::Args;
use metra::data::fingerprint;
use metra::evaluate::{Empty, Gain, Measure, Ties};
use metra::learn::{Recipe, registry};
use metra::metric::{Embedding, Gain as MeasuredGain, HeldOut, Model, Origin, Space};
use metra::study::{
    Chosen, Classifier, Collection, Fitted, HoldOut, Judging, Material, Parts, Protocol, Study,
    Verdicts, check_protocol, pool, summarise,
};
use metra::supervision::Supervision;
use metra_files::{Filter, NarrowingRule};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Learn a metric, choose its settings on a validation part and judge it on a test part.
#[derive(Args)]
pub(crate) struct Train {
    /// The vectors (.parquet, .npy, .csv, .tsv); or give --queries, --items and --qrels
    #[arg(required_unless_present = "queries", conflicts_with = "queries")]
    data: Option<PathBuf>,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    judged: Judged,
    #[command(flatten)]
    compared: Compared,
    /// Orderings of classes by attributes, one a line: attribute: A<B~C<D
    #[arg(long, value_name = "FILE", requires = "label",
          conflicts_with_all = ["queries", "qrels", "pairs", "triplets", "quadruplets", "taxonomy"])]
    orderings: Option<PathBuf>,
    /// A tree of classes, one edge a line: child, parent
    #[arg(long, value_name = "FILE", requires = "label",
          conflicts_with_all = ["queries", "qrels", "pairs", "triplets", "quadruplets"])]
    taxonomy: Option<PathBuf>,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// What learns; `metra methods` lists them
    #[arg(long, default_value = "warca")]
    method: String,
    /// Numbers in a mapped vector; short for --set rank=N
    #[arg(long, value_name = "N")]
    rank: Option<usize>,
    /// Set a parameter of the method (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    settings: Vec<(String, String)>,
    /// Try these values on the validation part: a parameter's, or `prepare` (repeatable)
    #[arg(long = "tune", value_name = "NAME=A,B,C", value_parser = assignment)]
    grid: Vec<(String, String)>,
    /// Preparation before the method, steps joined by +; `metra methods` lists them
    #[arg(long, value_name = "STEPS", default_value = "none")]
    prepare: Recipe,
    /// Scores after the map to choose among, by comma (default: euclid, cosine and dot)
    #[arg(long, value_name = "SCORES", value_delimiter = ',')]
    score: Vec<Space>,
    /// The base to beat: euclid or cosine (default: the better one on the validation part)
    #[arg(long, value_name = "SCORE")]
    base: Option<Space>,
    /// What is new at use: identities, rows, queries, items or none (default: from the data)
    #[arg(long, value_name = "KIND")]
    holdout: Option<HoldOut>,
    /// Share held out for validation
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    validation: f64,
    /// Share held out for test
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    test: f64,
    /// Who is searched for by whom: leave-one-out, against-training, single-shot, cross-camera
    #[arg(long)]
    protocol: Option<Protocol>,
    /// Judge by classes found: gaussian, gaussian:SHARE (of the pooled covariance) or knn:K
    #[arg(long, conflicts_with = "protocol")]
    classifier: Option<Classifier>,
    /// How often the single-shot protocol draws images
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: u32,
    /// Splits from a file: train and test for each; validation comes out of train
    #[arg(long, value_name = "FILE", conflicts_with = "draws")]
    splits: Option<PathBuf>,
    /// Use only this split of the file, counted from 0
    #[arg(long, value_name = "N", requires = "splits")]
    split: Option<usize>,
    /// Repeat with this many random test parts, seeds counted up from --seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    draws: u64,
    /// Cross-test: this many folds, every row, class or query in the test part of one
    #[arg(long, value_name = "N", conflicts_with_all = ["draws", "splits", "test"])]
    folds: Option<usize>,
    /// Measures to show, by comma (map, p@1, ndcg@10, cmc@5, mrr, auc, …)
    #[arg(long, value_delimiter = ',')]
    measures: Vec<Measure>,
    /// Measure to choose by (default: map with labels, ndcg@10 with qrels)
    #[arg(long)]
    criterion: Option<Measure>,
    /// Seed of all random draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Train on everything with the chosen settings before saving
    #[arg(long)]
    refit: bool,
    /// State the CPU time of one fit with the chosen settings
    #[arg(long)]
    timing: bool,
    /// Where to write the model
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What one split gave.
struct SplitOutcome {
    report: SplitReport,
    verdicts: Option<Verdicts>,
    chosen: Chosen,
    fitted: Fitted,
}

impl Train {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        ensure!(
            self.output.is_none()
                || (self.draws == 1
                    && self.folds.is_none()
                    && (self.splits.is_none() || self.split.is_some())),
            "-o saves one model: with several splits name one with --split, or leave -o out"
        );
        registry::find(&self.method)?;
        let judged = load_judged(&self.judged, &self.columns, &NarrowingRule::Judge, common)?;
        if let Some(judged) = &judged {
            let material = Material {
                items: collection(&judged.items),
                queries: Some(collection(&judged.queries)),
                supervision: Supervision::judgements(judged.judgements.clone()),
                judged_by: None,
                storage: common.storage(),
            };
            return self.study(
                &material,
                &judged.queries,
                &judged.items,
                &judged.judged,
                common,
            );
        }
        let Some(data) = &self.data else {
            bail!("name a file of vectors, or --queries, --items and --qrels");
        };
        let loaded = load(
            data,
            &self.columns,
            &[],
            &self.filters,
            NarrowingRule::Judge,
            common,
        )?;
        let sources = Sources {
            qrels: self.judged.qrels.as_deref(),
            compared: &self.compared,
            orderings: self.orderings.as_ref(),
            taxonomy: self.taxonomy.as_ref(),
        };
        let told = told(&loaded, &self.columns, &sources)?;
        let material = Material {
            items: collection(&loaded),
            queries: None,
            supervision: told.supervision,
            judged_by: told.judged_by,
            storage: common.storage(),
        };
        let outcome = self.study(&material, &loaded, &loaded, &told.units, common);
        outcome.map_err(|error| match error.downcast::<metra::Error>() {
            Ok(error) => in_file(error, &loaded),
            Err(error) => error,
        })
    }

    fn study(
        &self,
        material: &Material<'_>,
        unit_table: &Loaded,
        items: &Loaded,
        units: &[u64],
        common: &Common,
    ) -> Result<()> {
        let mut study = self.plan(material)?;
        let kind = self
            .holdout
            .unwrap_or_else(|| HoldOut::default_for(material));
        let splits = self.parts(material, unit_table, units, kind)?;
        let mut report = Report {
            data: describe(material, items),
            method: self.method.clone(),
            holdout: kind.to_string(),
            protocol: study.judging.protocol.to_string(),
            splits: Vec::new(),
            summary: Vec::new(),
            pooled: None,
            model: self.output.clone(),
        };
        if !common.json {
            print::fact("data", &report.data)?;
        }
        let name = if self.folds.is_some() {
            "fold"
        } else {
            "split"
        };
        let mut verdicts = Vec::new();
        let mut last = None;
        for (number, parts) in splits.iter().enumerate() {
            if self.draws > 1 {
                study.seed = self.seed + number as u64;
                study.judging.seed = study.seed;
            }
            let mut outcome = self.one_split(&study, parts, kind, common)?;
            if !common.json {
                if splits.len() > 1 {
                    print::line(&format!("\n{name} {} of {}", number + 1, splits.len()))?;
                }
                print_split(&outcome, kind, study.criterion, self.folds.is_some())?;
            }
            report.splits.push(outcome.report);
            verdicts.extend(outcome.verdicts.take());
            last = Some((outcome.chosen, outcome.fitted, parts));
        }
        if verdicts.len() > 1 {
            report.summary = summarise(&verdicts);
        }
        let pooled = match self.folds {
            Some(_) => Some(pool(&verdicts, self.seed)?),
            None => None,
        };
        report.pooled = pooled.as_ref().map(PooledReport::new);
        if let (Some(path), Some((chosen, fitted, parts))) = (&self.output, last) {
            let kept = verdicts.first().map(|v| (v, kind));
            let model = self.model(&study, &chosen, fitted, parts, kept, items, common)?;
            model.save(path)?;
            if !common.json {
                let what = format!(
                    "{} ({} → {} numbers, compared by {})",
                    path.display(),
                    Embedding::input_dim(&model.chain),
                    model.chain.output_dim(),
                    model.chain.space()
                );
                print::fact("model", &what)?;
            }
        }
        if common.json {
            return print::json(&report);
        }
        print_summary(&report.summary, name)?;
        match pooled {
            Some(pooled) => print_pooled(&pooled, &report.splits, study.criterion),
            None => Ok(()),
        }
    }

    fn plan<'m>(&self, material: &'m Material<'m>) -> Result<Study<'m>> {
        let protocol = match self.classifier {
            Some(classifier) => Protocol::Classify(classifier),
            None => protocol_for(self.protocol, self.repeats, &material.supervision),
        };
        check_protocol(material, protocol)?;
        let mut settings: BTreeMap<String, String> = self.settings.iter().cloned().collect();
        if let Some(rank) = self.rank {
            settings.insert("rank".into(), rank.to_string());
        }
        let entry = registry::find(&self.method)?;
        // A default rank beyond the vectors' dimension would be an error nobody made.
        let dim = material.items.corpus.dim();
        let tuned = |name: &str| self.grid.iter().any(|(n, _)| n == name);
        if entry.has("rank") && !settings.contains_key("rank") && !tuned("rank") && dim < 64 {
            settings.insert("rank".into(), dim.to_string());
        }
        entry.build(&settings)?;
        let mut measures = if self.measures.is_empty() {
            protocol.measures()
        } else {
            self.measures.clone()
        };
        let criterion = self.criterion.unwrap_or_else(|| protocol.criterion());
        if !measures.contains(&criterion) {
            measures.insert(0, criterion);
        }
        Ok(Study {
            material,
            method: self.method.clone(),
            settings,
            recipe: self.prepare.clone(),
            grid: (self.grid.iter())
                .map(|(name, values)| {
                    (name.clone(), values.split(',').map(str::to_owned).collect())
                })
                .collect(),
            spaces: self.score.clone(),
            base: self.base,
            judging: Judging {
                protocol,
                measures,
                ties: Ties::Expected,
                tie_rank: None,
                gain: Gain::Linear,
                empty: Empty::Skip,
                seed: self.seed,
                rerank: None,
            },
            criterion,
            seed: self.seed,
        })
    }

    fn one_split(
        &self,
        study: &Study<'_>,
        parts: &Parts,
        kind: HoldOut,
        common: &Common,
    ) -> Result<SplitOutcome> {
        let mut reporter = Reporter::new();
        if kind != HoldOut::None && !common.json {
            tracing::info!(
                "held out by {kind}: {} to train, {} to validate, {} to test",
                print::count(parts.train.len() as u64),
                print::count(parts.validation.len() as u64),
                print::count(parts.test.len() as u64)
            );
        }
        let chosen = study.choose(&parts.train, &parts.validation, &mut reporter, Some(&STOP))?;
        // What the test part judges has learned from the validation part too.
        let mut learned_from = parts.train.clone();
        learned_from.extend_from_slice(&parts.validation);
        learned_from.sort_unstable();
        metra::study::Watch::begin(&mut reporter, "fit");
        let (fitted, cpu) = timed(|| study.fit(&learned_from, &chosen, &mut reporter, Some(&STOP)));
        let fitted = fitted?;
        let timing = self.timing.then(|| Timing {
            fit_cpu_seconds: cpu,
            product_seconds: product_seconds(),
        });
        let base = study.choose_base(&parts.train, &parts.validation)?;
        let verdicts = if parts.test.is_empty() {
            None
        } else {
            Some(study.judge_test(&fitted.chain, base, &parts.test, &learned_from)?)
        };
        reporter.finish();
        let rows = |pick: fn(&Verdicts) -> &Vec<(Measure, metra::evaluate::Comparison)>| {
            verdicts
                .as_ref()
                .map_or_else(Vec::new, |v| print::rows(pick(v)))
        };
        let comparisons = match &study.material.supervision {
            Supervision::Comparisons(said) => Some(said.select(&learned_from)?.len()),
            _ => None,
        };
        let report = SplitReport {
            comparisons,
            train: parts.train.len(),
            validation: parts.validation.len(),
            test: parts.test.len(),
            settings: chosen.settings.clone(),
            prepare: chosen.recipe.to_string(),
            score: chosen.space.to_string(),
            steps: chosen.last_step,
            validation_value: chosen.value,
            trials: chosen.trials.clone(),
            base: base.to_string(),
            measures: rows(|v| &v.rows),
            seen_items: rows(|v| &v.seen),
            unseen_items: rows(|v| &v.unseen),
            skipped_queries: verdicts.as_ref().map_or(0, |v| v.base.skipped()),
            steps_per_second: reporter.speed,
            timing,
        };
        Ok(SplitOutcome {
            report,
            verdicts,
            chosen,
            fitted,
        })
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a model gathers what all earlier steps found"
    )]
    fn model(
        &self,
        study: &Study<'_>,
        chosen: &Chosen,
        fitted: Fitted,
        parts: &Parts,
        verdicts: Option<(&Verdicts, HoldOut)>,
        items: &Loaded,
        common: &Common,
    ) -> Result<Model> {
        let fitted = if self.refit && !parts.test.is_empty() {
            let mut all = [&parts.train[..], &parts.validation, &parts.test].concat();
            all.sort_unstable();
            let mut reporter = Reporter::new();
            metra::study::Watch::begin(&mut reporter, "refit");
            if !common.json {
                tracing::info!("fit on everything with the chosen settings");
            }
            study.fit(&all, chosen, &mut reporter, Some(&STOP))?
        } else {
            fitted
        };
        let held_out = verdicts.map(|(verdicts, kind)| HeldOut {
            kind: kind.to_string(),
            queries: verdicts.base.queries().len() as u64,
            measures: (verdicts.rows.iter())
                .map(|(measure, c)| {
                    let gain = MeasuredGain {
                        base: c.base,
                        learned: c.learned,
                        low: c.low,
                        high: c.high,
                    };
                    (measure.to_string(), gain)
                })
                .collect(),
        });
        let origin = Origin {
            method: self.method.clone(),
            parameters: fitted.parameters,
            prepare: chosen.recipe.to_string(),
            seed: study.seed,
            data: fingerprint(items.table.corpus.as_ref())?,
            supervision: study.material.supervision.fingerprint(),
            facts: fitted.facts,
            held_out,
        };
        Ok(Model::new(
            items.table.narrowing.clone(),
            fitted.chain,
            origin,
        )?)
    }
}

fn collection(loaded: &Loaded) -> Collection<'_> {
    Collection {
        corpus: loaded.table.corpus.as_ref(),
        groups: loaded.groups.as_ref(),
    }
}
