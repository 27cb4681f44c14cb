//! The events of subscriptions.

use chassis_data::{Event, Tx};
use serde_json::{Value, json};

use super::Record;
use crate::document::events::{extend, number};
use crate::error::Error;

const ENTITY: &str = "subscription";

/// Emits an event that is caused by the passing of time.
pub(crate) async fn time_passed(
    tx: &mut Tx<'_>,
    kind: &'static str,
    record: &Record,
    more: Value,
) -> Result<(), Error> {
    let plan = &record.plan;
    let mut data = json!({
        "id": record.id,
        "number": record.number,
        "title": record.title,
        "client_id": record.client,
        "status": plan.status.name(),
        "term": plan.term.name(),
        "start_date": plan.start,
        "end_date": plan.end,
        "next_generate": plan.next,
        "total_excl_vat": number(record.total_excl),
        "total_incl_vat": number(record.total_incl),
    });
    extend(&mut data, more);
    let version = tx.next_version(ENTITY, record.id).await?;
    tx.emit(&Event { kind, entity_type: ENTITY, entity_id: record.id, version, data: data.to_string() });
    Ok(())
}
