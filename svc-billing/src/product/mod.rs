//! Products: what the business sells. Documents copy what they need of one and do not refer to it.

pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
mod store;

use chassis_base::time::timestamp;
use chassis_data::Listing;
use chrono::{DateTime, Utc};
use proto::billing::{Product, ProductInput, ProductMeta};
use uuid::Uuid;

use crate::error::Error;

/// The counter of all products.
const LIST: &str = "product";

/// What lists filter by.
const ACTIVE_COLUMN: &str = "active";

const NOT_FOUND: Error = Error::NotFound("product");

/// A product as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub id: Uuid,
    /// `active` is always set.
    pub values: ProductInput,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Counts the changes from 1.
    pub version: i64,
}

impl Record {
    fn is_active(&self) -> bool {
        self.values.active.unwrap_or(true)
    }

    /// The lists that show it.
    fn listing(&self) -> Listing {
        let active = if self.is_active() { "true" } else { "false" };
        Listing::new(self.created_at, self.id).of(LIST).with(LIST, ACTIVE_COLUMN, active)
    }
}

impl From<Record> for Product {
    fn from(record: Record) -> Self {
        let Record { id, values, created_at, updated_at, version } = record;
        let ProductInput { name, code, price, vat_rate, unit, active } = values;
        let active = active.unwrap_or(true);
        let meta = ProductMeta {
            created_at: Some(timestamp(created_at)),
            updated_at: Some(timestamp(updated_at)),
            version,
        };
        Self { id: id.to_string(), name, code, price, vat_rate, unit, active, meta: Some(meta) }
    }
}
