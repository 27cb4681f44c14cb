//! The SQL of channels, and nothing else.

use chassis_base::AccountId;
use chassis_base::stored::Undecodable;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres, Row};
use uuid::Uuid;

use super::{Record, Values};
use crate::address::InboundKey;
use crate::error::Error;

/// The number of channels that an account can have. Every incoming mail is compared with all of them.
pub(crate) const MAX_CHANNELS: i64 = 100;

macro_rules! columns {
    () => {
        "id, version, name, email, from_email, from_name, inbound_key, forwarding_emails, active, position, created_at, \
         updated_at"
    };
}

impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let key: Vec<u8> = row.try_get("inbound_key")?;
        Ok(Self {
            id: row.try_get("id")?,
            version: row.try_get("version")?,
            values: Values {
                name: row.try_get("name")?,
                email: row.try_get("email")?,
                from_email: row.try_get("from_email")?,
                from_name: row.try_get("from_name")?,
                forwarding_emails: row.try_get("forwarding_emails")?,
                active: row.try_get("active")?,
                position: row.try_get("position")?,
            },
            // A key of another length must not become a key that can be guessed.
            inbound_key: InboundKey::try_from(key.as_slice()).map_err(|_| undecodable_key())?,
            created_at: row.try_get("created_at")?,
            updated_at: row.try_get("updated_at")?,
        })
    }
}

fn undecodable_key() -> Undecodable {
    Undecodable::new("channel.inbound_key has the wrong length")
}

/// The active channels, or the inactive ones, in their order.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    active: bool,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from support.channel where account_id = $1 and active = $2 order by position, name, id"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(active).fetch_all(connection).await?)
}

/// The channel that mail of a ticket goes out through: its own if that is active, else the first active channel.
pub(crate) async fn find_for(
    connection: &mut PgConnection,
    account: AccountId,
    own: Option<Uuid>,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from support.channel where account_id = $1 and active \
         order by id is distinct from $2, position, name, id limit 1"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(own).fetch_optional(connection).await?)
}

/// Finds a channel and locks its row: an update reads it, decides and writes it back.
pub(crate) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql =
        concat!("select ", columns!(), " from support.channel where account_id = $1 and id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

pub(crate) async fn count(connection: &mut PgConnection, account: AccountId) -> Result<i64, Error> {
    let sql = "select count(*) from support.channel where account_id = $1";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
}

pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "insert into support.channel (account_id, id, name, email, from_email, from_name, \
               forwarding_emails, active, position, updated_at, version, inbound_key, created_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    bind(sqlx::query(sql), account, record)
        .bind(record.inbound_key.as_slice())
        .bind(record.created_at)
        .execute(connection)
        .await?;
    Ok(())
}

pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update support.channel set name = $3, email = $4, from_email = $5, from_name = $6, \
               forwarding_emails = $7, active = $8, position = $9, updated_at = $10, version = $11 \
               where account_id = $1 and id = $2";
    bind(sqlx::query(sql), account, record).execute(connection).await?;
    Ok(())
}

/// Binds the parameters that insert and update share: $1 to $11.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    account: AccountId,
    record: &'q Record,
) -> Query<'q, Postgres, PgArguments> {
    let Values { name, email, from_email, from_name, forwarding_emails, active, position } = &record.values;
    query
        .bind(account)
        .bind(record.id)
        .bind(name)
        .bind(email)
        .bind(from_email)
        .bind(from_name)
        .bind(forwarding_emails)
        .bind(active)
        .bind(position)
        .bind(record.updated_at)
        .bind(record.version)
}

/// Removes a channel. Returns whether there was one.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<bool, Error> {
    let sql = "delete from support.channel where account_id = $1 and id = $2";
    Ok(sqlx::query(sql).bind(account).bind(id).execute(connection).await?.rows_affected() > 0)
}
