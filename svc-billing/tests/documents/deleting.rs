use serde_json::json;

use crate::support::{World, conflict, id, path, priced, row};

#[tokio::test]
async fn a_deleted_draft_is_answered_once_more_and_gone() {
    let world = World::new().await;
    let user = world.user().await;
    let rows = json!([{"name": "Rye", "title": "Baked on stone", "unit_price": 3}, row("Spelt", 1, 4)]);
    for list in ["invoices", "quotes"] {
        let body = json!({"title": "T", "external_id": "order-1", "number": "N-1", "rows": rows});
        let draft = user.create(list, body.clone()).await;
        let gone = user.delete(&path(list, &draft)).await.expect(200);
        assert_eq!(gone.json(), json!({"data": draft, "meta": {}}));
        assert_eq!(gone.at("/data/rows/0/description"), "Baked on stone");
        assert_eq!(gone.at("/data/rows/1/description"), "");
        user.api.get(&path(list, &draft)).await.expect(404);
        user.delete(&path(list, &draft)).await.expect(404);
        assert_eq!(user.total(list).await, 0);
        user.create(list, body).await;
    }
    let draft = user.create("workorders", json!({"title": "T"})).await;
    let gone = user.delete(&path("workorders", &draft)).await.expect(204);
    assert!(gone.body.is_empty());
    user.api.get(&path("workorders", &draft)).await.expect(404);
    user.delete("/v1/invoices/nonsense").await.expect(404);
}

#[tokio::test]
async fn what_is_final_or_paid_or_credited_is_not_deleted() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    for list in ["invoices", "workorders"] {
        let body = json!({"title": "T", "client_id": client, "rows": priced(&[5]), "generate": true});
        let document = user.create(list, body).await;
        assert_eq!(conflict(user.delete(&path(list, &document)).await), "not_a_draft");
        assert_eq!(user.get(list, &document).await, document);
    }
    let deposit = user.draft(&client, &[5]).await;
    let payment = user.pay(&deposit, json!({"status": "failed"})).await;
    assert_eq!(conflict(user.delete(&path("invoices", &deposit)).await), "has_payments");
    user.delete(&format!("{}/payments/{}", path("invoices", &deposit), id(&payment["payment"])))
        .await
        .expect(204);
    user.delete(&path("invoices", &deposit)).await.expect(200);

    let draft = user.draft(&client, &[5, 6]).await;
    let credit = user.credit(&draft, json!({"credit_all": false, "row_indexes": [1]})).await;
    let refused = user.delete(&path("invoices", &draft)).await.expect(409);
    assert_eq!((refused.at("/code"), refused.at("/data/id")), (json!("has_credits"), credit["id"].clone()));
    // Without its credit the row can be credited again.
    user.delete(&path("invoices", &credit)).await.expect(200);
    assert_eq!(user.get("invoices", &draft).await["meta"]["credited_by"], json!([]));
    user.credit(&draft, json!({"credit_all": false, "row_indexes": [1]})).await;
}
