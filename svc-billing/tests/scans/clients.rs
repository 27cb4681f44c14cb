use serde_json::json;

use crate::world::{World, id};

#[tokio::test]
async fn a_client_without_a_new_invoice_is_told_once_for_each_silence() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    user.client("Never had one").await;
    let dated = async |date: &str| user.create("invoices", &client, json!({"invoice_date": date})).await;
    dated("2026-10-01").await;
    let first = dated("2026-11-15").await;
    dated("2026-09-01").await;
    world.at("2027-05-13T12:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "customer.inactive").await, [""; 0], "179 days");
    world.at("2027-05-14T12:00:00Z", &user).await;
    let events = world.events(&user, "customer.inactive").await;
    let [(entity, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((entity, &data["id"]), (&client, &json!(client)));
    assert_eq!((&data["invoice_id"], &data["number"]), (&first["id"], &first["number"]));
    assert_eq!(data["days"], 180);
    // Neither a draft nor a credit ends the silence.
    user.create("invoices", &client, json!({"generation_mode": "draft"})).await;
    user.act("invoices", &first, "credit", json!({})).await.expect(201);
    world.at("2027-12-01T12:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "customer.inactive").await.len(), 1);
    let second = dated("2027-12-01").await;
    world.at("2028-05-28T12:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "customer.inactive").await.len(), 1, "179 days");
    world.at("2028-05-29T12:00:00Z", &user).await;
    let events = world.events(&user, "customer.inactive").await;
    assert_eq!((events.len(), &events[1].1["invoice_id"]), (2, &second["id"]));
}

#[tokio::test]
async fn a_client_with_invoices_that_stay_late_is_told_once_for_each() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let due = async |date: &str| user.create("invoices", &client, json!({"due_date": date})).await;
    let (first, paid, second) = (due("2026-11-29").await, due("2026-11-29").await, due("2026-12-05").await);
    world.at("2026-12-12T12:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "customer.payment_overdue").await, [""; 0], "13 days");
    user.act("invoices", &paid, "payments", json!({})).await.expect(201);
    world.at("2026-12-13T12:00:00Z", &user).await;
    let events = world.events(&user, "customer.payment_overdue").await;
    let [(entity, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((entity, &data["id"]), (&client, &json!(client)));
    for (name, value) in [
        ("invoice_id", first["id"].clone()),
        ("number", first["number"].clone()),
        ("due_date", json!("2026-11-29")),
        ("open_amount", json!(10.0)),
        ("days", json!(14)),
    ] {
        assert_eq!(data[name], value, "{name}");
    }
    world.at("2027-06-01T12:00:00Z", &user).await;
    let events = world.events(&user, "customer.payment_overdue").await;
    let invoices: Vec<_> = events.iter().map(|(_, data)| data["invoice_id"].clone()).collect();
    assert_eq!(invoices, [first["id"].clone(), second["id"].clone()]);

    // All events of a client are in order, whatever brought it about.
    user.act("invoices", &second, "payments", json!({})).await.expect(201);
    let events: Vec<(String, i64)> = sqlx::query_as(
        "select event, sequence from billing.log where event is not null and account_id = $1 and kind = 'client' order by sequence",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    assert_eq!(events.len(), 4, "{events:?}");
    assert_eq!(events[0].0, "customer.first_invoice_paid", "the paid one was the first: {}", id(&paid));
    assert!(events.is_sorted_by(|(_, one), (_, other)| one < other));
}
