//! Nothing of one account is seen or changed by another.

use chassis_testing::expected_faults;
use http::Method;
use serde_json::{Value, json};

use crate::support::{World, id, path, priced};

#[tokio::test]
async fn documents_and_payments_of_another_account_do_not_exist() {
    let world = World::new().await;
    let (owner, stranger) = (world.user().await, world.user().await);
    let client = owner.client("Bakery").await;
    let strange = stranger.draft(&stranger.client("Mill").await, &[1]).await;
    let no_body = [("content-type", "application/json")];
    for list in ["invoices", "quotes", "workorders"] {
        let body = json!({"title": "Bread", "client_id": client, "external_id": "x", "number": "N-1", "rows": priced(&[5])});
        let document = owner.create(list, body.clone()).await;
        let here = path(list, &document);
        for (method, path, body) in [
            (Method::GET, here.clone(), json!({})),
            (Method::PATCH, here.clone(), json!({"title": "Mine"})),
            (Method::DELETE, here.clone(), json!({})),
            (Method::POST, format!("{here}/finalize"), json!({})),
            (Method::GET, format!("{here}/pdf"), json!({})),
            (Method::POST, format!("{here}/accept"), json!({})),
            (Method::POST, format!("{here}/credit"), json!({})),
            (Method::GET, format!("{here}/ubl"), json!({})),
            (Method::GET, format!("{here}/payments"), json!({})),
            (Method::POST, format!("{here}/payments"), json!({"amount": 1})),
        ] {
            let answer = stranger.api.send(method.clone(), &path, &no_body, body.to_string()).await;
            assert_eq!(answer.status, 404, "{method} {path}");
        }
        for query in [
            "",
            &format!("?id={}", id(&document)),
            "?number=N-1",
            "?search=bread",
            &format!("?client_id={client}"),
        ] {
            let page = stranger.api.get(&format!("/v1/{list}{query}")).await.expect(200).json();
            let listed: Vec<&Value> = page["data"].as_array().unwrap().iter().collect();
            assert!(listed.iter().all(|item| item["id"] == strange["id"]), "{list}{query}");
        }
        assert_eq!(owner.get(list, &document).await, document, "and it is as it was");
        let mut same = body;
        same["client_id"] = Value::Null;
        stranger.create(list, same).await;
    }
    let refused =
        stranger.api.post("/v1/invoices", json!({"title": "T", "client_id": client})).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/client_id", "unknown_reference")]));
}

#[tokio::test]
async fn a_payment_is_found_only_under_its_own_invoice() {
    let world = World::new().await;
    let (owner, stranger) = (world.user().await, world.user().await);
    let theirs = owner.draft(&owner.client("Bakery").await, &[5]).await;
    let own = stranger.draft(&stranger.client("Mill").await, &[5]).await;
    let payment = owner.pay(&theirs, json!({})).await["payment"].clone();
    for invoice in [&theirs, &own] {
        let there = format!("{}/payments/{}", path("invoices", invoice), id(&payment));
        stranger.api.patch(&there, json!({"amount": 1})).await.expect(404);
        stranger.delete(&there).await.expect(404);
    }
    let list = owner.api.get(&format!("{}/payments", path("invoices", &theirs))).await.expect(200);
    assert_eq!(list.at("/data"), json!([payment]));
}
