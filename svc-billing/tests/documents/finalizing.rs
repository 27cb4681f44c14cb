use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{World, conflict, id, path, priced, standing, stands};

#[tokio::test]
async fn a_draft_that_lacks_its_client_or_an_invoice_its_rows_is_incomplete() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    for (list, body) in [
        ("invoices", json!({"title": "T", "client_id": client})),
        ("invoices", json!({"title": "T", "rows": priced(&[5])})),
        ("quotes", json!({"title": "T", "rows": priced(&[5])})),
        ("workorders", json!({"title": "T"})),
    ] {
        let draft = user.create(list, body).await;
        let refused = user.act(list, &draft, "finalize", json!({})).await;
        assert_eq!(conflict(refused), "incomplete");
        assert_eq!(user.get(list, &draft).await, draft);
    }
    user.api.post("/v1/invoices/nonsense/finalize", json!({})).await.expect(404);
}

#[tokio::test]
async fn a_final_document_keeps_its_client_as_it_was_and_is_finalised_once() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Old name").await;
    let draft = user.create("quotes", json!({"title": "T", "client_id": client})).await;
    let rename = async |name: &str| {
        user.api.patch(&format!("/v1/clients/{client}"), json!({"company_name": name})).await.expect(200);
    };
    rename("New name").await;
    world.clock.advance(TimeDelta::seconds(1));
    let made = user.act("quotes", &draft, "finalize", json!({})).await.expect(200).at("/data");
    assert_eq!(
        (&made["client_company_name"], &made["number"]),
        (&json!("New name"), &json!("QUO-2026-00001"))
    );
    assert_eq!((&made["payment_status"], &made["generation_mode"]), (&json!("open"), &json!("final")));
    assert_eq!(made["meta"]["finalized_at"], "2026-11-15T11:00:01.123Z");
    assert_eq!(made["pdf"]["status"], "ready");
    assert_eq!(made["meta"]["history"][0]["event"], "finalized");
    assert_eq!(made["web_url"], draft["web_url"], "links stay");
    rename("Newest name").await;
    world.clock.advance(TimeDelta::seconds(1));
    let again = user.act("quotes", &draft, "finalize", json!({})).await.expect(200).at("/data");
    assert_eq!(again, made);
    assert_eq!(user.api.get("/v1/quotes?search=new%20name").await.at("/meta/total"), 1);
    assert_eq!(user.api.get("/v1/quotes?search=quo-2026").await.at("/meta/total"), 1);
}

#[tokio::test]
async fn finalising_opens_a_draft_and_leaves_other_text() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let draft = user.draft(&client, &[10]).await;
    user.patch("invoices", &draft, json!({"payment_status": "disputed"})).await;
    let made = user.finalize("invoices", &draft).await;
    assert_eq!(standing(&made), stands("disputed", 10.0, 0.0));
    // A deposit counts from then on.
    let draft = user.draft(&client, &[10]).await;
    user.pay(&draft, json!({"amount": 4, "date": "2026-11-02"})).await;
    user.pay(&draft, json!({"date": "2026-11-01"})).await;
    assert_eq!(standing(&user.get("invoices", &draft).await), stands("draft", 0.0, 0.0));
    let made = user.finalize("invoices", &draft).await;
    assert_eq!(standing(&made), stands("paid", 0.0, 0.0));
    assert_eq!(made["paid_at"], "2026-11-02T00:00:00.000Z");
}

#[tokio::test]
async fn an_invoice_of_nothing_is_paid_on_the_accounts_day_however_it_became_final() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    // 23:30 in UTC is half past midnight in Amsterdam.
    world.clock.advance(TimeDelta::minutes(750));
    let at_once = user.invoice(&client, &[10, -10]).await;
    let draft = user.draft(&client, &[0]).await;
    assert_eq!((&draft["payment_status"], &draft["paid_at"]), (&json!("draft"), &Value::Null));
    for invoice in [at_once, user.finalize("invoices", &draft).await] {
        assert_eq!(standing(&invoice), stands("paid", 0.0, 0.0));
        assert_eq!(invoice["paid_at"], "2026-11-16T00:00:00.000Z");
    }
}

#[tokio::test]
async fn a_draft_credit_counts_when_it_becomes_final() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.draft(&user.client("C").await, &[10]).await;
    let credit = user.credit(&draft, json!({})).await;
    assert_eq!((&credit["generation_mode"], &credit["payment_status"]), (&json!("draft"), &json!("draft")));
    let too_early = user.act("invoices", &credit, "finalize", json!({})).await;
    assert_eq!(conflict(too_early), "incomplete");
    user.finalize("invoices", &draft).await;
    user.pay(&draft, json!({})).await;
    assert_eq!(standing(&user.get("invoices", &draft).await), stands("paid", 0.0, 0.0));
    let credit = user.finalize("invoices", &credit).await;
    assert_eq!(standing(&credit), stands("open", -10.0, 0.0));
    let invoice = user.get("invoices", &draft).await;
    assert_eq!(standing(&invoice), stands("credited", 0.0, 0.0));
    assert_eq!(invoice["meta"]["credited_by"], json!([id(&credit)]), "{}", path("invoices", &credit));
}
