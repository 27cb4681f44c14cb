//! `WebhookService`.

use std::sync::Arc;

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_base::time::timestamp;
use chassis_base::update_mask::UpdateMask;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
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
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::operations::{NOT_FOUND, deliveries, endpoints, secrets};
use super::store::{self, DeliveryFilter};
use super::{DeliveryStatus, Sender};
use crate::egress::Secret;
use crate::error::Error;
use crate::event::ReadAccess;

pub(crate) struct Webhooks {
    pub db: Db,
    pub sender: Arc<Sender>,
    /// Whether endpoints may be in private networks.
    pub allow_private: bool,
}

#[tonic::async_trait]
impl WebhookService for Webhooks {
    async fn list_webhook_endpoints(
        &self,
        request: Request<ListWebhookEndpointsRequest>,
    ) -> Result<Response<ListWebhookEndpointsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let selection = Selection::new(context.account(), &input);
        let (endpoints, meta) = self
            .db
            .read(async |connection| {
                store::list(connection, context.account_id(), &selection, input.active, page).await
            })
            .await?;
        let data = endpoints.into_iter().map(WebhookEndpoint::from).collect();
        Ok(Response::new(ListWebhookEndpointsResponse { data, meta: Some(meta) }))
    }

    async fn create_webhook_endpoint(
        &self,
        request: Request<CreateWebhookEndpointRequest>,
    ) -> Result<Response<CreateWebhookEndpointResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.allow_private, create).await
    }

    async fn get_webhook_endpoint(
        &self,
        request: Request<GetWebhookEndpointRequest>,
    ) -> Result<Response<GetWebhookEndpointResponse>, Status> {
        // Without `valid`: a malformed id is not found, and the request has no other field.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let found =
            self.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        let data = found.map(WebhookEndpoint::from).ok_or(NOT_FOUND)?;
        Ok(Response::new(GetWebhookEndpointResponse { data: Some(data) }))
    }

    async fn update_webhook_endpoint(
        &self,
        request: Request<UpdateWebhookEndpointRequest>,
    ) -> Result<Response<UpdateWebhookEndpointResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.allow_private, update).await
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
        let created = response.get_ref().data.as_ref().and_then(|delivery| id::parse(&delivery.id));
        let sent = match created {
            Some(id) => self.sender.send_ping(&self.db, &context, id).await?,
            None => None,
        };
        // The first transaction has stored the ping, and its result takes a second one: no transaction is open while the
        // receiver is waited for. Repeats of the call get the response of the second.
        if let Some(delivery) = sent {
            let answer = TestWebhookEndpointResponse { data: Some(delivery.clone().into()) };
            self.db.amend(&context, &delivery, &answer, deliveries::record_ping).await?;
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
        let account = context.account_id();
        let endpoint = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let access = ReadAccess::of_caller(&context.identity);
        let filter = DeliveryFilter {
            selection: Selection::new(context.account(), &input),
            endpoint,
            access: &access,
            now: context.clock.now(),
            status: DeliveryStatus::from_message(input.status()),
            kind: Some(input.r#type.as_str()).filter(|kind| !kind.is_empty()),
        };
        let page = Page::new(input.page, input.per_page);
        let (rows, meta) = self
            .db
            .read(async |connection| {
                store::find(connection, account, endpoint).await?.ok_or(NOT_FOUND)?;
                let (rows, meta) = store::list_deliveries(connection, account, &filter, page).await?;
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

/// Parses the id of the path, after the faults of all other fields were reported.
fn parse_id(tx: &mut Tx<'_>, text: &str) -> Result<Uuid, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    id::parse(text).ok_or(NOT_FOUND)
}

async fn create(
    tx: &mut Tx<'_>,
    input: &CreateWebhookEndpointRequest,
    allow_private: &bool,
) -> Result<CreateWebhookEndpointResponse, Error> {
    let given = input.endpoint.clone().unwrap_or_default();
    let endpoint = endpoints::create(tx, &given, *allow_private).await?;
    Ok(CreateWebhookEndpointResponse { data: Some(endpoint.into()) })
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateWebhookEndpointRequest,
    allow_private: &bool,
) -> Result<UpdateWebhookEndpointResponse, Error> {
    id::ignore_malformed(&mut tx.faults);
    let named = UpdateMask::from(input.update_mask.as_ref());
    let given = input.endpoint.clone().unwrap_or_default();
    let endpoint = endpoints::update(tx, id::parse(&input.id), named, &given, *allow_private).await?;
    Ok(UpdateWebhookEndpointResponse { data: Some(endpoint.into()) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteWebhookEndpointRequest,
) -> Result<DeleteWebhookEndpointResponse, Error> {
    let id = parse_id(tx, &input.id)?;
    endpoints::delete(tx, id).await?;
    Ok(DeleteWebhookEndpointResponse {})
}

async fn rotate(
    tx: &mut Tx<'_>,
    input: &RotateWebhookSecretRequest,
) -> Result<RotateWebhookSecretResponse, Error> {
    let id = parse_id(tx, &input.id)?;
    let endpoint = endpoints::rotate_secret(tx, id).await?;
    Ok(RotateWebhookSecretResponse { data: Some(endpoint.into()) })
}

async fn ping(
    tx: &mut Tx<'_>,
    input: &TestWebhookEndpointRequest,
) -> Result<TestWebhookEndpointResponse, Error> {
    let id = parse_id(tx, &input.id)?;
    let delivery = deliveries::create_ping(tx, id).await?;
    Ok(TestWebhookEndpointResponse { data: Some(delivery.into()) })
}

async fn redeliver(
    tx: &mut Tx<'_>,
    input: &RedeliverWebhookRequest,
) -> Result<RedeliverWebhookResponse, Error> {
    // The request has only ids, and a malformed one is not found.
    tx.faults = proto::Faults::default();
    let endpoint = parse_id(tx, &input.id)?;
    let delivery = deliveries::redeliver(tx, endpoint, id::parse(&input.delivery_id)).await?;
    Ok(RedeliverWebhookResponse { data: Some(delivery.into()) })
}

async fn set_key_scopes(tx: &mut Tx<'_>, input: &SetKeyScopesRequest) -> Result<SetKeyScopesResponse, Error> {
    tx.valid()?;
    endpoints::set_key_scopes(tx, &input.key, &input.scopes).await?;
    Ok(SetKeyScopesResponse {})
}

async fn assign(
    tx: &mut Tx<'_>,
    input: &AssignWebhookEndpointRequest,
) -> Result<AssignWebhookEndpointResponse, Error> {
    let id = parse_id(tx, &input.id)?;
    let endpoint = endpoints::assign(tx, id, &input.key, &input.scopes).await?;
    Ok(AssignWebhookEndpointResponse { data: Some(endpoint.into()) })
}

async fn signing_secret(
    tx: &mut Tx<'_>,
    _: &GetSigningSecretRequest,
) -> Result<GetSigningSecretResponse, Error> {
    let secrets = secrets::ensure(tx, &()).await?;
    let old_secret_until = secrets.old_secret_until.filter(|until| *until > tx.now()).map(timestamp);
    Ok(GetSigningSecretResponse { secret: Secret::from_bytes(secrets.secret).text(), old_secret_until })
}

async fn rotate_signing(
    tx: &mut Tx<'_>,
    _: &RotateSigningSecretRequest,
) -> Result<RotateSigningSecretResponse, Error> {
    let rotated = secrets::rotate(tx).await?;
    let old_secret_until = Some(timestamp(rotated.old_secret_until));
    Ok(RotateSigningSecretResponse { secret: rotated.secret.text(), old_secret_until })
}
