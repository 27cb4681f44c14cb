//! The scans of documents: events that are emitted because time passes. Quotes without an answer, late invoices, forgotten
//! drafts, and clients that stay away or pay late. Each scan is a query; `chassis_work::scan` decides when they run.

use std::collections::HashMap;

use chassis_data::Tx;
use chassis_work::scan::{Emission, Findings, Scan, Threshold};
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::owed;
use super::{Record, events, store};
use crate::error::Error;

/// Locks the documents that were found. A transaction that changes one of them at the same time is waited for, and the
/// condition is checked again after the wait.
const LOCK: &str = "select 1 from billing.document \
                    where account_id = $1 and id = any($2) and $3::text[] is not null order by id for update";

/// The same for clients, whose causes are invoices.
const LOCK_CAUSES: &str = "select 1 from billing.document \
                           where account_id = $1 and $2::uuid[] is not null and id = any($3::text[]::uuid[]) \
                           order by id for update";

pub(crate) fn all() -> Vec<Scan> {
    vec![silent_quotes(), late_invoices(), forgotten_drafts(), inactive_clients(), overdue_clients()]
}

/// A condition on a document, by its name in the statement: a final invoice of a client.
macro_rules! issued {
    ($name:literal) => {
        concat!(
            $name,
            ".kind = 'invoice' and ",
            $name,
            ".is_final and ",
            $name,
            ".credits is null and ",
            $name,
            ".client_id is not null"
        )
    };
}

/// A sent quote that was neither accepted nor viewed for some days. Emitted once, also when it is sent again. A quote with
/// another status has had its answer.
fn silent_quotes() -> Scan {
    Scan {
        event: "quote.silent",
        threshold: Threshold::Days(7),
        causes: "select d.id as entity_id, '' as cause from billing.document d \
                 where d.account_id = $1 and d.kind = 'quote' and d.sent_at is not null and d.accepted_at is null \
                 and d.payment_status = 'open' and d.sent_at <= $2 \
                 and (d.viewed_on is null or d.viewed_on <= $3 - $4)",
        lock: LOCK,
        // An accepted quote is never silent again.
        kept: "exists (select from billing.document d \
               where d.account_id = $1 and d.id = reported.entity_id and d.accepted_at is null)",
        external: None,
        emit: emit_for_documents,
    }
}

/// An invoice whose due date has passed. Emitted once for each invoice, also when a payment is reversed.
fn late_invoices() -> Scan {
    Scan {
        event: "invoice.late",
        threshold: Threshold::None,
        causes: concat!(
            "select d.id as entity_id, '' as cause from billing.document d where d.account_id = $1 and ",
            owed!(),
            " and d.due_date < $3"
        ),
        lock: LOCK,
        kept: "exists (select from billing.document d \
               where d.account_id = $1 and d.id = reported.entity_id)",
        external: None,
        emit: emit_for_documents,
    }
}

/// A draft of any kind that is some days old.
fn forgotten_drafts() -> Scan {
    Scan {
        event: "document.draft",
        threshold: Threshold::Days(3),
        causes: "select d.id as entity_id, '' as cause from billing.document d \
                 where d.account_id = $1 and not d.is_final and d.created_at <= $2",
        lock: LOCK,
        // A final document never becomes a draft again.
        kept: "exists (select from billing.document d \
               where d.account_id = $1 and d.id = reported.entity_id and not d.is_final)",
        external: None,
        emit: emit_for_documents,
    }
}

/// A client whose latest invoice is some days old. Emitted again after the next invoice.
fn inactive_clients() -> Scan {
    Scan {
        event: "customer.inactive",
        threshold: Threshold::Days(180),
        // Steps from client to client by the index, so the cost does not depend on the number of invoices.
        causes: concat!(
            "with recursive walk as (\
             (select f.client_id from billing.document f where f.account_id = $1 and ",
            issued!("f"),
            " order by f.client_id limit 1) \
             union all \
             select (select n.client_id from billing.document n where n.account_id = $1 and ",
            issued!("n"),
            " and n.client_id > walk.client_id order by n.client_id limit 1) \
             from walk where walk.client_id is not null) \
             select walk.client_id as entity_id, latest.id::text as cause \
             from walk cross join lateral (\
             select l.id, l.invoice_date from billing.document l \
             where l.account_id = $1 and l.client_id = walk.client_id and ",
            issued!("l"),
            " order by l.invoice_date desc, l.id desc limit 1) latest \
             where walk.client_id is not null and latest.invoice_date <= $3 - $4"
        ),
        lock: "",
        kept: concat!(
            "reported.cause = (select l.id::text from billing.document l \
             where l.account_id = $1 and l.client_id = reported.entity_id and ",
            issued!("l"),
            " order by l.invoice_date desc, l.id desc limit 1)"
        ),
        external: None,
        emit: emit_for_clients,
    }
}

/// A client with an invoice that is some days late. Emitted once for each invoice, also when a payment is reversed.
fn overdue_clients() -> Scan {
    Scan {
        event: "customer.payment_overdue",
        threshold: Threshold::Days(14),
        causes: concat!(
            "select d.client_id as entity_id, d.id::text as cause from billing.document d where d.account_id = $1 and ",
            owed!(),
            " and d.client_id is not null and d.due_date <= $3 - $4"
        ),
        lock: LOCK_CAUSES,
        kept: "exists (select from billing.document d \
               where d.account_id = $1 and d.id = reported.cause::uuid)",
        external: None,
        emit: emit_for_clients,
    }
}

fn emit_for_documents<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Emission<'a> {
    Box::pin(async move { Ok(emit_document_events(tx, findings).await?) })
}

async fn emit_document_events(tx: &mut Tx<'_>, findings: &Findings) -> Result<(), Error> {
    let account = tx.account();
    for record in store::count_time_events(tx.db(), account, &findings.entities()).await? {
        events::time_passed(tx, findings.event, &record, findings.threshold_data());
    }
    Ok(())
}

fn emit_for_clients<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Emission<'a> {
    Box::pin(async move { Ok(emit_client_events(tx, findings).await?) })
}

async fn emit_client_events(tx: &mut Tx<'_>, findings: &Findings) -> Result<(), Error> {
    let account = tx.account();
    let ids: Vec<Uuid> = findings.causes.iter().filter_map(|cause| cause.cause.parse().ok()).collect();
    let invoices = store::list_by_ids(tx.db(), account, &ids).await?;
    let invoices: HashMap<String, Record> =
        invoices.into_iter().map(|invoice| (invoice.id.to_string(), invoice)).collect();
    for cause in &findings.causes {
        if let Some(invoice) = invoices.get(&cause.cause) {
            events::of_client(tx, findings.event, cause.entity_id, invoice, more(invoice, findings)).await?;
        }
    }
    Ok(())
}

fn more(invoice: &Record, findings: &Findings) -> Value {
    let mut more = json!({
        "invoice_date": invoice.invoice_date,
        "due_date": invoice.due_date,
        "open_amount": events::number(invoice.open_amount),
    });
    events::extend(&mut more, findings.threshold_data());
    more
}
