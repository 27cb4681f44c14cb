//! `OnlinePaymentService`: what providers and payers meet of a payment.

use std::sync::Arc;

use chassis_rpc::Call;
use chassis_rpc::link::unknown_link;
use proto::Check;
use proto::api::HttpBody;
use proto::billing::online_payment_service_server::OnlinePaymentService;
use proto::billing::{GetPaymentPageRequest, HearEventRequest, HearProviderRequest};
use provider::{Fault, Webhook};
use tonic::{Request, Response, Status};

use super::perform::{Hand, Till, away};
use super::{OnlinePayment, page, referred, store};
use crate::Error;
use crate::page::html_answer;

pub struct OnlinePayments {
    pub till: Arc<Till>,
}

#[tonic::async_trait]
impl OnlinePaymentService for OnlinePayments {
    async fn get_payment_page(
        &self,
        request: Request<GetPaymentPageRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let (call, payment) = self.find(request, |request| &request.token).await?;
        let payment = self.till.refreshed(&call.context, payment).await?;
        let shown = self
            .till
            .db
            .read(async |connection| page::page(connection, call.context.account_id(), &payment).await)
            .await?;
        html_answer(shown)
    }

    async fn hear_provider(
        &self,
        request: Request<HearProviderRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let (call, payment) = self.find(request, |request| &request.token).await?;
        hear(&self.till, &Hand::Call(&call.context), payment.token).await?;
        Ok(heard())
    }

    async fn hear_event(&self, request: Request<HearEventRequest>) -> Result<Response<HttpBody>, Status> {
        let call = Call::open(request)?;
        let event = call.input.event.clone().unwrap_or_default();
        let signature = Some(event.signature.as_str()).filter(|signature| !signature.is_empty());
        let message = Webhook { signature, body: &event.data };
        if let Some(id) = self.till.provider.heard(&message).map_err(unsigned)? {
            self.hear_of(call, &id).await?;
        }
        Ok(heard())
    }
}

fn heard() -> Response<HttpBody> {
    Response::new(HttpBody {
        content_type: "text/plain; charset=utf-8".to_owned(),
        data: "Heard.\n".into(),
        ..HttpBody::default()
    })
}

fn unsigned(fault: Fault) -> Error {
    match fault {
        Fault::Refused { detail, .. } => Error::BadSignature(format!("The message is not heard: {detail}.")),
        _ => Error::BadSignature(
            "The signature does not fit the message. Sign its exact bytes with the current secret."
                .to_owned(),
        ),
    }
}

impl OnlinePayments {
    /// Asks about the payment that an event names; the provider says whose it is. That it is none of ours is no error:
    /// a provider tells of all that it has, and nobody is to learn from the answer which payments there are.
    async fn hear_of(&self, call: Call<HearEventRequest>, external_id: &str) -> Result<(), Error> {
        let told = self.till.provider.payment(external_id).await.map_err(|fault| {
            tracing::warn!(%fault, "the payment of an event could not be asked for");
            away()
        })?;
        let Some((account, id)) = told.and_then(|told| referred(&told.reference)) else { return Ok(()) };
        let Some(account) = self.till.db.account(account).await? else { return Ok(()) };
        let context = call.for_account(account)?.context;
        let found = self
            .till
            .db
            .read(async |connection| store::find(connection, context.account_id(), id).await)
            .await?;
        // Whoever else makes payments at the provider can write any reference: the payment has to be the one we made.
        let made = |payment: &OnlinePayment| {
            let same = payment.external_id.is_empty() || payment.external_id == external_id;
            same && payment.provider == self.till.provider.name()
        };
        match found.filter(made) {
            Some(payment) => self.till.ask(&Hand::Call(&context), payment.id).await,
            None => Ok(()),
        }
    }

    /// The payment that the link of a request leads to.
    async fn find<R: Check + prost::Message>(
        &self,
        request: Request<R>,
        token: fn(&R) -> &String,
    ) -> Result<(Call<R>, OnlinePayment), Status> {
        let (call, link) = self.till.db.follow(Call::open(request)?, |input| token(input)).await?;
        let found = self
            .till
            .db
            .read(async |connection| {
                store::find_by_token(connection, call.context.account_id(), link.secret).await
            })
            .await?;
        Ok((call, found.ok_or_else(unknown_link)?))
    }
}

/// A provider says that something changed about the payment with this secret. What it says is not believed; it is asked.
/// Whether it answers or not, the question is written down by then.
pub async fn hear(till: &Till, hand: &Hand<'_>, secret: [u8; 16]) -> Result<(), Error> {
    let account = hand.account().id;
    let found =
        till.db.read(async |connection| store::find_by_token(connection, account, secret).await).await?;
    match found {
        Some(payment) => till.ask(hand, payment.id).await,
        None => Ok(()),
    }
}
