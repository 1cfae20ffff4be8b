//! A metric's map as a file that other programs read, so that vectors are mapped where they are
//! searched. One file per format; what is exported is the same for all: a list of steps.
//!
//! ONNX has operators for every step. FAISS, the C header and the SQL function know affine maps and the
//! division by the length, npy and safetensors a matrix and an offset: there, neighbouring affine steps
//! are folded, and what is left over is refused by name.

mod faiss;
mod faiss_code;
mod format;
mod header;
mod map;
mod onnx;
mod safetensors;
mod sql;

pub use faiss::{FaissIndex, FaissWriter, wrap_faiss, write_faiss};
pub use format::{Format, MapFormat};
pub use header::{c_name, write_header};
pub use map::Export;
pub use onnx::{OPSET, write_onnx};
pub use safetensors::write_safetensors;
pub use sql::{SqlColumns, write_sql};
