//! interim
pub mod store;
use crate::document::Kind;
use render::paper::{Category, Language};
use rust_decimal::Decimal;
#[derive(Clone, Debug)]
pub struct SalesRate {
    pub code: String,
    pub amount: Decimal,
    pub category: Category,
    pub is_default: bool,
}
#[derive(Clone, Debug)]
pub struct Settings {
    pub payment_days: i32,
    pub quote_days: i32,
    pub language: Language,
    pub padding: i32,
}
impl Settings {
    pub fn prefix(&self, kind: Kind) -> &str {
        match kind {
            Kind::Invoice => "INV",
            Kind::Quote => "QUO",
            Kind::Workorder => "WO",
        }
    }
}
pub struct ForDocuments {
    pub settings: Settings,
    pub rates: Vec<SalesRate>,
}
