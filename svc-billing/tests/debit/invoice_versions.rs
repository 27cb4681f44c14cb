//! Invoices and payments count what changes of them because of their provider, and the log has them as they are shown.

use chassis_testing::{TestCaller, eventually};
use http::Method;
use prost::Message;
use proto::billing::invoice_service_client::InvoiceServiceClient;
use proto::billing::payment_service_client::PaymentServiceClient;
use proto::billing::{Document, GetDocumentRequest, ListPaymentsRequest, Payment};
use serde_json::json;

use crate::world::{Invoice, World, path};

/// The invoice and its payments. The log must have every version of each of them, and the present one as it is shown.
async fn shown(world: &World, invoice: &str) -> (Document, Vec<Payment>) {
    let caller = TestCaller::mesh(&world.account, &world.clock);
    let request = caller.request(GetDocumentRequest { id: invoice.to_owned() });
    let mut invoices = InvoiceServiceClient::new(world.channel());
    let document = invoices.get_invoice(request).await.unwrap().into_inner().data.unwrap();
    let request = ListPaymentsRequest { id: invoice.to_owned(), ..ListPaymentsRequest::default() };
    let mut service = PaymentServiceClient::new(world.channel());
    let payments = service.list_payments(caller.request(request)).await.unwrap().into_inner().data;
    is_logged(world, "invoice", &document.id, document.meta.as_ref().unwrap().version, &document).await;
    for payment in &payments {
        is_logged(world, "payment", &payment.id, payment.meta.as_ref().unwrap().version, payment).await;
    }
    (document, payments)
}

async fn is_logged(world: &World, kind: &str, id: &str, version: i64, shown: &impl Message) {
    let entries: Vec<(i64, Option<Vec<u8>>)> = sqlx::query_as(
        "select version, image from billing.log where account_id = $1 and kind = $2 and record_id = $3
            and change is not null and version <= $4 order by version",
    )
    .bind(world.account.id)
    .bind(kind)
    .bind(id)
    // A PDF that is made later is a change, and may have come in between.
    .bind(version)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    let versions: Vec<i64> = entries.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, (1..=version).collect::<Vec<_>>(), "{kind}");
    assert_eq!(entries.last().unwrap().1, Some(shown.encode_to_vec()), "{kind}");
}

fn payment_path(invoice: &Invoice, payment: &Payment) -> String {
    format!("{}/payments/{}", invoice.api, payment.id)
}

#[tokio::test]
async fn a_collection_changes_its_invoice_step_by_step() {
    let world = World::start().await;
    world.authorise().await;
    let invoice = world.invoice(json!({})).await;
    let before = shown(&world, &invoice.id).await.0.meta.unwrap().version;
    world.collect(&invoice).await.unwrap();
    world.until(&invoice, &["paid"]).await;
    let (document, payments) = shown(&world, &invoice.id).await;
    let meta = document.meta.unwrap();
    let steps = i64::try_from(meta.history.len()).unwrap();
    assert_eq!(meta.version - before, steps, "each step is in the history");
    assert_eq!(payments[0].meta.as_ref().unwrap().version, steps);
}

#[tokio::test]
async fn an_entry_that_was_removed_and_comes_back_goes_on_counting() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let checkout = world.pay(&invoice).await;
    let (_, payments) = shown(&world, &invoice.id).await;
    let removed = payments[0].meta.as_ref().unwrap().version;
    world.api.send(Method::DELETE, &payment_path(&invoice, &payments[0]), &[], "").await.expect(204);
    assert_eq!(shown(&world, &invoice.id).await.1, []);
    world.act(&checkout, "authorise").await;
    let (_, payments) = shown(&world, &invoice.id).await;
    assert_eq!(payments[0].meta.as_ref().unwrap().version, removed + 2);
}

#[tokio::test]
async fn an_invoice_that_is_collected_when_it_is_made_has_version_1_then() {
    let world = World::start().await;
    world.authorise().await;
    let lines = json!([{"title": "Brood", "quantity": 1, "unit_price": 100, "vat_code": "VAT21"}]);
    let body = json!({"title": "Brood per maand", "client_id": world.client, "lines": lines});
    let made = world.api.post("/v1/subscriptions", body).await.expect(201);
    let subscription = made.at("/data/id").as_str().unwrap().to_owned();
    world.api.post(&format!("/v1/subscriptions/{subscription}/activate"), json!({})).await.expect(200);
    let url = format!("/v1/subscriptions/{subscription}/invoices");
    let billed = async || world.api.get(&url).await.expect(200).at("/meta/total") == 1;
    eventually("the first invoice is there", billed).await;
    let id = world.api.get(&url).await.at("/data/0/id").as_str().unwrap().to_owned();
    let api = format!("/v1/invoices/{id}");
    let page = path(world.api.get(&api).await.at("/data/web_url").as_str().unwrap());
    world.until(&Invoice { id: id.clone(), api, page }, &["paid"]).await;
    shown(&world, &id).await;
    let image: Vec<u8> = sqlx::query_scalar(
        "select image from billing.log where record_id = $1 and change = 'created' and kind = 'invoice'",
    )
    .bind(&id)
    .fetch_one(&mut world.database.connect().await)
    .await
    .unwrap();
    let meta = Document::decode(image.as_slice()).unwrap().meta.unwrap();
    assert_eq!((meta.version, meta.history[0].event.as_str()), (1, "payment_added"));
}
