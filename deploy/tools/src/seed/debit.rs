//! A client with an active mandate: given in the sandbox, and one invoice collected with it.

use serde_json::json;

use crate::api::{Api, text};
use crate::seller::BillingService;

/// The invoice that is collected; its client gives the mandate.
pub(crate) const INVOICE: &str = "demo-collected-1";

/// Does what an earlier run did not. Only with the sandbox: a real provider wants a real client.
pub(crate) async fn add(api: &mut Api, billing: &mut BillingService<'_>) -> Result<(), String> {
    let found = api.get(&format!("/v1/invoices?search={INVOICE}&per_page=1")).await?;
    let invoice = &found["data"][0];
    // Sample data of before has no such invoice.
    if invoice.is_null() {
        return Ok(());
    }
    let path = format!("/v1/clients/{}/direct-debit", text(invoice, "client_id")?);
    let mandate = api.get(&format!("{path}/mandate")).await?;
    if mandate["data"]["provider"] != "sandbox" {
        return Ok(());
    }
    if mandate["data"]["mandate_authorized"] != true {
        let asked = api.post(&format!("{path}/verification"), "seed-mandate", &json!({})).await?;
        let page = format!("/sandbox/checkouts/{}", text(&asked["data"], "external_id")?);
        api.press(&page, &json!({"act": "authorise"})).await?;
    }
    let id = text(invoice, "id")?;
    let payments = api.get(&format!("/v1/invoices/{id}/payments")).await?;
    if payments["data"].as_array().is_some_and(Vec::is_empty) {
        billing.collect(id).await?;
        println!("1 mandate, 1 collection");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_invoice_is_among_the_sample_data() {
        assert!(crate::sales::data().unwrap().has(super::INVOICE));
    }
}
