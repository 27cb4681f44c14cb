//! The scans for clients and deals without a follow-up. This service has the tasks and notes; it lists clients and open
//! deals from the services that have them, page by page.

use std::sync::Arc;

use chassis_data::{Event, Tx};
use chassis_rpc::outgoing::Outgoing;
use chassis_rpc::references::References;
use chassis_work::scan::{Emission, ExternalRecords, Findings, Scan, Threshold};
use serde_json::Value;

use super::clients::Clients;
use super::deals::Deals;
use crate::references::{CLIENT, OPEN_DEAL};

/// When the last task of `listed`, a record of another service, was completed. `$column` holds the id of the record.
macro_rules! last_task {
    ($column:literal) => {
        concat!(
            "(select max(task.completed_at) from work.task where task.account_id = $1 and task.",
            $column,
            " = listed.id)"
        )
    };
}

/// The listed records without an open task that had no follow-up since a time; that time is the cause.
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

/// Whether no task of the record of a remembered cause was completed after the time that is the cause, and a further
/// condition holds.
macro_rules! still {
    ($column:literal, $more:literal) => {
        concat!(
            "not exists (select from work.task where task.account_id = $1 and task.",
            $column,
            " = reported.entity_id \
             and (extract(epoch from task.completed_at) * 1000)::bigint > reported.cause::bigint)",
            $more
        )
    };
}

/// All scans of this service.
pub(crate) fn all(references: &References, outgoing: &Outgoing) -> Vec<Scan> {
    let clients = Arc::new(Clients { outgoing: outgoing.clone() });
    let deals = Arc::new(Deals { outgoing: outgoing.clone() });
    vec![
        // Emitted once for each period without a follow-up. A note or a completed task starts a new period.
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
                 and note.client_id = reported.entity_id \
                 and (extract(epoch from note.created_at) * 1000)::bigint > reported.cause::bigint)"
            ),
            external: Some(ExternalRecords {
                references: references.clone(),
                kind: CLIENT,
                is_returning: false,
                describe: clients,
            }),
            emit: emit_for_clients,
        },
        // Emitted once for each period without a task. A completed task starts a new period.
        Scan {
            event: "deal.no_followup",
            threshold: Threshold::Days(7),
            causes: idle!("deal_id", concat!("greatest(listed.created_at, ", last_task!("deal_id"), ")")),
            lock: "",
            kept: still!("deal_id", ""),
            external: Some(ExternalRecords {
                references: references.clone(),
                kind: OPEN_DEAL,
                is_returning: true,
                describe: deals,
            }),
            emit: emit_for_deals,
        },
    ]
}

fn emit_for_clients<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Emission<'a> {
    Box::pin(emit_all(tx, "client", findings))
}

fn emit_for_deals<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Emission<'a> {
    Box::pin(emit_all(tx, "deal", findings))
}

async fn emit_all(
    tx: &mut Tx<'_>,
    entity_type: &'static str,
    findings: &Findings,
) -> Result<(), chassis_base::Error> {
    for cause in &findings.causes {
        // Without a description the record was deleted, or closed, since it was listed.
        let Some(mut data) = findings.about(cause.entity_id).cloned() else { continue };
        if let (Value::Object(data), Value::Object(threshold)) = (&mut data, findings.threshold_data()) {
            data.extend(threshold);
        }
        let version = tx.next_version(entity_type, cause.entity_id).await?;
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
