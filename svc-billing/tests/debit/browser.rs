//! What a person with a browser sees and does.

use serde_json::{Value, json};

use crate::chromium::Tab;
use crate::world::{World, checkout};

#[tokio::test]
async fn a_person_pays_an_invoice_by_its_button() {
    let Some(mut tab) = Tab::open("a_person_pays_an_invoice_by_its_button").await else { return };
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let host = format!("http://{}", world.gateway.address);
    tab.go(&format!("{host}{}", invoice.page)).await;
    tab.click("form button").await;
    let shown = tab.text().await;
    assert!(shown.contains("oefenomgeving") && shown.contains("Weigeren"), "{shown}");
    tab.click("button[value=refuse]").await;
    let shown = tab.text().await;
    assert!(shown.contains("Uw betaling is niet gelukt. Probeer het opnieuw."), "{shown}");
    tab.click("form button").await;
    tab.click("button[value=authorise]").await;
    let shown = tab.text().await;
    assert!(shown.contains("Betaald op 15 november 2026. Hartelijk dank!"), "{shown}");
    assert_eq!(tab.evaluate("document.querySelector('form')").await, Value::Null);
    assert_eq!(tab.evaluate("location.pathname").await, invoice.page.as_str());
    assert_eq!(world.get(&invoice).await["payment_status"], "paid");
    let issues = tab.events("Audits.issueAdded");
    assert!(issues.is_empty(), "nothing was blocked: {issues:?}");
    for request in tab.events("Network.requestWillBeSent") {
        let url = request["request"]["url"].as_str().unwrap();
        assert!(url.starts_with(&host) || url.starts_with("data:"), "{url}");
    }
}

#[tokio::test]
async fn the_pages_of_payments_fit_every_screen_light_and_dark() {
    let Some(mut tab) = Tab::open("the_pages_of_payments_fit_every_screen_light_and_dark").await else {
        return;
    };
    let world = World::idle().await;
    let asked = world.verify().await;
    let (sandbox, invoice) = (checkout(&asked), world.invoice(json!({})).await);
    let returned = world.act(&sandbox, "authorise").await;
    world.collect(&invoice).await.unwrap();
    let other = world.invoice(json!({})).await;
    let open = world.pay(&other).await;
    let pages =
        [("mandate", sandbox), ("returned", returned), ("checkout", open), ("processing", invoice.page)];
    for (name, page) in pages {
        for width in [320, 390, 1280] {
            for scheme in ["light", "dark"] {
                let size =
                    json!({"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600});
                tab.call("Emulation.setDeviceMetricsOverride", size).await;
                let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
                tab.call("Emulation.setEmulatedMedia", media).await;
                tab.go(&format!("http://{}{page}", world.gateway.address)).await;
                let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
                assert_eq!(tab.evaluate(beyond).await, 0, "{name} sticks out at {width} in {scheme}");
                save(&mut tab, &format!("{name}-{width}-{scheme}.png")).await;
            }
        }
    }
}

/// Saves a screenshot into the folder of `SCREENSHOTS`, for review by a person.
async fn save(tab: &mut Tab, name: &str) {
    use base64::Engine;
    let Ok(folder) = std::env::var("SCREENSHOTS") else { return };
    let shot = tab.call("Page.captureScreenshot", json!({"format": "png"})).await;
    let bytes = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(std::path::Path::new(&folder).join(name), bytes).unwrap();
}
