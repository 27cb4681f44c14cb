use super::{ForDocuments, SalesRate, Settings};
use crate::Error;
use chassis::AccountId;
use render::paper::{Category, Language};
use sqlx::PgConnection;
pub async fn for_documents(_: &mut PgConnection, _: AccountId) -> Result<ForDocuments, Error> {
    let rate = |code: &str, amount: i64, category, is_default| SalesRate {
        code: code.to_owned(),
        amount: amount.into(),
        category,
        is_default,
    };
    Ok(ForDocuments {
        settings: Settings { payment_days: 14, quote_days: 30, language: Language::Nl, padding: 5 },
        rates: vec![
            rate("VAT21", 21, Category::S, true),
            rate("VAT9", 9, Category::S, false),
            rate("VAT0", 0, Category::Z, false),
            rate("REVERSE", 0, Category::AE, false),
        ],
    })
}
