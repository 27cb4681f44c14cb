//! A flow with runs, one of which waits for a decision, and a webhook endpoint that got the events that started them. The
//! endpoint is this program, so it is switched off at the end.

use std::time::Duration;

use deploy_tools::mesh::{MeshCaller, service_error};
use deploy_tools::receiver::Receiver;
use proto::automation::ApplyFlowRequest;
use proto::automation::flow_service_client::FlowServiceClient;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::api::{Api, text};

const SERVICE: &str = "automation";
const FLOW: &str = include_str!("lead.yaml");
const EVENT: &str = "lead.received";
/// Who asks for an offer, for how much, and what for. The last one is large enough to be asked about.
const LEADS: [(&str, u32, &str); 4] = [
    ("Bakkerij Korenbloem", 1_200, "A website with a shop for cakes"),
    ("Rijschool Vooruit", 450, "An online calendar for lessons"),
    ("Hoveniersbedrijf De Linde", 2_800, "Photos of gardens, before and after"),
    ("Camping Zonneduin", 14_500, "Booking of pitches in four languages"),
];
const ENDPOINTS: &str = "/v1/webhook-endpoints";
/// Far longer than it takes; a machine may be busy.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Adds what is missing.
pub(crate) async fn add(api: &mut Api, mesh: &MeshCaller, url: &str) -> Result<(), String> {
    let mut flows = FlowServiceClient::new(mesh.connect(SERVICE, url).await?);
    let request = mesh.request(ApplyFlowRequest { definition: FLOW.to_owned(), active: Some(true) })?;
    let flow = flows
        .apply_flow(request)
        .await
        .map_err(service_error(SERVICE))?
        .into_inner()
        .data
        .unwrap_or_default();
    let runs = format!("/v1/automation/runs?per_page=1&flow_id={}", flow.id);
    if api.total(&runs).await? > 0 {
        return Ok(());
    }
    let endpoint = Endpoint::add(api).await?;
    for (number, (name, budget, request)) in LEADS.iter().enumerate() {
        let data = json!({"name": name, "budget": budget, "wish": request});
        let body = json!({"event": EVENT, "data": data, "entity_type": "lead"});
        api.post("/v1/automation/trigger", &format!("seed-lead-{number}"), &body).await?;
    }
    wait_for_entries(api, &format!("{runs}&status=success"), LEADS.len() as u64 - 1).await?;
    wait_for_entries(api, &format!("{runs}&status=pending_approval"), 1).await?;
    if let Some(endpoint) = endpoint {
        endpoint.end(api).await?;
    }
    println!("1 flow with {} runs, 1 webhook endpoint", LEADS.len());
    Ok(())
}

/// Waits until a list has as many entries.
async fn wait_for_entries(api: &mut Api, target: &str, count: u64) -> Result<(), String> {
    let there = async {
        while api.total(target).await? < count {
            sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    };
    timeout(LIST_TIMEOUT, there)
        .await
        .unwrap_or_else(|_| Err(format!("{target} does not have {count} entries")))
}

/// The endpoint, as long as it takes deliveries.
struct Endpoint {
    path: String,
    _receiver: Receiver,
}

impl Endpoint {
    /// `None` when the account has one already.
    async fn add(api: &mut Api) -> Result<Option<Self>, String> {
        if api.total(&format!("{ENDPOINTS}?per_page=1")).await? > 0 {
            return Ok(None);
        }
        // Nobody reads what it receives.
        let (sender, _) = mpsc::unbounded_channel();
        let receiver =
            Receiver::start(sender).await.map_err(|fault| format!("no port for the receiver: {fault}"))?;
        let body = json!({"url": receiver.url(), "description": "The website", "types": [format!("custom.{EVENT}")]});
        // The address is another one each time, and so is the key.
        let made = api.post(ENDPOINTS, &format!("seed-endpoint-{}", receiver.url()), &body).await?;
        let path = format!("{ENDPOINTS}/{}", text(&made["data"], "id")?);
        Ok(Some(Self { path, _receiver: receiver }))
    }

    /// Sends it a ping, and switches it off when everything is delivered.
    async fn end(self, api: &mut Api) -> Result<(), String> {
        let Self { path, .. } = &self;
        api.post(&format!("{path}/test"), "seed-ping", &json!({})).await?;
        let delivered = async {
            loop {
                let list = api.get(&format!("{path}/deliveries")).await?;
                let waiting = |entry: &Value| entry["status"] == "pending";
                if !list["data"].as_array().is_some_and(|entries| entries.iter().any(waiting)) {
                    return Ok::<(), String>(());
                }
                sleep(Duration::from_millis(200)).await;
            }
        };
        // What is not delivered in time is never delivered, since the receiver ends here.
        timeout(LIST_TIMEOUT, delivered).await.unwrap_or(Ok(()))?;
        api.patch(path, "seed-endpoint-off", &json!({"active": false})).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lead_is_large_enough_to_be_asked_about() {
        assert!(FLOW.contains("data.budget > 5000") && FLOW.contains(EVENT));
        assert_eq!(LEADS.iter().filter(|(_, budget, _)| *budget > 5_000).count(), 1);
    }
}
