use http::Method;
use serde_json::json;

use crate::world::{World, id};

#[tokio::test]
async fn a_sent_quote_without_an_answer_is_told_once() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let quote = async || user.create("quotes", &client, json!({})).await;
    let (silent, accepted, patched, unsent) = (quote().await, quote().await, quote().await, quote().await);
    let rejected = quote().await;
    for sent in [&silent, &accepted, &patched, &rejected] {
        user.send("quotes", sent).await;
    }
    user.act("quotes", &accepted, "accept", json!({})).await.expect(200);
    user.patch("quotes", &patched, json!({"payment_status": "accepted"})).await;
    user.patch("quotes", &rejected, json!({"payment_status": "rejected"})).await;
    world.at("2026-11-22T10:59:59Z", &user).await;
    assert_eq!(world.entities_of(&user, "quote.silent").await, [""; 0]);
    world.at("2026-11-22T11:00:01Z", &user).await;
    let events = world.events(&user, "quote.silent").await;
    let [(entity, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(*entity, id(&silent));
    for (name, value) in [
        ("id", silent["id"].clone()),
        ("number", silent["number"].clone()),
        ("client_id", json!(client)),
        ("total_incl_vat", json!(10.0)),
        ("is_draft", json!(false)),
        ("days", json!(7)),
    ] {
        assert_eq!(data[name], value, "{name}");
    }
    user.send("quotes", &silent).await;
    world.at("2027-03-01T12:00:00Z", &user).await;
    let events = world.entities_of(&user, "quote.silent").await;
    assert_eq!(events, [id(&silent)], "once, and {} was never sent", unsent["number"]);
}

#[tokio::test]
async fn what_time_tells_of_a_record_is_as_deep_in_automation_as_its_making() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let body = json!({
        "title": "Bread", "client_id": client, "generation_mode": "final",
        "rows": [{"name": "Row", "unit_price": 10, "vat_rate": "0"}],
    });
    let json = ("content-type", "application/json");
    for more in [None, Some(("x-automation-depth", "3"))] {
        let headers: Vec<(&str, &str)> = [json].into_iter().chain(more).collect();
        user.api.send(Method::POST, "/v1/invoices", &headers, body.to_string()).await.expect(201);
    }
    world.at("2027-03-01T12:00:00Z", &user).await;
    let depths = "select depth from billing.log where account_id = $1 and event = $2 order by depth";
    let mut connection = world.database.connect().await;
    for event in ["invoice.late", "customer.payment_overdue"] {
        let depths = sqlx::query_scalar(depths).bind(user.account.id).bind(event);
        let depths: Vec<i32> = depths.fetch_all(&mut connection).await.unwrap();
        assert_eq!(depths, [0, 3], "{event}");
    }
}

#[tokio::test]
async fn what_happens_behind_a_link_is_as_deep_in_automation_as_the_record() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({
        "title": "Bread", "client_id": user.client("C").await, "generation_mode": "final",
        "rows": [{"name": "Row", "unit_price": 10, "vat_rate": "0"}],
    });
    let headers = [("content-type", "application/json"), ("x-automation-depth", "3")];
    let made = user.api.send(Method::POST, "/v1/quotes", &headers, body.to_string()).await.expect(201);
    // Whoever opens it may be a program that was sent its address.
    world.visit(&made.at("/data")).await;
    let sql = "select depth from billing.log where account_id = $1 and event = 'quote.viewed'";
    let mut connection = world.database.connect().await;
    let depths: Vec<i32> =
        sqlx::query_scalar(sql).bind(user.account.id).fetch_all(&mut connection).await.unwrap();
    assert_eq!(depths, [3]);
}

#[tokio::test]
async fn a_quote_that_was_looked_at_is_not_silent_for_some_days() {
    let world = World::new().await;
    let user = world.user().await;
    let quote = user.create("quotes", &user.client("C").await, json!({})).await;
    user.send("quotes", &quote).await;
    world.at("2026-11-20T12:00:00Z", &user).await;
    world.visit(&quote).await;
    world.at("2026-11-26T12:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "quote.silent").await, [""; 0], "seen six days ago");
    world.at("2026-11-27T12:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "quote.silent").await, [id(&quote)]);
}

#[tokio::test]
async fn an_invoice_is_late_when_its_due_date_has_passed_where_the_account_is() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let due = json!({"due_date": "2026-11-29"});
    let invoice = async || user.create("invoices", &client, due.clone()).await;
    let (open, part, paid, credited) = (invoice().await, invoice().await, invoice().await, invoice().await);
    user.create("invoices", &client, json!({"due_date": "2026-11-29", "generation_mode": "draft"})).await;
    user.act("invoices", &part, "payments", json!({"amount": 4})).await.expect(201);
    let payment = user.act("invoices", &paid, "payments", json!({})).await.expect(201).at("/data/payment");
    user.act("invoices", &credited, "credit", json!({})).await.expect(201);
    world.at("2026-11-29T22:59:59Z", &user).await;
    assert_eq!(world.entities_of(&user, "invoice.late").await, [""; 0], "it is still the 29th");
    world.at("2026-11-29T23:00:00Z", &user).await;
    let mut events = world.events(&user, "invoice.late").await;
    events.sort_by_key(|(entity, _)| entity.clone());
    let entities: Vec<String> = events.iter().map(|(entity, _)| entity.clone()).collect();
    assert_eq!(entities, [id(&open), id(&part)]);
    assert_eq!(events[1].1["payment_status"], "partially_paid");
    assert_eq!((&events[0].1["due_date"], &events[0].1["days"]), (&json!("2026-11-29"), &json!(null)));

    // A payment that is taken back makes an invoice late for the first time, or not a second time.
    let taken_back = format!("/v1/invoices/{}/payments/{}", id(&paid), id(&payment));
    user.api.send(Method::DELETE, &taken_back, &[], "").await.expect(204);
    let rest = user.act("invoices", &part, "payments", json!({})).await.expect(201).at("/data/payment");
    world.at("2026-12-10T12:00:00Z", &user).await;
    let rest = format!("/v1/invoices/{}/payments/{}", id(&part), id(&rest));
    user.api.send(Method::DELETE, &rest, &[], "").await.expect(204);
    world.at("2027-01-10T12:00:00Z", &user).await;
    let mut events = world.entities_of(&user, "invoice.late").await;
    events.sort();
    assert_eq!(events, [id(&open), id(&part), id(&paid)]);
}

#[tokio::test]
async fn drafts_of_every_kind_are_told_once_when_they_are_old() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let mut drafts = Vec::new();
    for list in ["invoices", "quotes", "workorders"] {
        drafts.push(user.create(list, &client, json!({"generation_mode": "draft"})).await);
    }
    let finished = user.create("invoices", &client, json!({"generation_mode": "draft"})).await;
    user.act("invoices", &finished, "finalize", json!({})).await.expect(200);
    world.at("2026-11-18T10:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "document.draft").await, [""; 0]);
    for day in ["2026-11-18T12:00:00Z", "2026-11-19T12:00:00Z"] {
        world.at(day, &user).await;
        let mut events = world.events(&user, "document.draft").await;
        events.sort_by_key(|(entity, _)| entity.clone());
        let events: Vec<_> =
            events.iter().map(|(entity, data)| (entity.clone(), data["days"].clone())).collect();
        let expected: Vec<_> = drafts.iter().map(|draft| (id(draft), json!(3))).collect();
        assert_eq!(events, expected);
    }
    let shown = user.api.get(&format!("/v1/invoices/{}", id(&drafts[0]))).await.expect(200).at("/data");
    assert_eq!(shown, drafts[0], "time changes nothing of a document, and so not its version");
    user.api.send(Method::DELETE, &format!("/v1/invoices/{}", id(&drafts[0])), &[], "").await.expect(200);
    user.act("quotes", &drafts[1], "finalize", json!({})).await.expect(200);
    world.look(&user).await;
    let remembered: i64 =
        sqlx::query_scalar("select count(*) from billing.scan_told where event = 'document.draft'")
            .fetch_one(&mut world.database.connect().await)
            .await
            .unwrap();
    assert_eq!(remembered, 1, "what is no draft any more is forgotten");
}

#[tokio::test]
async fn events_of_a_document_that_come_from_time_keep_their_place_among_the_others() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.create("quotes", &user.client("C").await, json!({"generation_mode": "draft"})).await;
    world.at("2026-11-19T12:00:00Z", &user).await;
    user.send("quotes", &draft).await;
    world.at("2026-11-27T12:00:00Z", &user).await;
    user.act("quotes", &draft, "accept", json!({})).await.expect(200);
    let events: Vec<String> = sqlx::query_scalar(
        "select event from billing.log where event is not null and account_id = $1 and record_id = $2 order by sequence",
    )
    .bind(user.account.id)
    .bind(id(&draft))
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    let expected = [
        "quote.created",
        "document.draft",
        "quote.phase_changed",
        "sales.document_sent",
        "quote.silent",
        "quote.accepted",
        "quote.phase_changed",
    ];
    assert_eq!(events, expected);
}
