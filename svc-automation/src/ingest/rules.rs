//! Which events of other services are accepted. Pure.

use chassis_base::AccountId;
use proto::api::Fault;
use proto::{At, Faults};

use crate::event::Event;
use crate::event::rules::{canonical, or_empty_object};

/// Parses the event of another service; adds a fault for everything that is wrong with it. An event of another account is
/// a fault of the sender, because a token is for one account.
pub(super) fn parse(
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
    let occurred_at = event.occurred_at.as_ref().and_then(chassis_base::time::from_timestamp);
    if occurred_at.is_none() {
        faults.add(&at.name("occurred_at"), Fault::NotATime, "occurred_at must be a time");
    }
    Some(Event {
        id: id?,
        kind: canonical(&event.r#type).to_owned(),
        entity_type: event.entity_type.clone(),
        entity_id: event.entity_id.clone(),
        sequence: Some(event.sequence),
        data: or_empty_object(&event.data),
        occurred_at: occurred_at?,
        depth: event.depth,
        actor: String::new(),
    })
}
