//! What a listener remembers of the events that it has taken.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use chassis_base::{Account, Error};
use chassis_data::{Db, Tx};
use chassis_rpc::{Call, Context};
use chassis_testing::bare::{call, database, open};
use chassis_work::event_listener;
use proto::api::{DeliverEventsRequest, Event, ProvisionAccountRequest, ProvisionAccountResponse};

/// Delivers events as the service `source` and returns the positions of those that are new.
async fn deliver(db: &Db, account: &Account, source: &str, events: &[(i64, bool)]) -> Vec<i64> {
    let event = |(position, retried): &(i64, bool)| Event {
        position: *position,
        retried: *retried,
        ..Event::default()
    };
    let request = DeliverEventsRequest { events: events.iter().map(event).collect() };
    let new = std::sync::Mutex::new(Vec::new());
    let operation = async |tx: &mut Tx<'_>, _: &ProvisionAccountRequest| {
        let unseen = event_listener::unseen(tx, &request).await?;
        *new.lock().unwrap() = unseen.iter().map(|new| new.event.position).collect();
        Ok::<_, Error>(ProvisionAccountResponse {})
    };
    let context = Context::internal(account, source, "test", db.clock());
    let call = Call { context, ..call(account, db.clock()) };
    db.write(call, operation).await.unwrap();
    new.into_inner().unwrap()
}

#[tokio::test]
async fn positions_that_were_taken_are_ignored_for_each_account_and_service() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let (account, other) = (chassis_testing::account(), chassis_testing::account());
    let fresh = |positions: &[i64]| positions.iter().map(|position| (*position, false)).collect::<Vec<_>>();
    assert_eq!(deliver(&db, &account, "crm", &fresh(&[3, 7])).await, [3, 7]);
    assert_eq!(deliver(&db, &account, "crm", &fresh(&[3, 7, 8])).await, [8], "again, and one more");
    assert_eq!(deliver(&db, &account, "crm", &fresh(&[5])).await, [0; 0], "late");
    assert_eq!(deliver(&db, &account, "crm", &fresh(&[9])).await, [9], "late ones change nothing");
    assert_eq!(deliver(&db, &account, "work", &fresh(&[2])).await, [2]);
    assert_eq!(deliver(&db, &other, "crm", &fresh(&[1])).await, [1]);
    assert_eq!(deliver(&db, &account, "crm", &[(4, true)]).await, [4], "refused before");
    assert_eq!(deliver(&db, &account, "crm", &fresh(&[0])).await, [0], "of a release without positions");
    assert_eq!(deliver(&db, &account, "crm", &fresh(&[9])).await, [0; 0]);
}
