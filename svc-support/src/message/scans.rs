//! The scan for messages of clients that nobody has replied to.

use std::collections::HashMap;

use chassis_data::Tx;
use chassis_work::scan::{Emission, Findings, Scan, Threshold};
use uuid::Uuid;

use super::{events, store};
use crate::error::Error;
use crate::ticket;
use crate::ticket::scans::{LOCK, count_events, unsettled};

/// A condition on `m`, a message: a person sent it, and there is no later reply. A note is not a reply.
macro_rules! unanswered {
    () => {
        "m.inbound and m.automatic <> 'program' and not exists (select from support.message r \
         where r.account_id = $1 and r.ticket_id = m.ticket_id and not r.inbound and not r.note \
         and (r.created_at, r.id) > (m.created_at, m.id))"
    };
}

/// Messages of clients without a reply for some hours. Each message is reported once. No reply is expected to a ticket
/// that is solved or closed.
pub(crate) fn unanswered() -> Scan {
    Scan {
        event: "mail.unanswered",
        threshold: Threshold::Hours(24),
        // `offset 0` keeps the planner from turning this into a join, which would read every message of the account.
        causes: concat!(
            "select t.id as entity_id, m.id::text as cause from support.ticket t cross join lateral (\
             select m.id from support.message m where m.account_id = $1 and m.ticket_id = t.id \
             and m.created_at <= $2 and ",
            unanswered!(),
            " offset 0) m where t.account_id = $1 and ",
            unsettled!()
        ),
        lock: LOCK,
        kept: concat!(
            "exists (select from support.message m \
             where m.account_id = $1 and m.ticket_id = reported.entity_id and m.id::text = reported.cause and ",
            unanswered!(),
            ")"
        ),
        external: None,
        emit: emit_unanswered,
    }
}

fn emit_unanswered<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Emission<'a> {
    Box::pin(async move { Ok(emit_each(tx, findings).await?) })
}

async fn emit_each(tx: &mut Tx<'_>, findings: &Findings) -> Result<(), Error> {
    let account = tx.account();
    let tickets = count_events(tx, findings).await?;
    let tickets: HashMap<Uuid, ticket::Record> =
        tickets.into_iter().map(|ticket| (ticket.id, ticket)).collect();
    for cause in &findings.causes {
        let Some(ticket) = tickets.get(&cause.entity_id) else { continue };
        let Some(id) = chassis_base::id::parse(&cause.cause) else { continue };
        if let Some(message) = store::find(tx.db(), account, ticket.id, id).await? {
            events::time_passed(tx, findings.event, ticket, &message, &findings.threshold_data());
        }
    }
    Ok(())
}
