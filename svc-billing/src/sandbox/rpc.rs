//! `SandboxService`: the pages of sandbox payments.

use std::sync::Arc;

use chassis_data::Tx;
use chassis_rpc::link::unknown_link;
use chassis_rpc::{Call, Link};
use proto::api::{Fault, HttpBody};
use proto::billing::sandbox_service_server::SandboxService;
use proto::billing::{ActOnCheckoutRequest, GetCheckoutRequest};
use proto::{At, Check};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::rules::{self, Act};
use super::store::{self, Payment};
use super::{NAME, operations, page};
use crate::Error;
use crate::online::{self, Hand, Till};
use crate::page::html_answer;

pub struct Checkouts {
    pub till: Arc<Till>,
}

/// What pressing a button left to be done.
#[derive(Clone, PartialEq, prost::Message)]
struct Pressed {
    /// Where the payer goes; empty: back to the page.
    #[prost(string, tag = "1")]
    location: String,
}

#[tonic::async_trait]
impl SandboxService for Checkouts {
    async fn get_checkout(&self, request: Request<GetCheckoutRequest>) -> Result<Response<HttpBody>, Status> {
        let (call, payment) = self.find(request, |request| &request.token).await?;
        let account = call.context.account_id();
        let around = self
            .till
            .db
            .read(async |connection| page::Around::load(connection, account, &payment).await)
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
        let Some(act) = Act::named(&name) else {
            let known = Act::ALL.map(|(_, name)| name).join(", ");
            let at = At::ROOT.name("choice");
            call.faults.add(&at.name("act"), Fault::NotAllowed, format!("act must be one of {known}"));
            return Err(chassis_base::Error::from(call.faults).into());
        };
        let page = format!("/sandbox/checkouts/{}", call.input.token);
        let context = call.context.clone();
        let pressed = self.till.db.write_with(call, (payment.id, act), press).await?.into_inner();
        // Also when nothing changed: what changed before may not have been heard. Of what becomes of a mandate nobody is
        // told, as with any provider.
        if !act.is_of_mandate() {
            tell(&self.till, &Hand::Call(&context), &payment).await;
        }
        let location = if pressed.location.is_empty() { page } else { self.till.local(&pressed.location) };
        Ok(Response::new(HttpBody { status: 303, location, ..HttpBody::default() }))
    }
}

impl Checkouts {
    /// The payment that the link of a request leads to. Only while the sandbox is the account's provider.
    async fn find<R: Check + prost::Message>(
        &self,
        request: Request<R>,
        token: fn(&R) -> &String,
    ) -> Result<(Call<R>, Payment), Status> {
        let (call, link) = self.till.db.follow(Call::open(request)?, |input| token(input)).await?;
        if self.till.provider_of(call.context.account_id()).await? != NAME {
            return Err(unknown_link().into());
        }
        let found = self
            .till
            .db
            .read(async |connection| {
                let id = Uuid::from_bytes(link.secret);
                let found = store::find(connection, call.context.account_id(), id).await?;
                Ok::<_, Error>(found)
            })
            .await?;
        Ok((call, found.ok_or_else(unknown_link)?))
    }
}

async fn press(
    tx: &mut Tx<'_>,
    (_, (id, act)): &(ActOnCheckoutRequest, (Uuid, Act)),
) -> Result<Pressed, Error> {
    let payment = operations::act(tx, *id, *act).await?.ok_or_else(unknown_link)?;
    let location = if act.is_payers() { payment.return_url } else { String::new() };
    Ok(Pressed { location })
}

/// Tells billing that a payment changed, as a provider's webhook does: by the token in its webhook address. Is it not
/// heard, billing asks by itself later.
pub async fn tell(till: &Till, hand: &Hand<'_>, payment: &Payment) {
    let Some(link) = payment.webhook_url.rsplit('/').next().and_then(Link::parse) else { return };
    if let Err(error) = online::rpc::hear(till, hand, link.secret).await {
        let error = chassis_base::Error::from(error);
        tracing::warn!(%error, "a change in the sandbox was not heard");
    }
}
