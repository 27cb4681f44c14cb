//! Clients and deals that nobody looks after: what work tells of them because time passes. Whether there is a task or a
//! note is known here; which clients and open deals there are is asked of the services that have them, page by page.
//! Deals are told of here and not by crm, which would have to ask work for that, and work asks crm already.

mod clients;
mod deals;

use std::sync::Arc;
use std::time::Duration;

use chassis::outbox::next_version;
use chassis::scan::{Ask, Findings, Scan, Telling, Threshold};
use chassis::{Event, Runtime, Tx};
use serde_json::Value;

use crate::refer::{CLIENT, OPEN_DEAL};

/// How long another service may take to describe its records.
const PATIENCE: Duration = Duration::from_secs(5);

/// When the last task of `listed`, a record of another service, was completed. The column is the one that names it.
macro_rules! last_task {
    ($column:literal) => {
        concat!(
            "(select max(task.completed_at) from work.task where task.account_id = $1 and task.",
            $column,
            " = listed.id)"
        )
    };
}

/// The listed records without an open task that nobody has looked after since a time, which is the cause.
macro_rules! idle {
    ($column:literal, $since:expr) => {
        concat!(
            "select idle.id as entity_id, (extract(epoch from idle.since) * 1000)::bigint::text as cause from (\
             select listed.id, ",
            $since,
            " as since from unnest($5::uuid[], $6::timestamptz[]) as listed (id, created_at) \
             where not exists (select from work.task where task.account_id = $1 and task.",
            $column,
            " = listed.id and task.completed_at is null)) idle where idle.since <= $2"
        )
    };
}

/// Whether no task of what was told of was completed since the silence began; with a further condition.
macro_rules! still {
    ($column:literal, $more:literal) => {
        concat!(
            "not exists (select from work.task where task.account_id = $1 and task.",
            $column,
            " = told.entity_id and (extract(epoch from task.completed_at) * 1000)::bigint > told.cause::bigint)",
            $more
        )
    };
}

/// All of them.
pub fn scans(runtime: &Runtime) -> Vec<Scan> {
    let (references, outgoing) = (runtime.references(), runtime.outgoing());
    let clients = Arc::new(clients::Clients { outgoing: outgoing.clone() });
    let deals = Arc::new(deals::Deals { outgoing });
    vec![
        // Once for each silence: a note or a task that is completed begins another one.
        Scan {
            event: "customer.no_followup",
            threshold: Threshold::Days(90),
            causes: idle!(
                "client_id",
                concat!(
                    "greatest(listed.created_at, ",
                    last_task!("client_id"),
                    ", (select max(note.created_at) from work.note \
                     where note.account_id = $1 and note.client_id = listed.id))"
                )
            ),
            lock: "",
            kept: still!(
                "client_id",
                " and not exists (select from work.note where note.account_id = $1 \
                 and note.client_id = told.entity_id and (extract(epoch from note.created_at) * 1000)::bigint > told.cause::bigint)"
            ),
            ask: Some(Ask { references: references.clone(), kind: CLIENT, describe: clients }),
            tell: tell_of_clients,
        },
        // Once for each time without a task.
        Scan {
            event: "deal.no_followup",
            threshold: Threshold::Days(7),
            causes: idle!("deal_id", concat!("greatest(listed.created_at, ", last_task!("deal_id"), ")")),
            lock: "",
            kept: still!("deal_id", ""),
            ask: Some(Ask { references, kind: OPEN_DEAL, describe: deals }),
            tell: tell_of_deals,
        },
    ]
}

fn tell_of_clients<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Telling<'a> {
    Box::pin(tell_all(tx, "client", findings))
}

fn tell_of_deals<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Telling<'a> {
    Box::pin(tell_all(tx, "deal", findings))
}

async fn tell_all(
    tx: &mut Tx<'_>,
    entity_type: &'static str,
    findings: &Findings,
) -> Result<(), chassis::Error> {
    for cause in &findings.causes {
        let Some(mut data) = findings.about(cause.entity_id).cloned() else { continue };
        if let (Value::Object(data), Value::Object(waited)) = (&mut data, findings.waited()) {
            data.extend(waited);
        }
        let version = next_version(tx, entity_type, cause.entity_id).await?;
        tx.emit(&Event {
            kind: findings.event,
            entity_type,
            entity_id: cause.entity_id,
            version,
            data: data.to_string(),
        });
    }
    Ok(())
}
