//! One file or folder a verb.

#[cfg(not(feature = "cluster"))]
pub(crate) mod absent;
pub(crate) mod calibrate;
pub(crate) mod check;
#[cfg(feature = "cluster")]
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod decide;
pub(crate) mod embed;
pub(crate) mod eval;
pub(crate) mod export;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod methods;
pub(crate) mod plan;
pub(crate) mod search;
#[cfg(feature = "cluster")]
pub(crate) mod shard;
pub(crate) mod train;
