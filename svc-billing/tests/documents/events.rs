use serde_json::{Value, json};

use crate::support::{User, World, id, path, priced};

#[derive(Debug, chassis_derive::FromRow)]
struct Stored {
    r#type: String,
    entity_type: String,
    entity_id: String,
    data: Value,
}

/// Takes the events of documents from the log, except internal ones, in the order in which they happened to each entity.
async fn take_events(world: &World, user: &User) -> Vec<Stored> {
    sqlx::query_as(
        "with gone as (select * from billing.log where account_id = $1 and event is not null),
            forgotten as (update billing.log set event = null where account_id = $1)
         select event as type, kind as entity_type, record_id as entity_id, data::json as data from gone
         where kind <> 'file' and event not like '%.deleted'
         order by id",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

async fn names(world: &World, user: &User) -> Vec<String> {
    take_events(world, user).await.into_iter().map(|event| event.r#type).collect()
}

#[tokio::test]
async fn creating_a_document_is_told_with_what_it_is() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let body = json!({"title": "Bread", "client_id": client, "external_id": "x", "rows": priced(&[5])});
    let invoice = user.create("invoices", body.clone()).await;
    let events = take_events(&world, &user).await;
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(
        [&event.r#type, &event.entity_type, &event.entity_id],
        ["invoice.created", "invoice", &id(&invoice)]
    );
    for (name, value) in [
        ("id", &invoice["id"]),
        ("number", &json!("DRAFT-1")),
        ("title", &json!("Bread")),
        ("client_id", &json!(client)),
        ("external_id", &json!("x")),
        ("payment_status", &json!("draft")),
        ("is_draft", &json!(true)),
        ("is_credit", &json!(false)),
    ] {
        assert_eq!(event.data[name], *value, "{name}");
    }
    user.create("quotes", body.clone()).await;
    assert_eq!(names(&world, &user).await, ["quote.created"]);
    user.create("workorders", body.clone()).await;
    assert_eq!(names(&world, &user).await, [""; 0]);
    user.api.post("/v1/invoices", body).await.expect(409);
    user.delete(&path("invoices", &invoice)).await.expect(200);
    assert_eq!(names(&world, &user).await, [""; 0], "a refusal and a deletion tell nothing");
}

#[tokio::test]
async fn what_happens_to_a_quote_is_told_once() {
    let world = World::new().await;
    let user = world.user().await;
    let quote = user
        .create("quotes", json!({"title": "T", "client_id": user.client("C").await, "rows": priced(&[5])}))
        .await;
    take_events(&world, &user).await;
    let phases = async |expected: &[(&str, Value)]| {
        let events = take_events(&world, &user).await;
        let events: Vec<_> = events
            .iter()
            .map(|event| (event.r#type.as_str(), json!([event.data["from"], event.data["to"]])))
            .collect();
        assert_eq!(events, expected);
    };
    user.patch("quotes", &quote, json!({"payment_status": "negotiating"})).await;
    phases(&[("quote.phase_changed", json!(["draft", "negotiating"]))]).await;
    user.patch("quotes", &quote, json!({"payment_status": "negotiating", "title": "U"})).await;
    phases(&[]).await;
    user.act("quotes", &quote, "accept", json!({})).await.expect(200);
    phases(&[
        ("quote.accepted", json!([null, null])),
        ("quote.phase_changed", json!(["negotiating", "accepted"])),
    ])
    .await;
    user.act("quotes", &quote, "accept", json!({})).await.expect(200);
    user.finalize("quotes", &quote).await;
    phases(&[]).await;
    let other = user
        .create("quotes", json!({"title": "T", "client_id": quote["client_id"], "rows": priced(&[5])}))
        .await;
    take_events(&world, &user).await;
    user.finalize("quotes", &other).await;
    phases(&[("quote.phase_changed", json!(["draft", "open"]))]).await;
}

#[tokio::test]
async fn an_invoice_is_told_when_it_is_paid_and_a_clients_first_one_once() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let (first, second) = (user.invoice(&client, &[10]).await, user.invoice(&client, &[10]).await);
    assert_eq!(names(&world, &user).await, ["invoice.created", "invoice.created"]);
    user.pay(&first, json!({"amount": 4})).await;
    assert_eq!(names(&world, &user).await, [""; 0]);
    let rest = user.pay(&first, json!({})).await;
    let events = take_events(&world, &user).await;
    let shown: Vec<_> = events
        .iter()
        .map(|event| (event.r#type.as_str(), event.entity_type.as_str(), &*event.entity_id))
        .collect();
    assert_eq!(
        shown,
        [
            ("invoice.paid", "invoice", id(&first).as_str()),
            ("customer.first_invoice_paid", "client", &client)
        ]
    );
    assert_eq!(events[1].data["invoice_id"], first["id"]);
    user.pay(&first, json!({"amount": 1})).await;
    assert_eq!(names(&world, &user).await, [""; 0], "it was paid before");
    user.delete(&format!("{}/payments/{}", path("invoices", &first), id(&rest["payment"]))).await.expect(204);
    user.pay(&first, json!({})).await;
    assert_eq!(names(&world, &user).await, ["invoice.paid"], "it became paid again");
    user.patch("invoices", &second, json!({"payment_status": "paid"})).await;
    assert_eq!(names(&world, &user).await, ["invoice.paid"]);
}

#[tokio::test]
async fn only_a_final_invoice_above_nothing_is_told_as_paid() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let nothing = user.invoice(&client, &[0]).await;
    assert_eq!(
        (&nothing["payment_status"], names(&world, &user).await),
        (&json!("paid"), vec!["invoice.created".to_owned()])
    );
    let negative = user.invoice(&client, &[-10]).await;
    user.pay(&negative, json!({})).await;
    assert_eq!(user.get("invoices", &negative).await["payment_status"], "paid");
    assert_eq!(names(&world, &user).await, ["invoice.created"], "who gets money back does not pay");
    let draft = user.draft(&client, &[10]).await;
    user.patch("invoices", &draft, json!({"payment_status": "paid"})).await;
    assert_eq!(names(&world, &user).await, ["invoice.created"], "a draft asks for nothing");
    user.finalize("invoices", &draft).await;
    assert_eq!(names(&world, &user).await, ["invoice.paid", "customer.first_invoice_paid"]);
}

#[tokio::test]
async fn a_credit_is_told_of_the_invoice_and_is_an_invoice_itself() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.draft(&user.client("C").await, &[10, 20]).await;
    take_events(&world, &user).await;
    let credit = user.credit(&draft, json!({"credit_all": false, "row_indexes": [0]})).await;
    let events = take_events(&world, &user).await;
    let shown: Vec<_> = events.iter().map(|event| (event.r#type.as_str(), event.entity_id.clone())).collect();
    assert_eq!(shown, [("invoice.credited", id(&draft)), ("invoice.created", id(&credit))]);
    assert_eq!(events[0].data["credit_id"], credit["id"]);
    assert_eq!(events[1].data["is_credit"], true);
}

#[tokio::test]
async fn a_workorder_is_told_when_it_is_completed() {
    let world = World::new().await;
    let user = world.user().await;
    let workorder = user.create("workorders", json!({"title": "T"})).await;
    for (status, expected) in [
        ("planned", vec![]),
        ("completed", vec!["workorder.completed"]),
        ("paid", vec![]),
        ("planned", vec![]),
        ("paid", vec!["workorder.completed"]),
    ] {
        user.patch("workorders", &workorder, json!({"payment_status": status})).await;
        assert_eq!(names(&world, &user).await, expected, "{status}");
    }
}

#[tokio::test]
async fn events_of_a_document_come_in_the_order_of_its_changes() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = user.invoice(&user.client("C").await, &[10]).await;
    let payment = user.pay(&invoice, json!({})).await["payment"].clone();
    user.api
        .patch(&format!("{}/payments/{}", path("invoices", &invoice), id(&payment)), json!({"amount": 5}))
        .await;
    user.pay(&invoice, json!({})).await;
    user.credit(&invoice, json!({})).await;
    let sequence: Vec<(String, i64)> = sqlx::query_as(
        "select event, sequence from billing.log where event is not null and account_id = $1 and record_id = $2 order by sequence",
    )
    .bind(user.account.id)
    .bind(id(&invoice))
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    let names: Vec<&str> = sequence.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["invoice.created", "invoice.paid", "invoice.paid", "invoice.credited"]);
    assert!(sequence.is_sorted_by(|(_, one), (_, other)| one < other));
}

#[tokio::test]
async fn a_pdf_that_is_kept_is_told_once_for_each_content() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let invoice = user.invoice(&client, &[10]).await;
    let pdf = invoice["pdf_url"].as_str().unwrap().split_once("/documents/").unwrap().1.to_owned();
    let pdf = format!("/documents/{pdf}");
    let file_events = async || {
        let file_events: Vec<(String, Value)> = sqlx::query_as(
            "select record_id, data::json from billing.log where account_id = $1 and event = 'file.stored'
             order by record_id",
        )
        .bind(user.account.id)
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap();
        file_events
    };
    user.api.get(&pdf).await.expect(200);
    let [(file, data)] = file_events().await.try_into().unwrap();
    let name = format!("{}.pdf", invoice["number"].as_str().unwrap());
    for (field, value) in [
        ("id", &json!(file)),
        ("name", &json!(name)),
        ("content_type", &json!("application/pdf")),
        ("service", &json!("billing")),
        ("area", &json!("documents")),
        ("source", &json!({"type": "invoice", "id": invoice["id"]})),
        ("client_id", &json!(client)),
    ] {
        assert_eq!(data[field], *value, "{field}");
    }
    let account = user.account.id.to_string();
    let place = world.files().join("billing").join(account).join("documents");
    let kept = std::fs::metadata(place.join(data["key"].as_str().unwrap())).unwrap();
    assert_eq!(data["size"], kept.len());
    user.patch("invoices", &invoice, json!({"title": "Another"})).await;
    user.api.get(&pdf).await.expect(200);
    let versions: Vec<i64> =
        file_events().await.iter().map(|(_, data)| data["version"].as_i64().unwrap()).collect();
    assert!(versions.len() == 2 && versions[0] < versions[1], "{versions:?}");
}

#[tokio::test]
async fn a_pdf_that_could_not_be_kept_is_ready_and_told_when_it_was_made_after_all() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    // As a full disk does, and also for root: there is nothing to be found, and nothing can be kept.
    let occupied = world.files().join("billing");
    std::os::unix::fs::symlink(world.files().join("nowhere"), &occupied).unwrap();
    let invoice = user.invoice(&client, &[10]).await;
    assert_eq!(invoice["pdf"]["status"], "pending", "{invoice}");
    let pdf = invoice["pdf_url"].as_str().unwrap().split_once("/documents/").unwrap().1.to_owned();
    let pdf = format!("/documents/{pdf}");
    user.api.get(&pdf).await.expect(503);
    let file_events = async || {
        sqlx::query_scalar::<_, i64>(
            "select count(*) from billing.log where account_id = $1 and event = 'file.stored'",
        )
        .bind(user.account.id)
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap()
    };
    assert_eq!(file_events().await, 0, "what is not kept is not listed");
    std::fs::remove_file(&occupied).unwrap();
    user.api.get(&pdf).await.expect(200);
    assert_eq!(user.get("invoices", &invoice).await["pdf"]["status"], "ready");
    user.api.get(&pdf).await.expect(200);
    assert_eq!(file_events().await, 1);
}
