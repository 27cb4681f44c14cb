//! What tickets tell because time passes. Owns when each of these is so; how and how often that is looked at is the
//! business of chassis.

use std::collections::HashMap;

use chassis::Tx;
use chassis::scan::{Findings, Scan, Telling, Threshold};
use uuid::Uuid;

use crate::{Error, message, ticket};

/// Whoever adds a message locks its ticket too.
const LOCK: &str = "select 1 from support.ticket \
                    where account_id = $1 and id = any($2) and $3::text[] is not null order by id for update";

/// A condition on `t`, a ticket: somebody still has to do something about it. As the index has it.
macro_rules! unsettled {
    () => {
        "t.status not in ('solved', 'closed')"
    };
}

/// Since when nobody has written, as a time and as a cause.
macro_rules! silent_since {
    () => {
        "coalesce(t.last_message_at, t.created_at)"
    };
    (cause) => {
        concat!("(extract(epoch from ", silent_since!(), ") * 1000)::bigint::text")
    };
}

/// A condition on `m`, a message: it came in from a person, and nobody has replied since. A note is no reply.
macro_rules! unanswered {
    () => {
        "m.inbound and m.automatic <> 'program' and not exists (select from support.message r \
         where r.account_id = $1 and r.ticket_id = m.ticket_id and not r.inbound and not r.note \
         and (r.created_at, r.id) > (m.created_at, m.id))"
    };
}

/// All of them.
pub fn all() -> Vec<Scan> {
    vec![stale(), unanswered()]
}

/// A ticket to which nobody has added a message for some days. Once for each silence.
fn stale() -> Scan {
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
        // A settled ticket may be taken up again.
        kept: concat!(
            "exists (select from support.ticket t where t.account_id = $1 and t.id = told.entity_id and ",
            silent_since!(cause),
            " = told.cause)"
        ),
        ask: None,
        tell: tell_of_stale,
    }
}

/// A message of a client that nobody has replied to for some hours. Once for each message. Of a ticket that is settled no
/// reply is expected.
fn unanswered() -> Scan {
    Scan {
        event: "mail.unanswered",
        threshold: Threshold::Hours(24),
        // `offset 0` keeps the planner from a join: it would read every message that there ever was.
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
             where m.account_id = $1 and m.ticket_id = told.entity_id and m.id::text = told.cause and ",
            unanswered!(),
            ")"
        ),
        ask: None,
        tell: tell_of_unanswered,
    }
}

fn tell_of_stale<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Telling<'a> {
    Box::pin(async move {
        for ticket in raise_versions(tx, findings).await? {
            ticket::events::time_passed(tx, findings.event, &ticket, None, &findings.waited());
        }
        Ok(())
    })
}

fn tell_of_unanswered<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Telling<'a> {
    Box::pin(async move { Ok(tell_all_unanswered(tx, findings).await?) })
}

async fn tell_all_unanswered(tx: &mut Tx<'_>, findings: &Findings) -> Result<(), Error> {
    let account = tx.account();
    let tickets = raise_versions(tx, findings).await?;
    let tickets: HashMap<Uuid, ticket::Record> =
        tickets.into_iter().map(|ticket| (ticket.id, ticket)).collect();
    for cause in &findings.causes {
        let Some(ticket) = tickets.get(&cause.entity_id) else { continue };
        let Some(id) = chassis::id::parse(&cause.cause) else { continue };
        if let Some(message) = message::store::find(tx.db(), account, ticket.id, id).await? {
            let waited = findings.waited();
            ticket::events::time_passed(tx, findings.event, ticket, Some(&message), &waited);
        }
    }
    Ok(())
}

async fn raise_versions(tx: &mut Tx<'_>, findings: &Findings) -> Result<Vec<ticket::Record>, Error> {
    let account = tx.account();
    ticket::store::raise_versions(tx.db(), account, &findings.entities()).await
}
