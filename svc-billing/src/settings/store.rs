//! The SQL of billing settings, and nothing else.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use render::printed::Language;
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, Row};

use super::{ForDocuments, SalesRate, Settings};
use crate::error::Error;
use crate::tax_rate::{category, countries, type_from_name};
use chassis_base::stored::decode;

/// The country of an account that this service has not been told of yet.
const DEFAULT_COUNTRY: &str = "NL";

macro_rules! settings_columns {
    () => {
        "payment_days, quote_days, default_tax_code, language, invoice_prefix, quote_prefix, workorder_prefix, \
         number_padding, sandbox_payments"
    };
}
pub(crate) use settings_columns;

/// The settings and tax rates of an account: the columns and where they come from.
macro_rules! settings_and_rates {
    () => {
        concat!(
            "(select country from billing.account where account_id = $1) as account_country, \
             settings.account_id is not null as provisioned, rates.codes, rates.amounts, rates.types, ",
            settings_columns!(),
            " from (values ($1::uuid)) requested (id) left join billing.settings on settings.account_id = $1 \
             cross join (select array_agg(code) as codes, array_agg(amount) as amounts, array_agg(type) as types \
             from (select code, amount, type from billing.tax_rate \
             where account_id = $1 and context = 'sales' order by code) rate) rates"
        )
    };
}
pub(crate) use settings_and_rates;

impl FromRow<'_, PgRow> for Settings {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let language = decode("settings.language", row.try_get("language")?, Language::from_code)?;
        Ok(Self {
            payment_days: row.try_get("payment_days")?,
            quote_days: row.try_get("quote_days")?,
            default_tax_code: row.try_get("default_tax_code")?,
            language,
            invoice_prefix: row.try_get("invoice_prefix")?,
            quote_prefix: row.try_get("quote_prefix")?,
            workorder_prefix: row.try_get("workorder_prefix")?,
            number_padding: row.try_get("number_padding")?,
            sandbox_payments: row.try_get("sandbox_payments")?,
        })
    }
}

/// The settings and tax rates that a new document needs, in one round trip. An account that was never provisioned has
/// the defaults of its country.
pub async fn for_documents(connection: &mut PgConnection, account: AccountId) -> Result<ForDocuments, Error> {
    let sql = concat!("select ", settings_and_rates!());
    let row = sqlx::query(sql).bind(account).fetch_one(connection).await?;
    read_for_documents(&row)
}

/// Reads the columns of `settings_and_rates!`, by their names.
pub(crate) fn read_for_documents(row: &PgRow) -> Result<ForDocuments, Error> {
    if !row.try_get::<bool, _>("provisioned")? {
        let country: Option<String> = row.try_get("account_country")?;
        return Ok(built_in(country.as_deref().unwrap_or(DEFAULT_COUNTRY)));
    }
    let settings = Settings::from_row(row)?;
    let codes: Option<Vec<String>> = row.try_get("codes")?;
    let amounts: Option<Vec<Decimal>> = row.try_get("amounts")?;
    let types: Option<Vec<String>> = row.try_get("types")?;
    let amounts_and_types = amounts.unwrap_or_default().into_iter().zip(types.unwrap_or_default());
    let mut rates = Vec::new();
    for (code, (amount, kind)) in codes.unwrap_or_default().into_iter().zip(amounts_and_types) {
        let kind = decode("tax_rate.type", &kind, type_from_name).map_err(chassis_base::Error::from)?;
        rates.push(SalesRate {
            is_default: code == settings.default_tax_code,
            category: category(kind),
            amount: amount.normalize(),
            code,
        });
    }
    Ok(ForDocuments { settings, rates })
}

fn built_in(country: &str) -> ForDocuments {
    let settings = Settings::of_country(country);
    let mut rates: Vec<SalesRate> = countries::sales_rates_of(country)
        .into_iter()
        .map(|rate| SalesRate {
            is_default: rate.code == settings.default_tax_code,
            category: category(rate.kind),
            amount: rate.amount,
            code: rate.code,
        })
        .collect();
    rates.sort_by(|a, b| a.code.cmp(&b.code));
    ForDocuments { settings, rates }
}

/// Whether the account allows payments in the sandbox. `None` when it has not set that.
pub async fn find_sandbox_payments(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Option<bool>, Error> {
    let sql = "select sandbox_payments from billing.settings where account_id = $1";
    let found: Option<Option<bool>> =
        sqlx::query_scalar(sql).bind(account).fetch_optional(connection).await?;
    Ok(found.flatten())
}

/// The settings of an account that has some.
pub async fn get(connection: &mut PgConnection, account: AccountId) -> Result<Settings, Error> {
    let sql = concat!("select ", settings_columns!(), " from billing.settings where account_id = $1");
    Ok(sqlx::query_as(sql).bind(account).fetch_one(connection).await?)
}

/// Stores the settings of an account that has none; tells whether it had none.
pub async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    settings: &Settings,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let sql = concat!(
        "insert into billing.settings (account_id, ",
        settings_columns!(),
        ", created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11) \
         on conflict (account_id) do nothing"
    );
    let inserted = bind(sqlx::query(sql), account, settings, now).execute(connection).await?;
    Ok(inserted.rows_affected() > 0)
}

pub async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    settings: &Settings,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "update billing.settings set payment_days = $2, quote_days = $3, default_tax_code = $4, language = $5, \
               invoice_prefix = $6, quote_prefix = $7, workorder_prefix = $8, number_padding = $9, sandbox_payments = $10, \
               updated_at = $11 where account_id = $1";
    bind(sqlx::query(sql), account, settings, now).execute(connection).await?;
    Ok(())
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

/// Binds $1 to $11, which insert and update share.
fn bind<'q>(query: Query<'q>, account: AccountId, settings: &'q Settings, now: DateTime<Utc>) -> Query<'q> {
    query
        .bind(account)
        .bind(settings.payment_days)
        .bind(settings.quote_days)
        .bind(&settings.default_tax_code)
        .bind(settings.language.code())
        .bind(&settings.invoice_prefix)
        .bind(&settings.quote_prefix)
        .bind(&settings.workorder_prefix)
        .bind(settings.number_padding)
        .bind(settings.sandbox_payments)
        .bind(now)
}
