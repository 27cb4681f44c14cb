//! What a person with a browser sees and does.

use serde_json::{Value, json};

use crate::chromium::Tab;
use crate::world::World;

#[tokio::test]
async fn a_person_opens_a_quote_and_accepts_it_by_its_button() {
    let Some(mut tab) = Tab::open("a_person_opens_a_quote_and_accepts_it_by_its_button").await else {
        return;
    };
    let world = World::start().await;
    let quote = world.final_quote().await;
    let address = world.gateway.address;
    tab.go(&format!("http://{address}{}", quote.page)).await;
    let shown = tab.text().await;
    assert!(shown.contains("Wacht op uw akkoord") && shown.contains("Zuurdesem"), "{shown}");
    let radius = tab.evaluate("getComputedStyle(document.querySelector('.button')).borderRadius").await;
    assert_ne!(radius, "0px", "the style is let in");

    tab.click("form button").await;
    let shown = tab.text().await;
    assert!(shown.contains("U hebt deze offerte geaccepteerd op 15 november 2026."), "{shown}");
    assert_eq!(tab.evaluate("document.querySelector('form')").await, Value::Null);
    assert_eq!(
        tab.evaluate("location.pathname").await,
        quote.page.as_str(),
        "a reload accepts nothing again"
    );
    assert_eq!(world.get(&quote).await["payment_status"], "accepted");

    let issues = tab.events("Audits.issueAdded");
    assert!(issues.is_empty(), "nothing was blocked: {issues:?}");
    let logged = tab.events("Log.entryAdded");
    assert!(logged.is_empty(), "{logged:?}");
    let own = format!("http://{address}/documents/");
    for request in tab.events("Network.requestWillBeSent") {
        let url = request["request"]["url"].as_str().unwrap();
        assert!(url.starts_with(&own) || url.starts_with("data:"), "{url}");
    }
}

#[tokio::test]
async fn a_page_fits_every_screen_light_and_dark() {
    let Some(mut tab) = Tab::open("a_page_fits_every_screen_light_and_dark").await else { return };
    let world = World::start().await;
    let long = "W".repeat(250);
    let row = json!({"name": long, "title": "Z".repeat(250), "quantity": "9999999.1234", "unit": "kilometers",
                     "unit_price": "9999.9999"});
    let invoice = world.create("invoices", json!({"title": long, "rows": [row]})).await;
    for width in [320, 390, 768, 1280] {
        for scheme in ["light", "dark"] {
            let size = json!({"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600});
            tab.call("Emulation.setDeviceMetricsOverride", size).await;
            let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            tab.call("Emulation.setEmulatedMedia", media).await;
            tab.go(&format!("http://{}{}", world.gateway.address, invoice.page)).await;
            let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(tab.evaluate(beyond).await, 0, "sticks out at {width} in {scheme}");
        }
    }
}

#[tokio::test]
async fn a_long_unit_leaves_room_for_the_description_and_the_amount() {
    let Some(mut tab) = Tab::open("a_long_unit_leaves_room_for_the_description_and_the_amount").await else {
        return;
    };
    let world = World::start().await;
    let row = json!({"name": "Zuurdesembrood van de dag", "quantity": "12.5", "unit_price": "1234.56",
                     "unit": "kratten van vierentwintig stuks, elk in een zak van papier, per week geleverd"});
    let invoice = world.create("invoices", json!({"rows": [row]})).await;
    for width in [400, 1024, 1200] {
        let size = json!({"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600});
        tab.call("Emulation.setDeviceMetricsOverride", size).await;
        tab.go(&format!("http://{}{}", world.gateway.address, invoice.page)).await;
        let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(tab.evaluate(beyond).await, 0, "sticks out at {width}");
        let described =
            tab.evaluate("document.querySelector('.what b').getBoundingClientRect().height").await;
        assert!(described.as_f64().unwrap() < 80.0, "the description takes {described} px at {width}");
        let inside = "(() => { const sum = document.querySelector('td.sum').getBoundingClientRect(); \
                      const sheet = document.querySelector('.sheet').getBoundingClientRect(); \
                      return sum.width > 50 && sum.right <= sheet.right && sum.left >= sheet.left })()";
        assert_eq!(tab.evaluate(inside).await, true, "the amount is in sight at {width}");
    }
}
