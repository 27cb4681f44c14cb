//! The SQL of payments, and nothing else.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::NaiveDate;
use proto::api::PageMeta;
use proto::billing::{PaymentMethod, PaymentStatus, PaymentType};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{KIND_COLUMN, LIST, METHOD_COLUMN, Payment, STATUS_COLUMN};
use crate::document::store::Range;
use crate::error::Error;
use chassis_base::stored::decode;

macro_rules! columns {
    () => {
        "id, document_id, amount, date, status, type, method, external_id, provider, payment_data, feedback_data, created_at, \
         updated_at, version"
    };
}

/// In the order of `columns!`.
impl FromRow<'_, PgRow> for Payment {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        let payment = Self {
            id: columns.take()?,
            invoice: columns.take()?,
            version: 1,
            amount: columns.take()?,
            date: columns.take()?,
            status: decode("payment.status", columns.take()?, status_from_name)?,
            kind: decode("payment.type", columns.take()?, kind_from_name)?,
            method: decode("payment.method", columns.take()?, method_from_name)?,
            external_id: columns.take()?,
            provider: columns.take()?,
            sent_data: columns.take()?,
            feedback_data: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
        };
        // The last column, but not the last field.
        Ok(Self { version: columns.take()?, ..payment })
    }
}

/// The constant of the contract that is stored under this name: `paid` is `PAYMENT_STATUS_PAID`.
fn constant(prefix: &str, name: &str) -> String {
    prefix.to_owned() + &name.to_ascii_uppercase()
}

fn status_from_name(name: &str) -> Option<PaymentStatus> {
    PaymentStatus::from_str_name(&constant("PAYMENT_STATUS_", name))
}

fn kind_from_name(name: &str) -> Option<PaymentType> {
    PaymentType::from_str_name(&constant("PAYMENT_TYPE_", name))
}

fn method_from_name(name: &str) -> Option<PaymentMethod> {
    PaymentMethod::from_str_name(&constant("PAYMENT_METHOD_", name))
}

/// The inverse of [`constant`].
fn name(prefix: &str, value: &str) -> String {
    value.strip_prefix(prefix).unwrap_or(value).to_ascii_lowercase()
}

pub(crate) fn status_name(status: PaymentStatus) -> String {
    name("PAYMENT_STATUS_", status.as_str_name())
}

pub(super) fn kind_name(kind: PaymentType) -> String {
    name("PAYMENT_TYPE_", kind.as_str_name())
}

pub(super) fn method_name(method: PaymentMethod) -> String {
    name("PAYMENT_METHOD_", method.as_str_name())
}

/// Restricts a list of payments; empty and unspecified values and `None` restrict nothing.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub selection: Selection,
    pub external_id: String,
    pub status: PaymentStatus,
    pub kind: PaymentType,
    pub method: PaymentMethod,
    pub date: Range<NaiveDate>,
}

impl Filter {
    fn status(&self) -> Option<String> {
        Some(self.status).filter(|status| *status != PaymentStatus::Unspecified).map(status_name)
    }

    fn kind(&self) -> Option<String> {
        Some(self.kind).filter(|kind| *kind != PaymentType::Unspecified).map(kind_name)
    }

    fn method(&self) -> Option<String> {
        Some(self.method).filter(|method| *method != PaymentMethod::Unspecified).map(method_name)
    }
}

/// Restricts a list of the payments of all invoices further.
#[derive(Debug, Default)]
pub(crate) struct AllFilter {
    pub common: Filter,
    pub invoice: Option<Uuid>,
    pub client: Option<Uuid>,
    pub provider: String,
    pub amount: Range<Decimal>,
}

/// The payments of an invoice, oldest first unless `filter` has another order. `None` when there is no such invoice.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
    filter: &Filter,
    page: Page,
) -> Result<Option<(Vec<Payment>, PageMeta)>, Error> {
    let mut list = List::new(account, "billing.payment", columns!(), Total::Matching);
    list.equals("document_id", invoice);
    list.only("external_id", Some(&filter.external_id).filter(|text| !text.is_empty()));
    list.only(STATUS_COLUMN, filter.status()).only(KIND_COLUMN, filter.kind());
    list.only(METHOD_COLUMN, filter.method());
    list.between("date", filter.date.from, filter.date.to);
    // Ids ascend with time.
    list.order_by("id", false).select(&filter.selection, &Fields::TIMES)?;
    let (payments, meta) = list.fetch::<Payment>(connection, page).await?;
    if meta.total == 0 {
        let sql = "select exists (select from billing.document \
                   where account_id = $1 and id = $2 and kind = 'invoice')";
        let exists: bool = sqlx::query_scalar(sql).bind(account).bind(invoice).fetch_one(connection).await?;
        return Ok(exists.then_some((payments, meta)));
    }
    Ok(Some((payments, meta)))
}

const ALL_FIELDS: Fields = Fields::with_sorts(&[("date", "date"), ("amount", "amount")]);

/// The payments of all invoices, newest first unless `filter` has another order.
pub(crate) async fn list_all(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &AllFilter,
    page: Page,
) -> Result<(Vec<Payment>, PageMeta), Error> {
    let AllFilter { common, invoice, client, provider, amount } = filter;
    let mut list = List::new(account, "billing.payment", columns!(), Total::Prepared(LIST));
    list.only_counted(STATUS_COLUMN, common.status().as_deref());
    list.only_counted(KIND_COLUMN, common.kind().as_deref());
    list.only_counted(METHOD_COLUMN, common.method().as_deref());
    list.only("document_id", *invoice);
    if let Some(client) = client {
        list.look_up(|values| {
            let (account, client) = (values.bind(account), values.bind(client));
            format!(
                "document_id in (select id from billing.document where account_id = {account} \
                 and client_id = {client} and kind = 'invoice')"
            )
        });
    }
    if !common.external_id.is_empty() {
        list.look_up(|values| {
            format!("external_id = {} and external_id <> ''", values.bind(&common.external_id))
        });
    }
    list.only("provider", Some(provider).filter(|text| !text.is_empty()));
    list.between("date", common.date.from, common.date.to).between("amount", amount.from, amount.to);
    list.select(&common.selection, &ALL_FIELDS)?;
    Ok(list.fetch(connection, page).await?)
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
    id: Uuid,
) -> Result<Option<Payment>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from billing.payment where account_id = $1 and document_id = $2 and id = $3"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(invoice).bind(id).fetch_optional(connection).await?)
}

/// The payments with these ids, of whichever invoices, in no particular order.
pub(crate) async fn list_by_ids(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Payment>, Error> {
    let sql = concat!("select ", columns!(), " from billing.payment where account_id = $1 and id = any($2)");
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// The payment of an invoice that has this external id. An empty external id belongs to none.
pub(crate) async fn find_by_external_id(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
    external_id: &str,
) -> Result<Option<Uuid>, Error> {
    let sql = "select id from billing.payment \
               where account_id = $1 and document_id = $2 and external_id = $3 and external_id <> ''";
    Ok(sqlx::query_scalar(sql)
        .bind(account)
        .bind(invoice)
        .bind(external_id)
        .fetch_optional(connection)
        .await?)
}

/// Stores a payment, new or changed.
pub(crate) async fn put(
    connection: &mut PgConnection,
    account: AccountId,
    payment: &Payment,
) -> Result<(), Error> {
    sqlx::query(
        "insert into billing.payment (account_id, document_id, id, amount, date, status, type, method, external_id, \
         provider, payment_data, feedback_data, created_at, updated_at, version) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
         on conflict (account_id, document_id, id) do update set amount = excluded.amount, date = excluded.date, \
         status = excluded.status, method = excluded.method, external_id = excluded.external_id, \
         provider = excluded.provider, payment_data = excluded.payment_data, feedback_data = excluded.feedback_data, \
         updated_at = excluded.updated_at, version = excluded.version",
    )
    .bind(account)
    .bind(payment.invoice)
    .bind(payment.id)
    .bind(payment.amount)
    .bind(payment.date)
    .bind(status_name(payment.status))
    .bind(kind_name(payment.kind))
    .bind(method_name(payment.method))
    .bind(&payment.external_id)
    .bind(&payment.provider)
    .bind(&payment.sent_data)
    .bind(&payment.feedback_data)
    .bind(payment.created_at)
    .bind(payment.updated_at)
    .bind(payment.version)
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
    id: Uuid,
) -> Result<(), Error> {
    let sql = "delete from billing.payment where account_id = $1 and document_id = $2 and id = $3";
    sqlx::query(sql).bind(account).bind(invoice).bind(id).execute(connection).await?;
    Ok(())
}
