//! Writing down what came of a wish: the payment, the invoice and the mandate follow, in one transaction.

use chassis_data::Tx;
use chassis_work::worker::backoff;
use chrono::{DateTime, TimeDelta, Utc};
use provider::Fault;
use rust_decimal::Decimal;

use super::rules::{self, Seen};
use super::wish::{self, Kind, Wish};
use super::{OnlinePayment, Purpose, Status, record, store};
use crate::debit::{self, Answered};
use crate::document::operations::Family;
use crate::{Error, document, payment};

const FIRST_WAIT: TimeDelta = TimeDelta::seconds(2);
const MOST_WAIT: TimeDelta = TimeDelta::hours(1);
/// Characters kept of what a provider says.
const MOST_SAID: usize = 1000;

/// What came of a wish.
#[derive(Debug)]
pub enum Outcome {
    /// The provider, and its id of the new customer.
    Customer(&'static str, String),
    Seen(Box<Seen>),
    /// It will not be done.
    Refused(String),
    /// The same, because of the mandate; these are the client's now.
    MandateInvalid {
        detail: String,
        mandates: Vec<provider::Mandate>,
        at: DateTime<Utc>,
    },
    /// The provider has no such payment.
    Unknown,
    /// To be tried again, not before so many seconds.
    Later {
        error: String,
        after: Option<u64>,
    },
    /// It is for another provider, and waits for that one.
    Elsewhere,
    /// There was nothing to do any more.
    Nothing,
}

impl Outcome {
    pub fn of(fault: Fault) -> Self {
        match fault {
            Fault::Refused { detail, .. } | Fault::MandateInvalid { detail } => Self::Refused(detail),
            Fault::Unavailable { detail, retry_after } => Self::Later { error: detail, after: retry_after },
            Fault::Unknown { detail } => Self::Later { error: detail, after: None },
            Fault::Forged => Self::Later { error: fault.to_string(), after: None },
        }
    }
}

pub struct Done {
    pub wish: Wish,
    pub outcome: Outcome,
}

/// Writes a payment down that is to be asked for, with the wish for it. `after` from now a worker takes it up.
pub async fn begin(
    tx: &mut Tx<'_>,
    family: Option<&mut Family>,
    payment: &OnlinePayment,
    after: TimeDelta,
) -> Result<(), Error> {
    let account = tx.account();
    store::insert(tx.db(), account, payment).await?;
    wish::add(tx, (Kind::Payment, payment.id), &payment.provider, Decimal::ZERO, after).await?;
    match family {
        Some(family) => show(tx, family, None, payment).await,
        None => Ok(()),
    }
}

pub async fn note(tx: &mut Tx<'_>, done: &Done) -> Result<(), Error> {
    let Done { wish, outcome } = done;
    match outcome {
        Outcome::Later { error, after } => {
            let retry = after.and_then(|seconds| TimeDelta::try_seconds(i64::try_from(seconds).ok()?));
            let attempts = u32::try_from(wish.attempts).unwrap_or(1);
            let wait = backoff(attempts, FIRST_WAIT, MOST_WAIT).max(retry.unwrap_or_default().min(MOST_WAIT));
            tracing::warn!(kind = wish.kind.name(), subject = %wish.subject, error, "a wish has to wait");
            let (until, error) = (tx.now() + wait, shortened(error));
            wish::postpone(tx, wish, until, &error).await
        }
        Outcome::Customer(provider, id) => {
            debit::set_customer(tx, wish.subject, provider, id).await?;
            wish::remove(tx, wish.kind, wish.subject).await
        }
        Outcome::Seen(seen) => {
            if wish.kind != Kind::Ask {
                wish::remove(tx, wish.kind, wish.subject).await?;
            }
            let answered = seen.mandates.as_deref().map(|mandates| Answered { mandates, at: seen.at });
            take_in(tx, wish, |known| rules::learn(known, seen), answered).await
        }
        Outcome::Refused(detail) => {
            tracing::warn!(kind = wish.kind.name(), subject = %wish.subject, detail, "a wish was refused");
            wish::remove(tx, wish.kind, wish.subject).await?;
            match wish.kind {
                Kind::Payment => take_in(tx, wish, |known| failed(known, detail), None).await,
                _ => Ok(()),
            }
        }
        Outcome::MandateInvalid { detail, mandates, at } => {
            tracing::warn!(payment = %wish.subject, detail, "the mandate of a collection was refused");
            wish::remove(tx, wish.kind, wish.subject).await?;
            let answered = Answered { mandates, at: *at };
            take_in(tx, wish, |known| failed(known, detail), Some(answered)).await
        }
        Outcome::Unknown => {
            wish::remove(tx, wish.kind, wish.subject).await?;
            take_in(tx, wish, |known| failed(known, "The provider does not know this payment."), None).await
        }
        Outcome::Elsewhere => Ok(()),
        Outcome::Nothing => wish::remove(tx, wish.kind, wish.subject).await,
    }
}

/// What did not come to anything. What came to something meanwhile stays so.
fn failed(known: &OnlinePayment, reason: &str) -> OnlinePayment {
    if !known.status.is_open() {
        return known.clone();
    }
    OnlinePayment {
        status: Status::Failed,
        failure: shortened(reason),
        checkout_url: String::new(),
        ..known.clone()
    }
}

fn shortened(text: &str) -> String {
    text.chars().filter(|letter| *letter != '\0').take(MOST_SAID).collect()
}

/// Stores what is now known of a payment, with all that follows from it.
async fn take_in(
    tx: &mut Tx<'_>,
    wish: &Wish,
    learn: impl FnOnce(&OnlinePayment) -> OnlinePayment,
    answered: Option<Answered<'_>>,
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(unlocked) = store::find(tx.db(), account, wish.subject).await? else { return Ok(()) };
    // The invoice is locked first, then the client, as everyone does.
    let mut family = match unlocked.document_id {
        Some(invoice) => Family::lock(tx, document::Kind::Invoice, &invoice.to_string()).await?,
        None => None,
    };
    if let Some(client) = unlocked.client_id {
        debit::store::lock(tx.db(), account, client, &unlocked.provider).await?;
    }
    let Some(known) = store::lock(tx.db(), account, unlocked.id).await? else { return Ok(()) };
    let learnt = learn(&known);
    store::update(tx.db(), account, &learnt, now).await?;
    let debtor = match learnt.client_id {
        Some(client) if learnt.purpose != Purpose::Checkout => {
            debit::follow(tx, client, &learnt, answered).await?
        }
        _ => None,
    };
    let waits = learnt.purpose == Purpose::Verification && debtor.is_some_and(|debtor| debtor.is_waiting());
    wish::ask_at(tx, learnt.id, &learnt.provider, rules::next_ask(&learnt, waits, now)).await?;
    if let Some(family) = &mut family {
        if known.status != Status::Paid && learnt.status == Status::Paid {
            refund_surplus(tx, family, &learnt).await?;
        }
        if rules::shown(&known) != rules::shown(&learnt) || known.external_id != learnt.external_id {
            show(tx, family, Some(&known), &learnt).await?;
        }
    }
    Ok(())
}

/// A payment that comes when nothing is open goes back as a whole. A part that is too much is told as
/// `meta.overpaid_amount`: which part of a payment was meant is for people to say.
async fn refund_surplus(tx: &mut Tx<'_>, family: &Family, payment: &OnlinePayment) -> Result<(), Error> {
    let open = family.standing().map(|standing| standing.open).unwrap_or_default();
    if open > Decimal::ZERO {
        return Ok(());
    }
    wish::add(tx, (Kind::Refund, payment.id), &payment.provider, payment.amount, TimeDelta::zero()).await
}

/// The payment among those of its invoice, which showed it as `before`. What was changed or removed there by hand stays
/// so, until money comes or goes.
async fn show(
    tx: &mut Tx<'_>,
    family: &mut Family,
    before: Option<&OnlinePayment>,
    online: &OnlinePayment,
) -> Result<(), Error> {
    let (account, zone, now) = (tx.account(), tx.settings().timezone, tx.now());
    let known = payment::store::find(tx.db(), account, family.target().id, online.id).await?;
    let mut shown = record(online, known.as_ref(), zone, now);
    let Some(before) = before else { return payment::take(tx, family, shown, "payment_added").await };
    if online.status != Status::Paid {
        let Some(known) = known else { return Ok(()) };
        if known.status != rules::shown(before).0 {
            (shown.status, shown.amount, shown.date) = (known.status, known.amount, known.date);
        }
    }
    payment::take(tx, family, shown, "payment_changed").await
}

/// Gives up what was begun with a provider that is no longer the one in use: it cannot be asked any more. Should that
/// provider come back and say that it was paid, it is believed.
pub async fn abandon(tx: &mut Tx<'_>, family: &mut Family, begun: OnlinePayment) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let given_up = OnlinePayment { status: Status::Canceled, closing: true, ..begun.clone() };
    store::update(tx.db(), account, &given_up, now).await?;
    show(tx, family, Some(&begun), &given_up).await
}

/// Has a payment canceled that was removed from its invoice by hand.
pub async fn withdraw(tx: &mut Tx<'_>, payment: uuid::Uuid) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(open) = store::lock(tx.db(), account, payment).await?.filter(|open| open.status.is_open())
    else {
        return Ok(());
    };
    let closing = OnlinePayment { closing: true, ..open };
    store::update(tx.db(), account, &closing, now).await?;
    wish::add(tx, (Kind::Cancel, payment), &closing.provider, Decimal::ZERO, TimeDelta::zero()).await
}

/// Has what is open for another amount than the invoice's canceled. To be called whenever that changes.
pub async fn follow_invoice(tx: &mut Tx<'_>, invoice: uuid::Uuid, open: Decimal) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    if let Some((id, provider)) = store::close_others(tx.db(), account, invoice, open, now).await? {
        wish::add(tx, (Kind::Cancel, id), &provider, Decimal::ZERO, TimeDelta::zero()).await?;
    }
    Ok(())
}
