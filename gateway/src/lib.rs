//! The REST side of the mesh: one generic pipeline, driven by plans that are computed once from the descriptor.
//! Must not know what any resource is.

pub mod contract;
pub mod openapi;
pub mod pages;
pub mod transcode;
