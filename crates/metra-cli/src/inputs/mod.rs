//! From arguments and files to a data set: used by every verb that reads data.

mod args;
mod data;
mod files;
mod supervision;

pub(crate) use args::{Columns, ComparisonArgs, QrelsArgs};
pub(crate) use data::{DataArgs, Input};
pub(crate) use files::{
    Files, Loaded, embed, in_file, label, load, model_groups, protocol_for, row_name, split_names,
};
pub(crate) use supervision::{SupervisionInput, comparisons, need_labels};
