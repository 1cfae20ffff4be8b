//! One file or folder a verb.

pub(crate) mod calibrate;
pub(crate) mod check;
#[cfg(feature = "cluster")]
pub(crate) mod cluster;
#[cfg(not(feature = "cluster"))]
pub(crate) mod cluster_absent;
pub(crate) mod compare;
pub(crate) mod decide;
pub(crate) mod embed;
pub(crate) mod eval;
pub(crate) mod inspect;
pub(crate) mod methods;
pub(crate) mod search;
pub(crate) mod train;

#[cfg(not(feature = "cluster"))]
pub(crate) use cluster_absent as cluster;
