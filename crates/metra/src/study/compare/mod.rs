//! Comparisons: every method under one protocol.

mod results;

pub use results::{
    ClaimOutcome, Cost, Costs, DataFacts, Evidence, FORMAT, Finding, Gain, Line, MeasureLine,
    ProtocolFacts, QueryChange, QueryChanges, Results, Sizes, SplitLine,
};
