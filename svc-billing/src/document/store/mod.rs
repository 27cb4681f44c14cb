//! The SQL of documents, and nothing else.

mod defaults;
mod list;
mod mark;
mod number;
mod payments;
mod pdf_pending;
mod read;
mod rows;
mod write;

pub(crate) use defaults::{Defaults, defaults};
pub(crate) use list::{Filter, Overdue, Range, list, owed};
pub(crate) use mark::{
    NewHistory, Viewed, count_time_events, follow_client, forget_recipients, insert_history,
    insert_paying_client, list_sent_locked, mark_delivery, mark_new_pdf, mark_pdf, mark_pdf_failure,
    mark_sent, mark_viewed, raise_if_shown, set_history_data, set_project, touch,
};
pub(crate) use number::{Numbering, next_number, skip_taken_numbers};
pub(crate) use payments::{has_payments, list_received_payments};
pub(crate) use pdf_pending::{PendingPdf, count_pending_pdfs, list_pending_pdfs, postpone_pdf};
pub(crate) use read::{
    DraftState, find, find_by_external_id, find_by_number, find_by_token, find_original, find_parties,
    find_state, is_billed, list_by_ids, list_full, lock_family,
};
pub(crate) use rows::{credit_rows, list_rows, packed_rows};
pub(crate) use write::{Draft, delete, finalize, insert, insert_now, update_content, update_settlement};

/// How many entries of its history a document shows.
macro_rules! shown_history {
    () => {
        "20"
    };
}
use shown_history;

/// In the order in which `Record` is read.
macro_rules! columns {
    () => {
        "d.id, d.kind, d.version, d.content_version, d.is_final, d.number, d.number_given, d.title, d.invoice_date, \
         d.due_date, d.currency, d.language, d.total_excl, d.vat_rate, d.vat_amount, d.total_incl, d.row_count, \
         d.client_id, d.client_company_name, d.client_firstname, d.client_lastname, d.payment_status, d.paid_at, \
         d.paid_amount, d.open_amount, d.overpaid_amount, d.sent_at, d.project_number, d.credits, d.external_id, \
         d.token, d.finalized_at, d.accepted_at, d.viewed_on, d.einvoice_missing, d.pdf_version, d.pdf_error, d.created_at, \
         d.updated_at, d.invoice_date_given, d.due_date_given, d.prepaid_amount, d.subscription_id, d.period_from, \
         d.period_to, d.time_events"
    };
}
use columns;
