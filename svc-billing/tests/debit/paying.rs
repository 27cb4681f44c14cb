//! Paying an invoice on its page.

use chrono::TimeDelta;
use http::Method;
use serde_json::json;

use crate::world::{World, checkout, says, text};

const BUTTON: &str = "<button class=\"button\" type=\"submit\">Nu €\u{a0}1.210,00 betalen</button>";

#[tokio::test]
async fn a_payer_pays_what_is_open_and_sees_it_paid() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    says(&world.page(&invoice.page).await, &[BUTTON, "Wij ontvangen uw betaling graag"]);
    let leads = world.pay(&invoice).await;
    let payment = world.payment(&invoice).await;
    assert_eq!(leads, checkout(&payment));
    assert_eq!((&payment["status"], &payment["type"]), (&json!("open"), &json!("online")));
    assert_eq!((&payment["amount"], &payment["provider"]), (&json!(1210.0), &json!("sandbox")));
    let page = world.page(&leads).await;
    says(&page, &["Betalen", "€\u{a0}1.210,00", "Weigeren", "Laten verlopen"]);
    assert_eq!(world.act(&leads, "authorise").await, invoice.page);
    let page = world.page(&invoice.page).await;
    says(&page, &["Betaald op 15 november 2026. Hartelijk dank!"]);
    assert!(!page.contains("<form"));
    let shown = world.get(&invoice).await;
    assert_eq!((&shown["payment_status"], &shown["meta"]["paid_amount"]), (&json!("paid"), &json!(1210.0)));
    let steps = ["payment_added created", "payment_changed open", "payment_changed paid"];
    assert_eq!(world.history(&invoice).await, steps);
    assert_eq!(world.pay(&invoice).await, invoice.page, "there is nothing left to pay");
}

#[tokio::test]
async fn a_payer_who_did_not_succeed_can_try_again() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let first = world.pay(&invoice).await;
    assert_eq!(world.act(&first, "refuse").await, invoice.page);
    says(&world.page(&invoice.page).await, &[BUTTON, "Uw betaling is niet gelukt. Probeer het opnieuw."]);
    let second = world.pay(&invoice).await;
    assert_ne!(first, second);
    world.act(&second, "authorise").await;
    assert_eq!(world.payments(&invoice).await, ["failed", "paid"]);
}

#[tokio::test]
async fn pressing_again_leads_to_the_same_checkout() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let presses = (0..6).map(|_| world.pay(&invoice));
    let mut leads = futures_all(presses).await;
    leads.push(world.pay(&invoice).await);
    leads.dedup();
    assert_eq!(leads.len(), 1, "{leads:?}");
    assert_eq!(world.count("select count(*) from billing.sandbox_payment").await, 1);
    assert_eq!(world.payments(&invoice).await, ["open"]);
}

async fn futures_all<F: Future<Output = String>>(all: impl Iterator<Item = F>) -> Vec<String> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done = Vec::new();
    // Each is polled until all are done: they run at the same time.
    std::future::poll_fn(|context| {
        all.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => {
                done.push(output);
                false
            }
            std::task::Poll::Pending => true,
        });
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

#[tokio::test]
async fn a_checkout_for_another_amount_is_canceled_first() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let first = world.pay(&invoice).await;
    let part = json!({"amount": "210.00"});
    world.api.post(&format!("{}/payments", invoice.api), part).await.expect(201);
    let second = world.pay(&invoice).await;
    assert_ne!(first, second);
    says(&world.page(&first).await, &["Geannuleerd", "€\u{a0}1.210,00"]);
    says(&world.page(&second).await, &["€\u{a0}1.000,00"]);
    world.act(&first, "authorise").await;
    world.act(&second, "authorise").await;
    assert_eq!(world.payments(&invoice).await, ["canceled", "paid", "paid"]);
    assert_eq!(world.get(&invoice).await["meta"]["overpaid_amount"], json!(0.0));
}

#[tokio::test]
async fn an_invoice_paid_otherwise_has_its_checkout_canceled() {
    let world = World::start().await;
    for how in ["payment", "status"] {
        let invoice = world.invoice(json!({})).await;
        let leads = world.pay(&invoice).await;
        if how == "payment" {
            world.api.post(&format!("{}/payments", invoice.api), json!({})).await.expect(201);
        } else {
            world.api.patch(&invoice.api, json!({"payment_status": "paid"})).await.expect(200);
        }
        let page = world.page(&invoice.page).await;
        says(&page, &["Betaald"]);
        assert!(!page.contains("<form"));
        let gone = async || world.page(&leads).await.contains("Geannuleerd");
        chassis_testing::eventually("the checkout is canceled", gone).await;
        world.until(&invoice, if how == "payment" { &["canceled", "paid"] } else { &["canceled"] }).await;
        says(&world.page(&invoice.page).await, &["Betaald"]);
    }
}

#[tokio::test]
async fn a_payment_changed_by_hand_stays_until_money_arrives() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let leads = world.pay(&invoice).await;
    let payment = world.payment(&invoice).await;
    let path = format!("{}/payments/{}", invoice.api, payment["id"].as_str().unwrap());
    world.api.patch(&path, json!({"status": "paid"})).await.expect(200);
    let helper = world.helper().await;
    let gone = async || world.page(&leads).await.contains("Geannuleerd");
    chassis_testing::eventually("the checkout is canceled", gone).await;
    assert_eq!(world.payments(&invoice).await, ["paid"], "by whoever said so");
    drop(helper);

    let removed = world.invoice(json!({})).await;
    let leads = world.pay(&removed).await;
    let payment = world.payment(&removed).await["id"].as_str().unwrap().to_owned();
    let path = format!("{}/payments/{payment}", removed.api);
    world.api.send(Method::DELETE, &path, &[], "").await.expect(204);
    world.act(&leads, "authorise").await;
    assert_eq!(world.payments(&removed).await, ["paid"], "money that comes is always told");
}

#[tokio::test]
async fn a_checkout_that_nobody_uses_expires() {
    let world = World::start().await;
    let invoice = world.invoice(json!({})).await;
    world.pay(&invoice).await;
    world.clock.advance(TimeDelta::minutes(61));
    world.until(&invoice, &["expired"]).await;
    says(&world.page(&invoice.page).await, &[BUTTON, "Probeer het opnieuw."]);
}

#[tokio::test]
async fn only_an_open_invoice_can_be_paid() {
    let world = World::idle().await;
    let draft = world.invoice(json!({"generation_mode": "draft"})).await;
    let credited = world.invoice(json!({})).await;
    let credit = world.api.post(&format!("{}/credit", credited.api), json!({})).await.expect(201);
    let credit = crate::world::path(credit.at("/data/web_url").as_str().unwrap());
    for page in [&draft.page, &credited.page, &credit] {
        assert!(!world.page(page).await.contains("/pay\""), "{page}");
        let answer = world.send(&format!("{page}/pay"), "").await.expect(303);
        assert_eq!(answer.header("location"), Some(page.as_str()));
    }
    let quote =
        json!({"title": "Q", "client_id": world.client, "generation_mode": "final", "rows": [{"name": "R"}]});
    let quote = world.api.post("/v1/quotes", quote).await.expect(201).at("/data/web_url");
    let page = crate::world::path(quote.as_str().unwrap());
    world.send(&format!("{page}/pay"), "").await.expect(404);
    assert_eq!(world.count("select count(*) from billing.online_payment").await, 0);
}

#[tokio::test]
async fn no_other_site_can_press_a_button() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let leads = world.pay(&invoice).await;
    let foreign = ("sec-fetch-site", "cross-site");
    let form = ("content-type", "application/x-www-form-urlencoded");
    for path in [format!("{}/pay", invoice.page), leads.clone()] {
        world.visitor.send(Method::POST, &path, &[foreign, form], "act=authorise").await.expect(403);
    }
    assert_eq!(world.payments(&invoice).await, ["open"]);
    let odd = world.send(&leads, "act=%00%3Cscript%3E").await;
    assert_eq!(odd.status, 422);
    assert!(!text(&odd).contains("<script>"));
    world.send(&leads, "").await.expect(422);
    let late = world.send(&leads, "act=charge_back").await.expect(303);
    assert_eq!(late.header("location"), Some(leads.as_str()), "what the page does not offer is not done");
}
