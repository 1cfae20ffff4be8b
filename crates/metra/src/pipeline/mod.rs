//! A pipeline: preprocessing, a method and a score. Fitting it to a data set gives a model.
//!
//! ```
//! use metra::{Dataset, Pipeline, methods::Warca};
//! # use metra::{data::synthetic::Nuisance, supervision::Labels};
//! # let set = Nuisance { classes: 10, signal: 4, noise: 12, seed: 7 }.rows(200);
//! # let labels = Labels::from_numbers(&set.classes)?;
//! let data = Dataset::builder(&set.corpus).labels(labels).build()?;
//! let pipeline = Pipeline::new(Warca { rank: 4, ..Warca::default() }).prepare("centre+l2")?;
//! let model = pipeline.fit(&data)?;
//! assert_eq!(model.output_dim(), 4);
//! # Ok::<(), metra::Error>(())
//! ```

mod class_sums;
pub(crate) mod distributed;
pub mod registry;
#[cfg(test)]
mod seen_rows_tests;
mod start;
#[cfg(test)]
mod start_tests;
mod two_spaces;
#[cfg(test)]
mod two_spaces_tests;

use crate::data::Corpus;
use crate::dataset::Dataset;
use crate::execute::{decode, encode, row_digests};
use crate::model::{Chain, HeldOut, Map, Model, Origin, Preprocessing, Space, Step, TrainingRows};
use crate::training::codes::straight_through::StraightThrough;
use crate::training::prepared_corpus::{PreparedCorpus, prepared};
use crate::training::preprocessing::vectors_after;
use crate::training::{AnyMethod, CodeSpec, Method, Observer, Recipe, Run, TwoModels};
use crate::{Error, Result};
pub use class_sums::ClassSums;
use start::EarlierModel;
use std::collections::BTreeMap;
use two_spaces::Stacking;

/// Preprocessing, method and score.
pub struct Pipeline {
    recipe: Recipe,
    method: Box<dyn AnyMethod>,
    space: Option<Space>,
    code: CodeSpec,
    start: Option<EarlierModel>,
}

/// Evaluates a chain on a validation part; larger is better.
pub(crate) type ValidateChain<'a> = dyn Fn(&Chain) -> Result<f64> + 'a;

/// Fitted preprocessing.
pub(crate) struct Prepare {
    items: Preprocessing,
    /// Where queries are vectors of another model.
    queries: Option<Preprocessing>,
}

impl Prepare {
    /// Of items, or of queries.
    fn of(&self, queries: bool) -> &Preprocessing {
        match &self.queries {
            Some(own) if queries => own,
            _ => &self.items,
        }
    }

    fn chain(&self, map: Map, space: Space) -> Result<Chain> {
        Chain::between(self.queries.clone(), self.items.clone(), map, space)
    }
}

/// What a fit gave, before anything is known of where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Fitted {
    /// Preprocessing, map and space.
    pub(crate) chain: Chain,
    /// All parameters of the method, as text.
    parameters: BTreeMap<String, String>,
    /// Facts that the method reported.
    pub(crate) facts: BTreeMap<String, f64>,
    /// Names of the dimensions of a mapped vector, where they have names.
    pub(crate) outputs: Vec<String>,
}

impl Fitted {
    /// Steps after which validation was best, for methods that work in steps.
    pub(crate) fn last_step(&self) -> Option<u64> {
        self.facts.get("best_step").map(|step| *step as u64)
    }

    /// As bytes for a checkpoint: the chain as model files have it.
    fn encode(&self) -> Result<Vec<u8>> {
        let model = Model::new(None, self.chain.clone(), Origin::default())?;
        encode(&(
            model.to_bytes()?,
            &self.parameters,
            &self.facts,
            &self.outputs,
        ))
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let (model, parameters, facts, outputs): (Vec<u8>, _, _, _) = decode(bytes)?;
        Ok(Fitted {
            chain: Model::from_bytes(&model)?.chain,
            parameters,
            facts,
            outputs,
        })
    }
}

impl Pipeline {
    /// A method without preprocessing, compared in its own first choice of spaces.
    pub fn new(method: impl Method) -> Self {
        Pipeline {
            recipe: Recipe::default(),
            method: Box::new(method),
            space: None,
            code: CodeSpec::None,
            start: None,
        }
    }

    /// A method of the registry by name, after preprocessing; settings not named keep their defaults. The
    /// setting `code` is the pipeline's own.
    pub fn named(
        method: &str,
        settings: &BTreeMap<String, String>,
        recipe: &Recipe,
    ) -> Result<Self> {
        let code = settings.get(registry::CODE).map(|code| code.parse());
        Ok(Pipeline {
            recipe: recipe.clone(),
            method: registry::find(method)?.build(settings)?,
            space: None,
            code: code.transpose()?.unwrap_or_default(),
            start: None,
        })
    }

    /// Preprocessing before the method: steps joined by `+`, such as `sqrt+centre`.
    pub fn prepare(mut self, recipe: &str) -> Result<Self> {
        self.recipe = recipe.parse()?;
        Ok(self)
    }

    /// How mapped vectors are compared.
    pub fn score(mut self, space: Space) -> Self {
        self.space = Some(space);
        self
    }

    /// How items are held.
    pub fn code(mut self, code: CodeSpec) -> Self {
        self.code = code;
        self
    }

    /// The spaces in which the result may be compared.
    pub fn spaces(&self) -> &'static [Space] {
        self.method.spaces()
    }

    /// Of these, those that the method's objective is about.
    pub(crate) fn own_spaces(&self) -> &'static [Space] {
        match self.method.own_spaces() {
            [first, ..] if self.code.is_of_signs() => std::slice::from_ref(first),
            all => all,
        }
    }

    /// All parameters of a method of it as text, with the code.
    fn parameters(&self, method: &dyn AnyMethod) -> BTreeMap<String, String> {
        let mut parameters = method.parameters();
        if self.code != CodeSpec::None {
            parameters.insert(registry::CODE.into(), self.code.to_string());
        }
        parameters
    }

    /// Method, parameters and preprocessing as text: what a fit depends on beside data and seed.
    pub fn describe(&self) -> (String, BTreeMap<String, String>, String) {
        let name = self.method.name().to_owned();
        (
            name,
            self.parameters(&*self.method),
            self.recipe.to_string(),
        )
    }

    /// Fit to a data set, with seed 1.
    pub fn fit(&self, data: &Dataset<'_>) -> Result<Model> {
        self.fit_with(data, &mut Run::new(1))
    }

    /// Fit to a data set under given circumstances.
    pub fn fit_with(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Model> {
        let fitted = self.fit_chain(data, run)?;
        self.model(data, fitted, run.seed, &data.units(), None)
    }

    /// Preprocessing, map, space and code.
    pub(crate) fn fit_chain(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Fitted> {
        let fitted = self.fit_uncoded(data, run, None)?;
        if self.is_coded() && !fitted.outputs.is_empty() {
            let expected =
                "none for a method whose dimensions have names: a rotation would mix them";
            return Err(Error::parameter("code", expected, self.code));
        }
        Ok(Fitted {
            chain: self.coded(fitted.chain, data, run.seed)?,
            ..fitted
        })
    }

    /// Whether items are held in a code.
    pub(crate) fn is_coded(&self) -> bool {
        self.code != CodeSpec::None
    }

    /// A chain fitted to a data set with its items held as this pipeline does.
    pub(crate) fn coded(&self, chain: Chain, data: &Dataset<'_>, seed: u64) -> Result<Chain> {
        let items = (data.items(), data.item_groups());
        let is_trained = self.straight_through().is_some();
        self.code.fit(chain, is_trained, items, seed)
    }

    /// How the method is trained for the code, where it can.
    fn straight_through(&self) -> Option<StraightThrough> {
        let code = self.code.straight_through();
        code.filter(|_| self.method.trains_for_codes())
    }

    /// Preprocessing, map and space; `validate` evaluates them on the way, coded if the map is trained for codes.
    pub(crate) fn fit_uncoded(
        &self,
        data: &Dataset<'_>,
        run: &mut Run<'_>,
        validate: Option<&ValidateChain<'_>>,
    ) -> Result<Fitted> {
        let own = run.validate.is_some() || validate.is_some();
        let fit = match &run.checkpoint {
            Some(_) => self.fit_key(data, run, own)?,
            None => [0; 32],
        };
        if let Some(done) = run.checkpoint.as_ref().and_then(|kept| kept.done(&fit)) {
            return Fitted::decode(&done);
        }
        self.check_spaces(data)?;
        let prepare = self.preprocessing(data)?;
        let memory = data.storage().memory;
        let seed = run.seed;
        let validate_map = |validate: &ValidateChain<'_>, map: &Map| {
            let chain = prepare.chain(map.clone(), self.first_space())?;
            match self.straight_through() {
                Some(_) => validate(&self.coded(chain, data, seed)?),
                None => validate(&chain),
            }
        };
        let map = {
            let data = data.with_vectors(|of_queries, corpus, groups| {
                let steps = &prepare.of(of_queries).steps;
                prepared(PreparedCorpus::new(corpus, groups, steps), memory)
            })?;
            let vector_dims = vectors_after(data.vector_dims(), &prepare.items.steps).to_vec();
            let data = data.with_vector_dims(&vector_dims);
            let is_stacked = data.has_two_spaces() && self.method.two_models() == TwoModels::Stack;
            let stacking = is_stacked.then(|| Stacking::new(&data)).transpose()?;
            let stacked = (stacking.as_ref()).map(|stacking| stacking.stacked(&data));
            let stacked = stacked.transpose()?;
            let data = stacked.as_ref().unwrap_or(&data);
            let split = |map: &Map| match &stacking {
                Some(stacking) => stacking.split(map),
                None => Ok(map.clone()),
            };
            // A caller's own validation sees maps alone; ours sees the steps before them too.
            let mut given = run.validate.as_deref_mut();
            let mut validate = |map: &Map| match (&mut given, validate) {
                (Some(given), _) => given(&split(map)?),
                (None, Some(validate)) => validate_map(validate, &split(map)?),
                (None, None) => Ok(0.0),
            };
            let mut inner = Run {
                seed: run.seed,
                observer: run.observer.as_deref_mut().map(|o| o as &mut dyn Observer),
                validate: if own { Some(&mut validate) } else { None },
                last_step: run.last_step,
                checkpoint: run.checkpoint.clone(),
                fit,
                code: self.straight_through(),
                start: self.start.as_ref().map(EarlierModel::map),
                stop: data.stop(),
                facts: std::mem::take(&mut run.facts),
                outputs: Vec::new(),
            };
            let limited = self.limited_rank(data.dim().min(data.queries().dim()))?;
            let method = limited.as_deref().unwrap_or(&*self.method);
            let map = method.fit(data, &mut inner);
            let Run { facts, outputs, .. } = inner;
            (run.facts, run.outputs) = (facts, outputs);
            (split(&map?)?, self.parameters(method))
        };
        let fitted = self.assemble(prepare, map, run)?;
        // A fit that was ended early is not done: its state is in the checkpoint, to go on from.
        let is_enough = run.observer.as_deref().is_some_and(Observer::is_enough);
        if let Some(checkpoint) = run.checkpoint.as_ref().filter(|_| !is_enough) {
            checkpoint.finish(fit, fitted.encode()?)?;
        }
        Ok(fitted)
    }

    /// An error where queries and items are vectors of two models, and the method cannot learn from that.
    pub(crate) fn check_spaces(&self, data: &Dataset<'_>) -> Result<()> {
        if !data.has_two_spaces() {
            return Ok(());
        }
        let (queries, items) = (data.queries().dim(), data.dim());
        if self.method.two_models() == TwoModels::Refuse {
            let able = registry::names(|method| method.two_models() != TwoModels::Refuse);
            let expected = format!(
                "one that learns a map for each side, since queries ({queries} dimensions) and items ({items}) are vectors of \
                 two models: {able}"
            );
            return Err(Error::parameter("method", expected, self.method.name()));
        }
        if let Some(earlier) = &self.start {
            let expected = "none where queries and items are vectors of two models";
            return Err(Error::parameter("from", expected, earlier.file()));
        }
        if data.narrowing().is_some() {
            return Err(Error::Data(
                "queries and items are vectors of two models: expected values that f32 can hold without being moved or \
                 scaled"
                    .into(),
            ));
        }
        Ok(())
    }

    /// The fitted preprocessing of items, and of queries where they are vectors of another model.
    fn preprocessing(&self, data: &Dataset<'_>) -> Result<Prepare> {
        let fitted = |corpus: &dyn Corpus, steps: Vec<Step>| Preprocessing {
            input_dim: corpus.dim(),
            steps,
        };
        let items = match &self.start {
            Some(earlier) => earlier.steps(&self.recipe, data)?,
            None => {
                (self.recipe).fit_vectors(data.items(), data.item_groups(), data.vector_dims())?
            }
        };
        let queries = match data.has_two_spaces() {
            true => Some(self.recipe.fit(data.queries(), data.query_groups())?),
            false => None,
        };
        Ok(Prepare {
            items: fitted(data.items(), items),
            queries: queries.map(|steps| fitted(data.queries(), steps)),
        })
    }

    /// The method with its rank lowered to the dimension of prepared vectors, where a share of the variance
    /// decides it and is less: nobody could know.
    fn limited_rank(&self, dim: usize) -> Result<Option<Box<dyn AnyMethod>>> {
        let mut parameters = self.method.parameters();
        let rank = parameters.get("rank").and_then(|rank| rank.parse().ok());
        let is_kernel = parameters.contains_key("kernel");
        if !self.recipe.keeps_a_share() || is_kernel || rank.is_none_or(|rank: usize| rank <= dim) {
            return Ok(None);
        }
        parameters.insert("rank".into(), dim.to_string());
        let entry = registry::find(self.method.name())?;
        Ok(Some(entry.build(&parameters)?))
    }

    /// What a fit without a code depends on beside data and seed: the code too where the map is trained for it.
    pub(crate) fn uncoded_key(&self) -> String {
        let recipe = &self.recipe;
        let (name, parameters) = (self.method.name(), self.method.parameters());
        let code = self.straight_through();
        format!("{name} {parameters:?} {recipe} {code:?}")
    }

    /// All that the course of a fit depends on.
    fn fit_key(&self, data: &Dataset<'_>, run: &Run<'_>, validated: bool) -> Result<[u8; 32]> {
        let space = self.space.map(|space| space.to_string());
        let start = self.start.as_ref().map(EarlierModel::file);
        let all = (
            (self.describe(), space, start),
            (run.seed, run.last_step, run.fit, validated),
            (data.vectors_key()?, data.supervision_fingerprint()),
        );
        Ok(*blake3::hash(&encode(&all)?).as_bytes())
    }

    /// The space that was named, or the method's first.
    fn first_space(&self) -> Space {
        let first = self.method.spaces().first().copied();
        self.space.or(first).unwrap_or(Space::SquaredL2)
    }

    fn assemble(
        &self,
        prepare: Prepare,
        (map, parameters): (Map, BTreeMap<String, String>),
        run: &mut Run<'_>,
    ) -> Result<Fitted> {
        Ok(Fitted {
            chain: prepare.chain(map, self.first_space())?,
            parameters,
            facts: std::mem::take(&mut run.facts),
            outputs: std::mem::take(&mut run.outputs),
        })
    }

    /// The model of a fit: with the record of how it came about from these units of a data set.
    pub(crate) fn model(
        &self,
        data: &Dataset<'_>,
        fitted: Fitted,
        seed: u64,
        units: &[u64],
        held_out: Option<HeldOut>,
    ) -> Result<Model> {
        let origin = Origin {
            method: self.method.name().to_owned(),
            parameters: fitted.parameters,
            prepare: self.recipe.to_string(),
            seed,
            data: data.fingerprint()?.to_owned(),
            supervision: data.supervision_fingerprint(),
            facts: fitted.facts,
            held_out,
            refit: false,
            started_from: self.start.as_ref().map(EarlierModel::record),
        };
        let key = origin.row_key();
        let items = data.relevant_items(units)?;
        let training = TrainingRows {
            units: row_digests(&*data.unit_rows(units)?, key)?,
            relevant_items: items.map(|items| row_digests(&*items, key)).transpose()?,
        };
        let model = Model::new(data.narrowing().cloned(), fitted.chain, origin)?;
        let mut model = model.with_outputs(fitted.outputs)?;
        model.training = match &self.start {
            Some(earlier) => earlier.training_with(&training),
            None => Some(training),
        };
        Ok(model)
    }
}
