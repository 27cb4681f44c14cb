//! Documents as messages of the contract. A file of its own, because `mod.rs` with all of it would be too long.

use chassis_base::AccountId;
use chassis_base::time::timestamp;
use proto::billing::{
    Document, DocumentHistory, DocumentMeta, DocumentRow, Einvoice, GenerationMode, Pdf, Period, VatLine,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::rules::amounts::{Row, VatGroup, vat_lines};
use super::{Full, History, Kind, Links, MailDelivery, Record};
use crate::money::two_places;

/// The whole document, as its detail shows it and as the log has it.
pub(crate) fn document(account: AccountId, links: &Links, full: &Full) -> Document {
    let Full { record, rows, credited_by, history } = full;
    let rows: Vec<&Row> = rows.iter().map(|stored| &stored.row).collect();
    let client = record.client.clone().unwrap_or_default();
    Document {
        id: record.id.to_string(),
        number: record.number.clone(),
        title: record.title.clone(),
        invoice_date: record.invoice_date.to_string(),
        due_date: record.due_date.to_string(),
        created_at: Some(timestamp(record.created_at)),
        subtotal: record.total_excl.to_string(),
        vat_rate: record.vat_rate.to_string(),
        vat_amount: record.vat_amount.to_string(),
        total_excl_vat: record.total_excl.to_string(),
        total_incl_vat: record.total_incl.to_string(),
        client_id: record.client.as_ref().map(|client| client.id.to_string()).unwrap_or_default(),
        payment_status: record.status.as_str().to_owned(),
        paid_at: record.paid_at.map(timestamp),
        sent_at: record.sent_at.map(timestamp),
        project_number: record.project_number.clone(),
        is_credit: record.is_credit(),
        external_id: Some(record.external_id.clone()).filter(|text| !text.is_empty()),
        rows: row_messages(record, &rows),
        client_company_name: client.company_name,
        client_firstname: client.firstname,
        client_lastname: client.lastname,
        web_url: links.page(account, record),
        pdf_url: links.pdf(account, record),
        meta: Some(meta(record, &rows, credited_by, history)),
        generation_mode: generation_mode(record).into(),
        pdf: Some(pdf(record, links.pdf(account, record))),
    }
}

fn generation_mode(record: &Record) -> GenerationMode {
    if record.is_final { GenerationMode::Final } else { GenerationMode::Draft }
}

/// A single row has the total of the document, whose VAT may differ by a cent from the computed one: see
/// `rules::amounts`.
fn row_messages(record: &Record, rows: &[&Row]) -> Vec<DocumentRow> {
    let mut messages: Vec<DocumentRow> = rows.iter().map(|row| DocumentRow::from(*row)).collect();
    if let [only] = messages.as_mut_slice() {
        only.total_incl_vat = record.total_incl.to_string();
    }
    messages
}

impl From<&Row> for DocumentRow {
    fn from(row: &Row) -> Self {
        Self {
            name: row.name.clone(),
            quantity: row.quantity.to_string(),
            unit: row.unit.clone(),
            unit_price: row.unit_price.to_string(),
            vat_rate: row.vat_rate.to_string(),
            total_excl_vat: two_places(row.total_excl()).to_string(),
            total_incl_vat: two_places(row.total_incl()).to_string(),
            description: row.description.clone(),
        }
    }
}

fn meta(record: &Record, rows: &[&Row], credited_by: &[Uuid], history: &[History]) -> DocumentMeta {
    let rows: Vec<Row> = rows.iter().map(|row| (*row).clone()).collect();
    DocumentMeta {
        vat_breakdown: vat_lines(&rows, record.vat_amount).into_iter().map(VatLine::from).collect(),
        paid_amount: record.paid_amount.to_string(),
        open_amount: record.open_amount.to_string(),
        overpaid_amount: record.overpaid_amount.to_string(),
        credits: record.credits.map(|id| id.to_string()),
        credited_by: credited_by.iter().map(Uuid::to_string).collect(),
        finalized_at: record.finalized_at.map(timestamp),
        accepted_at: record.accepted_at.map(timestamp),
        updated_at: Some(timestamp(record.updated_at)),
        einvoice: (record.kind == Kind::Invoice).then(|| Einvoice {
            ready: record.is_final && record.einvoice_missing.is_empty(),
            missing: record.einvoice_missing.clone(),
        }),
        history: history.iter().map(DocumentHistory::from).collect(),
        subscription_id: record.billed_period.map(|billed| billed.subscription.to_string()),
        period: record
            .billed_period
            .map(|billed| Period { from: billed.period.from.to_string(), to: billed.period.to.to_string() }),
        version: record.version,
    }
}

impl From<VatGroup> for VatLine {
    fn from(group: VatGroup) -> Self {
        Self {
            rate: group.rate.to_string(),
            code: Some(group.code).filter(|code| !code.is_empty()),
            taxable: two_places(group.taxable).to_string(),
            vat: two_places(group.vat).to_string(),
        }
    }
}

/// The state of a mail's delivery is shown with the entry that queued the mail.
impl From<&History> for DocumentHistory {
    fn from(entry: &History) -> Self {
        let data = match &entry.mail {
            None => entry.data.clone(),
            Some(delivery) => {
                let mut data: Value = serde_json::from_str(&entry.data).unwrap_or_default();
                data["mail"] = delivery_json(delivery);
                data.to_string()
            }
        };
        Self { at: Some(timestamp(entry.at)), event: entry.event.clone(), actor: entry.actor.clone(), data }
    }
}

fn delivery_json(delivery: &MailDelivery) -> Value {
    match (delivery.status.as_str(), delivery.error.as_str()) {
        ("dead", error) => json!({"status": "failed", "error": error}),
        (status, "") => json!({"status": status}),
        (status, error) => json!({"status": status, "last_error": error}),
    }
}

/// The status of a PDF that is still to be made.
pub(crate) const PENDING: &str = "pending";

fn pdf(record: &Record, url: String) -> Pdf {
    if record.pdf_version == Some(record.content_version) {
        Pdf { generated: true, status: "ready".to_owned(), message: None, url: Some(url) }
    } else if !record.is_final {
        Pdf { generated: false, status: "none".to_owned(), message: None, url: None }
    } else if record.pdf_error.is_empty() {
        Pdf { generated: false, status: PENDING.to_owned(), message: None, url: None }
    } else {
        let message = Some(record.pdf_error.clone());
        Pdf { generated: false, status: "failed".to_owned(), message, url: None }
    }
}
