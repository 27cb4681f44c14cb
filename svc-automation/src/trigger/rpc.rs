//! Takes triggers.

use chassis::{Call, Db, Error, Tx};
use proto::At;
use proto::api::Fault;
use proto::automation::trigger_service_server::TriggerService;
use proto::automation::{TriggerWebhookRequest, TriggerWebhookResponse, WebhookTriggerResult};
use tonic::{Request, Response, Status};

use super::rules::is_event_name;
use crate::event::rules::or_empty_object;
use crate::event::{Event, store};

pub(crate) struct Rpc {
    db: Db,
}

impl Rpc {
    pub fn new(db: Db) -> Self {
        Self { db }
    }
}

#[tonic::async_trait]
impl TriggerService for Rpc {
    async fn trigger_webhook(
        &self,
        request: Request<TriggerWebhookRequest>,
    ) -> Result<Response<TriggerWebhookResponse>, Status> {
        self.db.write(Call::open(request)?, trigger).await
    }
}

async fn trigger(tx: &mut Tx<'_>, input: &TriggerWebhookRequest) -> Result<TriggerWebhookResponse, Error> {
    let input = input.trigger.clone().unwrap_or_default();
    let place = At::ROOT.name("trigger");
    let place = place.name("event");
    if input.event.is_empty() {
        tx.faults.add(&place, Fault::Required, "event is required");
    }
    if !is_event_name(&input.event) {
        let detail = "event must have only the characters a-z 0-9 _ . : -";
        tx.faults.add(&place, Fault::BadFormat, detail);
    }
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let event = Event {
        id: tx.id(),
        kind: input.event.clone(),
        entity_type: input.entity_type,
        entity_id: input.entity_id.map(|id| id.to_string()).unwrap_or_default(),
        sequence: None,
        data: or_empty_object(&input.data),
        occurred_at: now,
    };
    store::insert_new(tx.db(), account, &[event], now).await?;
    let data = WebhookTriggerResult { event: input.event, matched: 0, runs: Vec::new() };
    Ok(TriggerWebhookResponse { data: Some(data) })
}
