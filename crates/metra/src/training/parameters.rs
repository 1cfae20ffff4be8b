//! Parameters of methods: plain structs with public fields, made by one macro that also lets them be
//! listed, set, checked and recorded by name, so that help texts cannot drift from the code.

use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fmt::Display;

/// One parameter, for help texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its default as text.
    pub default: String,
    /// What kind of value it takes.
    pub values: String,
    /// What it means.
    pub meaning: String,
}

/// A struct whose fields can be listed, set and checked by name.
pub trait Parameters: Default + Clone {
    /// All fields with their values (as defaults) and meanings, in order.
    fn list(&self) -> Vec<Parameter>;

    /// Set one field from text.
    fn set(&mut self, name: &str, value: &str) -> Result<()>;

    /// An error for the first field that is out of its bounds.
    fn check_bounds(&self) -> Result<()>;

    /// All fields with defaults and meanings, in order.
    fn describe() -> Vec<Parameter> {
        Self::default().list()
    }

    /// All fields as text.
    fn values(&self) -> BTreeMap<String, String> {
        let all = self.list().into_iter();
        all.map(|one| (one.name.to_owned(), one.default)).collect()
    }

    /// The defaults with these values in their place.
    fn from_values(values: &BTreeMap<String, String>) -> Result<Self> {
        let mut parameters = Self::default();
        for (name, value) in values {
            parameters.set(name, value)?;
        }
        Ok(parameters)
    }
}

/// The values that a number may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    /// This or more.
    AtLeast(f64),
    /// More than this.
    Above(f64),
    /// From the first to the second.
    Between(f64, f64),
    /// More than 0 and less than 1.
    BetweenZeroAndOne,
    /// 0 or more, and less than 1.
    BelowOne,
}

impl Bound {
    pub(crate) fn check(self, name: &str, value: &impl ParameterValue) -> Result<()> {
        let shown = value.show();
        // Every number that a parameter has can be read back from its text.
        let number: f64 = shown.parse().unwrap_or(f64::NAN);
        let holds = match self {
            Bound::AtLeast(least) => number >= least,
            Bound::Above(least) => number > least,
            Bound::Between(least, most) => (least..=most).contains(&number),
            Bound::BetweenZeroAndOne => number > 0.0 && number < 1.0,
            Bound::BelowOne => (0.0..1.0).contains(&number),
        };
        require(holds, name, &self.to_string(), shown)
    }
}

impl Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::AtLeast(least) => write!(f, "at least {least}"),
            Bound::Above(least) => write!(f, "above {least}"),
            Bound::Between(least, most) => write!(f, "between {least} and {most}"),
            Bound::BetweenZeroAndOne => f.write_str("between 0 and 1"),
            Bound::BelowOne => f.write_str("at least 0 and below 1"),
        }
    }
}

/// A type that a parameter can have.
pub trait ParameterValue: Sized {
    /// What values look like.
    fn expected() -> String;
    /// Read from text.
    fn parse(text: &str) -> Option<Self>;
    /// Write as text, such that it can be read back.
    fn show(&self) -> String;
}

macro_rules! plain_values {
    ($($type:ty => $expected:literal),* $(,)?) => {$(
        impl ParameterValue for $type {
            fn expected() -> String {
                $expected.into()
            }
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

plain_values! {
    usize => "a whole number",
    u64 => "a whole number",
    bool => "true or false",
}

impl ParameterValue for f64 {
    fn expected() -> String {
        "a number".into()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|v: &f64| v.is_finite())
    }

    fn show(&self) -> String {
        // Small and large numbers are easier to read with an exponent.
        if *self != 0.0 && !(1e-3..1e6).contains(&self.abs()) {
            format!("{self:e}")
        } else {
            self.to_string()
        }
    }
}

/// A parameter that is one of a few words.
pub trait Choice: Copy + PartialEq + 'static {
    /// All choices with their words.
    const ALL: &'static [(&'static str, Self)];
}

impl<C: Choice> ParameterValue for C {
    fn expected() -> String {
        let words: Vec<&str> = C::ALL.iter().map(|(word, _)| *word).collect();
        match words.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => words.concat(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        C::ALL
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, choice)| *choice)
    }

    fn show(&self) -> String {
        let found = C::ALL.iter().find(|(_, choice)| choice == self);
        found.map_or_else(String::new, |(word, _)| (*word).into())
    }
}

/// Read a value or say what was expected.
pub(crate) fn read_value<V: ParameterValue>(name: &str, text: &str) -> Result<V> {
    V::parse(text).ok_or_else(|| Error::parameter(name, V::expected(), format!("{text:?}")))
}

/// An error for a name that no parameter has.
pub(crate) fn unknown(name: &str, known: &[Parameter]) -> Error {
    let names: Vec<&str> = known.iter().map(|p| p.name).collect();
    let expected = if names.is_empty() {
        "absent (this method has no parameters)".to_owned()
    } else {
        format!("one of {}", names.join(", "))
    };
    let found = format!("{name:?}{}", did_you_mean(name, &names));
    Error::parameter("the name of a parameter", expected, found)
}

/// A question after a name that is nearly one of the known ones, or nothing.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> String {
    let distance = |known: &&&str| strsim::osa_distance(known, &name.to_ascii_lowercase());
    let nearest = known.iter().min_by_key(distance);
    let meant = nearest.filter(|known| distance(known) <= 2);
    meant.map_or(String::new(), |known| format!("; did you mean {known}?"))
}

/// A bound that a parameter must keep.
pub(crate) fn require(holds: bool, name: &str, expected: &str, found: impl Display) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(Error::parameter(name, expected, found))
    }
}

/// A rank must be between 1 and the dimension.
pub(crate) fn require_rank(rank: usize, dim: usize) -> Result<()> {
    if (1..=dim).contains(&rank) {
        return Ok(());
    }
    Err(Error::parameter(
        "rank",
        format!("between 1 and {dim} (the input dimension)"),
        rank,
    ))
}

/// The same for learners that take 0 for all that there are; gives the rank at most.
pub(crate) fn rank_or_all(rank: usize, dim: usize) -> Result<usize> {
    if rank == 0 {
        return Ok(dim);
    }
    require_rank(rank, dim)?;
    Ok(rank)
}

/// Declares a struct of parameters: fields with documentation, type, default and, after `=>`, their
/// [`Bound`]; and under `shared` fields that are such structs themselves and whose parameters are listed
/// and set as if they stood here.
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr $(=> $bound:expr)?, )*
        }
        $(shared {
            $( $(#[doc = $shared_doc:literal])+ $shared:ident: $shared_type:ty = $shared_default:expr, )*
        })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[allow(unreachable_pub, reason = "tests declare parameters of their own")]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $type, )*
            $($( $(#[doc = $shared_doc])+ pub $shared: $shared_type, )*)?
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    $( $field: $default, )*
                    $($( $shared: $shared_default, )*)?
                }
            }
        }

        impl $crate::training::Parameters for $name {
            #[allow(unused_mut, clippy::vec_init_then_push, reason = "parts may be empty")]
            fn list(&self) -> Vec<$crate::training::Parameter> {
                let mut all = vec![ $( $crate::training::Parameter {
                    name: stringify!($field),
                    default: $crate::training::ParameterValue::show(&self.$field),
                    values: <$type as $crate::training::ParameterValue>::expected(),
                    meaning: concat!($($doc),+).trim().to_owned(),
                }, )* ];
                $($( all.extend($crate::training::Parameters::list(&self.$shared)); )*)?
                all
            }

            #[allow(unused_variables, reason = "a method may have no parameters")]
            fn set(&mut self, name: &str, value: &str) -> $crate::Result<()> {
                match name {
                    $( stringify!($field) => {
                        self.$field = $crate::training::parameters::read_value(name, value)?;
                        return Ok(());
                    } )*
                    _ => {}
                }
                $($(
                    let mut listed = $crate::training::Parameters::list(&self.$shared).into_iter();
                    if listed.any(|one| one.name == name) {
                        return $crate::training::Parameters::set(&mut self.$shared, name, value);
                    }
                )*)?
                let known = <Self as $crate::training::Parameters>::describe();
                Err($crate::training::parameters::unknown(name, &known))
            }

            fn check_bounds(&self) -> $crate::Result<()> {
                $( $( $bound.check(stringify!($field), &self.$field)?; )? )*
                $($( $crate::training::Parameters::check_bounds(&self.$shared)?; )*)?
                Ok(())
            }
        }
    };
}
pub(crate) use parameters;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    pub(crate) enum Colour {
        Red,
        Blue,
    }

    impl Choice for Colour {
        const ALL: &'static [(&'static str, Self)] =
            &[("red", Colour::Red), ("blue", Colour::Blue)];
    }

    parameters! {
        /// A sample.
        pub struct Sample {
            /// How many.
            count: usize = 3,
            /// How strong.
            strength: f64 = 1e-4,
            /// Which.
            colour: Colour = Colour::Red,
        }
    }

    #[test]
    fn fields_are_listed_set_and_recorded() {
        let listed = Sample::describe();
        assert_eq!(listed[1].default, "1e-4");
        assert_eq!(listed[2].values, "red or blue");
        assert_eq!(listed[0].meaning, "How many.");
        let mut sample = Sample::default();
        sample.set("colour", "blue").unwrap();
        assert_eq!(sample.colour, Colour::Blue);
        assert_eq!(sample.values()["colour"], "blue");
        assert_eq!(
            sample.set("colour", "green").unwrap_err().to_string(),
            "colour must be red or blue, but is \"green\""
        );
        assert!(
            sample
                .set("size", "1")
                .unwrap_err()
                .to_string()
                .contains("count, strength")
        );
        assert!(sample.set("strength", "NaN").is_err());
    }
}
