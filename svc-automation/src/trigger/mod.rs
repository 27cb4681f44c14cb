//! Triggers: events that integrations fire.

mod rpc;
pub(crate) mod rules;

pub(crate) use rpc::Rpc;
