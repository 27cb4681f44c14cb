//! Tax rates: what VAT the account's rows can have, for sales and for purchases. Documents keep what they were made with.

pub mod countries;
pub mod rpc;
mod rules;
pub mod store;

use proto::billing::{TaxRate, TaxRateContext, TaxRateType};
use render::paper::Category;
use rust_decimal::Decimal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Unique within the context.
    pub code: String,
    pub label: String,
    pub kind: TaxRateType,
    pub context: TaxRateContext,
    /// A percentage.
    pub amount: Decimal,
}

impl From<Rate> for TaxRate {
    fn from(rate: Rate) -> Self {
        Self {
            profile: category_name(category(rate.kind)).to_owned(),
            code: rate.code,
            label: rate.label,
            r#type: rate.kind.into(),
            context: rate.context.into(),
            amount: rate.amount.normalize().to_string(),
        }
    }
}

/// The VAT category of EN 16931 that a type of rate has.
pub fn category(kind: TaxRateType) -> Category {
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

fn category_name(category: Category) -> &'static str {
    match category {
        Category::S => "S",
        Category::Z => "Z",
        Category::E => "E",
        Category::AE => "AE",
        Category::K => "K",
        Category::G => "G",
        Category::O => "O",
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

/// The opposite of [`type_name`].
pub fn type_named(name: &str) -> TaxRateType {
    use TaxRateType::{Exempt, Export, IntraCommunity, Reduced, ReverseCharge, Standard, Unspecified, Zero};
    let all = [Standard, Reduced, Zero, Exempt, ReverseCharge, IntraCommunity, Export];
    all.into_iter().find(|kind| type_name(*kind) == name).unwrap_or(Unspecified)
}

/// How a context is stored.
fn context_name(context: TaxRateContext) -> &'static str {
    match context {
        TaxRateContext::Purchase => "purchase",
        TaxRateContext::Sales | TaxRateContext::Unspecified => "sales",
    }
}

fn context_named(name: &str) -> TaxRateContext {
    if name == "purchase" { TaxRateContext::Purchase } else { TaxRateContext::Sales }
}
