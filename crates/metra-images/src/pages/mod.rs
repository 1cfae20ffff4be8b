//! Which changes of a web page matter: screenshots of one page over time, and what can be learned from
//! them without a label.
//!
//! After the web-page part of Law, Thome & Cord, "Quadruplet-wise Image Similarity Learning" (ICCV 2013),
//! as told in Cord's slides of December 2013: GIST on an m × m grid, Ψ of two versions is the vector of the
//! cells' Euclidean distances, and a weight for every cell is learned from the order of versions in time. In place of
//! the grid, a [`Layout`] can have the boxes of the page's own structure.
//! [`Series`] finds the versions, [`Described`] has their descriptors, [`by_time`] says what is nearer than
//! what, [`PageModel`] learns and scores, [`Precision`] judges against labels, [`heat`] shows, and
//! [`Browser`] takes the screenshots in the first place.

mod browser;
mod descriptors;
mod devtools;
mod frame;
pub mod heat;
mod labels;
mod layout;
mod page_model;
mod precision;
mod quadruplets;
mod series;
mod threshold;
mod times;

pub use browser::{Browser, Shot};
pub use descriptors::Described;
pub use devtools::PageRegion;
pub use frame::Frame;
pub use labels::{Labelled, read_labels};
pub use layout::Layout;
pub use page_model::{Learning, PageModel};
pub use precision::Precision;
pub use quadruplets::by_time;
pub use series::{Series, Version};
pub use threshold::between;
pub use times::{file_name, parse_time};
