//! A flow with runs, one of which waits for a decision, and a webhook endpoint that was told of what started them. The
//! endpoint is this program, so it is switched off at the end.

use std::time::Duration;

use deploy_tools::mesh::{Mesh, said};
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
const PATIENCE: Duration = Duration::from_secs(30);

/// Adds what is missing.
pub async fn add(api: &mut Api, mesh: &Mesh, url: &str) -> Result<(), String> {
    let mut flows = FlowServiceClient::new(mesh.connect(SERVICE, url).await?);
    let request = mesh.request(ApplyFlowRequest { definition: FLOW.to_owned(), active: Some(true) })?;
    let flow = flows.apply_flow(request).await.map_err(said(SERVICE))?.into_inner().data.unwrap_or_default();
    let runs = format!("/v1/automation/runs?per_page=1&flow_id={}", flow.id);
    if api.total(&runs).await? > 0 {
        return Ok(());
    }
    let endpoint = Endpoint::add(api).await?;
    for (number, (name, budget, wish)) in LEADS.iter().enumerate() {
        let data = json!({"name": name, "budget": budget, "wish": wish});
        let body = json!({"event": EVENT, "data": data, "entity_type": "lead"});
        api.post("/v1/automation/trigger", &format!("seed-lead-{number}"), &body).await?;
    }
    until(api, &format!("{runs}&status=success"), LEADS.len() as u64 - 1).await?;
    until(api, &format!("{runs}&status=pending_approval"), 1).await?;
    if let Some(endpoint) = endpoint {
        endpoint.end(api).await?;
    }
    println!("1 flow with {} runs, 1 webhook endpoint", LEADS.len());
    Ok(())
}

/// Waits until a list has as many entries.
async fn until(api: &mut Api, target: &str, wanted: u64) -> Result<(), String> {
    let there = async {
        while api.total(target).await? < wanted {
            sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    };
    timeout(PATIENCE, there).await.unwrap_or_else(|_| Err(format!("{target} has no {wanted} entries")))
}

/// The endpoint, as long as it can be told something.
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
        // Nobody has to know what came.
        let (tell, _) = mpsc::unbounded_channel();
        let receiver = Receiver::start(tell).await.map_err(|fault| format!("no port to hear at: {fault}"))?;
        let body = json!({"url": receiver.url(), "description": "The website", "types": [EVENT]});
        // The address is another one each time, and so is the key.
        let made = api.post(ENDPOINTS, &format!("seed-endpoint-{}", receiver.url()), &body).await?;
        let path = format!("{ENDPOINTS}/{}", text(&made["data"], "id")?);
        Ok(Some(Self { path, _receiver: receiver }))
    }

    /// Lets it hear a ping, and switches it off when it has heard everything.
    async fn end(self, api: &mut Api) -> Result<(), String> {
        let Self { path, .. } = &self;
        api.post(&format!("{path}/test"), "seed-ping", &json!({})).await?;
        let told = async {
            loop {
                let list = api.get(&format!("{path}/deliveries")).await?;
                let waiting = |entry: &Value| entry["status"] == "pending";
                if !list["data"].as_array().is_some_and(|entries| entries.iter().any(waiting)) {
                    return Ok::<(), String>(());
                }
                sleep(Duration::from_millis(200)).await;
            }
        };
        // One that is not told in time is told to nobody.
        timeout(PATIENCE, told).await.unwrap_or(Ok(()))?;
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
