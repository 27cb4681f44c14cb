//! `OnlinePaymentService`: the page of a payment, and the webhooks of providers.

use std::sync::Arc;

use chassis_rpc::Call;
use chassis_rpc::link::unknown_link;
use proto::Check;
use proto::api::HttpBody;
use proto::billing::online_payment_service_server::OnlinePaymentService;
use proto::billing::{GetPaymentPageRequest, HearEventRequest, HearProviderRequest};
use provider::{Fault, Webhook};
use tonic::{Request, Response, Status};

use super::{Origin, PaymentProcessor, page};
use crate::error::Error;
use crate::online_payment::{OnlinePayment, parse_reference, provider_unavailable, store};
use crate::page::html_answer;

pub(crate) struct OnlinePaymentRpc {
    pub processor: Arc<PaymentProcessor>,
}

#[tonic::async_trait]
impl OnlinePaymentService for OnlinePaymentRpc {
    async fn get_payment_page(
        &self,
        request: Request<GetPaymentPageRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let (call, payment) = self.find(request, |request| &request.token).await?;
        let payment = self.processor.refreshed(&call.context, payment).await?;
        let page = self
            .processor
            .db
            .read(async |connection| page::page(connection, call.context.account_id(), &payment).await)
            .await?;
        html_answer(page)
    }

    /// The webhook of one payment, which its URL identifies. It is not signed, and its body is not read.
    async fn hear_provider(
        &self,
        request: Request<HearProviderRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let (call, payment) = self.find(request, |request| &request.token).await?;
        webhook_received(&self.processor, &Origin::Call(&call.context), payment.token).await?;
        Ok(acknowledgement())
    }

    /// The signed webhook for all payments of the provider.
    async fn hear_event(&self, request: Request<HearEventRequest>) -> Result<Response<HttpBody>, Status> {
        let call = Call::open(request)?;
        let event = call.input.event.clone().unwrap_or_default();
        let signature = Some(event.signature.as_str()).filter(|signature| !signature.is_empty());
        let message = Webhook { signature, body: &event.data };
        if let Some(id) = self.processor.provider.verify_webhook(&message).map_err(bad_signature)? {
            self.refresh_by_external_id(call, &id).await?;
        }
        Ok(acknowledgement())
    }
}

fn acknowledgement() -> Response<HttpBody> {
    Response::new(HttpBody {
        content_type: "text/plain; charset=utf-8".to_owned(),
        data: "Heard.\n".into(),
        ..HttpBody::default()
    })
}

fn bad_signature(fault: Fault) -> Error {
    match fault {
        Fault::Refused { detail, .. } => {
            Error::BadSignature(format!("The message is not accepted: {detail}."))
        }
        _ => Error::BadSignature(
            "The signature does not fit the message. Sign its exact bytes with the current secret."
                .to_owned(),
        ),
    }
}

impl OnlinePaymentRpc {
    /// Refreshes the payment that an event names. The provider's copy of the payment says which account it belongs
    /// to. A payment that is not ours is not an error: a provider sends events for everything it has, and the answer
    /// must not reveal which payments exist here.
    async fn refresh_by_external_id(
        &self,
        call: Call<HearEventRequest>,
        external_id: &str,
    ) -> Result<(), Error> {
        let answer = self.processor.provider.find_payment(external_id).await.map_err(|fault| {
            tracing::warn!(%fault, "payment of a webhook could not be fetched");
            provider_unavailable()
        })?;
        let reference = answer.and_then(|payment| parse_reference(&payment.reference));
        let Some((account, id)) = reference else { return Ok(()) };
        let Some(account) = self.processor.db.account(account).await? else { return Ok(()) };
        let context = call.for_account(account)?.context;
        let found = self
            .processor
            .db
            .read(async |connection| store::find(connection, context.account_id(), id).await)
            .await?;
        // Another program with access to the provider can store any reference: the payment must be the one that was
        // created for this record.
        let is_same = |payment: &OnlinePayment| {
            let same_id = payment.external_id.is_empty() || payment.external_id == external_id;
            same_id && payment.provider == self.processor.provider.name()
        };
        match found.filter(is_same) {
            Some(payment) => self.processor.refresh(&Origin::Call(&context), payment.id).await,
            None => Ok(()),
        }
    }

    /// The payment that the link of a request leads to.
    async fn find<R: Check + prost::Message>(
        &self,
        request: Request<R>,
        token: fn(&R) -> &String,
    ) -> Result<(Call<R>, OnlinePayment), Status> {
        let (call, link) = self.processor.db.follow(Call::open(request)?, |input| token(input)).await?;
        let found = self
            .processor
            .db
            .read(async |connection| {
                store::find_by_token(connection, call.context.account_id(), link.secret).await
            })
            .await?;
        Ok((call, found.ok_or_else(unknown_link)?))
    }
}

/// Refreshes the payment with this secret after the provider reported a change of it. The report itself is not
/// trusted. If the provider does not answer, the scheduled refresh follows later.
pub(crate) async fn webhook_received(
    processor: &PaymentProcessor,
    origin: &Origin<'_>,
    secret: [u8; 16],
) -> Result<(), Error> {
    let account = origin.account().id;
    let found =
        processor.db.read(async |connection| store::find_by_token(connection, account, secret).await).await?;
    match found {
        Some(payment) => processor.refresh(origin, payment.id).await,
        None => Ok(()),
    }
}
