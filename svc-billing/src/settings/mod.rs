//! How an account makes its documents: days, default rate, language and numbers. Its rpcs are in `settings_service`,
//! which serves several resources.

pub(crate) mod operations;
mod rules;
pub mod store;

use proto::billing::{BillingSettings, DocumentLanguage};
use render::printed::{Category, Language};
use rust_decimal::Decimal;

use crate::language;
use crate::tax_rate::countries;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Days in which invoices are to be paid when the client has no term of its own.
    pub payment_days: i32,
    /// Days for which quotes are valid when the client has none of its own.
    pub quote_days: i32,
    /// The code of a tax rate for sales.
    pub default_tax_code: String,
    pub language: Language,
    pub invoice_prefix: String,
    pub quote_prefix: String,
    pub workorder_prefix: String,
    /// The minimum number of digits of the sequence number.
    pub number_padding: i32,
    /// Whether payments may go to the sandbox. `None` leaves that to the environment.
    pub sandbox_payments: Option<bool>,
}

impl Settings {
    /// The settings of a new account in a country.
    pub fn of_country(country: &str) -> Self {
        Self {
            payment_days: 14,
            quote_days: 30,
            default_tax_code: countries::standard_code(country),
            language: language::of_country(country),
            invoice_prefix: "INV".to_owned(),
            quote_prefix: "QUO".to_owned(),
            workorder_prefix: "WO".to_owned(),
            number_padding: 5,
            sandbox_payments: None,
        }
    }
}

/// A tax rate that rows can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalesRate {
    pub code: String,
    /// A percentage, without padding.
    pub amount: Decimal,
    pub category: Category,
    /// Whether rows without a rate of their own have this one.
    pub is_default: bool,
}

/// The settings and tax rates that a new document needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForDocuments {
    pub settings: Settings,
    /// Ordered by code.
    pub rates: Vec<SalesRate>,
}

impl From<Settings> for BillingSettings {
    fn from(settings: Settings) -> Self {
        let language = match settings.language {
            Language::Nl => DocumentLanguage::Nl,
            Language::En => DocumentLanguage::En,
        };
        Self {
            payment_days: Some(settings.payment_days),
            quote_days: Some(settings.quote_days),
            default_tax_code: settings.default_tax_code,
            language: language.into(),
            invoice_prefix: settings.invoice_prefix,
            quote_prefix: settings.quote_prefix,
            workorder_prefix: settings.workorder_prefix,
            number_padding: Some(settings.number_padding),
            sandbox_payments: settings.sandbox_payments,
        }
    }
}
