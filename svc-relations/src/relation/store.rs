//! The SQL of clients and suppliers, and nothing else.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use proto::api::PageMeta;
use proto::relations::{ClientInput, RelationType};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};
use uuid::Uuid;

use super::{COUNTRY_COLUMN, Record, Role, rules};
use crate::error::Error;
use crate::relation_type;

const TABLE: &str = "relations.relation";

macro_rules! columns {
    () => {
        "id, version, type, company_name, firstname, lastname, email, phone, address, zipcode, city, country, \
         company_registration_number, vat_number, website, iban, bank_account_name, bic, external_id, payment_term, \
         quote_expiration_days, email_invoices, email_reminders, mail_salutation, debtor_number, created_at, updated_at, \
         anonymized_at"
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
            anonymized_at: columns.take()?,
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

/// Which records of a list are wanted. `None` and empty texts restrict nothing.
pub(super) struct Filter<'a> {
    pub selection: Selection,
    pub search: &'a str,
    pub kind: Option<RelationType>,
    pub external_id: &'a str,
    pub email: &'a str,
    /// As [`vat::comparable`](chassis_base::formats::vat::comparable) writes it.
    pub vat_number: String,
    pub debtor_number: &'a str,
    pub city: &'a str,
    pub country: Option<String>,
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
    match filter.kind {
        None => list.only_counted(COUNTRY_COLUMN, filter.country.as_deref()),
        // Together with a type it is not counted: each record would be in one more list.
        Some(_) => list.only(COUNTRY_COLUMN, filter.country.as_deref()),
    };
    look_up(&mut list, filter);
    list.search("search_text", filter.search);
    list.select(&filter.selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

/// Narrows a list to the records that have exactly these values. Each condition is that of an index, which has no empty
/// texts.
fn look_up(list: &mut List<'_>, filter: &Filter<'_>) {
    for (column, compared, value) in [
        ("external_id", "external_id", filter.external_id),
        ("email", "lower(email)", filter.email),
        ("vat_number", "translate(vat_number, '.-', '')", &filter.vat_number),
        ("debtor_number", "lower(debtor_number)", filter.debtor_number),
        ("city", "lower(city)", filter.city),
    ] {
        if value.is_empty() {
            continue;
        }
        list.look_up(|values| {
            let value = values.bind(value);
            let value = if compared.starts_with("lower") { format!("lower({value})") } else { value };
            format!("{compared} = {value} and {column} <> ''")
        });
    }
}

/// The counter of debtor numbers.
pub(super) const DEBTORS: &str = "debtor";

/// The insert of a record. The unique index refuses it when another record has the external id.
pub(super) fn insert(account: AccountId, role: Role, record: &Record) -> Query<'_, Postgres, PgArguments> {
    let sql = "insert into relations.relation (account_id, role, id, type, company_name, firstname, lastname, email, \
               phone, address, zipcode, city, country, company_registration_number, vat_number, website, iban, \
               bank_account_name, bic, external_id, payment_term, quote_expiration_days, email_invoices, \
               email_reminders, mail_salutation, search_text, updated_at, created_at, version, debtor_number) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, \
               $22, $23, $24, $25, $26 || lower($28), $27, $27, 1, $28)";
    bind(sqlx::query(sql), account, role, record).bind(&record.debtor_number)
}

/// Stores the values of a changed record. Fails if its row does not have the version before, or if another record has the
/// external id.
pub(super) fn update(account: AccountId, role: Role, record: &Record) -> Query<'_, Postgres, PgArguments> {
    let sql = "update relations.relation set type = $4, company_name = $5, firstname = $6, lastname = $7, email = $8, \
               phone = $9, address = $10, zipcode = $11, city = $12, country = $13, \
               company_registration_number = $14, vat_number = $15, website = $16, iban = $17, \
               bank_account_name = $18, bic = $19, external_id = $20, payment_term = $21, \
               quote_expiration_days = $22, email_invoices = $23, email_reminders = $24, mail_salutation = $25, \
               search_text = $26 || lower(debtor_number), updated_at = $27, \
               version = case when version = $28::bigint - 1 then $28 end \
               where account_id = $1 and role = $2 and id = $3";
    bind(sqlx::query(sql), account, role, record).bind(record.version)
}

/// Stores since when nobody knows who the client is.
pub(super) async fn set_anonymized(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update relations.relation set anonymized_at = $3 where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(record.id).bind(record.anonymized_at).execute(connection).await?;
    Ok(())
}

pub(super) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    role: Role,
    id: Uuid,
) -> Result<(), Error> {
    let sql = "delete from relations.relation where account_id = $1 and role = $2 and id = $3";
    sqlx::query(sql).bind(account).bind(role.name()).bind(id).execute(connection).await?;
    Ok(())
}

/// Binds the parameters that insert and update share: $1 to $27.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    account: AccountId,
    role: Role,
    record: &'q Record,
) -> Query<'q, Postgres, PgArguments> {
    let values = &record.values;
    query
        .bind(account)
        .bind(role.name())
        .bind(record.id)
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
        .bind(record.updated_at)
}
