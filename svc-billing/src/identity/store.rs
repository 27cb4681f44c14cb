//! The SQL of identities and their logos, and nothing else.

use chassis_base::AccountId;
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use proto::billing::IdentityInput;
use render::printed::{Logo, LogoFormat};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};
use uuid::Uuid;

use super::{Record, Seller};
use crate::error::Error;
use chassis_base::stored::decode;

macro_rules! identity_values {
    () => {
        "name, primary_color, secondary_color, company_name, address, zipcode, city, country, email, phone, website, \
         company_registration_number, vat_number, iban, bic, bank_account_name, footer"
    };
}
pub(crate) use identity_values;

macro_rules! select {
    ($columns:literal) => {
        concat!(
            "select ",
            identity_values!(),
            ", ",
            $columns,
            " from billing.identity left join billing.identity_logo logo \
             on logo.account_id = identity.account_id and logo.identity_id = identity.id \
             where identity.account_id = $1"
        )
    };
}

macro_rules! records {
    () => {
        select!("identity.id, is_default, logo.format, identity.created_at, identity.updated_at, version")
    };
}

/// In the order of `identity_values!`.
fn take_values(columns: &mut Columns<'_>) -> Result<IdentityInput, sqlx::Error> {
    Ok(IdentityInput {
        name: columns.take()?,
        primary_color: columns.take()?,
        secondary_color: columns.take()?,
        company_name: columns.take()?,
        address: columns.take()?,
        zipcode: columns.take()?,
        city: columns.take()?,
        country: columns.take()?,
        email: columns.take()?,
        phone: columns.take()?,
        website: columns.take()?,
        company_registration_number: columns.take()?,
        vat_number: columns.take()?,
        iban: columns.take()?,
        bic: columns.take()?,
        bank_account_name: columns.take()?,
        footer: columns.take()?,
    })
}

/// The format of a logo; `None` for an identity without one.
fn logo_format(name: Option<&str>) -> Result<Option<LogoFormat>, sqlx::Error> {
    Ok(name.map(|name| decode("identity_logo.format", name, LogoFormat::from_name)).transpose()?)
}

/// In the order of `records!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            values: take_values(&mut columns)?,
            id: columns.take()?,
            is_default: columns.take()?,
            logo: logo_format(columns.take()?)?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
            version: columns.take()?,
        })
    }
}

/// The seller on documents, as the default identity describes it, in one round trip. Empty for an account that was
/// never provisioned.
pub async fn seller(connection: &mut PgConnection, account: AccountId) -> Result<Seller, Error> {
    let sql = concat!(select!("logo.format, logo.bytes"), " and is_default");
    let Some(row) = sqlx::query(sql).bind(account).fetch_optional(connection).await? else {
        return Ok(Seller::default());
    };
    Ok(take_seller(&mut Columns::of(&row))?)
}

/// Reads `identity_values!`, and the format and the bytes of the logo.
pub(crate) fn take_seller(columns: &mut Columns<'_>) -> Result<Seller, sqlx::Error> {
    let values = take_values(columns)?;
    let format = logo_format(columns.take()?)?;
    let bytes: Option<Vec<u8>> = columns.take()?;
    let logo = format.zip(bytes).map(|(format, bytes)| Logo { format, bytes });
    Ok(Seller::new(values, logo))
}

/// The default first, then the oldest.
pub async fn list(connection: &mut PgConnection, account: AccountId) -> Result<Vec<Record>, Error> {
    let sql = concat!(records!(), " order by is_default desc, identity.created_at, identity.id");
    Ok(sqlx::query_as(sql).bind(account).fetch_all(connection).await?)
}

pub async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!(records!(), " and identity.id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// The name of the account; empty when this service has not been told of it.
pub async fn find_account_name(connection: &mut PgConnection, account: AccountId) -> Result<String, Error> {
    let sql = "select name from billing.account where account_id = $1";
    let name: Option<String> = sqlx::query_scalar(sql).bind(account).fetch_optional(connection).await?;
    Ok(name.unwrap_or_default())
}

macro_rules! insert {
    ($flags:literal) => {
        concat!(
            "insert into billing.identity (account_id, id, ",
            identity_values!(),
            ", created_at, updated_at, is_default, is_untouched) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $20, ",
            $flags,
            ")"
        )
    };
}

/// Stores the identity that an account starts with.
pub async fn insert_default(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    values: &IdentityInput,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    bind(sqlx::query(insert!("true, true")), account, id, values, now).execute(connection).await?;
    Ok(())
}

/// Stores another identity; returns how many others the account has.
pub async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    values: &IdentityInput,
    now: DateTime<Utc>,
) -> Result<i64, Error> {
    bind(sqlx::query(insert!("false, false")), account, id, values, now).execute(&mut *connection).await?;
    let sql = "select count(*) from billing.identity where account_id = $1 and id <> $2";
    Ok(sqlx::query_scalar(sql).bind(account).bind(id).fetch_one(connection).await?)
}

/// Stores the values, and that they were changed.
pub async fn update(connection: &mut PgConnection, account: AccountId, record: &Record) -> Result<(), Error> {
    let sql = "update billing.identity set name = $3, primary_color = $4, secondary_color = $5, company_name = $6, \
               address = $7, zipcode = $8, city = $9, country = $10, email = $11, phone = $12, website = $13, \
               company_registration_number = $14, vat_number = $15, iban = $16, bic = $17, bank_account_name = $18, \
               footer = $19, updated_at = $20, version = $21, is_untouched = false where account_id = $1 and id = $2";
    let query = bind(sqlx::query(sql), account, record.id, &record.values, record.updated_at);
    query.bind(record.version).execute(connection).await?;
    Ok(())
}

/// Binds $1 to $20, which insert and update share.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    account: AccountId,
    id: Uuid,
    values: &'q IdentityInput,
    now: DateTime<Utc>,
) -> Query<'q, Postgres, PgArguments> {
    query
        .bind(account)
        .bind(id)
        .bind(&values.name)
        .bind(&values.primary_color)
        .bind(&values.secondary_color)
        .bind(&values.company_name)
        .bind(&values.address)
        .bind(&values.zipcode)
        .bind(&values.city)
        .bind(&values.country)
        .bind(&values.email)
        .bind(&values.phone)
        .bind(&values.website)
        .bind(&values.company_registration_number)
        .bind(&values.vat_number)
        .bind(&values.iban)
        .bind(&values.bic)
        .bind(&values.bank_account_name)
        .bind(&values.footer)
        .bind(now)
}

/// Gives an identity that was never changed the current name of the account; returns its id if that was another. An
/// account has one at most: that which it started with.
pub async fn follow_account_name(
    connection: &mut PgConnection,
    account: AccountId,
    name: &str,
    now: DateTime<Utc>,
) -> Result<Option<Uuid>, Error> {
    let sql = "update billing.identity set name = $2, updated_at = $3, version = version + 1 \
               where account_id = $1 and is_untouched and name <> $2 returning id";
    Ok(sqlx::query_scalar(sql).bind(account).bind(name).bind(now).fetch_optional(connection).await?)
}

/// Makes an identity the default; returns the id of the previous one. Two statements, because the unique index on the
/// default is checked row by row.
pub async fn set_default(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<Uuid>, Error> {
    let clear = "update billing.identity set is_default = false, updated_at = $2, version = version + 1 \
                 where account_id = $1 and is_default returning id";
    let query = sqlx::query_scalar(clear).bind(account).bind(now);
    let previous = query.fetch_optional(&mut *connection).await?;
    let set = "update billing.identity set is_default = true, updated_at = $3, version = version + 1 \
               where account_id = $1 and id = $2";
    sqlx::query(set).bind(account).bind(id).bind(now).execute(connection).await?;
    Ok(previous)
}

pub async fn delete(connection: &mut PgConnection, account: AccountId, id: Uuid) -> Result<(), Error> {
    let sql = "delete from billing.identity where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(id).execute(connection).await?;
    Ok(())
}

/// Replaces the logo; `None` removes it. Tells whether that changed it.
pub async fn put_logo(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    logo: Option<&Logo>,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let written = if let Some(Logo { format, bytes }) = logo {
        let sql = "insert into billing.identity_logo (account_id, identity_id, format, bytes, updated_at) \
                   values ($1, $2, $3, $4, $5) on conflict (account_id, identity_id) do update \
                   set format = excluded.format, bytes = excluded.bytes, updated_at = excluded.updated_at \
                   where identity_logo.format <> excluded.format or identity_logo.bytes <> excluded.bytes";
        let query = sqlx::query(sql).bind(account).bind(id).bind(format.name()).bind(bytes).bind(now);
        query.execute(&mut *connection).await?
    } else {
        let sql = "delete from billing.identity_logo where account_id = $1 and identity_id = $2";
        sqlx::query(sql).bind(account).bind(id).execute(&mut *connection).await?
    };
    if written.rows_affected() == 0 {
        return Ok(false);
    }
    let touch = "update billing.identity set updated_at = $3, version = version + 1 where account_id = $1 and id = $2";
    sqlx::query(touch).bind(account).bind(id).bind(now).execute(connection).await?;
    Ok(true)
}
