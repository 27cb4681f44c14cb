//! The scan for stale tickets, and what it shares with the scan for unanswered messages. A scan says when its condition
//! holds; `chassis` decides when it runs and remembers what it has reported.

use chassis_data::Tx;
use chassis_work::scan::{Emission, Findings, Scan, Threshold};

use super::{Record, events, store};
use crate::error::Error;

/// Locks the tickets that a scan found, in the order of their ids so that two scans cannot deadlock. Adding a message
/// locks the ticket too, so no message comes between the query and the event.
pub(crate) const LOCK: &str = "select 1 from support.ticket \
                        where account_id = $1 and id = any($2) and $3::text[] is not null order by id for update";

/// A condition on `t`, a ticket: it is neither solved nor closed. Written as the index `ticket_unsettled` has it.
macro_rules! unsettled {
    () => {
        "t.status not in ('solved', 'closed')"
    };
}

pub(crate) use unsettled;

/// When the last message of ticket `t` was added, as a time and as the text of a cause.
macro_rules! silent_since {
    () => {
        "coalesce(t.last_message_at, t.created_at)"
    };
    (cause) => {
        concat!("(extract(epoch from ", silent_since!(), ") * 1000)::bigint::text")
    };
}

/// Unsettled tickets without a new message for some days. Reported once after each message.
pub(crate) fn stale() -> Scan {
    Scan {
        event: "ticket.stale",
        threshold: Threshold::Days(3),
        causes: concat!(
            "select t.id as entity_id, ",
            silent_since!(cause),
            " as cause from support.ticket t where t.account_id = $1 and ",
            unsettled!(),
            " and ",
            silent_since!(),
            " <= $2"
        ),
        lock: LOCK,
        // The status is not part of this condition: a settled ticket that is opened again is not reported twice for
        // the same silence.
        kept: concat!(
            "exists (select from support.ticket t where t.account_id = $1 and t.id = reported.entity_id and ",
            silent_since!(cause),
            " = reported.cause)"
        ),
        external: None,
        emit: emit_stale,
    }
}

fn emit_stale<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Emission<'a> {
    Box::pin(async move {
        for ticket in count_events(tx, findings).await? {
            events::time_passed(tx, findings.event, &ticket, &[], &findings.threshold_data());
        }
        Ok(())
    })
}

/// Counts the events of a scan with the tickets that it found. Their versions stay, because a report changes nothing that a
/// ticket shows.
pub(crate) async fn count_events(tx: &mut Tx<'_>, findings: &Findings) -> Result<Vec<Record>, Error> {
    let account = tx.account();
    store::count_timed_events(tx.db(), account, &findings.entities()).await
}
