//! Documents that wait for somebody.

use chassis_data::Tx;
use chassis_work::scan::{Findings, Scan, Telling, Threshold};

use super::owed;
use crate::Error;
use crate::document::{events, store};

const LOCK: &str = "select 1 from billing.document \
                    where account_id = $1 and id = any($2) and $3::text[] is not null order by id for update";

/// A sent quote that was neither accepted nor looked at for some days. Once: sending it again is no new occasion. One whose
/// status somebody has set to anything else has had its answer.
pub fn silent_quotes() -> Scan {
    Scan {
        event: "quote.silent",
        threshold: Threshold::Days(7),
        causes: "select d.id as entity_id, '' as cause from billing.document d \
                 where d.account_id = $1 and d.kind = 'quote' and d.sent_at is not null and d.accepted_at is null \
                 and d.payment_status = 'open' and d.sent_at <= $2 \
                 and (d.viewed_on is null or d.viewed_on <= $3 - $4)",
        lock: LOCK,
        // Accepted is final.
        kept: "exists (select from billing.document d \
               where d.account_id = $1 and d.id = told.entity_id and d.accepted_at is null)",
        ask: None,
        tell,
    }
}

/// An invoice whose last day has passed. Once for each invoice, also when a payment is taken back.
pub fn late_invoices() -> Scan {
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
               where d.account_id = $1 and d.id = told.entity_id)",
        ask: None,
        tell,
    }
}

/// A draft of any kind that is some days old.
pub fn forgotten_drafts() -> Scan {
    Scan {
        event: "document.draft",
        threshold: Threshold::Days(3),
        causes: "select d.id as entity_id, '' as cause from billing.document d \
                 where d.account_id = $1 and not d.is_final and d.created_at <= $2",
        lock: LOCK,
        // Final is final.
        kept: "exists (select from billing.document d \
               where d.account_id = $1 and d.id = told.entity_id and not d.is_final)",
        ask: None,
        tell,
    }
}

fn tell<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Telling<'a> {
    Box::pin(async move { Ok(tell_all(tx, findings).await?) })
}

async fn tell_all(tx: &mut Tx<'_>, findings: &Findings) -> Result<(), Error> {
    let account = tx.account();
    for record in store::raise_versions(tx.db(), account, &findings.entities()).await? {
        events::time_passed(tx, findings.event, &record, findings.waited());
    }
    Ok(())
}
