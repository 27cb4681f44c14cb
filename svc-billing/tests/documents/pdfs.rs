//! The PDF that is made together with its document: it is recorded with it. What comes when the renderer is busy, or needs a
//! transaction, is pending, and a worker makes it.

use chassis_testing::eventually;
use prost::Message;
use proto::billing::Document;
use serde_json::{Value, json};

use crate::support::{User, World, id, path, priced};

/// The image of a version of a document in the log.
async fn logged(world: &World, user: &User, document: &Value, version: i64) -> Document {
    let image: Vec<u8> = sqlx::query_scalar(
        "select image from billing.log where account_id = $1 and record_id = $2 and version = $3 and change is not null",
    )
    .bind(user.account.id)
    .bind(id(document))
    .bind(version)
    .fetch_one(&mut world.database.connect().await)
    .await
    .unwrap();
    Document::decode(image.as_slice()).unwrap()
}

#[tokio::test]
async fn a_pdf_is_recorded_in_the_transaction_that_stores_the_answer_for_repeats() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let body = |mode: &str| json!({"title": "T", "client_id": client, "rows": priced(&[5]), "generation_mode": mode});
    let draft = user.create("invoices", body("draft")).await;
    let finalize = format!("{}/finalize", path("invoices", &draft));
    for (there, body) in [("/v1/invoices", body("final")), (&finalize, json!({}))] {
        let answer = user.api.post_keyed(there, there, body).await;
        let document = answer.at("/data");
        assert_eq!(document["pdf"]["status"], "ready", "{there}");
        let version = document["meta"]["version"].as_i64().unwrap();
        let transactions: Vec<String> = sqlx::query_scalar(
            "select array[
                (select xmin::text from billing.document where account_id = $1 and id::text = $2),
                (select xmin::text from billing.idempotency where account_id = $1 and key = $3),
                (select xmin::text from billing.log
                 where account_id = $1 and record_id = $2 and version = $4 and change is not null)]",
        )
        .bind(user.account.id)
        .bind(id(&document))
        .bind(there)
        .bind(version)
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
        assert!(
            transactions.iter().all(|transaction| *transaction == transactions[0]),
            "{there}: {transactions:?}"
        );
        let shown = logged(&world, &user, &document, version).await;
        assert_eq!(shown.pdf.unwrap().status, "ready", "{there}");
    }
}

#[tokio::test]
async fn a_final_document_with_any_status_is_answered_as_it_is_shown() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    for list in ["invoices", "quotes", "workorders"] {
        for status in [Value::Null, json!("paid"), json!("disputed"), json!("accepted")] {
            let body = json!({"title": "T", "client_id": client, "rows": priced(&[5, -2]), "generate": true,
                              "payment_status": status});
            let made = user.create(list, body).await;
            // An invoice that is paid already needs a transaction, and nothing is printed while that is open.
            let pdf = if list == "invoices" && status == "paid" { "pending" } else { "ready" };
            assert_eq!((&made["meta"]["version"], &made["pdf"]["status"]), (&json!(1), &json!(pdf)));
            assert_eq!(user.get(list, &made).await, made, "{list} {status}");
        }
    }
}

#[tokio::test]
async fn a_pdf_that_was_made_with_its_document_is_the_same_when_it_is_made_again() {
    let world = World::new().await;
    let user = world.user().await;
    let client =
        user.client_with(json!({"company_name": "C", "city": "Delft", "vat_number": "NL001234567B01"})).await;
    let rows = json!([
        {"name": "a", "quantity": "0.10", "unit_price": "0.3000", "vat_rate": 9},
        {"name": "b", "quantity": 3, "unit_price": "1234.50", "vat_rate": "8.125"},
    ]);
    let body = json!({"title": "T", "client_id": client, "external_id": "x", "rows": rows, "generate": true});
    let invoice = user.create("invoices", body).await;
    let place = world.files().join("billing").join(user.account.id.to_string()).join("documents");
    let file = std::fs::read_dir(&place).unwrap().next().unwrap().unwrap().path();
    let first = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let url = invoice["pdf_url"].as_str().unwrap();
    let again = user.api.get(&url[url.find("/documents/").unwrap()..]).await.expect(200).body;
    assert!(again == first, "from what is stored");
    assert!(std::fs::read(&file).unwrap() == first);
}

#[tokio::test]
async fn a_document_that_changes_while_its_pdf_is_made_is_answered_with_the_change() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    // Somebody changes the document right after it became final.
    let change = "create function billing.change() returns trigger language plpgsql as $$ begin
                      update billing.document set project_number = 'P-1', version = version + 1
                      where account_id = new.account_id and id = new.id;
                      return null;
                  end $$;
                  create constraint trigger change after update on billing.document deferrable initially deferred
                  for each row when (new.is_final and not old.is_final) execute function billing.change()";
    sqlx::raw_sql(change).execute(&mut world.database.connect().await).await.unwrap();
    let body = json!({"title": "T", "client_id": client, "rows": priced(&[5])});
    let draft = user.create("quotes", body).await;
    let there = format!("{}/finalize", path("quotes", &draft));
    let answer = user.api.post_keyed(&there, "key", json!({})).await.expect(200);
    let made = answer.at("/data");
    assert_eq!((&made["project_number"], &made["pdf"]["status"]), (&json!("P-1"), &json!("ready")));
    assert_eq!(made["meta"]["version"], 4);
    assert_eq!(user.get("quotes", &made).await, made);
    assert_eq!(user.api.post_keyed(&there, "key", json!({})).await.body, answer.body, "repeats get it too");
    assert_eq!(logged(&world, &user, &made, 4).await.project_number, Some("P-1".to_owned()));
    let told: i64 = sqlx::query_scalar(
        "select count(*) from billing.log where account_id = $1 and event = 'file.stored'",
    )
    .bind(user.account.id)
    .fetch_one(&mut world.database.connect().await)
    .await
    .unwrap();
    assert_eq!(told, 1, "its file is told once");
}

#[tokio::test]
async fn a_final_document_without_a_pdf_gets_one_in_the_background() {
    let world = World::working().await;
    let [one, other] = [world.user().await, world.user().await];
    // Many at the same time, and those that are paid already, which are committed before anything is printed.
    let client = one.client("C").await;
    let body = json!({"title": "T", "client_id": client, "rows": priced(&[5]), "generate": true, "payment_status": "paid"});
    let mut made = Vec::new();
    for _ in 0..12 {
        made.push((&one, one.create("invoices", body.clone()).await));
    }
    let client = other.client("D").await;
    let body = json!({"title": "T", "client_id": client, "rows": priced(&[5]), "generate": true, "payment_status": "paid"});
    made.push((&other, other.create("invoices", body).await));
    for (user, invoice) in &made {
        assert_eq!(
            invoice["pdf"],
            json!({"generated": false, "status": "pending", "message": null, "url": null})
        );
        eventually("its PDF is made", async || {
            user.get("invoices", invoice).await["pdf"]["status"] == "ready"
        })
        .await;
        let now = user.get("invoices", invoice).await;
        assert_eq!(now["meta"]["version"], 2, "which is a change of the document");
        assert_eq!(logged(&world, user, invoice, 2).await.pdf.unwrap().status, "ready");
    }
    let left: i64 = sqlx::query_scalar("select count(*) from billing.pdf_pending")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn the_pdf_of_a_document_that_is_not_stored_does_not_stay() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    user.create("invoices", json!({"title": "T", "external_id": "taken"})).await;
    let body = json!({"title": "T", "client_id": client, "rows": priced(&[5]), "generate": true, "external_id": "taken"});
    user.api.post("/v1/invoices", body).await.expect(409);
    let place = world.files().join("billing").join(user.account.id.to_string()).join("documents");
    let files = std::fs::read_dir(&place).map_or(0, Iterator::count);
    assert_eq!(files, 0);
}
