//! `WebhookService`: parse, decide, write, reply.

use std::sync::Arc;

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_base::time::timestamp;
use chassis_base::update_mask::UpdateMask;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chrono::TimeDelta;
use proto::automation::webhook_service_server::WebhookService;
use proto::automation::{
    AssignWebhookEndpointRequest, AssignWebhookEndpointResponse, CreateWebhookEndpointRequest,
    CreateWebhookEndpointResponse, DeleteWebhookEndpointRequest, DeleteWebhookEndpointResponse,
    GetSigningSecretRequest, GetSigningSecretResponse, GetWebhookEndpointRequest, GetWebhookEndpointResponse,
    ListWebhookDeliveriesRequest, ListWebhookDeliveriesResponse, ListWebhookEndpointsRequest,
    ListWebhookEndpointsResponse, RedeliverWebhookRequest, RedeliverWebhookResponse,
    RotateSigningSecretRequest, RotateSigningSecretResponse, RotateWebhookSecretRequest,
    RotateWebhookSecretResponse, SetKeyScopesRequest, SetKeyScopesResponse, TestWebhookEndpointRequest,
    TestWebhookEndpointResponse, UpdateWebhookEndpointRequest, UpdateWebhookEndpointResponse,
    WebhookDelivery, WebhookEndpoint,
};
use serde_json::json;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::deliver::Deliverer;
use super::rules::{self, MAX_ENDPOINTS, OVERLAP, PENDING};
use super::{AUDITED, Binding, Delivery, operations, store};
use crate::Error;
use crate::event::readers::Reader;
use crate::event::rfc3339;
use crate::outside::Secret;

const UNKNOWN: Error = Error::NotFound("webhook endpoint");
const UNKNOWN_DELIVERY: Error = Error::NotFound("delivery");
/// What a ping is called.
const PING: &str = "webhook.ping";
/// Should the process die while it pings, the worker does it after so long.
const PING_SPAN: TimeDelta = TimeDelta::minutes(1);

pub(crate) struct Webhooks {
    pub db: Db,
    pub deliverer: Arc<Deliverer>,
    /// Whether endpoints may be in private networks.
    pub private: bool,
}

#[tonic::async_trait]
impl WebhookService for Webhooks {
    async fn list_webhook_endpoints(
        &self,
        request: Request<ListWebhookEndpointsRequest>,
    ) -> Result<Response<ListWebhookEndpointsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let (endpoints, meta) = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), page).await)
            .await?;
        let data = endpoints.into_iter().map(WebhookEndpoint::from).collect();
        Ok(Response::new(ListWebhookEndpointsResponse { data, meta: Some(meta) }))
    }

    async fn create_webhook_endpoint(
        &self,
        request: Request<CreateWebhookEndpointRequest>,
    ) -> Result<Response<CreateWebhookEndpointResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.private, create).await
    }

    async fn get_webhook_endpoint(
        &self,
        request: Request<GetWebhookEndpointRequest>,
    ) -> Result<Response<GetWebhookEndpointResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(UNKNOWN)?;
        let found =
            self.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        let data = found.map(WebhookEndpoint::from).ok_or(UNKNOWN)?;
        Ok(Response::new(GetWebhookEndpointResponse { data: Some(data) }))
    }

    async fn update_webhook_endpoint(
        &self,
        request: Request<UpdateWebhookEndpointRequest>,
    ) -> Result<Response<UpdateWebhookEndpointResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.private, update).await
    }

    async fn delete_webhook_endpoint(
        &self,
        request: Request<DeleteWebhookEndpointRequest>,
    ) -> Result<Response<DeleteWebhookEndpointResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<RotateWebhookSecretRequest>,
    ) -> Result<Response<RotateWebhookSecretResponse>, Status> {
        self.db.write(Call::open(request)?, rotate).await
    }

    async fn test_webhook_endpoint(
        &self,
        request: Request<TestWebhookEndpointRequest>,
    ) -> Result<Response<TestWebhookEndpointResponse>, Status> {
        let call = Call::open(request)?;
        let context = call.context.clone();
        let mut response = self.db.write(call, ping).await?;
        let account = context.account_id();
        let (delivery, endpoint) = self
            .db
            .read(async |connection| {
                let id = response.get_ref().data.as_ref().and_then(|delivery| id::parse(&delivery.id));
                let delivery = match id {
                    Some(id) => store::find_delivery(connection, account, id).await?,
                    None => None,
                };
                let endpoint = match &delivery {
                    Some(delivery) => store::find(connection, account, delivery.endpoint_id).await?,
                    None => None,
                };
                Ok::<_, Error>((delivery, endpoint))
            })
            .await?;
        // A repeat of the call has the answer of the first.
        let fresh = |delivery: &Delivery| delivery.attempts == 0 && delivery.status == PENDING;
        if let (Some(mut delivery), Some(endpoint)) = (delivery.filter(fresh), endpoint) {
            let outcome = self.deliverer.attempt(&delivery, &endpoint, 0, context.clock.now()).await;
            rules::note(&mut delivery, &outcome, context.clock.now());
            if delivery.status == PENDING {
                // Once only: whoever pings wants to know now.
                rules::give_up(&mut delivery);
            }
            let answer = TestWebhookEndpointResponse { data: Some(delivery.clone().into()) };
            self.db.amend(&context, &delivery, &answer, note_ping).await?;
            *response.get_mut() = answer;
        }
        Ok(response)
    }

    async fn list_webhook_deliveries(
        &self,
        request: Request<ListWebhookDeliveriesRequest>,
    ) -> Result<Response<ListWebhookDeliveriesResponse>, Status> {
        let Call { context, input, mut faults } = Call::open(request)?;
        id::ignore_malformed(&mut faults);
        if !faults.is_empty() {
            return Err(Error::from(faults).into());
        }
        let (account, now) = (context.account_id(), context.clock.now());
        let endpoint = id::parse(&input.id).ok_or(UNKNOWN)?;
        let page = Page::new(input.page, input.per_page);
        let (rows, meta) = self
            .db
            .read(async |connection| {
                store::find(connection, account, endpoint).await?.ok_or(UNKNOWN)?;
                let (reader, page) = (Reader::of_caller(&context.identity), (now, page));
                let (rows, meta) =
                    store::list_deliveries(connection, account, endpoint, &reader, page).await?;
                Ok::<_, Error>((rows, meta))
            })
            .await?;
        let data = rows.into_iter().map(WebhookDelivery::from).collect();
        Ok(Response::new(ListWebhookDeliveriesResponse { data, meta: Some(meta) }))
    }

    async fn redeliver_webhook(
        &self,
        request: Request<RedeliverWebhookRequest>,
    ) -> Result<Response<RedeliverWebhookResponse>, Status> {
        self.db.write(Call::open(request)?, redeliver).await
    }

    async fn set_key_scopes(
        &self,
        request: Request<SetKeyScopesRequest>,
    ) -> Result<Response<SetKeyScopesResponse>, Status> {
        self.db.write(Call::open(request)?, set_key_scopes).await
    }

    async fn assign_webhook_endpoint(
        &self,
        request: Request<AssignWebhookEndpointRequest>,
    ) -> Result<Response<AssignWebhookEndpointResponse>, Status> {
        self.db.write(Call::open(request)?, assign).await
    }

    async fn get_signing_secret(
        &self,
        request: Request<GetSigningSecretRequest>,
    ) -> Result<Response<GetSigningSecretResponse>, Status> {
        self.db.write(Call::open(request)?, signing_secret).await
    }

    async fn rotate_signing_secret(
        &self,
        request: Request<RotateSigningSecretRequest>,
    ) -> Result<Response<RotateSigningSecretResponse>, Status> {
        self.db.write(Call::open(request)?, rotate_signing).await
    }
}

async fn create(
    tx: &mut Tx<'_>,
    (input, private): &(CreateWebhookEndpointRequest, bool),
) -> Result<CreateWebhookEndpointResponse, Error> {
    let given = input.endpoint.clone().unwrap_or_default();
    let (account, now) = (tx.account(), tx.now());
    let mut endpoint = operations::endpoint(tx.id(), now);
    rules::apply(UpdateMask::All, &given, &mut endpoint, *private, &mut tx.faults);
    tx.valid()?;
    if store::count(tx.db(), account).await? >= MAX_ENDPOINTS {
        return Err(Error::TooManyEndpoints);
    }
    endpoint.binding = tx.caller().map(|caller| Binding::of_caller(&caller.identity)).unwrap_or_default();
    store::put(tx.db(), account, &endpoint).await?;
    tx.changed(AUDITED, endpoint.id, &endpoint.shown());
    Ok(CreateWebhookEndpointResponse { data: Some(endpoint.with_secret()) })
}

async fn update(
    tx: &mut Tx<'_>,
    (input, private): &(UpdateWebhookEndpointRequest, bool),
) -> Result<UpdateWebhookEndpointResponse, Error> {
    id::ignore_malformed(&mut tx.faults);
    let named = UpdateMask::from(input.update_mask.as_ref());
    let given = input.endpoint.clone().unwrap_or_default();
    let (account, now) = (tx.account(), tx.now());
    let found = match id::parse(&input.id) {
        Some(id) => store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let known = found.is_some();
    let mut endpoint = found.unwrap_or_else(|| operations::endpoint(Uuid::nil(), now));
    let (waited, url) = (endpoint.retry_at, endpoint.url.clone());
    rules::apply(named, &given, &mut endpoint, *private, &mut tx.faults);
    // The faults of the body come before an unknown id.
    tx.valid()?;
    if !known {
        return Err(UNKNOWN);
    }
    endpoint.updated_at = now;
    if let Some(caller) = tx.caller().filter(|_| endpoint.url != url) {
        endpoint.binding = endpoint.binding.taken_over(&caller.identity);
    }
    store::put(tx.db(), account, &endpoint).await?;
    if let (Some(waited), None) = (waited, endpoint.retry_at) {
        store::resume(tx.db(), account, endpoint.id, (waited, now)).await?;
    }
    tx.changed(AUDITED, endpoint.id, &endpoint.shown());
    Ok(UpdateWebhookEndpointResponse { data: Some(endpoint.into()) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteWebhookEndpointRequest,
) -> Result<DeleteWebhookEndpointResponse, Error> {
    let account = tx.account();
    let id = id_of(tx, &input.id)?;
    if !store::delete(tx.db(), account, id).await? {
        return Err(UNKNOWN);
    }
    tx.removed(AUDITED, id);
    Ok(DeleteWebhookEndpointResponse {})
}

/// The id of a path, after everything else that may be wrong.
fn id_of(tx: &mut Tx<'_>, text: &str) -> Result<Uuid, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    id::parse(text).ok_or(UNKNOWN)
}

async fn rotate(
    tx: &mut Tx<'_>,
    input: &RotateWebhookSecretRequest,
) -> Result<RotateWebhookSecretResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    let id = id_of(tx, &input.id)?;
    let mut endpoint = store::find_locked(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    endpoint.old_secret = Some(std::mem::replace(&mut endpoint.secret, Secret::random()));
    endpoint.old_secret_until = Some(now + OVERLAP);
    endpoint.updated_at = now;
    store::put(tx.db(), account, &endpoint).await?;
    tx.changed(AUDITED, endpoint.id, &endpoint.shown());
    Ok(RotateWebhookSecretResponse { data: Some(endpoint.with_secret()) })
}

async fn ping(
    tx: &mut Tx<'_>,
    input: &TestWebhookEndpointRequest,
) -> Result<TestWebhookEndpointResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    let id = id_of(tx, &input.id)?;
    let endpoint = store::find(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    let payload = json!({"type": PING, "timestamp": rfc3339(now), "data": {"endpoint_id": endpoint.id}});
    let mut delivery = operations::delivery(tx.id(), endpoint.id, None, (PING, payload.to_string()), now);
    delivery.next_at = Some(now + PING_SPAN);
    store::insert_deliveries(tx.db(), account, std::slice::from_ref(&delivery)).await?;
    Ok(TestWebhookEndpointResponse { data: Some(delivery.into()) })
}

async fn note_ping(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(), Error> {
    let account = tx.account();
    store::update_delivery(tx.db(), account, delivery).await
}

async fn redeliver(
    tx: &mut Tx<'_>,
    input: &RedeliverWebhookRequest,
) -> Result<RedeliverWebhookResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    // There is nothing but ids, and one of an odd form is unknown.
    tx.faults = proto::Faults::default();
    let endpoint = id_of(tx, &input.id)?;
    let mut known = store::find_locked(tx.db(), account, endpoint).await?.ok_or(UNKNOWN)?;
    if let Some(waited) = known.retry_at {
        // Whoever delivers again wants it now.
        rules::answered(&mut known);
        store::put(tx.db(), account, &known).await?;
        store::resume(tx.db(), account, endpoint, (waited, now)).await?;
        tx.unaudited("how deliveries fare is no change of an endpoint");
    }
    let id = id::parse(&input.delivery_id).ok_or(UNKNOWN_DELIVERY)?;
    let found = store::find_delivery_locked(tx.db(), account, id).await?;
    let mut delivery = found.filter(|delivery| delivery.endpoint_id == endpoint).ok_or(UNKNOWN_DELIVERY)?;
    PENDING.clone_into(&mut delivery.status);
    (delivery.attempts, delivery.next_at, delivery.delivered_at) = (0, Some(now), None);
    store::update_delivery(tx.db(), account, &delivery).await?;
    Ok(RedeliverWebhookResponse { data: Some(delivery.into()) })
}

async fn set_key_scopes(tx: &mut Tx<'_>, input: &SetKeyScopesRequest) -> Result<SetKeyScopesResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    tx.valid()?;
    store::put_key_scopes(tx.db(), account, (&input.key, &input.scopes), now).await?;
    Ok(SetKeyScopesResponse {})
}

async fn assign(
    tx: &mut Tx<'_>,
    input: &AssignWebhookEndpointRequest,
) -> Result<AssignWebhookEndpointResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    let id = id_of(tx, &input.id)?;
    let mut endpoint = store::find_locked(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    endpoint.binding = Binding { key: input.key.clone(), scopes: Some(input.scopes.clone()), told: None };
    endpoint.updated_at = now;
    store::put(tx.db(), account, &endpoint).await?;
    tx.changed(AUDITED, endpoint.id, &endpoint.shown());
    Ok(AssignWebhookEndpointResponse { data: Some(endpoint.into()) })
}

async fn signing_secret(
    tx: &mut Tx<'_>,
    _: &GetSigningSecretRequest,
) -> Result<GetSigningSecretResponse, Error> {
    let (secret, _, until) = operations::ensure_signing(tx, &()).await?;
    let old_secret_until = until.filter(|until| *until > tx.now()).map(timestamp);
    Ok(GetSigningSecretResponse { secret: Secret::from_bytes(secret).text(), old_secret_until })
}

async fn rotate_signing(
    tx: &mut Tx<'_>,
    _: &RotateSigningSecretRequest,
) -> Result<RotateSigningSecretResponse, Error> {
    let (secret, until) = operations::rotate_signing(tx).await?;
    Ok(RotateSigningSecretResponse { secret: secret.text(), old_secret_until: Some(timestamp(until)) })
}
