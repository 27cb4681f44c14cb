//! Finding documents.

use chassis_base::AccountId;
use chassis_data::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use render::printed::{Language, Original, Party};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::rows::{array, packed_rows, row_columns};
use super::{columns, shown_history};
use crate::clients::Client;
use crate::document::rules::status::Status;
use crate::document::{BilledPeriod, Full, History, Kind, MailDelivery, Parties, Period, Record, Seller};
use crate::error::Error;
use crate::money::two_places;
use chassis_base::stored::decode;

/// Reads the columns of `columns!`.
fn record(columns: &mut Columns<'_>) -> Result<Record, sqlx::Error> {
    let record = Record {
        id: columns.take()?,
        kind: decode("document.kind", columns.take()?, Kind::from_name)?,
        version: columns.take()?,
        time_events: 0,
        content_version: columns.take()?,
        is_final: columns.take()?,
        number: columns.take()?,
        number_given: columns.take()?,
        title: columns.take()?,
        invoice_date: columns.take()?,
        due_date: columns.take()?,
        invoice_date_given: false,
        due_date_given: false,
        currency: columns.take()?,
        language: decode("document.language", columns.take()?, Language::from_code)?,
        total_excl: two_places(columns.take()?),
        vat_rate: columns.take::<Decimal>()?.normalize(),
        vat_amount: two_places(columns.take()?),
        total_incl: two_places(columns.take()?),
        row_count: columns.take()?,
        client: client(columns)?,
        status: Status::from_text(columns.take()?),
        paid_at: columns.take()?,
        paid_amount: two_places(columns.take()?),
        open_amount: two_places(columns.take()?),
        overpaid_amount: two_places(columns.take()?),
        prepaid_amount: Decimal::ZERO,
        sent_at: columns.take()?,
        project_number: columns.take()?,
        credits: columns.take()?,
        billed_period: None,
        external_id: columns.take()?,
        token: columns.take()?,
        finalized_at: columns.take()?,
        accepted_at: columns.take()?,
        viewed_on: columns.take()?,
        einvoice_missing: columns.take()?,
        pdf_version: columns.take()?,
        pdf_error: columns.take()?,
        created_at: columns.take()?,
        updated_at: columns.take()?,
    };
    // Columns are read in the order of the statement. These come last there, but not in the struct.
    Ok(Record {
        invoice_date_given: columns.take()?,
        due_date_given: columns.take()?,
        prepaid_amount: two_places(columns.take()?),
        billed_period: billed_period(columns)?,
        time_events: columns.take()?,
        ..record
    })
}

fn billed_period(columns: &mut Columns<'_>) -> Result<Option<BilledPeriod>, sqlx::Error> {
    let subscription: Option<Uuid> = columns.take()?;
    let from: Option<NaiveDate> = columns.take()?;
    let to: Option<NaiveDate> = columns.take()?;
    let period = from.zip(to).map(|(from, to)| Period { from, to });
    Ok(subscription.zip(period).map(|(subscription, period)| BilledPeriod { subscription, period }))
}

fn client(columns: &mut Columns<'_>) -> Result<Option<Client>, sqlx::Error> {
    let id: Option<Uuid> = columns.take()?;
    let client = Client {
        id: id.unwrap_or_default(),
        company_name: columns.take()?,
        firstname: columns.take()?,
        lastname: columns.take()?,
    };
    Ok(id.map(|_| client))
}

impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        record(&mut Columns::of(row))
    }
}

fn packed_history(columns: &mut Columns<'_>) -> Result<Vec<History>, sqlx::Error> {
    let mut times = array::<DateTime<Utc>>(columns)?;
    let mut events = array::<String>(columns)?;
    let mut actors = array::<String>(columns)?;
    let mut data = array::<String>(columns)?;
    let mut statuses = array::<Option<String>>(columns)?;
    let mut errors = array::<Option<String>>(columns)?;
    let next = || {
        Some(History {
            at: times.next()?,
            event: events.next()?,
            actor: actors.next()?,
            data: data.next()?,
            mail: statuses.next()?.zip(errors.next()?).map(|(status, error)| MailDelivery { status, error }),
        })
    };
    Ok(std::iter::from_fn(next).collect())
}

impl FromRow<'_, PgRow> for Full {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        let record = record(&mut columns)?;
        let rows = packed_rows(&mut columns)?;
        let credited_by = columns.take()?;
        Ok(Self { record, rows, credited_by, history: packed_history(&mut columns)? })
    }
}

macro_rules! full {
    ($condition:literal) => {
        concat!(
            "select ",
            columns!(),
            ", rows.*, array(select c.id from billing.document c \
             where c.account_id = $1 and c.credits = d.id order by c.created_at, c.id), history.* \
             from billing.document d \
             cross join lateral (select array_agg(name), array_agg(description), array_agg(quantity), \
             array_agg(unit), array_agg(unit_price), array_agg(vat_rate), array_agg(vat_code), array_agg(category), \
             array_agg(credited_by) from (select ",
            row_columns!(),
            " from billing.document_row r where r.account_id = $1 and r.document_id = d.id \
             order by r.position) r) rows \
             cross join lateral (select array_agg(at), array_agg(event), array_agg(actor), array_agg(data), \
             array_agg(status), array_agg(last_error) from (\
             select h.at, h.event, h.actor, h.data, m.status, m.last_error from billing.document_history h \
             left join mail m on m.account_id = h.account_id and m.id = h.mail_id \
             where h.account_id = $1 and h.document_id = d.id order by h.id desc limit ",
            shown_history!(),
            ") h) history \
             where d.account_id = $1 and ",
            $condition
        )
    };
}

/// The whole document, in one round trip.
pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    id: Uuid,
) -> Result<Option<Full>, Error> {
    let sql = full!("d.id = $2 and d.kind = $3");
    Ok(sqlx::query_as(sql).bind(account).bind(id).bind(kind.name()).fetch_optional(connection).await?)
}

/// The document whose public links have this secret.
pub(crate) async fn find_by_token(
    connection: &mut PgConnection,
    account: AccountId,
    token: [u8; 16],
) -> Result<Option<Full>, Error> {
    let sql = full!("d.token = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(token.as_slice()).fetch_optional(connection).await?)
}

/// The whole documents among these that exist.
pub(crate) async fn list_full(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Full>, Error> {
    // With an array Postgres makes a new plan at every call, which takes longer than reading one document.
    if let [id] = ids {
        let sql = full!("d.id = $2");
        return Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_all(connection).await?);
    }
    let sql = full!("d.id = any($2)");
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// The documents among these that exist, ordered by id.
pub(crate) async fn list_by_ids(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from billing.document d where d.account_id = $1 and d.id = any($2) order by d.id"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// What is known of a document before a change begins.
#[derive(chassis_derive::FromRow)]
pub(crate) struct DraftState {
    pub is_final: bool,
    pub client_id: Option<Uuid>,
}

pub(crate) async fn find_state(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    id: Uuid,
) -> Result<Option<DraftState>, Error> {
    let sql =
        "select is_final, client_id from billing.document where account_id = $1 and id = $2 and kind = $3";
    Ok(sqlx::query_as(sql).bind(account).bind(id).bind(kind.name()).fetch_optional(connection).await?)
}

/// Locks a document that is about to be changed, together with the invoice it credits and all credits of that invoice:
/// the invoice first, its credits in the order in which they were made. Empty when there is no such document.
///
/// The invoice is locked by a statement of its own. A statement that waits for a lock sees the locked row as it is after
/// the wait, but not credits that were inserted during the wait; the next statement does. All transactions lock the
/// invoice first, so that they cannot deadlock.
pub(crate) async fn lock_family(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    id: Uuid,
) -> Result<Vec<Record>, Error> {
    let sql = "select r.id from billing.document r where r.account_id = $1 and r.id = (\
               select coalesce(credits, id) from billing.document where account_id = $1 and id = $2 and kind = $3) \
               for update";
    let root: Option<Uuid> = sqlx::query_scalar(sql)
        .bind(account)
        .bind(id)
        .bind(kind.name())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(root) = root else { return Ok(Vec::new()) };
    let sql = concat!(
        "select ",
        columns!(),
        " from billing.document d where d.account_id = $1 and (d.id = $2 or d.credits = $2) \
         order by d.credits is not null, d.created_at, d.id for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(root).fetch_all(connection).await?)
}

/// Seller and buyer of a final document.
pub(crate) async fn find_parties(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Parties>, Error> {
    #[derive(chassis_derive::FromRow)]
    struct Stored {
        seller: Option<Json<Seller>>,
        buyer: Option<Json<Party>>,
    }
    let sql = "select seller, buyer from billing.document where account_id = $1 and id = $2";
    let found: Option<Stored> = sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?;
    let parties = found.and_then(|stored| stored.seller.zip(stored.buyer));
    Ok(parties.map(|(Json(seller), Json(buyer))| Parties { seller, buyer }))
}

/// Whether a period of a subscription has its invoice.
pub(crate) async fn is_billed(
    connection: &mut PgConnection,
    account: AccountId,
    billed: BilledPeriod,
) -> Result<bool, Error> {
    let sql = "select exists (select from billing.document \
               where account_id = $1 and subscription_id = $2 and period_from = $3)";
    let query = sqlx::query_scalar(sql).bind(account).bind(billed.subscription).bind(billed.period.from);
    Ok(query.fetch_one(connection).await?)
}

/// The document that has a number.
pub(crate) async fn find_by_number(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    number: &str,
) -> Result<Option<Uuid>, Error> {
    let sql = "select id from billing.document where account_id = $1 and kind = $2 and number = $3";
    Ok(sqlx::query_scalar(sql)
        .bind(account)
        .bind(kind.name())
        .bind(number)
        .fetch_optional(connection)
        .await?)
}

/// The document that has an external id that is not empty.
pub(crate) async fn find_by_external_id(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    external_id: &str,
) -> Result<Option<Uuid>, Error> {
    let sql = "select id from billing.document \
               where account_id = $1 and kind = $2 and external_id = $3 and external_id <> ''";
    let query = sqlx::query_scalar(sql).bind(account).bind(kind.name()).bind(external_id);
    Ok(query.fetch_optional(connection).await?)
}

/// The number and date of an invoice, for the print of its credit.
pub(crate) async fn find_original(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Original>, Error> {
    let sql = "select number, invoice_date from billing.document where account_id = $1 and id = $2";
    let row = sqlx::query(sql).bind(account).bind(id).fetch_optional(connection).await?;
    let original = row.map(|row| {
        let mut columns = Columns::of(&row);
        Ok::<_, sqlx::Error>(Original { number: columns.take()?, date: columns.take()? })
    });
    Ok(original.transpose()?)
}
