//! From orderings of classes to constraints on one attribute's scores.
//!
//! Orderings are said of classes and hold of their rows only roughly. A pair takes them literally:
//! every row of the higher class is above every row of the lower one. A quadruplet (e, f, g, h)
//! asks for less: the way from e up to h is longer than the way between f and g, whichever of the
//! two has more of the attribute. It is two constraints, one for each sign:
//! (s_h − s_e) − (s_g − s_f) ≥ τ and (s_h − s_e) + (s_g − s_f) ≥ τ.

use super::ordered::{Difference, LevelPair};
use crate::random::Stream;
use crate::supervision::Orderings;
use crate::training::parameters::Choice;
use std::ops::Range;

/// Which pairs of ordered rows are asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PairScheme {
    /// All rows of different levels.
    All,
    /// Rows of neighbouring levels.
    Neighbours,
    /// None: quadruplets alone.
    None,
}

impl Choice for PairScheme {
    const ALL: &'static [(&'static str, Self)] = &[
        ("all", PairScheme::All),
        ("neighbours", PairScheme::Neighbours),
        ("none", PairScheme::None),
    ];
}

/// Which quadruplets are drawn; in all of them h has more of the attribute than e.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quads {
    /// None: pairs alone.
    None,
    /// f and g are fewer levels apart than e and h: the most general true statement.
    Wider,
    /// e < f ≤ g < h: f and g lie between the others.
    Nested,
    /// f and g are of one level.
    Level,
    /// f and g are of one class.
    Class,
}

impl Choice for Quads {
    const ALL: &'static [(&'static str, Self)] = &[
        ("none", Quads::None),
        ("wider", Quads::Wider),
        ("nested", Quads::Nested),
        ("level", Quads::Level),
        ("class", Quads::Class),
    ];
}

/// Rows that are said to be equal in an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Light {
    /// Nothing is said of them.
    None,
    /// Rows of one level must not be apart: light constraints in both directions.
    Level,
    /// Only rows of one level and different classes (A ~ B).
    Classes,
}

impl Choice for Light {
    const ALL: &'static [(&'static str, Self)] = &[
        ("none", Light::None),
        ("level", Light::Level),
        ("classes", Light::Classes),
    ];
}

/// How a number follows from how many levels two rows are apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ByGap {
    /// Always 1.
    Unit,
    /// The number of levels.
    Gap,
    /// Its root.
    Root,
    /// One over it.
    Inverse,
}

impl Choice for ByGap {
    const ALL: &'static [(&'static str, Self)] = &[
        ("unit", ByGap::Unit),
        ("gap", ByGap::Gap),
        ("root", ByGap::Root),
        ("inverse", ByGap::Inverse),
    ];
}

impl ByGap {
    fn of(self, gap: u32) -> f64 {
        let gap = f64::from(gap);
        match self {
            ByGap::Unit => 1.0,
            ByGap::Gap => gap,
            ByGap::Root => gap.sqrt(),
            ByGap::Inverse => 1.0 / gap,
        }
    }
}

/// What is asked of the rows by one attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scheme {
    pub(super) pairs: PairScheme,
    pub(super) quads: Quads,
    pub(super) light: Light,
    pub(super) margin: ByGap,
    pub(super) weight: ByGap,
    /// Quadruplets to draw.
    pub(super) count: usize,
}

/// How often a draw is tried again before it is given up.
const TRIES: usize = 1024;

impl Scheme {
    /// Level pairs and quadruplets of one attribute. Where there are both, each side has half of
    /// the weight.
    pub(super) fn constraints(
        &self,
        orderings: &Orderings,
        attribute: usize,
        seed: u64,
    ) -> (Vec<LevelPair>, Vec<Difference>) {
        let levels = Levels::new(orderings, attribute);
        let mut pairs = Vec::new();
        for low in 0..levels.rows.len() {
            for high in low + 1..levels.rows.len() {
                let gap = (high - low) as u32;
                let wanted = match self.pairs {
                    PairScheme::All => true,
                    PairScheme::Neighbours => gap == 1,
                    PairScheme::None => false,
                };
                if wanted {
                    pairs.push(LevelPair {
                        high: levels.rows[high].clone(),
                        low: levels.rows[low].clone(),
                        margin: self.margin.of(gap),
                        weight: self.weight.of(gap),
                    });
                }
            }
        }
        self.add_light(&levels, &mut pairs);
        let mut differences = Vec::new();
        if self.quads != Quads::None {
            let mut random = Stream::new(seed, "quadruplets of orderings", attribute as u64);
            for _ in 0..self.count {
                if let Some(both) = self.draw(&levels, &mut random) {
                    differences.extend(both);
                }
            }
            let listed: f64 = (pairs.iter())
                .map(|p| p.weight * (p.high.len() * p.low.len()) as f64)
                .sum();
            if listed > 0.0 {
                let share = listed / differences.len().max(1) as f64;
                for difference in &mut differences {
                    difference.weight *= share;
                }
            }
        }
        (pairs, differences)
    }

    fn add_light(&self, levels: &Levels, pairs: &mut Vec<LevelPair>) {
        let light = |high: &[u32], low: &[u32]| LevelPair {
            high: high.to_vec(),
            low: low.to_vec(),
            margin: 0.0,
            weight: 1.0,
        };
        for (rows, classes) in levels.rows.iter().zip(&levels.classes) {
            match self.light {
                Light::None => {}
                // A level against itself: both directions at once; a row against itself adds a
                // constant.
                Light::Level => pairs.push(light(rows, rows)),
                Light::Classes => {
                    for (number, one) in classes.iter().enumerate() {
                        for (other_number, other) in classes.iter().enumerate() {
                            if number != other_number {
                                pairs.push(light(one, other));
                            }
                        }
                    }
                }
            }
        }
    }

    fn draw(&self, levels: &Levels, random: &mut Stream) -> Option<[Difference; 2]> {
        for _ in 0..TRIES {
            // Rows are drawn, so that a large class has its share of the statements.
            let mut row = |rows: &[Placed]| rows[random.below(rows.len() as u64) as usize];
            let (mut e, mut h, mut f) = (row(&levels.all), row(&levels.all), row(&levels.all));
            let mut g = match self.quads {
                Quads::Level => row(&levels.all[levels.level_of(f)]),
                Quads::Class => row(&levels.all[levels.class_of(f)]),
                Quads::Wider | Quads::Nested | Quads::None => row(&levels.all),
            };
            if e.level > h.level {
                (e, h) = (h, e);
            }
            if f.level > g.level {
                (f, g) = (g, f);
            }
            let apart = g.level - f.level;
            let fits = h.level - e.level > apart
                && (self.quads != Quads::Nested || (e.level < f.level && g.level < h.level));
            if !fits || f.row == g.row {
                continue;
            }
            let gap = h.level - e.level - apart;
            let difference = |up: u32, down: u32| Difference {
                plus: [h.row, down],
                minus: [e.row, up],
                margin: self.margin.of(gap),
                weight: self.weight.of(gap),
            };
            return Some([difference(g.row, f.row), difference(f.row, g.row)]);
        }
        None
    }
}

#[derive(Clone, Copy)]
struct Placed {
    row: u32,
    class: u32,
    level: u32,
}

/// Rows by the level of their class; levels that no row has are left out.
struct Levels {
    rows: Vec<Vec<u32>>,
    /// The rows of each class of a level.
    classes: Vec<Vec<Vec<u32>>>,
    /// By level, then class, then row.
    all: Vec<Placed>,
}

impl Levels {
    /// Places in `all` of the rows with a row's level.
    fn level_of(&self, of: Placed) -> Range<usize> {
        let start = self.all.partition_point(|p| p.level < of.level);
        start..self.all.partition_point(|p| p.level <= of.level)
    }

    /// Places in `all` of the rows with a row's class.
    fn class_of(&self, of: Placed) -> Range<usize> {
        let key = |p: &Placed| (p.level, p.class);
        let start = self.all.partition_point(|p| key(p) < key(&of));
        start..self.all.partition_point(|p| key(p) <= key(&of))
    }

    fn new(orderings: &Orderings, attribute: usize) -> Self {
        let labels = orderings.labels();
        let mut by_level = std::collections::BTreeMap::<u32, Vec<u32>>::new();
        for class in 0..labels.classes() as u32 {
            if let Some(level) = orderings.level(attribute, class) {
                by_level.entry(level).or_default().push(class);
            }
        }
        let mut levels = Levels {
            rows: Vec::new(),
            classes: Vec::new(),
            all: Vec::new(),
        };
        for (level, classes) in by_level.into_values().enumerate() {
            let members: Vec<Vec<u32>> = (classes.iter())
                .map(|class| labels.members(*class).to_vec())
                .collect();
            for (class, rows) in classes.iter().zip(&members) {
                levels.all.extend(rows.iter().map(|row| Placed {
                    row: *row,
                    class: *class,
                    level: level as u32,
                }));
            }
            levels.rows.push(members.concat());
            levels.classes.push(members);
        }
        levels
            .all
            .sort_unstable_by_key(|p| (p.level, p.class, p.row));
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::{ClassOrdering, Labels};

    fn orderings() -> Orderings {
        // Levels: A 0; B, C 1; D 2. Two rows of each class, in the order of their names.
        let labels = Labels::from_names(&["A", "A", "B", "B", "C", "C", "D", "D"]).unwrap();
        let ordering = ClassOrdering::parse("size", "A<B~C<D").unwrap();
        Orderings::new(labels, vec![ordering]).unwrap()
    }

    const PLAIN: Scheme = Scheme {
        pairs: PairScheme::All,
        quads: Quads::None,
        light: Light::None,
        margin: ByGap::Unit,
        weight: ByGap::Unit,
        count: 200,
    };

    #[test]
    fn pairs_and_light_pairs_by_hand() {
        let count = |scheme: Scheme| {
            let (pairs, _) = scheme.constraints(&orderings(), 0, 1);
            let sizes = pairs.iter().map(|p| p.high.len() * p.low.len());
            sizes.sum::<usize>()
        };
        // A < B, C: 2·4. B, C < D: 4·2. A < D: 2·2.
        assert_eq!(count(PLAIN), 20);
        let neighbours = PairScheme::Neighbours;
        let scheme = Scheme {
            pairs: neighbours,
            ..PLAIN
        };
        assert_eq!(count(scheme), 16);
        // Levels against themselves: 2², 4², 2². Different classes of a level: B–C both ways.
        let light = |light| Scheme { light, ..PLAIN };
        assert_eq!(count(light(Light::Level)), 20 + 24);
        assert_eq!(count(light(Light::Classes)), 20 + 8);
        let (pairs, _) = Scheme {
            margin: ByGap::Gap,
            ..PLAIN
        }
        .constraints(&orderings(), 0, 1);
        let margins: Vec<f64> = pairs.iter().map(|p| p.margin).collect();
        assert_eq!(margins, [1.0, 2.0, 1.0]);
    }

    #[test]
    fn drawn_quadruplets_are_true_of_the_classes() {
        let level = |row: u32| [0, 0, 1, 1, 1, 1, 2, 2_i32][row as usize];
        for quads in [Quads::Wider, Quads::Nested, Quads::Level, Quads::Class] {
            let scheme = Scheme {
                quads,
                pairs: PairScheme::None,
                ..PLAIN
            };
            let (pairs, all) = scheme.constraints(&orderings(), 0, 1);
            assert!(pairs.is_empty() && all.len() == 400, "{quads:?}");
            for both in all.chunks(2) {
                let ([h, f], [e, g]) = (both[0].plus, both[0].minus);
                assert_eq!((both[1].plus, both[1].minus), ([h, g], [e, f]));
                assert!(f != g && level(h) - level(e) > (level(f) - level(g)).abs());
                if quads == Quads::Nested {
                    assert!(level(e) < level(f) && level(g) < level(h));
                }
            }
        }
    }
}
