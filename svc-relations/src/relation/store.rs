//! The SQL of clients and suppliers, and nothing else.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use proto::api::PageMeta;
use proto::relations::{ClientInput, RelationType};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres, Row};
use uuid::Uuid;

use super::{Record, Role, rules};
use crate::error::Error;
use crate::relation_type;

const TABLE: &str = "relations.relation";

macro_rules! columns {
    () => {
        "id, version, type, company_name, firstname, lastname, email, phone, address, zipcode, city, country, \
         company_registration_number, vat_number, website, iban, bank_account_name, bic, external_id, payment_term, \
         quote_expiration_days, email_invoices, email_reminders, mail_salutation, debtor_number, created_at, updated_at"
    };
}

/// In the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            version: columns.take()?,
            values: ClientInput {
                r#type: relation_type::decode(columns.take()?)?.into(),
                company_name: columns.take()?,
                firstname: columns.take()?,
                lastname: columns.take()?,
                email: columns.take()?,
                phone: columns.take()?,
                address: columns.take()?,
                zipcode: columns.take()?,
                city: columns.take()?,
                country: columns.take()?,
                company_registration_number: columns.take()?,
                vat_number: columns.take()?,
                website: columns.take()?,
                iban: columns.take()?,
                bank_account_name: columns.take()?,
                bic: columns.take()?,
                external_id: columns.take()?,
                payment_term: columns.take()?,
                quote_expiration_days: columns.take()?,
                email_invoices: columns.take()?,
                email_reminders: columns.take()?,
                mail_salutation: columns.take()?,
            },
            debtor_number: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    role: Role,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from relations.relation where account_id = $1 and role = $2 and id = $3"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(role.name()).bind(id).fetch_optional(connection).await?)
}

/// Finds a record and locks its row: an update reads it, decides and writes it back, so two of them must not overlap.
pub(super) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    role: Role,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from relations.relation where account_id = $1 and role = $2 and id = $3 for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(role.name()).bind(id).fetch_optional(connection).await?)
}

/// The records with these ids, in no particular order.
pub(super) async fn list_by_ids(
    connection: &mut PgConnection,
    account: AccountId,
    role: Role,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    // With an array Postgres makes a new plan at every call, which takes longer than reading one record.
    if let [id] = ids {
        return Ok(find(connection, account, role, *id).await?.into_iter().collect());
    }
    let sql = concat!(
        "select ",
        columns!(),
        " from relations.relation where account_id = $1 and role = $2 and id = any($3)"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(role.name()).bind(ids).fetch_all(connection).await?)
}

pub(super) async fn find_by_external_id(
    connection: &mut PgConnection,
    account: AccountId,
    role: Role,
    external_id: &str,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from relations.relation where account_id = $1 and role = $2 and external_id = $3 and external_id <> ''"
    );
    Ok(sqlx::query_as(sql)
        .bind(account)
        .bind(role.name())
        .bind(external_id)
        .fetch_optional(connection)
        .await?)
}

/// Which records of a list are wanted.
pub(super) struct Filter<'a> {
    selection: Selection,
    search: &'a str,
    kind: Option<RelationType>,
}

impl<'a> Filter<'a> {
    /// A `contact_type` that is not the name of a type does not filter.
    pub(super) fn new(selection: Selection, search: &'a str, contact_type: &str) -> Self {
        Self { selection, search: search.trim(), kind: relation_type::from_name(contact_type) }
    }
}

/// A page of the records that the filter selects, newest first unless it has another order.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    role: Role,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let counter = filter.kind.map_or_else(|| role.list(), |kind| role.list_of(kind));
    let mut list = List::new(account, TABLE, columns!(), Total::Counted(counter));
    list.equals("role", role.name());
    if let Some(kind) = filter.kind {
        list.equals("type", relation_type::name(kind));
    }
    list.search("search_text", filter.search);
    list.select(&filter.selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

/// The insert of a record whose debtor number comes from the one row of `number`. It inserts nothing when another record
/// has the external id.
macro_rules! insert {
    ($number:literal) => {
        concat!(
            "with number as (",
            $number,
            ") insert into relations.relation (account_id, role, id, type, company_name, firstname, lastname, email, \
             phone, address, zipcode, city, country, company_registration_number, vat_number, website, iban, \
             bank_account_name, bic, external_id, payment_term, quote_expiration_days, email_invoices, \
             email_reminders, mail_salutation, search_text, created_at, updated_at, version, debtor_number) \
             select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, \
             $22, $23, $24, $25, $26 || lower(debtor_number), $27, $27, 1, debtor_number \
             from (select case when value is null then '' else 'D-' || lpad(value::text, greatest(5, \
             length(value::text)), '0') end as debtor_number from number) numbered \
             on conflict (account_id, role, external_id) where external_id <> '' do nothing \
             returning debtor_number"
        )
    };
}

/// The counter of debtor numbers.
pub(super) const DEBTORS: &str = "debtor";

/// The counter's row stays locked until the transaction ends, so a create runs this as late as it can.
const INSERT_WITH_NEXT: &str = insert!(
    "insert into counter (account_id, name, value) values ($1, $28, 1) \
     on conflict (account_id, name) do update set value = counter.value + 1 returning value"
);

const INSERT_WITH_GIVEN: &str = insert!("select $28::bigint as value");

/// The debtor number of a new record.
pub(super) enum Debtor {
    /// The next of the account.
    Next,
    Number(i64),
    /// A supplier has none.
    None,
}

/// Inserts a record and returns its debtor number, or `None` when another record has its external id.
pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    role: Role,
    id: Uuid,
    values: &ClientInput,
    debtor: &Debtor,
    now: DateTime<Utc>,
) -> Result<Option<String>, Error> {
    let bind = |query| bind(query, account, role, id, values, now);
    let insert = match debtor {
        Debtor::Next => bind(sqlx::query(INSERT_WITH_NEXT)).bind(DEBTORS),
        Debtor::Number(number) => bind(sqlx::query(INSERT_WITH_GIVEN)).bind(Some(number)),
        Debtor::None => bind(sqlx::query(INSERT_WITH_GIVEN)).bind(None::<i64>),
    };
    let row = insert.fetch_optional(connection).await?;
    Ok(row.map(|row| row.try_get("debtor_number")).transpose()?)
}

/// Stores the values of a changed record as its next version.
pub(super) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    role: Role,
    id: Uuid,
    values: &ClientInput,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "update relations.relation set type = $4, company_name = $5, firstname = $6, lastname = $7, email = $8, \
               phone = $9, address = $10, zipcode = $11, city = $12, country = $13, \
               company_registration_number = $14, vat_number = $15, website = $16, iban = $17, \
               bank_account_name = $18, bic = $19, external_id = $20, payment_term = $21, \
               quote_expiration_days = $22, email_invoices = $23, email_reminders = $24, mail_salutation = $25, \
               search_text = $26 || lower(debtor_number), updated_at = $27, version = version + 1 \
               where account_id = $1 and role = $2 and id = $3";
    bind(sqlx::query(sql), account, role, id, values, now).execute(connection).await?;
    Ok(())
}

/// Binds the parameters that insert and update share: $1 to $27.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    account: AccountId,
    role: Role,
    id: Uuid,
    values: &'q ClientInput,
    now: DateTime<Utc>,
) -> Query<'q, Postgres, PgArguments> {
    query
        .bind(account)
        .bind(role.name())
        .bind(id)
        .bind(relation_type::name(values.r#type()))
        .bind(&values.company_name)
        .bind(&values.firstname)
        .bind(&values.lastname)
        .bind(&values.email)
        .bind(&values.phone)
        .bind(&values.address)
        .bind(&values.zipcode)
        .bind(&values.city)
        .bind(&values.country)
        .bind(&values.company_registration_number)
        .bind(&values.vat_number)
        .bind(&values.website)
        .bind(&values.iban)
        .bind(&values.bank_account_name)
        .bind(&values.bic)
        .bind(&values.external_id)
        .bind(values.payment_term)
        .bind(values.quote_expiration_days)
        .bind(&values.email_invoices)
        .bind(&values.email_reminders)
        .bind(&values.mail_salutation)
        .bind(rules::search_text(values))
        .bind(now)
}
