//! The state that handlers share.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use chassis_service::stage::Stage;
use chassis_transcode::records::RecordKinds;
use tokio::sync::{Semaphore, watch};

use super::byte_budget::ByteBudget;
use super::client_address::Proxies;
use super::concurrency_limit::ConcurrencyLimit;
use super::cors::Cors;
use super::operation_table::OperationTable;
use super::own_services::OwnServices;
use super::upstream::Upstreams;
use crate::keys::{Authenticator, TokenCache};
use crate::limits::Limits;
use crate::readiness::Readiness;
use crate::runtime::Runtime;

/// The state that handlers share.
pub struct App {
    pub runtime: Runtime,
    pub keys: Authenticator,
    pub limits: Arc<Limits>,
    pub upstreams: Upstreams,
    /// What the gateway answers itself.
    pub own: OwnServices,
    /// What the API serves.
    pub operations: OperationTable,
    /// The kinds of records that the change feed shows, and that references are expanded to.
    pub records: RecordKinds,
    /// The time limit of a request.
    pub deadline: Duration,
    /// Requests whose key may be looked up at the same time.
    pub admissions: Semaphore,
    /// Requests that may be in progress at the same time, for each service.
    pub concurrency: ConcurrencyLimit,
    /// Requests that may wait for something at the same time.
    pub waits: ConcurrencyLimit,
    pub budgets: ByteBudgets,
    pub cors: Cors,
    /// The context tokens of requests without a key.
    pub public_tokens: TokenCache,
    /// The proxies that name the client of a request.
    pub proxies: Proxies,
    pub readiness: Readiness,
    /// The stage of the shutdown.
    pub stop: watch::Receiver<Stage>,
}

impl FromRef<Arc<App>> for Proxies {
    fn from_ref(app: &Arc<App>) -> Self {
        app.proxies
    }
}

/// How much may be in memory, in bytes. The budgets are separate: a client that does not read its file must not keep
/// others from reading lists.
pub struct ByteBudgets {
    /// Bodies of requests, until they are answered.
    pub requests: ByteBudget,
    /// Responses that are in memory as a whole, until they are written.
    pub answers: ByteBudget,
    /// Responses that are streamed.
    pub downloads: ByteBudget,
}

impl ByteBudgets {
    /// `incoming` and `outgoing` are bytes.
    pub fn new(incoming: usize, outgoing: usize) -> Self {
        Self {
            requests: ByteBudget::new("requests", incoming),
            answers: ByteBudget::new("answers", outgoing / 4),
            downloads: ByteBudget::new("downloads", outgoing / 4 * 3),
        }
    }
}
