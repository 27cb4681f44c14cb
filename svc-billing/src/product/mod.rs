//! Products: what the business sells. Documents copy what they need of one and do not refer to it.

pub mod rpc;
mod rules;
mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::billing::{Product, ProductInput, ProductMeta};
use uuid::Uuid;

/// The counter of all products.
const LIST: &str = "product";

/// A product as it is stored.
#[derive(Clone, Debug)]
struct Record {
    id: Uuid,
    /// `active` is always there.
    values: ProductInput,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Record> for Product {
    fn from(record: Record) -> Self {
        let Record { id, values, created_at, updated_at } = record;
        let ProductInput { name, code, price, vat_rate, unit, active } = values;
        let active = active.unwrap_or(true);
        let meta =
            ProductMeta { created_at: Some(timestamp(created_at)), updated_at: Some(timestamp(updated_at)) };
        Self { id: id.to_string(), name, code, price, vat_rate, unit, active, meta: Some(meta) }
    }
}
