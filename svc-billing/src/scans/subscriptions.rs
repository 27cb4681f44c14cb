//! Subscriptions that come to their end.

use chassis_data::Tx;
use chassis_work::scan::{Findings, Scan, Telling, Threshold};

use crate::{Error, subscription};

/// A subscription whose last day is near. Once for each last day that is agreed.
pub fn expiring() -> Scan {
    Scan {
        event: "subscription.expiring",
        threshold: Threshold::Days(30),
        causes: "select s.id as entity_id, to_char(s.end_date, 'YYYY-MM-DD') as cause from billing.subscription s \
                 where s.account_id = $1 and s.status = 'active' and s.end_date between $3 and $3 + $4",
        lock: "select 1 from billing.subscription \
               where account_id = $1 and id = any($2) and $3::text[] is not null order by id for update",
        // Ended is final; until then an end may be agreed, changed, and agreed again.
        kept: "exists (select from billing.subscription s \
               where s.account_id = $1 and s.id = told.entity_id and s.status <> 'ended')",
        ask: None,
        tell,
    }
}

fn tell<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Telling<'a> {
    Box::pin(async move { Ok(tell_all(tx, findings).await?) })
}

async fn tell_all(tx: &mut Tx<'_>, findings: &Findings) -> Result<(), Error> {
    let account = tx.account();
    for record in subscription::list_by_ids(tx.db(), account, &findings.entities()).await? {
        subscription::events::time_passed(tx, findings.event, &record, findings.waited()).await?;
    }
    Ok(())
}
