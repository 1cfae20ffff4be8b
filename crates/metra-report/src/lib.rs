//! Reports of comparisons: one HTML file that opens offline, and a page in Markdown.
//!
//! Both say the same, from the same words and tables: who is best and by how much, what cannot be
//! told apart, what was lost, what failed, how settings were chosen and how to get it all again.
//! The HTML file has charts as well and fetches nothing: style sheet and drawings are inside, there
//! is no script, and a rule in its head forbids one. It follows the reader's theme, prints on paper
//! and fits a phone. The Markdown page is for a repository and names no single query. [`exports`]
//! gives tables and curves as CSV, LaTeX and SVG.
//!
//! ```
//! # fn read() -> metra::experiment::compare::Results {
//! #     let empty = r#"{"format":1,"version":"0","name":"digits","about":"","command":"",
//! #       "data":{"text":"","fingerprint":"","supervision":""},
//! #       "protocol":{"protocol":"","holdout":"","splits":[],"folds":false,"seed":0,
//! #       "criterion":"map","measures":["map"],"budget":1,"halving":null,"rerank":null,
//! #       "comparisons":0,"resamples":0},"base":"","best":"","lines":[],"claims":[],"facts":[]}"#;
//! #     metra::experiment::compare::Results::from_json(empty).unwrap()
//! # }
//! let results = read();
//! let page = metra_report::html(&results, None)?;
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! # Ok::<(), metra_report::Error>(())
//! ```

mod charts;
mod compression;
mod error;
mod exports;
mod figures;
mod leaderboard;
mod markdown;
mod measures;
mod numbers;
mod page;
mod sheets;
mod tables;
mod words;

pub use compression::{CompressionGain, CompressionReport, CompressionRow};
pub use error::Error;
pub use exports::{GainBar, exports, gains_chart};
pub use markdown::markdown;
pub use page::{html, html_with_sheets};
pub use sheets::{SheetGroup, SheetPicture, Sheets};
pub use words::verdict;
