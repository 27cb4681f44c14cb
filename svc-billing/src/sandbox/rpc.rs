//! `SandboxService`: the pages of sandbox payments.

use std::sync::Arc;

use chassis_data::Tx;
use chassis_rpc::Call;
use chassis_rpc::link::unknown_link;
use proto::api::{Fault, HttpBody};
use proto::billing::sandbox_service_server::SandboxService;
use proto::billing::{ActOnCheckoutRequest, GetCheckoutRequest};
use proto::{At, Check};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::rules::{self, Act};
use super::{NAME, Payment, operations, page, store, webhook};
use crate::error::Error;
use crate::page::html_answer;
use crate::processor::{Origin, PaymentProcessor};

pub(crate) struct SandboxRpc {
    pub processor: Arc<PaymentProcessor>,
}

/// The answer to a button.
#[derive(Clone, PartialEq, prost::Message)]
struct ActResult {
    /// Where the payer is sent; empty means back to the page.
    #[prost(string, tag = "1")]
    location: String,
}

#[tonic::async_trait]
impl SandboxService for SandboxRpc {
    async fn get_checkout(&self, request: Request<GetCheckoutRequest>) -> Result<Response<HttpBody>, Status> {
        let (call, payment) = self.find(request, |request| &request.token).await?;
        let account = call.context.account_id();
        let around = self
            .processor
            .db
            .read(async |connection| page::Surroundings::load(connection, account, &payment).await)
            .await?;
        let acts = rules::offered(&payment, around.mandate.as_ref());
        html_answer(page::page(account, &payment, &around, &acts)?)
    }

    async fn act_on_checkout(
        &self,
        request: Request<ActOnCheckoutRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let (mut call, payment) = self.find(request, |request| &request.token).await?;
        let name = call.input.choice.clone().unwrap_or_default().act;
        let Some(act) = Act::from_name(&name) else {
            let names = Act::ALL.map(|(_, name)| name).join(", ");
            let at = At::ROOT.name("choice");
            call.faults.add(&at.name("act"), Fault::NotAllowed, format!("act must be one of {names}"));
            return Err(chassis_base::Error::from(call.faults).into());
        };
        let page = format!("/sandbox/checkouts/{}", call.input.token);
        let context = call.context.clone();
        let button = PressedButton { payment: payment.id, act };
        let result = self.processor.db.write_with(call, button, press).await?.into_inner();
        // Also when nothing changed: the webhook of an earlier change may have been lost. As with any provider, no
        // webhook is sent for a mandate.
        if !act.changes_mandate() {
            webhook::notify(&self.processor, &Origin::Call(&context), &payment).await;
        }
        let location =
            if result.location.is_empty() { page } else { self.processor.local_path(&result.location) };
        Ok(Response::new(HttpBody { status: 303, location, ..HttpBody::default() }))
    }
}

impl SandboxRpc {
    /// The payment that the link of a request leads to. Only while the sandbox is the account's provider.
    async fn find<R: Check + prost::Message>(
        &self,
        request: Request<R>,
        token: fn(&R) -> &String,
    ) -> Result<(Call<R>, Payment), Status> {
        let (call, link) = self.processor.db.follow(Call::open(request)?, |input| token(input)).await?;
        if self.processor.provider_for(call.context.account_id()).await? != NAME {
            return Err(unknown_link().into());
        }
        let (account, id) = (call.context.account_id(), Uuid::from_bytes(link.secret));
        let found =
            self.processor.db.read(async |connection| store::find(connection, account, id).await).await?;
        Ok((call, found.ok_or_else(unknown_link)?))
    }
}

/// A button of the page of a payment.
#[derive(Clone, Copy)]
struct PressedButton {
    payment: Uuid,
    act: Act,
}

async fn press(
    tx: &mut Tx<'_>,
    _: &ActOnCheckoutRequest,
    button: &PressedButton,
) -> Result<ActResult, Error> {
    let payment = operations::act(tx, button.payment, button.act).await?.ok_or_else(unknown_link)?;
    let location = if button.act.ends_checkout() { payment.return_url } else { String::new() };
    Ok(ActResult { location })
}
