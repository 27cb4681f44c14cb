//! Takes triggers, in the two shapes that the contract has for them.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::At;
use proto::api::Fault;
use proto::automation::trigger_service_server::TriggerService;
use proto::automation::{
    TriggerRequest, TriggerResponse, TriggerResult, TriggerWebhookRequest, TriggerWebhookResponse,
    TriggeredRun, WebhookRun, WebhookTriggerResult,
};
use tonic::{Request, Response, Status};

use super::rules::is_event_name;
use crate::Error;
use crate::event::rules::{canonical, or_empty_object};
use crate::event::{Event, operations};
use crate::run::start::Started;

pub(crate) struct Rpc {
    pub db: Db,
}

#[tonic::async_trait]
impl TriggerService for Rpc {
    async fn trigger_webhook(
        &self,
        request: Request<TriggerWebhookRequest>,
    ) -> Result<Response<TriggerWebhookResponse>, Status> {
        self.db.write(Call::open(request)?, trigger_webhook).await
    }

    async fn trigger(&self, request: Request<TriggerRequest>) -> Result<Response<TriggerResponse>, Status> {
        self.db.write(Call::open(request)?, trigger).await
    }
}

async fn trigger_webhook(
    tx: &mut Tx<'_>,
    input: &TriggerWebhookRequest,
) -> Result<TriggerWebhookResponse, Error> {
    let given = input.trigger.clone().unwrap_or_default();
    let started = fire(tx, &given.event, &given.data, (given.entity_type, given.entity_id)).await?;
    let run = |run: &Started| WebhookRun {
        flow_guid: run.flow_id.to_string(),
        run_guid: run.run_id.to_string(),
        status: run.status.to_owned(),
    };
    let runs: Vec<WebhookRun> = started.iter().map(run).collect();
    let data = WebhookTriggerResult { event: given.event, matched: count(&started), runs };
    Ok(TriggerWebhookResponse { data: Some(data) })
}

async fn trigger(tx: &mut Tx<'_>, input: &TriggerRequest) -> Result<TriggerResponse, Error> {
    let given = input.trigger.clone().unwrap_or_default();
    let started = fire(tx, &given.event, &given.data, (given.entity_type, given.legacy_entity_id)).await?;
    let run = |run: &Started| TriggeredRun {
        flow_id: run.flow_id.to_string(),
        run_id: run.run_id.to_string(),
        status: run.status.to_owned(),
    };
    let runs: Vec<TriggeredRun> = started.iter().map(run).collect();
    let data = TriggerResult { event: given.event, matched: count(&started), runs };
    Ok(TriggerResponse { data: Some(data) })
}

fn count(started: &[Started]) -> i64 {
    i64::try_from(started.len()).unwrap_or(i64::MAX)
}

/// Stores the event and starts the flows that match it.
async fn fire(
    tx: &mut Tx<'_>,
    name: &str,
    data: &str,
    (entity_type, entity_id): (String, Option<i64>),
) -> Result<Vec<Started>, Error> {
    let place = At::ROOT.name("trigger");
    let place = place.name("event");
    if name.is_empty() {
        tx.faults.add(&place, Fault::Required, "event is required");
    }
    if !is_event_name(name) {
        let detail = "event must have only the characters a-z 0-9 _ . : -";
        tx.faults.add(&place, Fault::BadFormat, detail);
    }
    tx.valid()?;
    let event = Event {
        id: tx.id(),
        kind: canonical(name).to_owned(),
        entity_type,
        entity_id: entity_id.map(|id| id.to_string()).unwrap_or_default(),
        sequence: None,
        data: or_empty_object(data),
        occurred_at: tx.now(),
        depth: tx.depth(),
        actor: tx.caller().map(|caller| caller.identity.actor.clone()).unwrap_or_default(),
    };
    operations::take(tx, &[event]).await
}
