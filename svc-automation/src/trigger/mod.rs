//! Triggers: events that integrations fire.

mod rpc;
mod rules;

pub(crate) use rpc::Rpc;
