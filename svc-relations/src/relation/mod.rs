//! Clients and suppliers: one kind of record in two lists that never mix. Which list a record is in is a value
//! (`Role`), so that both lists run the same code.

mod events;
mod fields;
pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
mod store;

use chassis_base::time::timestamp;
use chassis_data::Listing;
use chrono::{DateTime, Utc};
use proto::relations::{ClientInput, Relation, RelationMeta, RelationType};
use uuid::Uuid;

/// What lists filter by.
const COUNTRY_COLUMN: &str = "country";

/// The list that a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Supplier,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Supplier => "supplier",
        }
    }

    /// The name of the counter of all records of the list.
    fn list(self) -> &'static str {
        self.name()
    }

    /// The name of the counter of the records of one type.
    fn list_of(self, kind: RelationType) -> &'static str {
        match (self, kind) {
            (Self::Client, RelationType::Company) => "client/company",
            (Self::Client, _) => "client/private",
            (Self::Supplier, RelationType::Company) => "supplier/company",
            (Self::Supplier, _) => "supplier/private",
        }
    }
}

/// A client or supplier as it is stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    /// Incremented by every change.
    pub version: i64,
    /// The fields that callers can set. Suppliers use the input message of clients too: they have a subset of its
    /// fields.
    pub values: ClientInput,
    pub debtor_number: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// When who the client is was forgotten. It is never changed again.
    pub anonymized_at: Option<DateTime<Utc>>,
}

impl Record {
    /// The lists that show it.
    fn listing(&self, role: Role) -> Listing {
        let Self { id, created_at, values, .. } = self;
        let listing = Listing::new(*created_at, *id).of(role.list()).of(role.list_of(values.r#type()));
        listing.with(role.list(), COUNTRY_COLUMN, &values.country)
    }
}

impl From<Record> for Relation {
    fn from(record: Record) -> Self {
        let Record { id, version, values, debtor_number, created_at, updated_at, anonymized_at } = record;
        Self {
            id: id.to_string(),
            r#type: values.r#type,
            company_name: values.company_name,
            firstname: values.firstname,
            lastname: values.lastname,
            email: values.email,
            phone: values.phone,
            address: values.address,
            zipcode: values.zipcode,
            city: values.city,
            country: values.country,
            company_registration_number: values.company_registration_number,
            vat_number: values.vat_number,
            website: values.website,
            iban: values.iban,
            bank_account_name: values.bank_account_name,
            bic: values.bic,
            payment_term: values.payment_term,
            quote_expiration_days: values.quote_expiration_days,
            // No request can set this field yet.
            default_revenue_account: String::new(),
            email_invoices: values.email_invoices,
            email_reminders: values.email_reminders,
            mail_salutation: values.mail_salutation,
            debtor_number,
            meta: Some(RelationMeta {
                external_id: Some(values.external_id).filter(|id| !id.is_empty()),
                created_at: Some(timestamp(created_at)),
                updated_at: Some(timestamp(updated_at)),
                anonymized_at: anonymized_at.map(timestamp),
                version,
            }),
        }
    }
}
