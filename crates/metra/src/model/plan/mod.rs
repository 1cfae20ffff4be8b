//! Plans: which vectors to store and which query vectors to send, so that the ranking of a vector
//! store equals the metric's.
//!
//! A metric compares mapped vectors z in its space. A store has its own distances and, often, items
//! that nobody wants to write again. With z_q the mapped query and z = A x + b the mapped item
//! (affine: `affine.rs`), the scores of one query come apart into a part of the query, the same for
//! all items, which order does not see, and
//!
//! - inner product: (Aᵀ z_q) · x. Items can stay as they are: [`Strategy::QueryOnly`].
//! - squared distance, −½ |z_q − z|²: (Aᵀ z_q) · x − ½ |z|². The last term belongs to the item, and
//!   no query can know it: the item needs a coordinate for it, which the query multiplies by 1
//!   ([`Strategy::ExtraCoordinate`]). Over mapped vectors, (z, −½ |z|²) asked with (z_q, 1), this takes
//!   rank + 1 dimensions and any metric; over the input, (x, −½ |z|²) asked with (Aᵀ z_q, 1), dim + 1,
//!   but the stored vectors keep what they were and another model changes one number of each.
//! - cosine: ((Aᵀ z_q) · x + z_q · b) / |z|. The length belongs to the item again: items x/|z|
//!   ([`Strategy::Rescaled`]), with one more coordinate 1/|z| asked with z_q · b where b is not 0.
//!
//! So only [`Strategy::QueryOnly`] leaves items as they are. An extra coordinate does not, strictly: the
//! vector is still in front, but a store has to write rows of another dimension. Squared distance
//! and cosine can be asked with queries only where AᵀA is a multiple of the identity (an adapter of
//! queries alone, or centring), because |z| is then a function of |x|, which the store's own l2 or
//! cosine puts in. Where items are divided by their length before all else, cosine stores serve the
//! inner product over their raw items as well.
//!
//! - indefinite squared distance, −½ (z_qᵀ S z_q − 2 (S z_q) · z + zᵀ S z) with S the signs of the
//!   coordinates: an extra coordinate again, with S z_q for z_q and zᵀ S z for |z|².
//!
//! A translation of both sides leaves squared distances alone, but −½ |z|² in f32 drowns everything
//! where z lies far from the origin. Maps that learners give are centred; where one is not,
//! [`Plan::centred_on`] moves the origin into a sample of items.
//!
//! Left out, because it is not exact or not possible without more: inner product in a store that has
//! l2 alone (needs a bound on all lengths, also of items to come). Sums of block distances are in no
//! store either, but the Euclidean distance over the same vectors is never above them, so that it
//! finds candidates and says when there are enough: [`Strategy::Candidates`], [`Plan::ranks_again`].

mod affine;
mod agreement;
mod apply;
mod constraints;
mod describe;
mod fold;
mod store;
mod strategies;
#[cfg(test)]
mod tests;

pub use agreement::agreement;
pub use constraints::{Distance, PlanConstraints, Strategy};
pub use fold::fold;
pub use store::{Element, Store};

use super::{Chain, Code, Embedding, Model, Signs, Space};
use crate::data::Batch;
use crate::linalg::RowBuf;
use crate::{Error, Result};
use affine::Affine;
use std::sync::Arc;

/// One way to serve a metric from a vector store, exact but for [`Strategy::Candidates`].
///
/// The cost is that of the chain for every item (nothing for [`Strategy::QueryOnly`]) and, for ways that
/// keep the input's coordinates, one product more with the map for every query.
///
/// ```
/// use metra::model::{Chain, Distance, Plan, Space, Strategy, PlanConstraints};
///
/// let chain = Chain::identity(4, Space::SquaredL2);
/// let wish = PlanConstraints { distances: vec![Distance::InnerProduct], ..PlanConstraints::default() };
/// let plan = Plan::choose(&chain, &wish)?;
/// assert_eq!((plan.way(), plan.item_dim()), (Strategy::ExtraCoordinate, 5));
/// # Ok::<(), metra::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    chain: Arc<Chain>,
    distance: Distance,
    form: Form,
    /// Taken from mapped vectors of both sides.
    centre: Option<Vec<f32>>,
    /// How mapped coordinates count; of an indefinite metric `chain` ends with the map inside it.
    signs: Signs,
}

/// One way that was looked at for a wish.
#[derive(Debug, Clone)]
pub struct PlanReport {
    /// The way.
    pub way: Strategy,
    /// The plan, where the metric has this way.
    pub plan: Option<Plan>,
    /// Why it does not serve; absent where it does.
    pub refusal: Option<String>,
}

impl PlanReport {
    /// The plan's name, or that of the way where there is no plan.
    pub fn name(&self) -> String {
        match &self.plan {
            Some(plan) => plan.name(),
            None => self.way.to_string(),
        }
    }
}

/// What a stored vector is made of, with z the mapped and x the input vector.
#[derive(Debug, Clone)]
enum Form {
    /// z; `untouched` where that is x itself.
    Mapped { untouched: bool },
    /// z, of which more are fetched than asked for and ranked again.
    Candidates,
    /// z/|z|.
    UnitLength,
    /// (z, −½ |z|²).
    MappedAndNorm,
    /// x.
    Input(Arc<Input>),
    /// (x, −½ |z|²).
    InputAndNorm(Arc<Input>),
    /// x/|z|, and 1/|z| where the map has an offset.
    Rescaled(Arc<Input>),
}

/// How the vectors in the store become mapped ones.
#[derive(Debug)]
struct Input {
    /// From the vectors in the store.
    affine: Affine,
    /// The rows that a plan is given are so many times those in the store.
    scale: f64,
}

impl Plan {
    /// Every exact way, the preferred first; an error for a metric that has none.
    pub fn all(chain: &Chain) -> Result<Vec<Plan>> {
        strategies::all(chain, None)
    }

    /// The best way that fits the wish, or an error that says of every way why it does not.
    pub fn choose(chain: &Chain, constraints: &PlanConstraints) -> Result<Plan> {
        strategies::choose(chain, None, constraints)
    }

    /// [`Plan::all`] for a model. The plan's rows are narrowed already, as the chain's are; the rows
    /// in the store are not.
    pub fn all_for_model(model: &Model) -> Result<Vec<Plan>> {
        strategies::all(&model.chain, model.narrowing.as_ref())
    }

    /// [`Plan::choose`] for a model. The plan's rows are narrowed already, as the chain's are; the
    /// rows in the store are not, so that a model that shifts columns cannot leave them there.
    pub fn choose_for_model(model: &Model, constraints: &PlanConstraints) -> Result<Plan> {
        strategies::choose(&model.chain, model.narrowing.as_ref(), constraints)
    }

    /// Every way of a model, the preferred first, with what speaks against it.
    pub fn survey(model: &Model, constraints: &PlanConstraints) -> Result<Vec<PlanReport>> {
        strategies::survey(&model.chain, model.narrowing.as_ref(), constraints)
    }

    /// The plan of a model that is known by its way, distance and size: what was written down beside
    /// stored vectors. A centre comes on top ([`Plan::with_centre`]).
    pub fn find(
        model: &Model,
        way: Strategy,
        distance: Distance,
        dimension: usize,
    ) -> Result<Plan> {
        let wanted = |plan: &Plan| {
            (plan.way(), plan.distance, plan.item_dim()) == (way, distance, dimension)
        };
        let all = Plan::all_for_model(model)?;
        let listed: Vec<String> = all.iter().map(Plan::name).collect();
        all.into_iter().find(wanted).ok_or_else(|| Error::Plan {
            wanted: format!("the model as {way} by {distance} in {dimension} dimensions"),
            refusals: vec![format!("it has {}", listed.join(", "))],
        })
    }

    /// Its way, distance and size, which tell it from the other plans of a model.
    pub fn name(&self) -> String {
        format!(
            "{} by {} in {} dimensions",
            self.way(),
            self.distance,
            self.item_dim()
        )
    }

    /// How the metric is served.
    pub fn way(&self) -> Strategy {
        match self.form {
            Form::Mapped { .. } | Form::UnitLength => Strategy::Mapped,
            Form::Candidates => Strategy::Candidates,
            Form::Input(_) => Strategy::QueryOnly,
            Form::MappedAndNorm | Form::InputAndNorm(_) => Strategy::ExtraCoordinate,
            Form::Rescaled(_) => Strategy::Rescaled,
        }
    }

    /// What the store has to compare by.
    pub fn distance(&self) -> Distance {
        self.distance
    }

    /// Numbers in a stored vector.
    pub fn item_dim(&self) -> usize {
        let mapped = self.chain.output_dim();
        match &self.form {
            Form::Mapped { .. } | Form::UnitLength | Form::Candidates => mapped,
            Form::MappedAndNorm => mapped + 1,
            Form::Input(_) => self.input_dim(),
            Form::InputAndNorm(_) => self.input_dim() + 1,
            Form::Rescaled(input) => self.input_dim() + usize::from(!input.affine.is_linear()),
        }
    }

    /// Numbers in a vector that is asked with: as many as in a stored one.
    pub fn query_dim(&self) -> usize {
        self.item_dim()
    }

    /// Dimension of an input vector: of an item, where queries have another one.
    pub fn input_dim(&self) -> usize {
        Embedding::input_dim(&*self.chain)
    }

    /// Whether a store that holds the input vectors need not be written at all.
    pub fn items_stay(&self) -> bool {
        match self.form {
            Form::Mapped { untouched } => untouched && self.centre.is_none(),
            Form::Input(_) => true,
            _ => false,
        }
    }

    /// Whether a stored vector begins with the input vector, so that another model changes at most
    /// one number of it.
    pub fn holds_input(&self) -> bool {
        self.items_stay() || matches!(self.form, Form::InputAndNorm(_))
    }

    /// How fetched candidates are compared again, stored vector with asked vector, where the store's
    /// order is not the metric's: fetch more than are wanted.
    ///
    /// The Euclidean distance (not squared) is never above a sum of block distances, so that the k
    /// nearest of the candidates are exact as soon as the k-th is not farther by the metric than the
    /// last candidate is in the store.
    pub fn ranks_again(&self) -> Option<Space> {
        matches!(self.form, Form::Candidates).then(|| self.chain.space())
    }

    /// Where stored vectors are what codes stand for, nothing added or divided, the code.
    pub fn code(&self) -> Option<&Code> {
        let code = self.chain.code()?;
        let is_plain = matches!(self.form, Form::Mapped { .. }) && self.centre.is_none();
        is_plain.then_some(code)
    }

    /// Where stored vectors are signs alone, what a sign stands for: plus or minus this in every dimension.
    pub fn sign_scale(&self) -> Option<f32> {
        let Some(Code::Bits { scale, .. }) = self.chain.code() else {
            return None;
        };
        match self.form {
            Form::Mapped { .. } if self.centre.is_none() => Some(*scale),
            Form::UnitLength => Some((1.0 / (self.item_dim() as f64).sqrt()) as f32),
            _ => None,
        }
    }

    /// The point that is taken from mapped vectors of both sides, if there is one.
    pub fn centre(&self) -> Option<&[f32]> {
        self.centre.as_deref()
    }

    /// The same plan with the origin of mapped vectors at the mean of these items.
    ///
    /// For squared distances that are not served by the input alone; any other plan comes back as it
    /// is. The vectors of both sides depend on the centre: who stores it ([`Plan::centre`]) beside
    /// the items asks with the same plan later ([`Plan::with_centre`]).
    pub fn centred_on(self, items: &Batch<'_>) -> Result<Plan> {
        if !self.moves() {
            return Ok(self);
        }
        let mut mapped = RowBuf::empty(1);
        self.chain.embed_items(0, items, &mut mapped)?;
        if mapped.is_empty() {
            return Err(Error::shape("items to centre on", "at least 1", 0));
        }
        let mut sum = vec![0.0; mapped.dim()];
        for row in mapped.rows().iter() {
            for (sum, value) in sum.iter_mut().zip(row) {
                *sum += f64::from(*value);
            }
        }
        let count = mapped.len() as f64;
        self.with_centre(sum.into_iter().map(|sum| (sum / count) as f32).collect())
    }

    /// The same plan with this point taken from mapped vectors of both sides.
    pub fn with_centre(mut self, centre: Vec<f32>) -> Result<Plan> {
        if !self.moves() {
            let expected =
                "absent: only squared distances between mapped vectors have a free origin";
            return Err(Error::parameter("the plan's centre", expected, "given"));
        }
        if centre.len() != self.chain.output_dim() {
            return Err(Error::shape(
                "numbers in the plan's centre",
                self.chain.output_dim(),
                centre.len(),
            ));
        }
        if let Some(value) = centre.iter().find(|v| !v.is_finite()) {
            return Err(Error::parameter("the plan's centre", "finite", value));
        }
        // Sums have no free origin: moving both sides would move them.
        let signs = self.signs;
        let free = centre.into_iter().enumerate();
        let free = free.map(|(at, value)| if signs.is_sum(at) { 0.0 } else { value });
        self.centre = Some(free.collect());
        Ok(self)
    }

    /// Whether the origin of mapped vectors is free and matters.
    fn moves(&self) -> bool {
        let squared = matches!(self.chain.space(), Space::SquaredL2 | Space::Blocks { .. });
        squared && !matches!(self.form, Form::Input(_))
    }
}

impl Embedding for Plan {
    fn space(&self) -> Space {
        self.distance.space()
    }

    fn input_dim(&self) -> usize {
        Plan::input_dim(self)
    }

    fn query_input_dim(&self) -> usize {
        self.chain.query_input_dim()
    }

    fn output_dim(&self) -> usize {
        self.item_dim()
    }

    fn embed_queries(&self, first: u64, queries: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        self.map_queries(first, queries, out)
    }

    fn embed_items(&self, first: u64, items: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        self.map_items(first, items, out)
    }
}
