//! Makes one attempt of a delivery.

use std::time::Duration;

use chassis_data::Db;
use chassis_rpc::Context;
use chassis_rpc::call::AUTOMATION_DEPTH;
use chassis_rpc::peer::Peers;
use chassis_rpc::token::{self, Tokens};
use chassis_service::Runtime;
use chassis_work::mail::Mailer;
use chassis_work::worker::Job;
use chrono::{DateTime, Utc};
use proto::billing::ListIdentitiesRequest;
use proto::billing::settings_service_client::SettingsServiceClient;
use tonic::Request;
use tonic::metadata::MetadataValue;
use uuid::Uuid;

use super::rules::{self, DeliveryResult};
use super::store::{self, DeliveryToEndpoint};
use super::{Delivery, DeliveryStatus, Endpoint};
use crate::egress::{Egress, OutgoingRequest};
use crate::error::Error;

const TIMEOUT: Duration = Duration::from_secs(15);

/// Sends deliveries, and finds out who is notified about an endpoint.
pub(crate) struct Sender {
    egress: Egress,
    peers: Peers,
    tokens: Tokens,
    pub(super) mailer: Mailer,
}

impl Sender {
    pub(crate) fn new(runtime: &Runtime, egress: Egress) -> Self {
        Self {
            egress,
            peers: runtime.peers.clone(),
            tokens: runtime.tokens.clone(),
            mailer: runtime.mailer.clone(),
        }
    }

    pub(super) async fn attempt(
        &self,
        delivery: &Delivery,
        endpoint: &Endpoint,
        depth: u32,
        now: DateTime<Utc>,
    ) -> DeliveryResult {
        let outgoing = OutgoingRequest {
            method: "POST".to_owned(),
            url: endpoint.url.clone(),
            headers: vec![(AUTOMATION_DEPTH.to_owned(), depth.to_string())],
            body: delivery.payload.clone(),
            id: delivery.id.to_string(),
            secrets: endpoint.secrets(now),
            timeout: TIMEOUT,
        };
        self.egress.send(&outgoing, now).await.into()
    }

    /// Sends a ping that was stored and returns its delivery with the result. `None` when there is nothing to send: a
    /// repeat of the call finds the ping sent.
    pub(super) async fn send_ping(
        &self,
        db: &Db,
        context: &Context,
        id: Uuid,
    ) -> Result<Option<Delivery>, Error> {
        let account = context.account_id();
        let is_new =
            |delivery: &Delivery| delivery.attempts == 0 && delivery.status == DeliveryStatus::Pending;
        let found = db
            .read(async |connection| store::find_with_endpoint(connection, account, id).await)
            .await?
            .filter(|found| is_new(&found.delivery));
        let Some(DeliveryToEndpoint { mut delivery, endpoint }) = found else { return Ok(None) };
        let result = self.attempt(&delivery, &endpoint, 0, context.clock.now()).await;
        rules::record_attempt(&mut delivery, &result, context.clock.now());
        if delivery.status == DeliveryStatus::Pending {
            // A ping has one attempt, because the caller waits for its result.
            rules::fail(&mut delivery);
        }
        Ok(Some(delivery))
    }

    /// The address that is notified when an endpoint is disabled: the endpoint's own, or the business's.
    pub(super) async fn notify_address(&self, job: &Job, endpoint: &Endpoint) -> Option<String> {
        if endpoint.notify_email.is_empty() {
            return self.business_address(job).await;
        }
        Some(endpoint.notify_email.clone())
    }

    async fn business_address(&self, job: &Job) -> Option<String> {
        let peer = self.peers.get("billing")?;
        let mut request = Request::new(ListIdentitiesRequest {});
        request.set_timeout(TIMEOUT);
        let token = self.tokens.to(peer.name()).mint_mesh(job.account(), "automation", job.now());
        request.metadata_mut().insert(token::HEADER, MetadataValue::try_from(token).ok()?);
        let identities = SettingsServiceClient::new(peer.channel()).list_identities(request).await;
        let identities = identities.inspect_err(|status| {
            tracing::warn!(code = ?status.code(), "lookup of the business's e-mail address failed");
        });
        let all = identities.ok()?.into_inner().data;
        let default = all.into_iter().find(|identity| identity.is_default)?;
        // Billing of the release before has the address in `values` only.
        let in_values = default.values.map(|values| values.email);
        [Some(default.email), in_values].into_iter().flatten().find(|email| !email.is_empty())
    }
}
