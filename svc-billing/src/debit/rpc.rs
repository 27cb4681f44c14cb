//! `DirectDebitService`: converts requests and answers.

use std::sync::Arc;

use chassis_rpc::{Call, Context};
use proto::api::Problem;
use proto::billing::direct_debit_service_server::DirectDebitService;
use proto::billing::{
    ActivationStatus, CollectInvoiceRequest, CollectInvoiceResponse, GetMandateRequest, GetMandateResponse,
    StartVerificationRequest, StartVerificationResponse,
};
use proto::relations::Relation;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::operations::{self, Collecting, StartVerification};
use super::provider_calls::{complete_verification, load_mandate, refresh_mandate};
use crate::error::Error;
use crate::mandate::{ClientMandate, rules};
use crate::processor::{NO_PROVIDER, PaymentProcessor};

/// The scope that activates a subscription.
const WRITE_SCOPE: &str = "relations.write";

pub(crate) struct DirectDebitRpc {
    pub processor: Arc<PaymentProcessor>,
}

#[tonic::async_trait]
impl DirectDebitService for DirectDebitRpc {
    async fn start_verification(
        &self,
        request: Request<StartVerificationRequest>,
    ) -> Result<Response<StartVerificationResponse>, Status> {
        let call = Call::open(request)?;
        let context = call.context.clone();
        let start = StartVerification {
            provider: self.processor.require_provider(context.account_id()).await?,
            client: self.client(&context, &call.input.id).await?,
            base: Arc::clone(&self.processor.base),
        };
        let mut response = self.processor.db.write_with(call, start, operations::start_verification).await?;
        complete_verification(&self.processor, &context, &mut response).await?;
        Ok(response)
    }

    async fn get_mandate(
        &self,
        request: Request<GetMandateRequest>,
    ) -> Result<Response<GetMandateResponse>, Status> {
        let mut call = Call::open(request)?;
        chassis_base::id::ignore_malformed(&mut call.faults);
        let (context, input) = call.valid()?;
        let activates = !input.subscription_id.is_empty();
        if activates && !context.identity.has_scope(WRITE_SCOPE) {
            let detail = format!(
                "With subscription_id this needs the scope {WRITE_SCOPE} too. Make a key that has it."
            );
            return Err(chassis_base::Error::problem(Problem::InsufficientScope, detail).into());
        }
        let provider = self.processor.provider_for(context.account_id()).await?;
        let Some(client) = self.client(&context, &input.id).await? else {
            let status = if activates { ActivationStatus::NotAuthorized } else { ActivationStatus::Skipped };
            return Ok(response(&ClientMandate::default(), provider, status));
        };
        let client = chassis_base::id::parse(&client.id).unwrap_or_default();
        if provider != NO_PROVIDER {
            // A subscription is activated only with a mandate that is valid now.
            refresh_mandate(&self.processor, &context, client, activates).await?;
        }
        let mandate = load_mandate(&self.processor, &context, client, provider).await?;
        let activation = if !activates {
            ActivationStatus::Skipped
        } else if rules::is_authorized(mandate.status()) {
            self.activate(&context, input, client).await?
        } else {
            ActivationStatus::NotAuthorized
        };
        Ok(response(&mandate, provider, activation))
    }

    async fn collect_invoice(
        &self,
        request: Request<CollectInvoiceRequest>,
    ) -> Result<Response<CollectInvoiceResponse>, Status> {
        let call = Call::open(request)?;
        let provider = self.processor.require_provider(call.context.account_id()).await?;
        let collecting = Collecting { provider, links: self.processor.links() };
        self.processor.db.write_with(call, collecting, operations::collect_on_request).await
    }
}

impl DirectDebitRpc {
    async fn client(&self, context: &Context, id: &str) -> Result<Option<Relation>, Error> {
        match chassis_base::id::parse(id) {
            Some(id) => self.processor.clients.get(context.account(), id, context.deadline).await,
            None => Ok(None),
        }
    }

    async fn activate(
        &self,
        context: &Context,
        input: GetMandateRequest,
        client: Uuid,
    ) -> Result<ActivationStatus, Status> {
        let call = Call { context: context.clone(), input, faults: proto::Faults::default() };
        let done = self.processor.db.write_with(call, client, operations::activate).await?.into_inner();
        let activation = done.data.and_then(|data| data.subscription_activation);
        Ok(activation.map(|activation| activation.status()).unwrap_or_default())
    }
}

fn response(
    mandate: &ClientMandate,
    provider: &str,
    activation: ActivationStatus,
) -> Response<GetMandateResponse> {
    Response::new(GetMandateResponse { data: Some(mandate.message(provider, activation)) })
}
