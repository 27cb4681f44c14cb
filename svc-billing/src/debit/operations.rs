//! Asking for a mandate, following it, and collecting with it. Each function runs inside a write transaction.

use std::sync::Arc;

use chassis_data::Tx;
use chrono::TimeDelta;
use proto::At;
use proto::api::Fault;
use proto::billing::{
    CollectInvoiceRequest, CollectInvoiceResponse, StartVerificationRequest, StartVerificationResponse,
};
use proto::relations::Relation;
use render::paper::Language;
use rust_decimal::Decimal;

use super::rules::{self, Answered};
use super::{Debtor, Given, answer, store};
use crate::document::Kind;
use crate::document::operations::Family;
use crate::document::rules::amounts::two_places;
use crate::document::rules::input::number;
use crate::online::wish::{self, GRACE};
use crate::online::{self, By, OnlinePayment, Purpose};
use crate::{Error, identity, payment, settings};

/// What a client pays to verify, unless something else is asked.
const VERIFICATION: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// What asking for a mandate needs besides the request.
#[derive(Clone)]
pub struct Asked {
    pub client: Option<Relation>,
    pub provider: &'static str,
    pub base: Arc<str>,
}

/// Asks a client for a mandate. The answer has no `payment_url` yet: the provider is called after the commit.
pub async fn verify(
    tx: &mut Tx<'_>,
    (input, asked): &(StartVerificationRequest, Asked),
) -> Result<StartVerificationResponse, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let given = input.verification.clone().unwrap_or_default();
    let amount = number(&given.amount).unwrap_or(VERIFICATION);
    if amount <= Decimal::ZERO {
        let at = At::ROOT.name("verification");
        tx.faults.add(&at.name("amount"), Fault::OutOfRange, "amount must be above 0");
    }
    tx.valid()?;
    let client = asked.client.as_ref().and_then(|client| chassis_base::id::parse(&client.id));
    let client = client.ok_or(Error::NotFound("client"))?;
    let (account, now, provider) = (tx.account(), tx.now(), asked.provider);
    let debtor = store::lock_or_insert(tx, client, provider).await?;
    audit(tx, &debtor);
    let canceled = cancel_open(tx, client, provider).await?;
    if debtor.customer_id.is_empty() {
        wish::add(tx, (wish::Kind::Customer, client), provider, Decimal::ZERO, GRACE).await?;
    }
    let new = OnlinePayment::wanted(tx.id(), Purpose::Verification, provider, account, now);
    let token = chassis_rpc::Link { account, secret: new.token }.encode();
    let payment = OnlinePayment {
        client_id: Some(client),
        amount: two_places(amount),
        currency: tx.settings().currency.clone(),
        description: description(tx).await?,
        return_url: format!("{}/payments/{token}", asked.base),
        ..new
    };
    online::begin(tx, None, &payment, GRACE).await?;
    Ok(StartVerificationResponse { data: Some(answer::verification(&payment, client, canceled)) })
}

/// What the client reads on the bank statement.
async fn description(tx: &mut Tx<'_>) -> Result<String, Error> {
    let account = tx.account();
    let seller = identity::seller(tx.db(), account).await?;
    let language = settings::store::for_documents(tx.db(), account).await?.settings.language;
    let what = match language {
        Language::Nl => "Machtiging",
        Language::En => "Mandate",
    };
    let text = format!("{what} {}", seller.party.name);
    Ok(text.trim().chars().take(100).collect())
}

/// Has the open verification of a client canceled, if there is one.
async fn cancel_open(tx: &mut Tx<'_>, client: uuid::Uuid, provider: &str) -> Result<bool, Error> {
    let (account, now) = (tx.account(), tx.now());
    let purpose = Purpose::Verification;
    let latest = online::store::find_of_client(tx.db(), account, client, provider, purpose).await?;
    let Some(open) = latest.filter(|payment| payment.status.is_open() && !payment.closing) else {
        return Ok(false);
    };
    // Read again under its lock: it may have been paid this moment.
    let locked = online::store::lock(tx.db(), account, open.id).await?;
    let Some(open) = locked.filter(|payment| payment.status.is_open()) else { return Ok(false) };
    let closing = OnlinePayment { closing: true, ..open };
    online::store::update(tx.db(), account, &closing, now).await?;
    wish::add(tx, (wish::Kind::Cancel, closing.id), provider, Decimal::ZERO, TimeDelta::zero()).await?;
    Ok(true)
}

/// The client's mandate after a payment became known. `None` when there is nothing to follow.
pub async fn follow(
    tx: &mut Tx<'_>,
    client: uuid::Uuid,
    payment: &OnlinePayment,
    answered: Option<Answered<'_>>,
) -> Result<Option<Debtor>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(known) = store::lock(tx.db(), account, client, &payment.provider).await? else {
        return Ok(None);
    };
    let learnt = rules::learn(&known, payment, answered, now);
    keep(tx, &known, &learnt).await?;
    Ok(Some(learnt))
}

/// Stores what is known of a client's mandate now. That it was looked at and is as it was leaves no trace in the audit
/// log.
pub async fn keep(tx: &mut Tx<'_>, known: &Debtor, learnt: &Debtor) -> Result<(), Error> {
    if learnt == known {
        return Ok(());
    }
    let now = tx.now();
    store::update(tx, learnt, rules::next_look(learnt, now)).await?;
    let only_looked_at = Debtor { asked_at: known.asked_at, ..learnt.clone() } == *known;
    if only_looked_at {
        tx.unaudited("the mandate was looked at and is as it was");
    } else {
        audit(tx, learnt);
    }
    Ok(())
}

/// The provider knows a client from now on.
pub async fn set_customer(
    tx: &mut Tx<'_>,
    client: uuid::Uuid,
    provider: &str,
    customer: &str,
) -> Result<(), Error> {
    let account = tx.account();
    store::set_customer(tx, client, provider, customer).await?;
    if let Some(debtor) = store::find(tx.db(), account, client, provider).await? {
        audit(tx, &debtor);
    }
    Ok(())
}

/// Keeps a mandate in the audit log as it is now.
fn audit(tx: &mut Tx<'_>, debtor: &Debtor) {
    tx.changed("mandate", debtor.client_id, &answer::of_debtor(debtor));
}

/// Has what is open on an invoice collected with the mandate of its client. `None` when the client has no valid one, or
/// there is nothing to collect, or it is being paid already. To be called inside the transaction that makes the invoice.
pub async fn collect(
    tx: &mut Tx<'_>,
    provider: &str,
    invoice: uuid::Uuid,
) -> Result<Option<uuid::Uuid>, Error> {
    let Some(mut family) = Family::lock(tx, Kind::Invoice, &invoice.to_string()).await? else {
        return Ok(None);
    };
    let (account, now) = (tx.account(), tx.now());
    let open = family.standing().map(|standing| standing.open).unwrap_or_default();
    let record = family.target();
    let Some(client) = record.client.as_ref().map(|client| client.id) else { return Ok(None) };
    if !record.is_final || open <= Decimal::ZERO {
        return Ok(None);
    }
    let (currency, number) = (record.currency.clone(), record.number.clone());
    let debtor = store::find(tx.db(), account, client, provider).await?;
    let Some(debtor) = debtor.filter(|debtor| debtor.mandate == Given::Valid) else { return Ok(None) };
    let latest = online::store::find_latest(tx.db(), account, invoice).await?;
    match latest.filter(|payment| payment.status.is_open()) {
        Some(begun) if begun.provider == provider => return Ok(None),
        Some(begun) => online::abandon(tx, &mut family, begun).await?,
        None => {}
    }
    let payment = OnlinePayment {
        client_id: Some(client),
        document_id: Some(invoice),
        amount: open,
        currency,
        description: number,
        customer_id: debtor.customer_id,
        mandate_id: debtor.mandate_id,
        ..OnlinePayment::wanted(tx.id(), Purpose::Collection, provider, account, now)
    };
    online::begin(tx, Some(&mut family), &payment, TimeDelta::zero()).await?;
    Ok(Some(payment.id))
}

/// The same when somebody asks for it, who is told why not.
pub async fn collect_on_request(
    tx: &mut Tx<'_>,
    (input, By(provider)): &(CollectInvoiceRequest, By),
) -> Result<CollectInvoiceResponse, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let family = Family::lock(tx, Kind::Invoice, &input.id).await?;
    let family = family.ok_or(Error::NotFound(Kind::Invoice.name()))?;
    let (account, record) = (tx.account(), family.target());
    if !record.is_final {
        return Err(Error::IsDraft);
    }
    let (id, client) = (record.id, record.client.as_ref().map(|client| client.id).unwrap_or_default());
    let debtor = store::find(tx.db(), account, client, provider).await?;
    if debtor.is_none_or(|debtor| debtor.mandate != Given::Valid) {
        return Err(Error::NotAuthorized);
    }
    let Some(begun) = collect(tx, provider, id).await? else {
        let detail = "There is nothing to collect: nothing is open, or it is being paid already.";
        return Err(Error::Incomplete(detail.to_owned()));
    };
    let payment = payment::store::find(tx.db(), account, id, begun).await?;
    Ok(CollectInvoiceResponse { payment: payment.map(Into::into) })
}
