//! Clients, as their invoices show them. The cause is always an invoice.

use std::collections::HashMap;

use chassis_data::Tx;
use chassis_work::scan::{Findings, Scan, Telling, Threshold};
use serde_json::{Value, json};
use uuid::Uuid;

use super::owed;
use crate::Error;
use crate::document::{Record, events, store};

const LOCK: &str = "select 1 from billing.document \
                    where account_id = $1 and $2::uuid[] is not null and id = any($3::text[]::uuid[]) \
                    order by id for update";

/// A condition on a document, by the name it has in the statement: an invoice that a client was given.
macro_rules! given {
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

/// A client whose latest invoice is some days old. The next invoice ends the silence, and after it a new one may begin.
pub fn inactive() -> Scan {
    Scan {
        event: "customer.inactive",
        threshold: Threshold::Days(180),
        // From client to client by the index, whatever the number of their invoices.
        causes: concat!(
            "with recursive walk as (\
             (select f.client_id from billing.document f where f.account_id = $1 and ",
            given!("f"),
            " order by f.client_id limit 1) \
             union all \
             select (select n.client_id from billing.document n where n.account_id = $1 and ",
            given!("n"),
            " and n.client_id > walk.client_id order by n.client_id limit 1) \
             from walk where walk.client_id is not null) \
             select walk.client_id as entity_id, latest.id::text as cause \
             from walk cross join lateral (\
             select l.id, l.invoice_date from billing.document l \
             where l.account_id = $1 and l.client_id = walk.client_id and ",
            given!("l"),
            " order by l.invoice_date desc, l.id desc limit 1) latest \
             where walk.client_id is not null and latest.invoice_date <= $3 - $4"
        ),
        lock: "",
        kept: concat!(
            "told.cause = (select l.id::text from billing.document l \
             where l.account_id = $1 and l.client_id = told.entity_id and ",
            given!("l"),
            " order by l.invoice_date desc, l.id desc limit 1)"
        ),
        ask: None,
        tell,
    }
}

/// A client with an invoice that is some days late. Once for each invoice, also when a payment is taken back.
pub fn overdue() -> Scan {
    Scan {
        event: "customer.payment_overdue",
        threshold: Threshold::Days(14),
        causes: concat!(
            "select d.client_id as entity_id, d.id::text as cause from billing.document d where d.account_id = $1 and ",
            owed!(),
            " and d.client_id is not null and d.due_date <= $3 - $4"
        ),
        lock: LOCK,
        kept: "exists (select from billing.document d \
               where d.account_id = $1 and d.id = told.cause::uuid)",
        ask: None,
        tell,
    }
}

fn tell<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Telling<'a> {
    Box::pin(async move { Ok(tell_all(tx, findings).await?) })
}

async fn tell_all(tx: &mut Tx<'_>, findings: &Findings) -> Result<(), Error> {
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
    events::extend(&mut more, findings.waited());
    more
}
