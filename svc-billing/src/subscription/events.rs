//! What the rest of the product hears of subscriptions.

use chassis_data::{Event, Tx};
use serde_json::{Value, json};

use super::{Record, store};
use crate::Error;
use crate::document::events::{extend, number};

const ENTITY: &str = "subscription";

/// Tells what time alone brought about.
pub async fn time_passed(
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
        "status": store::status_name(plan.status),
        "term": store::term_name(plan.term),
        "start_date": plan.start,
        "end_date": plan.end,
        "next_generate": plan.next,
        "total_excl_vat": number(record.total_excl),
        "total_incl_vat": number(record.total_incl),
    });
    extend(&mut data, more);
    let version = tx.next_version(ENTITY, record.id).await?;
    let (entity_type, entity_id, data) = (ENTITY, record.id, data.to_string());
    tx.emit(&Event { kind, entity_type, entity_id, version, data });
    Ok(())
}
