//! Corporate identities: who the seller is on documents, and how they look. One of them is the default. The rpcs are in
//! `settings_service`, which serves several resources; `logo` holds the rules for the pictures.

mod logo;
pub(crate) mod operations;
mod rules;
pub mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::billing::{CorporateIdentity, Identity, IdentityInput};
use render::printed::{Bank, Logo, LogoFormat, Look, Party};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Error;

pub use store::seller;

pub(crate) const NOT_FOUND: Error = Error::NotFound("identity");
/// The colours of an identity that has chosen none.
const PRIMARY_COLOR: &str = "#1f4e5f";
const SECONDARY_COLOR: &str = "#c98b2b";

/// What documents show of the default identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seller {
    pub party: Party,
    pub bank: Bank,
    /// With the logo.
    pub look: Look,
}

/// An identity as it is stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    pub values: IdentityInput,
    pub is_default: bool,
    pub logo: Option<LogoFormat>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Counts the changes from 1, also those that are only in `Identity`.
    pub version: i64,
}

impl Record {
    /// An identity that was made just now.
    fn new(id: Uuid, values: IdentityInput, is_default: bool, now: DateTime<Utc>) -> Self {
        Self { id, values, is_default, logo: None, created_at: now, updated_at: now, version: 1 }
    }

    /// To be called once when the identity changes.
    fn touch(&mut self, now: DateTime<Utc>) {
        self.version += 1;
        self.updated_at = now;
    }
}

/// The identity of a new account.
fn default_of(account_name: &str, country: &str) -> IdentityInput {
    IdentityInput {
        name: account_name.to_owned(),
        primary_color: PRIMARY_COLOR.to_owned(),
        secondary_color: SECONDARY_COLOR.to_owned(),
        country: country.to_owned(),
        ..IdentityInput::default()
    }
}

impl From<Record> for Identity {
    fn from(record: Record) -> Self {
        let values = record.values;
        Self {
            id: record.id.to_string(),
            values: None,
            name: values.name,
            primary_color: values.primary_color,
            secondary_color: values.secondary_color,
            company_name: values.company_name,
            address: values.address,
            zipcode: values.zipcode,
            city: values.city,
            country: values.country,
            email: values.email,
            phone: values.phone,
            website: values.website,
            company_registration_number: values.company_registration_number,
            vat_number: values.vat_number,
            iban: values.iban,
            bic: values.bic,
            bank_account_name: values.bank_account_name,
            footer: values.footer,
            is_default: record.is_default,
            logo_type: record.logo.map(LogoFormat::media_type).unwrap_or_default().to_owned(),
            created_at: Some(timestamp(record.created_at)),
            updated_at: Some(timestamp(record.updated_at)),
            version: record.version,
        }
    }
}

impl From<Record> for CorporateIdentity {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            name: record.values.name,
            primary_color: record.values.primary_color,
            secondary_color: record.values.secondary_color,
            is_default: record.is_default,
            updated_at: Some(timestamp(record.updated_at)),
            version: record.version,
        }
    }
}

impl Seller {
    fn new(values: IdentityInput, logo: Option<Logo>) -> Self {
        let name = if values.company_name.is_empty() { values.name } else { values.company_name };
        Self {
            party: Party {
                name,
                address: values.address,
                zipcode: values.zipcode,
                city: values.city,
                country: values.country,
                email: values.email,
                phone: values.phone,
                website: values.website,
                registration_number: values.company_registration_number,
                vat_number: values.vat_number,
                ..Party::default()
            },
            bank: Bank { iban: values.iban, bic: values.bic, holder: values.bank_account_name },
            look: Look {
                primary_color: values.primary_color,
                secondary_color: values.secondary_color,
                footer: values.footer,
                logo,
            },
        }
    }
}
