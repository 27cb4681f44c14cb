//! Fulfilling wishes: the calls to the provider, with no transaction open.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_base::{Account, error};
use chassis_data::Db;
use chassis_rpc::Context;
use chassis_work::worker::Job;
use chrono::{DateTime, TimeDelta, Utc};
use provider::{Fault, NewCustomer, NewPayment, Provider, Sequence};
use uuid::Uuid;

use super::note::{Done, Outcome, note};
use super::rules::{self, Seen};
use super::wish::{self, Kind, Wish};
use super::{OnlinePayment, Purpose, Status, reference, store};
use crate::clients::{self, Clients};
use crate::{Error, debit};

/// For looking up a client.
const LOOK_UP: Duration = Duration::from_secs(5);
/// A payment that the provider does not know after this time is not there.
const KNOWN_WITHIN: TimeDelta = TimeDelta::days(1);
/// How often a refund is asked for that is refused.
const REFUND_ATTEMPTS: i32 = 8;
/// A page that is opened again asks no more often.
const LATELY: TimeDelta = TimeDelta::seconds(10);
/// How long before a wish its payment may have been made, by the provider's clock.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::minutes(10);

/// Where payments are made: the provider, and what is needed to speak to it.
pub struct Till {
    pub db: Db,
    pub provider: Arc<dyn Provider>,
    pub clients: Clients,
    /// Where the gateway is reached from outside, without a slash at the end.
    pub base: Arc<str>,
    /// Whether accounts that have not said anything about it pay in the sandbox, where that is the provider.
    pub sandbox_by_default: bool,
}

/// For whom a wish is fulfilled: a call, or a worker that holds the account's lease.
pub enum Hand<'a> {
    Call(&'a Context),
    Job(&'a Job),
}

impl Hand<'_> {
    pub fn account(&self) -> &Account {
        match self {
            Self::Call(context) => context.account(),
            Self::Job(job) => job.account(),
        }
    }

    fn now(&self) -> DateTime<Utc> {
        match self {
            Self::Call(context) => context.clock.now(),
            Self::Job(job) => job.now(),
        }
    }

    async fn note(&self, db: &Db, done: &Done) -> Result<(), Error> {
        match self {
            Self::Call(context) => {
                // The answer that repeats of the call get is not this transaction's.
                let context = Context { idempotency_key: None, ..(*context).clone() };
                Ok(db.amend(&context, done, &(), note).await?)
            }
            Self::Job(job) => Ok(job.write(done, note).await?),
        }
    }
}

impl Till {
    /// Fulfils a wish of this moment, within the time that the caller has. Whatever is not done then is done later.
    pub async fn at_once(&self, context: &Context, kind: Kind, subject: Uuid) -> Result<(), Error> {
        let found = self
            .db
            .read(async |connection| wish::find(connection, context.account_id(), kind, subject).await)
            .await?;
        let Some(wish) = found else { return Ok(()) };
        self.in_time(context, &wish).await
    }

    /// Asks where a payment stands.
    pub async fn ask(&self, hand: &Hand<'_>, payment: Uuid) -> Result<(), Error> {
        let wish = Wish::ask(self.db.clock().id(), payment, hand.now());
        match hand {
            Hand::Call(context) => self.in_time(context, &wish).await,
            Hand::Job(_) => self.fulfil(hand, &wish).await,
        }
    }

    /// A payment as the provider knows it now, if it may have changed and nobody asked just before. That it cannot be
    /// asked is no reason not to show what is known.
    pub async fn refreshed(&self, context: &Context, payment: OnlinePayment) -> Result<OnlinePayment, Error> {
        let asked_lately = payment.asked_at + LATELY > context.clock.now();
        if !matches!(payment.status, Status::Open | Status::Pending) || asked_lately {
            return Ok(payment);
        }
        self.ask_in_vain(context, payment.id).await;
        let found = self
            .db
            .read(async |connection| store::find(connection, context.account_id(), payment.id).await)
            .await?;
        Ok(found.unwrap_or(payment))
    }

    /// An address of our own without its host: the payer may know us by another name.
    pub fn local(&self, url: &str) -> String {
        let path = url.strip_prefix(&*self.base).filter(|path| path.starts_with('/'));
        path.unwrap_or(url).to_owned()
    }

    /// Asks a question that may stay without an answer.
    pub async fn ask_in_vain(&self, context: &Context, payment: Uuid) {
        if let Err(error) = self.ask(&Hand::Call(context), payment).await {
            let error = chassis_base::Error::from(error);
            tracing::warn!(%error, %payment, "a payment could not be asked about");
        }
    }

    async fn in_time(&self, context: &Context, wish: &Wish) -> Result<(), Error> {
        // Some of the caller's time is left for the answer.
        let left = context.deadline.saturating_duration_since(Instant::now());
        let left = left.saturating_sub(Duration::from_millis(500));
        match tokio::time::timeout(left, Box::pin(self.fulfil(&Hand::Call(context), wish))).await {
            Ok(outcome) => outcome,
            Err(_) => Err(away()),
        }
    }

    /// Fulfils a wish, and first what it needs.
    pub async fn fulfil(&self, hand: &Hand<'_>, wish: &Wish) -> Result<(), Error> {
        if let Some(first) = self.needed(hand, wish).await? {
            let outcome = self.perform(hand, &first).await?;
            hand.note(&self.db, &Done { wish: first, outcome }).await?;
        }
        let outcome = self.perform(hand, wish).await?;
        hand.note(&self.db, &Done { wish: wish.clone(), outcome }).await
    }

    /// A payment needs its customer, and everything else its payment.
    async fn needed(&self, hand: &Hand<'_>, wish: &Wish) -> Result<Option<Wish>, Error> {
        let account = hand.account().id;
        let mut connection = self.db.acquire().await?;
        let payment = match wish.kind {
            Kind::Customer => None,
            _ => store::find(&mut connection, account, wish.subject).await?,
        };
        let Some(payment) = payment.filter(|payment| payment.status == Status::Wanted) else {
            return Ok(None);
        };
        let needed = match (wish.kind, payment.client_id) {
            (Kind::Payment, Some(client)) if payment.purpose == Purpose::Verification => {
                wish::find(&mut connection, account, Kind::Customer, client).await?
            }
            (Kind::Payment, _) => None,
            _ => wish::find(&mut connection, account, Kind::Payment, payment.id).await?,
        };
        connection.done();
        Ok(needed)
    }

    async fn perform(&self, hand: &Hand<'_>, wish: &Wish) -> Result<Outcome, Error> {
        if wish.kind == Kind::Customer {
            return self.customer(hand.account(), wish).await;
        }
        let account = hand.account().id;
        let mut connection = self.db.acquire().await?;
        let mut payment = match store::find(&mut connection, account, wish.subject).await? {
            Some(payment) if payment.provider == self.provider.name() => payment,
            Some(_) => return Ok(Outcome::Elsewhere),
            None => return Ok(Outcome::Nothing),
        };
        if let Some(client) = payment.client_id.filter(|_| payment.customer_id.is_empty()) {
            let debtor = debit::store::find(&mut connection, account, client, self.provider.name()).await?;
            payment.customer_id = debtor.map(|debtor| debtor.customer_id).unwrap_or_default();
        }
        connection.done();
        let now = hand.now();
        let answer = match wish.kind {
            Kind::Payment => self.payment(hand.account(), wish, &payment, now).await,
            _ if payment.external_id.is_empty() => return Ok(Outcome::Nothing),
            Kind::Cancel if !payment.status.is_open() => return Ok(Outcome::Nothing),
            Kind::Cancel => self.provider.cancel_payment(&wish.key(), &payment.external_id).await,
            Kind::Refund => self.refund(wish, &payment).await,
            Kind::Ask | Kind::Customer => self.provider.payment(&payment.external_id).await,
        };
        let created = wish.kind == Kind::Payment;
        match answer {
            Ok(Some(told)) => {
                let mandates = self.mandates(&payment, &told).await;
                Ok(Outcome::Seen(Box::new(Seen { payment: told, mandates, at: now, created })))
            }
            Ok(None) if created => Ok(Outcome::Nothing),
            Ok(None) if now - payment.created_at > KNOWN_WITHIN => Ok(Outcome::Unknown),
            Ok(None) => Ok(Outcome::Later { error: "the provider does not know it".to_owned(), after: None }),
            Err(Fault::MandateInvalid { detail }) => {
                let mandates = self.mandates_without(&payment).await;
                Ok(Outcome::MandateInvalid { detail, mandates, at: now })
            }
            // Questions are never given up, refunds not at once: a key that was wrong for a while may be the reason.
            Err(Fault::Refused { detail, .. }) if wish.kind == Kind::Ask || insists(wish) => {
                Ok(Outcome::Later { error: detail, after: None })
            }
            Err(fault) => Ok(Outcome::of(fault)),
        }
    }

    async fn customer(&self, account: &Account, wish: &Wish) -> Result<Outcome, Error> {
        let Some(client) = self.clients.get(account, wish.subject, Instant::now() + LOOK_UP).await? else {
            return Ok(Outcome::Refused("The client is no longer there.".to_owned()));
        };
        let customer = NewCustomer {
            reference: reference(account.id, wish.subject),
            name: clients::buyer(&client).name,
            email: Some(client.email).filter(|email| !email.is_empty()),
        };
        Ok(match self.provider.create_customer(&wish.key(), &customer).await {
            Ok(id) => Outcome::Customer(self.provider.name(), id),
            Err(fault) => Outcome::of(fault),
        })
    }

    /// Makes a payment, or finds it when it was made and nobody heard of it.
    async fn payment(
        &self,
        account: &Account,
        wish: &Wish,
        payment: &OnlinePayment,
        now: DateTime<Utc>,
    ) -> Result<Option<provider::Payment>, Fault> {
        if payment.status != Status::Wanted {
            return Ok(None);
        }
        if payment.purpose == Purpose::Verification && payment.customer_id.is_empty() {
            return self.without_customer(account, payment).await;
        }
        let ours = payment.reference(account.id);
        if wish.attempts > 1 {
            let since = payment.created_at - CLOCKS_DIFFER;
            if let Some(made) = self.provider.find_payment(&ours, since).await? {
                return Ok(Some(made));
            }
            if now - wish.created_at > rules::patience(payment.purpose) {
                let detail = "The provider could not be reached in time.".to_owned();
                return Err(Fault::Refused { detail, field: None });
            }
        }
        let customer = payment.customer_id.clone();
        let token = chassis_rpc::Link { account: account.id, secret: payment.token }.encode();
        let new = NewPayment {
            reference: ours,
            sequence: match payment.purpose {
                Purpose::Checkout => Sequence::OneOff,
                Purpose::Verification => Sequence::First { customer },
                Purpose::Collection => Sequence::Recurring { customer, mandate: payment.mandate_id.clone() },
            },
            amount: payment.amount,
            currency: payment.currency.clone(),
            description: payment.description.clone(),
            return_url: Some(payment.return_url.clone()).filter(|url| !url.is_empty()),
            webhook_url: format!("{}/payments/webhooks/{token}", self.base),
        };
        self.provider.create_payment(&wish.key(), &new).await.map(Some)
    }

    /// The customer was to be made first. Is the wish for it gone, the provider has refused it.
    async fn without_customer(
        &self,
        account: &Account,
        payment: &OnlinePayment,
    ) -> Result<Option<provider::Payment>, Fault> {
        let client = payment.client_id.unwrap_or_default();
        let still_wished = async {
            self.db
                .read(async |connection| wish::find(connection, account.id, Kind::Customer, client).await)
                .await
        };
        if let Ok(None) = still_wished.await {
            let detail = "The provider does not take this client.".to_owned();
            return Err(Fault::Refused { detail, field: None });
        }
        let detail = "the provider does not know the client yet".to_owned();
        Err(Fault::Unavailable { detail, retry_after: None })
    }

    /// Pays money back, once: a repeat first looks whether it was done.
    async fn refund(&self, wish: &Wish, payment: &OnlinePayment) -> Result<Option<provider::Payment>, Fault> {
        let id = &payment.external_id;
        if wish.attempts > 1 {
            let told = self.provider.payment(id).await?;
            if told.as_ref().is_some_and(|told| told.refunded >= payment.refunded + wish.amount) {
                return Ok(told);
            }
        }
        self.provider.refund(&wish.key(), id, wish.amount).await?;
        self.provider.payment(id).await
    }

    /// The mandates of a client after the one of this collection was refused. Can the others not be had now, they are not
    /// missed: the one in use is not valid.
    async fn mandates_without(&self, payment: &OnlinePayment) -> Vec<provider::Mandate> {
        let refused = &payment.mandate_id;
        match self.provider.mandates(&payment.customer_id).await {
            Ok(mandates) => debit::without(mandates, refused),
            Err(fault) => {
                tracing::warn!(%fault, payment = %payment.id, "mandates could not be asked for");
                vec![provider::Mandate { id: refused.clone(), status: provider::MandateStatus::Invalid }]
            }
        }
    }

    /// Once a payment of a client has ended, its mandates may be others. That they cannot be had now is no reason to
    /// forget what became of the payment.
    async fn mandates(
        &self,
        payment: &OnlinePayment,
        told: &provider::Payment,
    ) -> Option<Vec<provider::Mandate>> {
        if payment.purpose == Purpose::Checkout || Status::from(told.status).is_open() {
            return None;
        }
        match self.provider.mandates(&payment.customer_id).await {
            Ok(mandates) => Some(mandates),
            Err(fault) => {
                tracing::warn!(%fault, payment = %payment.id, "mandates could not be asked for");
                None
            }
        }
    }
}

fn insists(wish: &Wish) -> bool {
    wish.kind == Kind::Refund && wish.attempts < REFUND_ATTEMPTS
}

/// What a caller is told when the provider does not answer. The wish stays.
pub fn away() -> Error {
    let answer = error::status::unavailable(
        "The payment provider cannot be reached right now. Repeat the request in a moment.",
    );
    chassis_base::Error::Peer(Box::new(answer)).into()
}
