//! Which events are taken in.

use chassis::AccountId;
use proto::api::Fault;
use proto::{At, Faults};

use super::Event;

/// The event, if it can be kept. An event of another account is a fault of the sender: a token speaks for one account.
pub(crate) fn accept(
    event: &proto::api::Event,
    account: AccountId,
    at: &At<'_>,
    faults: &mut Faults,
) -> Option<Event> {
    let id = event.id.parse().ok();
    if id.is_none() {
        faults.add(&at.name("id"), Fault::BadFormat, "id must be a UUID");
    }
    if event.account_id.parse() != Ok(account.uuid()) {
        let detail = "account_id must be the account that the call is made for";
        faults.add(&at.name("account_id"), Fault::NotAllowed, detail);
    }
    if event.r#type.is_empty() {
        faults.add(&at.name("type"), Fault::Required, "type is required");
    }
    let occurred_at = event.occurred_at.as_ref().and_then(chassis::time::from_timestamp);
    if occurred_at.is_none() {
        faults.add(&at.name("occurred_at"), Fault::NotATime, "occurred_at must be a time");
    }
    Some(Event {
        id: id?,
        kind: event.r#type.clone(),
        entity_type: event.entity_type.clone(),
        entity_id: event.entity_id.clone(),
        sequence: Some(event.sequence),
        data: or_empty_object(&event.data),
        occurred_at: occurred_at?,
    })
}

/// Data that was left out is an empty object.
pub(crate) fn or_empty_object(data: &str) -> String {
    if data.is_empty() { "{}".to_owned() } else { data.to_owned() }
}
