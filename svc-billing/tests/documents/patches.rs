use chassis_testing::expected_faults;
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{World, path};

#[tokio::test]
async fn a_patch_needs_a_field_that_can_be_changed() {
    let world = World::new().await;
    let user = world.user().await;
    for list in ["invoices", "quotes", "workorders"] {
        let draft = user.create(list, json!({"title": "T"})).await;
        for nothing in [json!({}), json!({"rows": [], "client_id": "x", "number": "1", "external_id": "y"})] {
            let refused = user.api.patch(&path(list, &draft), nothing).await.expect(422);
            assert_eq!(refused.faults(), expected_faults(&[("", "no_field")]));
        }
        let empty = json!({"title": null, "invoice_date": null, "due_date": null, "payment_status": null});
        let refused = user.api.patch(&path(list, &draft), empty).await.expect(422);
        let mut empty: Vec<String> = refused.faults().into_iter().map(|(place, _)| place).collect();
        empty.sort();
        assert_eq!(empty, ["/due_date", "/invoice_date", "/payment_status", "/title"]);
        let refused = user.api.patch(&path(list, &draft), json!({"title": " ", "due_date": "soon"})).await;
        let mut faults = refused.expect(422).faults();
        faults.sort();
        assert_eq!(faults, expected_faults(&[("/due_date", "not_a_date"), ("/title", "required")]));
        assert_eq!(user.get(list, &draft).await, draft, "and nothing was changed");
    }
    user.api.patch("/v1/invoices/nonsense", json!({"title": "T"})).await.expect(404);
    user.api.patch("/v1/invoices/nonsense", json!({"title": null})).await.expect(422);
}

#[tokio::test]
async fn changes_are_kept_in_the_history_newest_first() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = user.invoice(&user.client("C").await, &[10]).await;
    world.clock.advance(TimeDelta::seconds(1));
    let first = user
        .patch("invoices", &invoice, json!({"title": " New ", "rows": [], "due_date": "2026-12-24"}))
        .await;
    assert_eq!((&first["title"], &first["due_date"]), (&json!("New"), &json!("2026-12-24")));
    assert_eq!(first["rows"], invoice["rows"]);
    assert_eq!(first["meta"]["updated_at"], "2026-11-15T11:00:01.123Z");
    world.clock.advance(TimeDelta::seconds(1));
    let second =
        user.patch("invoices", &invoice, json!({"payment_status": "disputed", "title": "New"})).await;
    let expected = json!([
        {"at": "2026-11-15T11:00:02.123Z", "event": "changed", "actor": "Test",
         "data": {"payment_status": {"from": "open", "to": "disputed"}}},
        {"at": "2026-11-15T11:00:01.123Z", "event": "changed", "actor": "Test",
         "data": {"title": {"from": "Bread", "to": "New"}, "due_date": {"from": "2026-11-29", "to": "2026-12-24"}}},
    ]);
    assert_eq!(second["meta"]["history"], expected);
    for name in ["number", "client_id", "rows", "total_incl_vat", "generation_mode", "web_url", "pdf_url"] {
        assert_eq!(second[name], invoice[name], "{name} of a final document never changes");
    }
    world.clock.advance(TimeDelta::seconds(1));
    let same = user.patch("invoices", &invoice, json!({"title": "New", "payment_status": "disputed"})).await;
    assert_eq!(same, second, "what changes nothing leaves no trace");
    assert_eq!(user.api.get("/v1/invoices?search=NEW").await.at("/meta/total"), 1, "found by its new title");
}

#[tokio::test]
async fn the_due_date_never_comes_before_the_date() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.create("quotes", json!({"title": "T"})).await;
    for dates in [
        json!({"due_date": "2026-11-14"}),
        json!({"invoice_date": "2026-12-16"}),
        json!({"invoice_date": "2027-01-02", "due_date": "2027-01-01"}),
    ] {
        let refused = user.api.patch(&path("quotes", &draft), dates).await.expect(422);
        assert_eq!(refused.faults(), expected_faults(&[("/due_date", "conflicting")]));
    }
    user.patch("quotes", &draft, json!({"invoice_date": "2027-01-02", "due_date": "2027-01-02"})).await;
}

#[tokio::test]
async fn setting_paid_sets_when_and_another_text_clears_it() {
    let world = World::new().await;
    let user = world.user().await;
    for list in ["invoices", "quotes", "workorders"] {
        let draft = user.create(list, json!({"title": "T"})).await;
        let paid = user.patch(list, &draft, json!({"payment_status": "paid"})).await;
        let at = paid["paid_at"].clone();
        assert_eq!(at, paid["meta"]["updated_at"]);
        world.clock.advance(TimeDelta::seconds(1));
        let again = user.patch(list, &draft, json!({"payment_status": "paid", "title": "U"})).await;
        assert_eq!(again["paid_at"], at, "it was not empty");
        let other = user.patch(list, &draft, json!({"payment_status": "waiting"})).await;
        assert_eq!((&other["payment_status"], &other["paid_at"]), (&json!("waiting"), &Value::Null));
    }
}

#[tokio::test]
async fn paid_at_stays_while_payments_cover_the_total() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = user.invoice(&user.client("C").await, &[10]).await;
    user.pay(&invoice, json!({"date": "2026-11-01"})).await;
    let paid_at = json!("2026-11-01T00:00:00.000Z");
    let other = user.patch("invoices", &invoice, json!({"payment_status": "archived"})).await;
    assert_eq!((&other["payment_status"], &other["paid_at"]), (&json!("archived"), &paid_at));
    let paid = user.patch("invoices", &invoice, json!({"payment_status": "paid"})).await;
    assert_eq!(paid["paid_at"], paid_at);
    // The total is covered also when it was credited later.
    user.credit(&invoice, json!({})).await;
    let other = user.patch("invoices", &invoice, json!({"payment_status": "archived"})).await;
    assert_eq!((&other["payment_status"], &other["paid_at"]), (&json!("archived"), &paid_at));
}
