//! Tax rates: what VAT the account's rows can have, for sales and for purchases. Documents keep the rates they were made
//! with. The rpcs are in `settings_service`, which serves several resources; `countries` is the table of built-in rates.

pub(crate) mod countries;
pub(crate) mod operations;
pub(crate) mod rules;
pub(crate) mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::billing::{TaxRate, TaxRateContext, TaxRateType};
use render::printed::Category;
use rust_decimal::Decimal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Unique within the context.
    pub code: String,
    pub label: String,
    pub kind: TaxRateType,
    pub context: TaxRateContext,
    /// A percentage.
    pub amount: Decimal,
}

/// A rate as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub rate: Rate,
    /// Counts the changes from 1.
    pub version: i64,
    pub updated_at: DateTime<Utc>,
}

impl From<Record> for TaxRate {
    fn from(Record { rate, version, updated_at }: Record) -> Self {
        Self {
            profile: category(rate.kind).code().to_owned(),
            code: rate.code,
            label: rate.label,
            r#type: rate.kind.into(),
            context: rate.context.into(),
            amount: rate.amount.normalize().to_string(),
            version,
            updated_at: Some(timestamp(updated_at)),
        }
    }
}

/// The VAT category of EN 16931 for a type of rate.
pub(crate) fn category(kind: TaxRateType) -> Category {
    match kind {
        TaxRateType::Standard | TaxRateType::Reduced => Category::S,
        TaxRateType::Zero => Category::Z,
        TaxRateType::Exempt => Category::E,
        TaxRateType::ReverseCharge => Category::AE,
        TaxRateType::IntraCommunity => Category::K,
        TaxRateType::Export => Category::G,
        TaxRateType::Unspecified => Category::O,
    }
}

/// How a type is stored.
fn type_name(kind: TaxRateType) -> &'static str {
    match kind {
        TaxRateType::Unspecified => "",
        TaxRateType::Standard => "standard",
        TaxRateType::Reduced => "reduced",
        TaxRateType::Zero => "zero",
        TaxRateType::Exempt => "exempt",
        TaxRateType::ReverseCharge => "reverse_charge",
        TaxRateType::IntraCommunity => "intra_community",
        TaxRateType::Export => "export",
    }
}

/// The inverse of [`type_name`].
pub(crate) fn type_from_name(name: &str) -> Option<TaxRateType> {
    use TaxRateType::{Exempt, Export, IntraCommunity, Reduced, ReverseCharge, Standard, Zero};
    let all = [Standard, Reduced, Zero, Exempt, ReverseCharge, IntraCommunity, Export];
    all.into_iter().find(|kind| type_name(*kind) == name)
}

/// How a context is stored.
fn context_name(context: TaxRateContext) -> &'static str {
    match context {
        TaxRateContext::Purchase => "purchase",
        TaxRateContext::Sales | TaxRateContext::Unspecified => "sales",
    }
}

/// The inverse of [`context_name`].
fn context_from_name(name: &str) -> Option<TaxRateContext> {
    [TaxRateContext::Sales, TaxRateContext::Purchase]
        .into_iter()
        .find(|context| context_name(*context) == name)
}
