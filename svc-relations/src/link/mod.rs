//! Links: which persons work for which companies. Both ends are clients of the account. The link rpcs are part of
//! `ClientService`, so they are in `relation/rpc/clients.rs`.

pub(crate) mod operations;
mod rules;
pub(crate) mod store;

use proto::relations::ClientLink;
use uuid::Uuid;

/// A link as it is stored.
#[derive(chassis_derive::FromRow)]
pub struct Record {
    pub company_id: Uuid,
    pub client_id: Uuid,
    pub function: String,
    pub department: String,
}

impl From<Record> for ClientLink {
    fn from(record: Record) -> Self {
        Self {
            company_id: record.company_id.to_string(),
            client_id: record.client_id.to_string(),
            function: record.function,
            department: record.department,
        }
    }
}
