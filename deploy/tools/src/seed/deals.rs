//! A second pipeline, and deals in every phase of both.

use std::collections::HashMap;

use chrono::NaiveDate;
use deploy_tools::mesh::{MeshCaller, service_error};
use proto::crm::pipeline_service_client::PipelineServiceClient;
use proto::crm::{CreatePipelineRequest, PipelineInput};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, text};
use crate::sales::day;

const DATA: &str = include_str!("deals.json");

#[derive(Deserialize)]
pub(crate) struct Deals {
    pipeline: Pipeline,
    deals: Vec<Deal>,
}

#[derive(Deserialize)]
struct Pipeline {
    name: String,
    phases: Vec<String>,
}

#[derive(Deserialize)]
struct Deal {
    title: String,
    /// By its external id.
    client: String,
    /// The first one of the account, or the second one.
    pipeline: usize,
    /// How many phases of the pipeline it left behind.
    phase: usize,
    status: String,
    amount: String,
    priority: String,
    /// In days from today.
    close: i64,
    source: String,
}

pub(crate) fn data() -> Result<Deals, String> {
    serde_json::from_str(DATA).map_err(|fault| format!("deals.json: {fault}"))
}

impl Deals {
    /// Adds the pipeline, unless there is one of its name.
    pub(crate) async fn add_pipeline(
        &self,
        api: &mut Api,
        mesh: &MeshCaller,
        crm: &str,
    ) -> Result<(), String> {
        let pipelines = api.get("/v1/pipelines").await?;
        if entries(&pipelines).iter().any(|pipeline| pipeline["name"] == self.pipeline.name.as_str()) {
            return Ok(());
        }
        let request = CreatePipelineRequest {
            pipeline: Some(PipelineInput {
                name: self.pipeline.name.clone(),
                active: Some(true),
                ..PipelineInput::default()
            }),
            phases: self.pipeline.phases.clone(),
        };
        let mut service = PipelineServiceClient::new(mesh.connect("crm", crm).await?);
        let created = service.create_pipeline(mesh.request(request)?).await;
        created.map(drop).map_err(service_error("crm"))
    }

    /// Adds what is missing. A deal of the same title is taken for the one that an earlier run made.
    pub(crate) async fn add(&self, api: &mut Api, today: NaiveDate) -> Result<(), String> {
        let pipelines = api.get("/v1/pipelines").await?;
        let sources = api.get("/v1/deal-sources").await?;
        let clients = api.get("/v1/clients?per_page=100").await?;
        let clients: HashMap<&str, &Value> = entries(&clients)
            .iter()
            .filter_map(|client| Some((client["meta"]["external_id"].as_str()?, &client["id"])))
            .collect();
        for (number, deal) in self.deals.iter().enumerate() {
            let (pipeline, client) =
                (entries(&pipelines).get(deal.pipeline), clients.get(deal.client.as_str()));
            let (Some(pipeline), Some(client)) = (pipeline, client) else { continue };
            let mut body = deal.body(pipeline, client, today);
            // Someone may have changed the sources.
            if !entries(&sources).iter().any(|source| source["name"] == body["source"]) {
                body["source"] = Value::Null;
            }
            deal.add(api, &format!("seed-deal-{number}"), pipeline, &body).await?;
        }
        println!("{} deals", self.deals.len());
        Ok(())
    }
}

impl Deal {
    fn body(&self, pipeline: &Value, client: &Value, today: NaiveDate) -> Value {
        json!({
            "title": self.title,
            "client_id": client,
            "pipeline_id": pipeline["id"],
            "amount": self.amount,
            "priority": self.priority,
            "expected_close_date": day(today, self.close),
            "source": self.source,
        })
    }

    /// Phase by phase, so that it has a history.
    async fn add(&self, api: &mut Api, key: &str, pipeline: &Value, body: &Value) -> Result<(), String> {
        let found = format!("/v1/deals?per_page=1&search={}", in_query(&self.title));
        if api.total(&found).await? > 0 {
            return Ok(());
        }
        let deal = api.post("/v1/deals", key, body).await?;
        let path = format!("/v1/deals/{}", text(&deal["data"], "id")?);
        let phases = pipeline["phases"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (number, phase) in phases.iter().enumerate().take(self.phase + 1).skip(1) {
            let body = json!({"phase_id": phase["id"]});
            api.post(&format!("{path}/move"), &format!("{key}-{number}"), &body).await?;
        }
        let end = match self.status.as_str() {
            "won" => "win",
            "lost" => "lose",
            _ => return Ok(()),
        };
        api.post(&format!("{path}/{end}"), &format!("{key}-{end}"), &json!({})).await.map(drop)
    }
}

fn entries(list: &Value) -> &[Value] {
    list["data"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Text as the value of a query parameter.
fn in_query(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn there_are_deals_of_sample_clients_in_every_phase_and_with_every_status() {
        let (deals, relations) = (data().unwrap(), crate::relations::data().unwrap());
        let clients: HashSet<&str> =
            relations.clients.iter().map(|client| text(client, "external_id").unwrap()).collect();
        let mut titles = HashSet::new();
        for deal in &deals.deals {
            assert!(clients.contains(deal.client.as_str()), "{}", deal.client);
            assert!(titles.insert(&deal.title), "{} is found by its title", deal.title);
        }
        for (pipeline, phases) in [(0, 4), (1, deals.pipeline.phases.len())] {
            for phase in 0..phases {
                let here = |deal: &&Deal| (deal.pipeline, deal.phase) == (pipeline, phase);
                assert!(
                    deals.deals.iter().any(|deal| here(&deal) && deal.status == "open"),
                    "{pipeline} {phase}"
                );
            }
            for status in ["open", "won", "lost"] {
                let here = |deal: &Deal| deal.pipeline == pipeline && deal.status == status;
                assert!(deals.deals.iter().any(here), "{pipeline} {status}");
            }
        }
    }

    #[test]
    fn no_title_is_part_of_another_which_would_then_be_taken_for_it() {
        let deals = data().unwrap().deals;
        for deal in &deals {
            let title = deal.title.to_lowercase();
            let found = deals.iter().filter(|other| other.title.to_lowercase().contains(&title));
            assert_eq!(found.count(), 1, "{title}");
        }
    }

    #[test]
    fn a_query_keeps_its_text() {
        assert_eq!(in_query("a b&c/é"), "a%20b%26c%2F%C3%A9");
    }
}
