//! Asking for a mandate, using it for a subscription, and collecting with it. Each function runs inside a write
//! transaction; the provider is called after the commit.

use std::sync::Arc;

use chassis_data::Tx;
use chrono::TimeDelta;
use proto::At;
use proto::api::Fault;
use proto::billing::{
    ActivationStatus, CollectInvoiceRequest, CollectInvoiceResponse, GetMandateRequest, GetMandateResponse,
    Mandate, StartVerificationRequest, StartVerificationResponse, SubscriptionActivation,
};
use proto::relations::Relation;
use render::printed::Language;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::StartedVerification;
use crate::document::operations::Family;
use crate::document::rules::amounts::number;
use crate::document::{Kind, Links};
use crate::error::Error;
use crate::mandate::{self, MandateState};
use crate::money::two_places;
use crate::online_payment::operations::request_cancellation;
use crate::online_payment::store::{self, commands};
use crate::online_payment::{CommandKind, NewCommand, OnlinePayment, Purpose, TAKEOVER_DELAY};
use crate::processor::operations::{collect, request_payment};
use crate::subscription::operations::{Activation, activate_for_client};
use crate::{identity, payment, settings};

/// The amount of a verification, unless the request names another: 0.01.
const VERIFICATION_AMOUNT: Decimal = Decimal::from_parts(1, 0, 0, false, 2);
/// Characters of the text on the bank statement.
const MAX_DESCRIPTION: usize = 100;

/// What a verification needs besides the request.
#[derive(Clone)]
pub(crate) struct StartVerification {
    pub client: Option<Relation>,
    pub provider: &'static str,
    /// The public URL of the gateway.
    pub base: Arc<str>,
}

/// Asks a client for a mandate. The answer has no `payment_url` yet, because the provider is called after the commit.
pub(crate) async fn start_verification(
    tx: &mut Tx<'_>,
    input: &StartVerificationRequest,
    start: &StartVerification,
) -> Result<StartVerificationResponse, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let given = input.verification.clone().unwrap_or_default();
    let amount = number(&given.amount).unwrap_or(VERIFICATION_AMOUNT);
    if amount <= Decimal::ZERO {
        let at = At::ROOT.name("verification");
        tx.faults.add(&at.name("amount"), Fault::OutOfRange, "amount must be above 0");
    }
    tx.valid()?;
    let client = start.client.as_ref().and_then(|client| chassis_base::id::parse(&client.id));
    let client = client.ok_or(Error::NotFound("client"))?;
    let (account, now, provider) = (tx.account(), tx.now(), start.provider);
    // The lock on the debtor makes two verifications of a client wait for each other.
    let debtor = mandate::store::lock_or_insert(tx, client, provider).await?;
    let previous = store::find_of_client(tx.db(), account, client, provider, Purpose::Verification).await?;
    let canceled_previous = cancel_open(tx, previous.as_ref()).await?;
    if debtor.customer_id.is_empty() {
        let create = NewCommand {
            kind: CommandKind::CreateCustomer,
            subject: client,
            provider,
            amount: Decimal::ZERO,
            delay: TAKEOVER_DELAY,
        };
        commands::enqueue(tx, &create).await?;
    }
    let new = OnlinePayment::new(tx.id(), Purpose::Verification, provider, account, now);
    let token = chassis_rpc::Link { account, secret: new.token }.encode();
    let payment = OnlinePayment {
        client_id: Some(client),
        amount: two_places(amount),
        currency: tx.settings().currency.clone(),
        description: description(tx).await?,
        return_url: format!("{}/payments/{token}", start.base),
        ..new
    };
    request_payment(tx, None, &payment, TAKEOVER_DELAY).await?;
    let previous = previous.map(|payment| payment.status);
    mandate::operations::apply_verification(tx, &debtor, previous, payment.status).await?;
    let started = StartedVerification { client, payment, canceled_previous };
    Ok(StartVerificationResponse { data: Some(started.into()) })
}

/// The text on the client's bank statement.
async fn description(tx: &mut Tx<'_>) -> Result<String, Error> {
    let account = tx.account();
    let seller = identity::seller(tx.db(), account).await?;
    let language = settings::store::for_documents(tx.db(), account).await?.settings.language;
    let what = match language {
        Language::Nl => "Machtiging",
        Language::En => "Mandate",
    };
    let text = format!("{what} {}", seller.party.name);
    Ok(text.trim().chars().take(MAX_DESCRIPTION).collect())
}

/// Requests the cancellation of the latest verification of a client if it is open; returns whether it was.
async fn cancel_open(tx: &mut Tx<'_>, latest: Option<&OnlinePayment>) -> Result<bool, Error> {
    match latest.filter(|payment| payment.status.is_open() && !payment.closing) {
        Some(open) => request_cancellation(tx, open.id, TimeDelta::zero()).await,
        None => Ok(false),
    }
}

/// What a collection needs besides the request.
pub(crate) struct Collecting {
    pub provider: &'static str,
    pub links: Links,
}

/// Requests the collection of an invoice, with an error that says why it is not possible.
pub(crate) async fn collect_on_request(
    tx: &mut Tx<'_>,
    input: &CollectInvoiceRequest,
    Collecting { provider, links }: &Collecting,
) -> Result<CollectInvoiceResponse, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let family = Family::lock(tx, links, Kind::Invoice, &input.id).await?;
    let family = family.ok_or(Error::NotFound(Kind::Invoice.name()))?;
    let (account, record) = (tx.account(), family.target());
    if !record.is_final {
        return Err(Error::IsDraft);
    }
    let id = record.id;
    let client = record.client.as_ref().map(|client| client.id).unwrap_or_default();
    let debtor = mandate::store::find(tx.db(), account, client, provider).await?;
    if debtor.is_none_or(|debtor| debtor.mandate != MandateState::Valid) {
        return Err(Error::NotAuthorized);
    }
    let Some(collection) = collect(tx, links, provider, id).await? else {
        let detail = "There is nothing to collect: nothing is open, or it is being paid already.";
        return Err(Error::Incomplete(detail.to_owned()));
    };
    let payment = payment::store::find(tx.db(), account, id, collection).await?;
    Ok(CollectInvoiceResponse { payment: payment.map(Into::into) })
}

/// Activates the subscription that a request for the mandate of its client names. Only the status of the answer is
/// filled in.
pub(crate) async fn activate(
    tx: &mut Tx<'_>,
    input: &GetMandateRequest,
    client: &Uuid,
) -> Result<GetMandateResponse, Error> {
    let status = match activate_for_client(tx, *client, &input.subscription_id).await? {
        Activation::Activated => ActivationStatus::Activated,
        Activation::NotFound => ActivationStatus::NotFound,
        Activation::UpdateFailed => ActivationStatus::UpdateFailed,
    };
    let subscription_activation = Some(SubscriptionActivation { status: status.into() });
    Ok(GetMandateResponse { data: Some(Mandate { subscription_activation, ..Mandate::default() }) })
}
