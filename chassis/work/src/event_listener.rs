//! Reads the events that another service delivered.

use chassis_data::write::Tx;
use proto::At;
use proto::api::{DeliverEventsRequest, Event, Fault};
use serde::de::DeserializeOwned;

/// An event with its parsed data.
#[derive(Debug)]
pub struct Received<'e, T> {
    /// The position in the batch.
    pub index: usize,
    pub event: &'e Event,
    pub data: T,
}

/// The events of one type, in order. An event of another account, or one of this type with invalid data, adds a fault,
/// so that the whole batch is refused. `what` names the data in the fault.
pub fn read<'e, T: DeserializeOwned>(
    tx: &mut Tx<'_>,
    input: &'e DeliverEventsRequest,
    kind: &str,
    what: &str,
) -> Vec<Received<'e, T>> {
    let (account, place) = (tx.account(), At::ROOT.name("events"));
    let mut received = Vec::new();
    for (index, event) in input.events.iter().enumerate() {
        let at = place.index(index);
        if event.account_id.parse() != Ok(account.uuid()) {
            let detail = "account_id must be the account that the call is made for";
            tx.faults.add(&at.name("account_id"), Fault::NotAllowed, detail);
        }
        if event.r#type != kind {
            continue;
        }
        match serde_json::from_str(&event.data) {
            Ok(data) => received.push(Received { index, event, data }),
            Err(error) => {
                let detail = format!("data must tell of {what}: {error}");
                tx.faults.add(&at.name("data"), Fault::BadFormat, detail);
            }
        }
    }
    received
}
