//! Finding documents.

use chassis_base::AccountId;
use chassis_data::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use render::paper::{Category, Language, Original, Party};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::columns;
use crate::Error;
use crate::document::rules::amounts::{Row, two_places};
use crate::document::{Client, Kind, Origin, Parties, Period, Record, Seller};

/// A document with all that its detail shows.
#[derive(Clone, Debug)]
pub struct Full {
    pub record: Record,
    pub rows: Vec<StoredRow>,
    /// The invoices that credit it, in the order in which they were made.
    pub credited_by: Vec<Uuid>,
    /// Newest first.
    pub history: Vec<History>,
}

#[derive(Clone, Debug)]
pub struct StoredRow {
    pub row: Row,
    pub credited_by: Option<Uuid>,
}

#[derive(Clone, Debug)]
pub struct History {
    pub at: DateTime<Utc>,
    pub event: String,
    pub actor: String,
    /// JSON text of an object.
    pub data: String,
    /// What became of the mail, and why.
    pub mail: Option<(String, String)>,
}

/// Reads the columns of `columns!`.
fn record(columns: &mut Columns<'_>) -> Result<Record, sqlx::Error> {
    let record = Record {
        id: columns.take()?,
        kind: Kind::named(columns.take()?),
        version: columns.take()?,
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
        language: language(columns.take()?),
        total_excl: two_places(columns.take()?),
        vat_rate: columns.take::<Decimal>()?.normalize(),
        vat_amount: two_places(columns.take()?),
        total_incl: two_places(columns.take()?),
        row_count: columns.take()?,
        client: client(columns)?,
        payment_status: columns.take()?,
        paid_at: columns.take()?,
        paid_amount: two_places(columns.take()?),
        open_amount: two_places(columns.take()?),
        overpaid_amount: two_places(columns.take()?),
        prepaid_amount: Decimal::ZERO,
        sent_at: columns.take()?,
        project_number: columns.take()?,
        credits: columns.take()?,
        origin: None,
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
    // Fields are read in the order in which they are written here, which is that of the columns.
    Ok(Record {
        invoice_date_given: columns.take()?,
        due_date_given: columns.take()?,
        prepaid_amount: two_places(columns.take()?),
        origin: origin(columns)?,
        ..record
    })
}

fn origin(columns: &mut Columns<'_>) -> Result<Option<Origin>, sqlx::Error> {
    let subscription: Option<Uuid> = columns.take()?;
    let (from, to): (Option<NaiveDate>, Option<NaiveDate>) = (columns.take()?, columns.take()?);
    let period = from.zip(to).map(|(from, to)| Period { from, to });
    Ok(subscription.zip(period).map(|(subscription, period)| Origin { subscription, period }))
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

pub fn language_name(language: Language) -> &'static str {
    match language {
        Language::Nl => "nl",
        Language::En => "en",
    }
}

fn language(name: &str) -> Language {
    if name == "en" { Language::En } else { Language::Nl }
}

pub fn category_name(category: Category) -> &'static str {
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

fn category(name: &str) -> Category {
    let all = [Category::S, Category::Z, Category::E, Category::AE, Category::K, Category::G, Category::O];
    all.into_iter().find(|category| category_name(*category) == name).unwrap_or(Category::S)
}

impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        record(&mut Columns::of(row))
    }
}

/// The columns of a row, in the order in which [`stored_row`] takes them.
type RowColumns = (String, String, Decimal, String, Decimal, Decimal, String, String, Option<Uuid>);

fn stored_row(columns: RowColumns) -> StoredRow {
    let (name, description, quantity, unit, unit_price, vat_rate, vat_code, named, credited_by) = columns;
    let row = Row {
        name,
        description,
        quantity: quantity.normalize(),
        unit,
        unit_price: unit_price.normalize(),
        vat_rate: vat_rate.normalize(),
        vat_code,
        category: category(&named),
    };
    StoredRow { row, credited_by }
}

/// Reads rows of which each column comes as an array: a distributed database hands on no arrays of records.
pub fn packed_rows(columns: &mut Columns<'_>) -> Result<Vec<StoredRow>, sqlx::Error> {
    let (mut names, mut descriptions) = (array::<String>(columns)?, array::<String>(columns)?);
    let (mut quantities, mut units) = (array::<Decimal>(columns)?, array::<String>(columns)?);
    let (mut prices, mut vat_rates) = (array::<Decimal>(columns)?, array::<Decimal>(columns)?);
    let (mut vat_codes, mut categories) = (array::<String>(columns)?, array::<String>(columns)?);
    let mut credits = array::<Option<Uuid>>(columns)?;
    let next = || {
        Some((
            names.next()?,
            descriptions.next()?,
            quantities.next()?,
            units.next()?,
            prices.next()?,
            vat_rates.next()?,
            vat_codes.next()?,
            categories.next()?,
            credits.next()?,
        ))
    };
    Ok(std::iter::from_fn(next).map(stored_row).collect())
}

fn packed_history(columns: &mut Columns<'_>) -> Result<Vec<History>, sqlx::Error> {
    let (mut times, mut events) = (array::<DateTime<Utc>>(columns)?, array::<String>(columns)?);
    let (mut actors, mut data) = (array::<String>(columns)?, array::<String>(columns)?);
    let (mut statuses, mut errors) = (array::<Option<String>>(columns)?, array::<Option<String>>(columns)?);
    let next = || {
        Some(History {
            at: times.next()?,
            event: events.next()?,
            actor: actors.next()?,
            data: data.next()?,
            mail: statuses.next()?.zip(errors.next()?),
        })
    };
    Ok(std::iter::from_fn(next).collect())
}

/// The next column: an array, or nothing when there was no row to make it of.
fn array<'r, T>(columns: &mut Columns<'r>) -> Result<std::vec::IntoIter<T>, sqlx::Error>
where
    Option<Vec<T>>: sqlx::Decode<'r, sqlx::Postgres>,
{
    Ok(columns.take::<Option<Vec<T>>>()?.unwrap_or_default().into_iter())
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

macro_rules! row_columns {
    () => {
        "name, description, quantity, unit, unit_price, vat_rate, vat_code, category, credited_by"
    };
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
             where h.account_id = $1 and h.document_id = d.id order by h.id desc limit 20) h) history \
             where d.account_id = $1 and ",
            $condition
        )
    };
}

/// The whole document, in one round trip.
pub async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    id: Uuid,
) -> Result<Option<Full>, Error> {
    let sql = full!("d.id = $2 and d.kind = $3");
    Ok(sqlx::query_as(sql).bind(account).bind(id).bind(kind.name()).fetch_optional(connection).await?)
}

/// The document whose links have this secret.
pub async fn find_by_token(
    connection: &mut PgConnection,
    account: AccountId,
    token: [u8; 16],
) -> Result<Option<Full>, Error> {
    let sql = full!("d.token = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(token.as_slice()).fetch_optional(connection).await?)
}

/// Those of the documents that exist, in the order of their ids.
pub async fn list_by_ids(
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

/// Whether it is final, and its client: what is to be known before a change begins.
pub async fn find_state(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    id: Uuid,
) -> Result<Option<(bool, Option<Uuid>)>, Error> {
    let sql =
        "select is_final, client_id from billing.document where account_id = $1 and id = $2 and kind = $3";
    Ok(sqlx::query_as(sql).bind(account).bind(id).bind(kind.name()).fetch_optional(connection).await?)
}

/// A document that is about to be changed, with the invoice it credits and the credits of that: the invoice first, its
/// credits in the order in which they were made. Others who want to change any of them wait. Empty when there is none.
///
/// The invoice is locked by a statement of its own: a statement that had to wait sees rows as they are now, but does not
/// see credits that were made meanwhile; the next one does.
pub async fn lock_family(
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

pub async fn list_rows(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Vec<StoredRow>, Error> {
    let sql = concat!(
        "select ",
        row_columns!(),
        " from billing.document_row where account_id = $1 and document_id = $2 order by position"
    );
    let rows: Vec<RowColumns> = sqlx::query_as(sql).bind(account).bind(id).fetch_all(connection).await?;
    Ok(rows.into_iter().map(stored_row).collect())
}

/// Seller and buyer of a final document.
pub async fn find_parties(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Parties>, Error> {
    type Kept = (Option<Json<Seller>>, Option<Json<Party>>);
    let sql = "select seller, buyer from billing.document where account_id = $1 and id = $2";
    let found: Option<Kept> = sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?;
    let parties = found.and_then(|(seller, buyer)| seller.zip(buyer));
    Ok(parties.map(|(Json(seller), Json(buyer))| Parties { seller, buyer }))
}

/// Whether a period of a subscription has its invoice.
pub async fn is_billed(
    connection: &mut PgConnection,
    account: AccountId,
    origin: Origin,
) -> Result<bool, Error> {
    let sql = "select exists (select from billing.document \
               where account_id = $1 and subscription_id = $2 and period_from = $3)";
    let query = sqlx::query_scalar(sql).bind(account).bind(origin.subscription).bind(origin.period.from);
    Ok(query.fetch_one(connection).await?)
}

/// Who has a number.
pub async fn find_by_number(
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

/// Who has an external id that is not empty.
pub async fn find_by_external_id(
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

/// The number and date of an invoice, for the credit that takes it back.
pub async fn find_original(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Original>, Error> {
    let sql = "select number, invoice_date from billing.document where account_id = $1 and id = $2";
    let found: Option<(String, NaiveDate)> =
        sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?;
    Ok(found.map(|(number, date)| Original { number, date }))
}
