//! Ingestion of events: from other services (`EventListenerService`) and from integrations (`TriggerService`). Each event
//! is stored once; in the same transaction it is queued for webhook endpoints and starts the flows that it triggers.
//!
//! Two gRPC services end here, so `rpc` is in two files: `event_listener` and `rpc` (triggers).

mod event_listener;
pub(crate) mod operations;
mod rpc;
mod rules;

pub(crate) use event_listener::EventListener;
pub(crate) use rpc::Triggers;
