//! One file or folder a verb.

pub(crate) mod attributes;
pub(crate) mod budget;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod clicks;
#[cfg(feature = "cluster")]
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod compress;
pub(crate) mod decide;
pub(crate) mod doctor;
pub(crate) mod embed;
pub(crate) mod eval;
pub(crate) mod examples;
pub(crate) mod export;
#[cfg(feature = "images")]
pub(crate) mod features;
pub(crate) mod fuse;
pub(crate) mod gate;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod methods;
pub(crate) mod migrate;
#[cfg(feature = "postgres")]
pub(crate) mod models;
#[cfg(feature = "images")]
pub(crate) mod pages;
pub(crate) mod plan;
#[cfg(feature = "postgres")]
pub(crate) mod pull;
#[cfg(feature = "postgres")]
pub(crate) mod push;
pub(crate) mod search;
#[cfg(feature = "serve")]
pub(crate) mod serve;
#[cfg(feature = "cluster")]
pub(crate) mod shard;
#[cfg(feature = "images")]
pub(crate) mod sheets;
pub(crate) mod shorten;
pub(crate) mod sums;
pub(crate) mod train;

#[cfg(not(feature = "cluster"))]
crate::feature_off::absent! {
    cluster Cluster, "cluster", "cluster", ();
    shard Shard, "shard", "cluster", ();
}
#[cfg(not(feature = "images"))]
crate::feature_off::absent! {
    features Features, "features", "images", ();
    sheets Sheets, "sheets", "images", ();
    pages Pages, "pages", "images", u8;
}
#[cfg(not(feature = "serve"))]
crate::feature_off::absent! {
    serve Serve, "serve", "serve", ();
}
#[cfg(not(feature = "postgres"))]
crate::feature_off::absent! {
    push Push, "push", "postgres", ();
    pull Pull, "pull", "postgres", ();
    models Models, "models", "postgres", ();
}
