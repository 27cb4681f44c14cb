//! `TriggerService`: receives the events of integrations, in the two forms that the contract has for them.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::automation::trigger_service_server::TriggerService;
use proto::automation::{
    TriggerRequest, TriggerResponse, TriggerResult, TriggerWebhookRequest, TriggerWebhookResponse,
    TriggeredRun, WebhookRun, WebhookTriggerResult,
};
use tonic::{Request, Response, Status};

use super::operations::{self, Trigger};
use crate::error::Error;

pub(crate) struct Triggers {
    pub db: Db,
}

#[tonic::async_trait]
impl TriggerService for Triggers {
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
    let trigger = Trigger {
        event: &given.event,
        data: &given.data,
        entity_type: given.entity_type,
        entity_id: given.entity_id,
    };
    let started = operations::fire(tx, trigger).await?;
    let matched = count(started.len());
    let runs = started.into_iter().map(WebhookRun::from).collect();
    let data = WebhookTriggerResult { event: given.event, matched, runs };
    Ok(TriggerWebhookResponse { data: Some(data) })
}

async fn trigger(tx: &mut Tx<'_>, input: &TriggerRequest) -> Result<TriggerResponse, Error> {
    let given = input.trigger.clone().unwrap_or_default();
    let trigger = Trigger {
        event: &given.event,
        data: &given.data,
        entity_type: given.entity_type,
        entity_id: given.legacy_entity_id,
    };
    let started = operations::fire(tx, trigger).await?;
    let matched = count(started.len());
    let runs = started.into_iter().map(TriggeredRun::from).collect();
    let data = TriggerResult { event: given.event, matched, runs };
    Ok(TriggerResponse { data: Some(data) })
}

fn count(runs: usize) -> i64 {
    i64::try_from(runs).unwrap_or(i64::MAX)
}
