//! A change raises the version of its record by one, and the log has the record exactly as it is shown.

use std::sync::Arc;

use chassis_testing::{SmtpServer, TestCaller, eventually};
use chrono::TimeDelta;
use prost::Message;
use proto::api::event_listener_service_client::EventListenerServiceClient;
use proto::api::{DeliverEventsRequest, Event};
use proto::billing::invoice_service_client::InvoiceServiceClient;
use proto::billing::payment_service_client::PaymentServiceClient;
use proto::billing::quote_service_client::QuoteServiceClient;
use proto::billing::workorder_service_client::WorkorderServiceClient;
use proto::billing::{Document, GetDocumentRequest, ListPaymentsRequest, SetQuoteProjectRequest};
use serde_json::{Value, json};

use crate::support::{User, World, id, path, priced};

/// The versions of a record in the log, and its image after the last change.
async fn logged(world: &World, user: &User, kind: &str, id: &str) -> (Vec<i64>, Option<Vec<u8>>) {
    let entries: Vec<(i64, Option<Vec<u8>>)> = sqlx::query_as(
        "select version, image from billing.log where account_id = $1 and kind = $2 and record_id = $3
            and change is not null order by version",
    )
    .bind(user.account.id)
    .bind(kind)
    .bind(id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    let versions = entries.iter().map(|(version, _)| *version).collect();
    (versions, entries.into_iter().next_back().and_then(|(_, image)| image))
}

async fn shown(world: &World, user: &User, list: &str, document: &Value) -> Document {
    let caller = TestCaller::mesh(&user.account, &world.clock);
    let request = caller.request(GetDocumentRequest { id: id(document) });
    let answer = match list {
        "invoices" => InvoiceServiceClient::new(world.channel()).get_invoice(request).await,
        "quotes" => QuoteServiceClient::new(world.channel()).get_quote(request).await,
        _ => WorkorderServiceClient::new(world.channel()).get_workorder(request).await,
    };
    answer.unwrap().into_inner().data.unwrap()
}

/// The version of a document. The log must have every version up to it, and the last one byte by byte as it is shown. The
/// next change comes a second later, and is told as the time of the last one.
async fn version(world: &World, user: &User, list: &str, document: &Value) -> i64 {
    let shown = shown(world, user, list, document).await;
    let version = shown.meta.as_ref().unwrap().version;
    let (versions, image) = logged(world, user, list.trim_end_matches('s'), &shown.id).await;
    assert_eq!(versions, (1..=version).collect::<Vec<_>>(), "one entry for each version");
    let image = image.unwrap();
    assert_eq!(Document::decode(image.as_slice()).unwrap(), shown);
    assert_eq!(image, shown.encode_to_vec());
    world.clock.advance(TimeDelta::seconds(1));
    version
}

/// The versions of the payments of an invoice, oldest first. The log must have each of them as it is listed.
async fn payment_versions(world: &World, user: &User, invoice: &Value) -> Vec<i64> {
    let caller = TestCaller::mesh(&user.account, &world.clock);
    let request = caller.request(ListPaymentsRequest { id: id(invoice), ..ListPaymentsRequest::default() });
    let mut service = PaymentServiceClient::new(world.channel());
    let payments = service.list_payments(request).await.unwrap().into_inner().data;
    let mut versions = Vec::new();
    for payment in payments {
        let (logged, image) = logged(world, user, "payment", &payment.id).await;
        assert_eq!(image.unwrap(), payment.encode_to_vec());
        let version = payment.meta.unwrap().version;
        assert_eq!(logged, (1..=version).collect::<Vec<_>>());
        versions.push(version);
    }
    versions
}

fn body(client: &str) -> Value {
    json!({"title": "Bread", "client_id": client, "external_id": "x", "rows": [
        {"name": "a", "quantity": "0.10", "unit_price": "0.3000", "vat_rate": 9},
        {"name": "b", "quantity": 3, "unit_price": "1234.50", "vat_rate": "8.125"},
    ]})
}

#[tokio::test]
async fn a_document_of_each_kind_counts_its_changes() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    for list in ["invoices", "quotes", "workorders"] {
        let draft = user.create(list, body(&client)).await;
        assert_eq!(draft["meta"]["version"], 1);
        assert_eq!(version(&world, &user, list, &draft).await, 1, "{list}");
        for (expected, title) in [(2, "New"), (2, "New"), (3, "Newer")] {
            let patched = user.patch(list, &draft, json!({"title": title})).await;
            assert_eq!(patched["meta"]["version"], expected);
            assert_eq!(version(&world, &user, list, &draft).await, expected, "{list}");
        }
        // One for becoming final, and one for the PDF.
        let made = user.finalize(list, &draft).await;
        assert_eq!((&made["meta"]["version"], &made["pdf"]["status"]), (&json!(5), &json!("ready")));
        assert_eq!(made, user.get(list, &draft).await);
        assert_eq!(version(&world, &user, list, &draft).await, 5, "{list}");
        assert_eq!(user.finalize(list, &draft).await["meta"]["version"], 5);
        // The PDF of another title is another one, which is made when it is opened.
        let patched = user.patch(list, &draft, json!({"title": "Newest"})).await;
        assert_eq!((&patched["meta"]["version"], &patched["pdf"]["status"]), (&json!(6), &json!("pending")));
        assert_eq!(version(&world, &user, list, &draft).await, 6, "{list}");
        for _ in 0..2 {
            let url = patched["pdf_url"].as_str().unwrap();
            user.api.get(&url[url.find("/documents/").unwrap()..]).await.expect(200);
            assert_eq!(version(&world, &user, list, &draft).await, 7, "{list}");
        }
        let items = user.api.get(&format!("/v1/{list}")).await.at("/data");
        let last = user.get(list, &draft).await["meta"]["updated_at"].clone();
        assert_eq!(items[0]["meta"], json!({"version": 7, "updated_at": last}));
    }
}

#[tokio::test]
async fn a_document_made_from_totals_or_of_little_is_logged_as_it_is_shown() {
    let world = World::new().await;
    let user = world.user().await;
    for body in [
        json!({"title": "T"}),
        json!({"title": "T", "total_incl_vat": 10, "vat_rate": "21"}),
        json!({"title": "T", "total_excl_vat": "-10.5", "payment_status": "paid"}),
        json!({"title": "T", "rows": [{"name": "a", "quantity": "-0.00", "unit_price": "0"}]}),
        json!({"title": "T", "rows": [{"name": "a", "unit_price": 1, "vat_rate": 9}, {"name": "b", "unit_price": "2.10"}]}),
    ] {
        let draft = user.create("invoices", body).await;
        assert_eq!(version(&world, &user, "invoices", &draft).await, 1);
    }
}

#[tokio::test]
async fn a_deleted_draft_has_a_last_entry() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.create("quotes", json!({"title": "T"})).await;
    user.delete(&path("quotes", &draft)).await.expect(200);
    assert_eq!(logged(&world, &user, "quote", &id(&draft)).await, (vec![1, 2], None));
}

#[tokio::test]
async fn a_pdf_that_could_not_be_made_with_its_document_is_a_change_when_it_is_made() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let occupied = world.files().join("billing");
    std::os::unix::fs::symlink(world.files().join("nowhere"), &occupied).unwrap();
    let invoice = user.invoice(&client, &[10]).await;
    assert_eq!((&invoice["pdf"]["status"], &invoice["meta"]["version"]), (&json!("pending"), &json!(1)));
    assert_eq!(version(&world, &user, "invoices", &invoice).await, 1);
    std::fs::remove_file(&occupied).unwrap();
    let url = invoice["pdf_url"].as_str().unwrap();
    user.api.get(&url[url.find("/documents/").unwrap()..]).await.expect(200);
    assert_eq!(version(&world, &user, "invoices", &invoice).await, 2);
}

#[tokio::test]
async fn a_pdf_of_a_draft_that_became_final_may_fail_and_is_made_later() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.draft(&user.client("C").await, &[10]).await;
    let occupied = world.files().join("billing");
    std::os::unix::fs::symlink(world.files().join("nowhere"), &occupied).unwrap();
    let invoice = user.finalize("invoices", &draft).await;
    assert_eq!((&invoice["pdf"]["status"], &invoice["meta"]["version"]), (&json!("failed"), &json!(3)));
    std::fs::remove_file(&occupied).unwrap();
    let url = invoice["pdf_url"].as_str().unwrap();
    user.api.get(&url[url.find("/documents/").unwrap()..]).await.expect(200);
    assert_eq!(version(&world, &user, "invoices", &invoice).await, 4);
}

#[tokio::test]
async fn payments_count_their_changes_and_those_of_their_invoice() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = user.draft(&user.client("C").await, &[100]).await;
    let are = async |of_invoice: i64, of_payments: &[i64]| {
        assert_eq!(version(&world, &user, "invoices", &invoice).await, of_invoice);
        assert_eq!(payment_versions(&world, &user, &invoice).await, of_payments);
    };
    let first = user.pay(&invoice, json!({"amount": "30"})).await["payment"].clone();
    assert_eq!(first["meta"]["version"], 1);
    are(2, &[1]).await;
    // It owes the same as before, but its history shows the payment.
    user.pay(&invoice, json!({"amount": 1, "status": "open"})).await;
    are(3, &[1, 1]).await;
    let here = format!("{}/payments/{}", path("invoices", &invoice), id(&first));
    for (of_invoice, of_payment, body) in [
        (3, 1, json!({"amount": "30.00"})),
        (4, 2, json!({"amount": 40})),
        (4, 2, json!({"amount": 40, "method": "banktransfer"})),
        (5, 3, json!({"provider": "p"})),
    ] {
        let answer = user.api.patch(&here, body).await.expect(200);
        assert_eq!(answer.at("/data/payment/meta/version"), of_payment);
        are(of_invoice, &[of_payment, 1]).await;
    }
    user.delete(&here).await.expect(204);
    are(6, &[1]).await;
    assert_eq!(logged(&world, &user, "payment", &id(&first)).await, (vec![1, 2, 3, 4], None));
}

#[tokio::test]
async fn an_invoice_changes_with_its_credits() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let some = |index: i64| json!({"credit_all": false, "row_indexes": [index]});
    let draft = user.draft(&client, &[10, 20]).await;
    let of_draft = user.credit(&draft, some(0)).await;
    assert_eq!(version(&world, &user, "invoices", &draft).await, 2);
    assert_eq!(version(&world, &user, "invoices", &of_draft).await, 1);
    user.delete(&path("invoices", &of_draft)).await.expect(200);
    assert_eq!(version(&world, &user, "invoices", &draft).await, 3);
    assert_eq!(user.get("invoices", &draft).await["meta"]["credited_by"], json!([]));

    let invoice = user.invoice(&client, &[10, 20]).await;
    user.pay(&invoice, json!({})).await;
    assert_eq!(version(&world, &user, "invoices", &invoice).await, 2);
    let first = user.credit(&invoice, some(0)).await;
    assert_eq!(first["meta"]["version"], 2, "with its PDF");
    assert_eq!(version(&world, &user, "invoices", &first).await, 2);
    assert_eq!(version(&world, &user, "invoices", &invoice).await, 3);
    let second = user.credit(&invoice, some(1)).await;
    assert_eq!(version(&world, &user, "invoices", &second).await, 2);
    assert_eq!(version(&world, &user, "invoices", &invoice).await, 4);
    user.pay(&first, json!({})).await;
    assert_eq!(version(&world, &user, "invoices", &first).await, 3);
    version(&world, &user, "invoices", &second).await;
    version(&world, &user, "invoices", &invoice).await;
}

#[tokio::test]
async fn what_happens_to_a_quote_at_once_is_one_change() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let quote = async || {
        user.create("quotes", json!({"title": "T", "client_id": client, "rows": priced(&[5])})).await
    };
    let letter = json!({"to": "a@b.example", "subject": "s", "message": "m"});
    let (sent, accepted) = (quote().await, quote().await);
    // It becomes final and is sent.
    user.act("quotes", &sent, "send", letter.clone()).await.expect(200);
    assert_eq!(version(&world, &user, "quotes", &sent).await, 2);
    user.act("quotes", &sent, "send", letter).await.expect(200);
    assert_eq!(version(&world, &user, "quotes", &sent).await, 3);
    // It becomes final and is accepted, and then there is its PDF.
    for _ in 0..2 {
        let answer = user.act("quotes", &accepted, "accept", json!({})).await.expect(200);
        assert_eq!(answer.at("/data/meta/version"), 3);
        assert_eq!(version(&world, &user, "quotes", &accepted).await, 3);
    }
    let caller = TestCaller::mesh(&user.account, &world.clock);
    let mut service = QuoteServiceClient::new(world.channel());
    for _ in 0..2 {
        let request = SetQuoteProjectRequest { id: id(&accepted), project_number: "P-1".to_owned() };
        service.set_quote_project(caller.request(request)).await.unwrap();
        assert_eq!(version(&world, &user, "quotes", &accepted).await, 4);
    }
}

#[tokio::test]
async fn every_new_state_of_its_mail_is_a_change_of_the_document() {
    let smtp = Arc::new(SmtpServer::start().await);
    smtp.refuse_next(&["451 later", "451 later"]);
    let world = World::mailing(&smtp.url()).await;
    let user = world.user().await;
    let client = user.client("C").await;
    let quote = user.create("quotes", json!({"title": "Q", "client_id": client, "rows": priced(&[5])})).await;
    let letter = json!({"to": "a@b.example", "subject": "s", "message": "m", "include_pdf": false});
    user.act("quotes", &quote, "send", letter).await.expect(200);
    let mail = async || user.get("quotes", &quote).await["meta"]["history"][0]["data"]["mail"].clone();
    eventually("its refusal is shown", async || mail().await["last_error"].is_string()).await;
    assert_eq!(version(&world, &user, "quotes", &quote).await, 3);
    world.clock.advance(TimeDelta::minutes(10));
    eventually("it was refused again", async || smtp.refused() == 2).await;
    eventually("it is sent", async || {
        world.clock.advance(TimeDelta::minutes(10));
        mail().await["status"] == "sent"
    })
    .await;
    // It was sent without its PDF, which is then made.
    eventually("it has its PDF", async || user.get("quotes", &quote).await["pdf"]["status"] == "ready").await;
    assert_eq!(version(&world, &user, "quotes", &quote).await, 5, "the same refusal again is no change");
}

#[tokio::test]
async fn a_draft_changes_once_with_the_names_of_its_client() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let (draft, other) = (user.draft(&client, &[5]).await, user.draft(&user.client("D").await, &[5]).await);
    let quote = user.create("quotes", json!({"title": "Q", "client_id": client})).await;
    let made = user.invoice(&client, &[5]).await;
    let renamed = |name: &str| Event {
        account_id: user.account.id.to_string(),
        r#type: "customer.updated".to_owned(),
        data: json!({"id": client, "company_name": name}).to_string(),
        ..Event::default()
    };
    let mut listener = EventListenerServiceClient::new(world.channel());
    let caller = TestCaller::mesh(&user.account, &world.clock);
    // The second time changes nothing.
    for _ in 0..2 {
        let request = DeliverEventsRequest { events: vec![renamed("New"), renamed("Newer")] };
        listener.deliver_events(caller.request(request)).await.unwrap();
        for (list, document, expected) in
            [("invoices", &draft, 2), ("quotes", &quote, 2), ("invoices", &other, 1), ("invoices", &made, 1)]
        {
            assert_eq!(version(&world, &user, list, document).await, expected, "{list}");
        }
    }
    assert_eq!(user.get("invoices", &draft).await["client_company_name"], "Newer");
    assert_eq!(user.get("invoices", &made).await["client_company_name"], "C");
}
