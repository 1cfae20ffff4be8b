//! Models of every kind that a file can hold, made by hand from drawn numbers: every step, every map,
//! every kernel, every score.

use metra::data::{ElementMap, Narrowing};
use metra::internal::Stream;
use metra::linalg::{Kernel, RowBuf};
use metra::model::{Chain, Indefinite, KernelMap, LowRank, Map, Model, Origin, Signs, Space, Step};

/// Numbers in an input vector.
pub(super) const DIM: usize = 12;
const RANK: usize = 5;
pub(super) const GROUPS: [&str; 3] = ["north", "south", "west"];

pub(super) struct Family {
    pub(super) name: String,
    pub(super) model: Model,
    /// Whether affine maps and divisions by the length say all of it.
    pub(super) affine: bool,
    /// Whether one matrix and one offset do.
    pub(super) matrix: bool,
}

/// Values from 0 to 1, and a few zeros, as histograms have them.
pub(super) fn values(purpose: &str, len: usize) -> Vec<f32> {
    let mut stream = Stream::new(7, purpose, 0);
    let mut draw = || stream.unit() as f32;
    (0..len)
        .map(|at| if at % 17 == 3 { 0.0 } else { draw() })
        .collect()
}

fn signed(purpose: &str, len: usize) -> Vec<f32> {
    let mut stream = Stream::new(7, purpose, 1);
    (0..len).map(|_| stream.unit() as f32 - 0.5).collect()
}

fn matrix(purpose: &str, rank: usize, dim: usize) -> LowRank {
    let weights = RowBuf::from_values(signed(purpose, rank * dim), dim).unwrap();
    LowRank::new(weights, Some(signed(&format!("{purpose} offset"), rank))).unwrap()
}

fn kernel_map(kernel: Kernel) -> KernelMap {
    let landmarks = RowBuf::from_values(values("landmarks", 9 * DIM), DIM).unwrap();
    KernelMap::new(kernel, landmarks, matrix("kernel", RANK, 9)).unwrap()
}

fn kernels() -> Vec<(&'static str, Kernel)> {
    let polynomial = Kernel::Polynomial {
        scale: 0.5,
        offset: 1.0,
        degree: 3,
    };
    vec![
        ("linear", Kernel::Linear),
        ("polynomial", polynomial),
        ("rbf", Kernel::Rbf { gamma: 0.7 }),
        ("chi2", Kernel::ChiSquare),
        ("exp-chi2", Kernel::ExponentialChiSquare { gamma: 0.7 }),
        ("intersection", Kernel::Intersection),
    ]
}

pub(super) fn all() -> Vec<Family> {
    let mut families = Vec::new();
    let mut add = |name: &str, steps: Vec<Step>, map: Map, affine: bool, matrix: bool| {
        for space in Space::ALL {
            let Ok(chain) = Chain::new(DIM, steps.clone(), map.clone(), space) else {
                // An indefinite metric has one score.
                continue;
            };
            let origin = Origin {
                method: "drawn".into(),
                ..Origin::default()
            };
            families.push(Family {
                name: format!("{name}-{space}"),
                model: Model::new(None, chain, origin).unwrap(),
                affine,
                matrix,
            });
        }
    };
    let low_rank = || Map::LowRank(matrix("map", RANK, DIM));
    let unit = || Step::Element(ElementMap::Normalise);
    let centre = || Step::Centre {
        mean: values("mean", DIM),
    };
    let scale = || Step::Scale {
        factors: values("factors", DIM).iter().map(|v| v + 0.5).collect(),
    };
    let whiten = || Step::Project(matrix("whiten", 8, DIM));
    add("plain", vec![], Map::Identity, true, true);
    add("low-rank", vec![], low_rank(), true, true);
    let factors = signed("diagonal", DIM);
    add("diagonal", vec![], Map::Diagonal(factors), true, true);
    let bilinear = Map::Bilinear {
        query: matrix("query", RANK, DIM),
        item: matrix("item", RANK, DIM),
    };
    add("bilinear", vec![centre()], bilinear, true, true);
    let after = Map::LowRank(matrix("after", RANK, 8));
    let steps = vec![centre(), scale(), whiten()];
    add("prepared", steps, after.clone(), true, true);
    let steps = vec![unit(), centre(), whiten(), unit()];
    add("units", steps, after, true, false);
    for (name, element) in [
        ("sqrt", ElementMap::SquareRoot),
        ("log", ElementMap::Log { factor: 1000.0 }),
    ] {
        add(name, vec![Step::Element(element)], low_rank(), false, false);
    }
    let dims = vec![2, DIM - 2];
    let each = Step::NormaliseEach { dims };
    add("l2-each", vec![each], low_rank(), false, false);
    for order in 1..=3 {
        let step = Step::Element(ElementMap::ChiSquare { order });
        let wide = DIM * (2 * order as usize + 1);
        let map = Map::LowRank(matrix("wide", RANK, wide));
        add(&format!("chi2-{order}"), vec![step], map, false, false);
    }
    let means = RowBuf::from_values(values("groups", GROUPS.len() * DIM), DIM).unwrap();
    let groups = Step::CentreGroups {
        names: GROUPS.map(str::to_owned).to_vec(),
        means,
    };
    add("groups", vec![groups], low_rank(), false, false);
    for (name, kernel) in kernels() {
        let map = Map::Kernel(kernel_map(kernel));
        add(&format!("kernel-{name}"), vec![], map, false, false);
    }
    let indefinite = Indefinite::new(matrix("signs", RANK, DIM), 3).unwrap();
    let map = Map::Indefinite(indefinite);
    add("indefinite", vec![centre()], map, false, false);
    let sums = Signs::new([2, 1], [RANK - 4, 1]);
    let sums = Indefinite::with_signs(matrix("sums", RANK, DIM), sums).unwrap();
    add("sums", vec![centre()], Map::Indefinite(sums), false, false);
    let step = Step::Kernel(kernel_map(Kernel::Rbf { gamma: 0.7 }));
    let map = Map::LowRank(matrix("last", 3, RANK));
    add("kernel-step", vec![step], map, false, false);
    families
}

/// A model that shifts a column in f64 before all else.
pub(super) fn narrowed(shift: f64) -> Model {
    let map = Map::LowRank(matrix("map", RANK, DIM));
    let chain = Chain::new(DIM, Vec::new(), map, Space::SquaredL2).unwrap();
    let mut shifts = vec![0.0; DIM];
    shifts[1] = shift;
    let narrowing = Narrowing {
        shift: shifts,
        scale: 0.25,
    };
    Model::new(Some(narrowing), chain, Origin::default()).unwrap()
}
