//! Collecting invoices with a mandate.

use chrono::TimeDelta;
use serde_json::json;

use crate::world::{World, checkout, says};

#[tokio::test]
async fn a_collection_pays_the_invoice_and_makes_the_mandate_active() {
    let world = World::start().await;
    world.authorise().await;
    let invoice = world.invoice(json!({})).await;
    let begun = world.collect(&invoice).await.unwrap().payment.unwrap();
    assert_eq!((begun.amount.as_str(), begun.provider.as_str()), ("1210.00", "sandbox"));
    world.until(&invoice, &["paid"]).await;
    let shown = world.get(&invoice).await;
    assert_eq!((&shown["payment_status"], &shown["meta"]["open_amount"]), (&json!("paid"), &json!(0.0)));
    let mandate = world.mandate().await;
    assert_eq!((&mandate["mandate_status"], &mandate["direct_debit_enabled"]), (&json!("active"), &json!(1)));
    let payment = world.payment(&invoice).await;
    assert_eq!((&payment["type"], &payment["method"]), (&json!("online"), &json!("banktransfer")));
    assert_eq!(payment["meta"]["feedback_data"]["purpose"], "collection");
    let history = world.history(&invoice).await;
    assert_eq!(history.first().unwrap(), "payment_added created");
    assert_eq!(history.last().unwrap(), "payment_changed paid");
}

#[tokio::test]
async fn a_collection_that_fails_leaves_the_invoice_open_and_can_be_repeated() {
    let world = World::start().await;
    let page = world.authorise().await;
    assert_eq!(world.act(&page, "refuse_next").await, page, "a switch, not a payment");
    says(&world.page(&page).await, &["De volgende incasso wordt geweigerd."]);
    let invoice = world.invoice(json!({})).await;
    world.collect(&invoice).await.unwrap();
    world.until(&invoice, &["failed"]).await;
    assert_eq!(world.get(&invoice).await["payment_status"], "open");
    assert_eq!(world.mandate().await["mandate_status"], "authorized", "no collection succeeded");
    let failure = world.payment(&invoice).await["meta"]["feedback_data"]["failure"].clone();
    assert!(failure.as_str().unwrap().contains("insufficient funds"), "{failure}");
    world.collect(&invoice).await.unwrap();
    world.until(&invoice, &["failed", "paid"]).await;
}

#[tokio::test]
async fn a_charge_back_opens_the_invoice_again() {
    let world = World::start().await;
    world.authorise().await;
    let invoice = world.invoice(json!({})).await;
    world.collect(&invoice).await.unwrap();
    world.until(&invoice, &["paid"]).await;
    let page = checkout(&world.payment(&invoice).await);
    says(&world.page(&page).await, &["Incasso", "Storneren", "Terugbetalen"]);
    world.act(&page, "charge_back").await;
    assert_eq!(world.payments(&invoice).await, ["chargeback"]);
    let shown = world.get(&invoice).await;
    assert_eq!((&shown["payment_status"], &shown["paid_at"]), (&json!("open"), &json!(null)));
    assert_eq!(shown["meta"]["open_amount"], json!(1210.0));
    assert_eq!(world.history(&invoice).await.last().unwrap(), "payment_changed chargeback");
    world.collect(&invoice).await.unwrap();
    world.until(&invoice, &["chargeback", "paid"]).await;
}

#[tokio::test]
async fn nothing_is_collected_without_a_mandate_or_twice() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let refused = world.collect(&invoice).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    world.authorise().await;
    world.collect(&invoice).await.unwrap();
    assert_eq!(world.payments(&invoice).await, ["created"], "nobody has asked the provider yet");
    assert_eq!(world.collect(&invoice).await.unwrap_err().code(), tonic::Code::FailedPrecondition);
    let draft = world.invoice(json!({"generation_mode": "draft"})).await;
    assert_eq!(world.collect(&draft).await.unwrap_err().code(), tonic::Code::FailedPrecondition);
    let _helper = world.helper().await;
    world.until(&invoice, &["paid"]).await;
    assert!(world.collect(&invoice).await.is_err());
    assert_eq!(
        world.count("select count(*) from billing.sandbox_payment where sequence = 'recurring'").await,
        1
    );
}

#[tokio::test]
async fn an_invoice_being_collected_is_not_to_be_paid_by_hand() {
    let world = World::idle().await;
    world.authorise().await;
    let invoice = world.invoice(json!({})).await;
    world.collect(&invoice).await.unwrap();
    let page = world.page(&invoice.page).await;
    says(&page, &["In verwerking", "automatisch van uw rekening af"]);
    assert!(!page.contains("<form") && !page.contains("Betalen per overschrijving"));
    assert_eq!(world.pay(&invoice).await, invoice.page);
}

#[tokio::test]
async fn an_open_payment_of_a_former_provider_does_not_block_new_ones() {
    let world = World::start().await;
    world.authorise().await;
    let invoice = world.invoice(json!({})).await;
    world.pay(&invoice).await;
    let mut connection = world.database.connect().await;
    for sql in [
        "update billing.wish set provider = 'former'",
        "update billing.online_payment set provider = 'former', status = 'pending' where purpose = 'checkout'",
    ] {
        sqlx::query(sql).execute(&mut connection).await.unwrap();
    }
    let page = world.page(&invoice.page).await;
    assert!(page.contains("<form"), "nobody can say any more whether it is under way");
    let sql = "update billing.online_payment set status = 'open' where purpose = 'checkout'";
    sqlx::query(sql).execute(&mut connection).await.unwrap();
    world.collect(&invoice).await.unwrap();
    world.until(&invoice, &["canceled", "paid"]).await;
    let waits = "select count(*) from billing.wish where provider = 'former' and kind = 'ask'";
    assert_eq!(world.count(waits).await, 1, "should it come back, it is asked");
}

#[tokio::test]
async fn the_page_of_an_invoice_that_is_being_collected_asks_for_no_transfer() {
    let world = World::idle().await;
    world.authorise().await;
    let invoice = world.invoice(json!({})).await;
    let pdf = async || world.visitor.get(&format!("{}/pdf", invoice.page)).await.expect(200).body;
    let issued = pdf().await;
    world.clock.advance(TimeDelta::seconds(1));
    world.collect(&invoice).await.unwrap();
    let page = world.page(&invoice.page).await;
    let said = "Wij schrijven €\u{a0}1.210,00 op of kort na 15 november 2026 automatisch van uw rekening af, met machtiging ";
    says(&page, &[said]);
    assert!(!page.contains("Betalen per overschrijving") && !page.contains("<form"), "{page}");
    assert!(pdf().await != issued, "and so does the PDF");
    let ubl = world.api.get(&format!("{}/ubl", invoice.api)).await.expect(200);
    let xml = String::from_utf8(ubl.body.to_vec()).unwrap();
    assert!(!xml.contains("PaymentMandate"), "the e-invoice stays as it was issued: {xml}");
}
