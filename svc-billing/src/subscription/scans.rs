//! The scans of subscriptions: events that are emitted because time passes.

use chassis_data::Tx;
use chassis_work::scan::{Emission, Findings, Scan, Threshold};

use super::{events, list_by_ids};
use crate::error::Error;

pub(crate) fn all() -> Vec<Scan> {
    vec![expiring()]
}

/// A subscription whose end date is near. Emitted once for each end date.
fn expiring() -> Scan {
    Scan {
        event: "subscription.expiring",
        threshold: Threshold::DaysBefore(30),
        causes: "select s.id as entity_id, to_char(s.end_date, 'YYYY-MM-DD') as cause from billing.subscription s \
                 where s.account_id = $1 and s.status = 'active' and s.end_date between $3 and $3 + $4",
        lock: "select 1 from billing.subscription \
               where account_id = $1 and id = any($2) and $3::text[] is not null order by id for update",
        // An ended subscription stays ended; until then its end date may change.
        kept: "exists (select from billing.subscription s \
               where s.account_id = $1 and s.id = reported.entity_id and s.status <> 'ended')",
        external: None,
        emit: emit_each,
    }
}

fn emit_each<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Emission<'a> {
    Box::pin(async move { Ok(emit(tx, findings).await?) })
}

async fn emit(tx: &mut Tx<'_>, findings: &Findings) -> Result<(), Error> {
    let account = tx.account();
    for record in list_by_ids(tx.db(), account, &findings.entities()).await? {
        events::time_passed(tx, findings.event, &record, findings.threshold_data()).await?;
    }
    Ok(())
}
