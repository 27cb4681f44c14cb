use serde_json::{Value, json};

use crate::support::{User, World, path, row};

fn body(client: &str, mut more: Value) -> Value {
    more["title"] = json!("T");
    more["client_id"] = json!(client);
    more["rows"] = json!([row("a", 1, 10)]);
    more
}

async fn number(user: &User, list: &str, body: Value) -> String {
    user.create(list, body).await["number"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn drafts_are_counted_for_each_kind_and_use_up_no_number() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    for (list, expected) in
        [("invoices", "DRAFT-1"), ("invoices", "DRAFT-2"), ("quotes", "DRAFT-1"), ("workorders", "DRAFT-1")]
    {
        assert_eq!(number(&user, list, body(&client, json!({}))).await, expected);
    }
    let own = json!({"number": "DRAFT-3"});
    assert_eq!(number(&user, "invoices", body(&client, own)).await, "DRAFT-3");
    assert_eq!(number(&user, "invoices", body(&client, json!({}))).await, "DRAFT-4", "steps over it");
    let stranger = world.user().await;
    assert_eq!(number(&stranger, "invoices", json!({"title": "T"})).await, "DRAFT-1");
    assert_eq!(number(&user, "invoices", body(&client, json!({"generate": true}))).await, "INV-2026-00001");
}

#[tokio::test]
async fn finals_are_counted_for_each_year_of_their_date() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    for (date, expected) in
        [("2026-01-01", "INV-2026-00001"), ("2025-12-31", "INV-2025-00001"), ("2026-12-31", "INV-2026-00002")]
    {
        let more = json!({"generate": true, "invoice_date": date});
        assert_eq!(number(&user, "invoices", body(&client, more)).await, expected);
    }
    // The date counts that the document has when it becomes final.
    let draft = user.create("invoices", body(&client, json!({}))).await;
    user.patch("invoices", &draft, json!({"invoice_date": "2027-01-01", "due_date": "2027-02-01"})).await;
    assert_eq!(user.finalize("invoices", &draft).await["number"], "INV-2027-00001");
}

#[tokio::test]
async fn a_number_of_ones_own_is_kept_and_the_sequence_steps_over_it() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let more = json!({"number": " INV-2026-00001 "});
    let draft = user.create("invoices", body(&client, more.clone())).await;
    assert_eq!(draft["number"], "INV-2026-00001");
    let taken = user.api.post("/v1/invoices", body(&client, more.clone())).await.expect(409);
    assert_eq!((taken.at("/code"), taken.at("/data/id")), (json!("number_taken"), draft["id"].clone()));
    assert_eq!(number(&user, "quotes", body(&client, more)).await, "INV-2026-00001", "of another kind");

    let own = json!({"number": "2026/7", "generate": true});
    assert_eq!(number(&user, "invoices", body(&client, own)).await, "2026/7");
    assert_eq!(number(&user, "invoices", body(&client, json!({"generate": true}))).await, "INV-2026-00002");
    assert_eq!(user.finalize("invoices", &draft).await["number"], "INV-2026-00001", "kept when final");
    user.create("invoices", body(&client, json!({"number": "INV-2026-00003"}))).await;
    user.create("invoices", body(&client, json!({"number": "INV-2026-00004"}))).await;
    let last = user.create("invoices", body(&client, json!({}))).await;
    assert_eq!(user.finalize("invoices", &last).await["number"], "INV-2026-00005");
    let found = user.api.get("/v1/invoices?number=2026/7").await.expect(200);
    assert_eq!(found.at("/meta/total"), 1);
    let longest = "9".repeat(255);
    assert_eq!(number(&user, "invoices", body(&client, json!({"number": longest}))).await, longest);
}

#[tokio::test]
async fn credits_share_the_sequence_of_invoices() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let invoice = user.invoice(&client, &[10]).await;
    let credit = user.credit(&invoice, json!({})).await;
    assert_eq!((&invoice["number"], &credit["number"]), (&json!("INV-2026-00001"), &json!("INV-2026-00002")));
    assert_eq!(user.invoice(&client, &[10]).await["number"], "INV-2026-00003");
    assert_eq!(user.get("invoices", &credit).await, credit, "{}", path("invoices", &credit));
}
