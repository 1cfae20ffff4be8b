//! The passes of [`metra`] over tables of any size: Apache DataFusion on one machine, Ballista on
//! many.

pub mod operators;
