//! Describes deals for events, by asking crm.

use std::collections::HashMap;
use std::time::Instant;

use chassis_base::Account;
use chassis_rpc::outgoing::{Outgoing, lookup_failed};
use chassis_work::scan::Describe;
use proto::crm::deal_service_client::DealServiceClient;
use proto::crm::{BatchGetDealsRequest, Deal, DealPriority, DealStatus};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};
use uuid::Uuid;

use super::DESCRIBE_TIMEOUT;
use crate::references::DEAL;

pub(super) struct Deals {
    pub outgoing: Outgoing,
}

#[tonic::async_trait]
impl Describe for Deals {
    async fn describe(
        &self,
        account: &Account,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, Value>, chassis_base::Error> {
        let input = BatchGetDealsRequest { ids: ids.iter().map(ToString::to_string).collect() };
        let request =
            self.outgoing.request(DEAL.service, account, Instant::now() + DESCRIBE_TIMEOUT, input)?;
        let found = DealServiceClient::new(self.outgoing.channel(DEAL.service)?)
            .batch_get_deals(request)
            .await
            .map_err(|status| lookup_failed(DEAL.service, "Deals", &status))?;
        // A deal may have been won or lost since it was listed.
        let open = found.into_inner().data.into_iter().filter(|deal| deal.status() == DealStatus::Open);
        Ok(open.filter_map(|deal| Some((chassis_base::id::parse(&deal.id)?, event_data(&deal)))).collect())
    }
}

/// The data of a deal in the form that the events of crm have.
fn event_data(deal: &Deal) -> Value {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let priority = match deal.priority() {
        DealPriority::Low => "low",
        DealPriority::Medium | DealPriority::Unspecified => "medium",
        DealPriority::High => "high",
    };
    json!({
        "id": deal.id,
        "title": deal.title,
        "amount": deal.amount.parse::<Decimal>().ok().and_then(|amount| amount.to_f64()),
        "status": "open",
        "priority": priority,
        "pipeline_id": deal.pipeline_id,
        "phase_id": deal.phase_id,
        "client_id": deal.client_id,
        "expected_close_date": text(&deal.expected_close_date),
        "source": deal.meta.as_ref().and_then(|meta| meta.source.as_ref()),
    })
}
