//! Recording the outcome of a command: the payment, its invoice and the mandate follow, in one transaction.

use chassis_data::Tx;
use chassis_work::worker::backoff;
use chrono::{DateTime, TimeDelta, Utc};
use provider::Fault;
use rust_decimal::Decimal;

use super::show_on_invoice;
use crate::document::operations::Family;
use crate::document::{Kind, Links};
use crate::error::Error;
use crate::mandate;
use crate::mandate::rules::MandateReport;
use crate::online_payment::rules::{self, Observed};
use crate::online_payment::store::{self, commands};
use crate::online_payment::{CommandKind, NewCommand, OnlinePayment, ProviderCommand, Purpose, Status};

const INITIAL_BACKOFF: TimeDelta = TimeDelta::seconds(2);
const MAX_BACKOFF: TimeDelta = TimeDelta::hours(1);

/// What came of a command.
#[derive(Debug)]
pub(crate) enum Outcome {
    CustomerCreated {
        provider: &'static str,
        /// The provider's id of the customer.
        customer: String,
    },
    /// The provider answered with the payment.
    Observed(Box<Observed>),
    /// The provider refused and would refuse again.
    Refused(String),
    /// The provider refused to collect with the mandate; `mandates` are those of the client now.
    MandateInvalid { detail: String, mandates: Vec<provider::Mandate>, at: DateTime<Utc> },
    /// The provider has no such payment.
    NotFound,
    /// To be tried again, not before so many seconds.
    Retry { error: String, after: Option<u64> },
    /// The payment belongs to a provider that is not configured now; the command waits for that provider.
    OtherProvider,
    /// Nothing was left to do.
    Superseded,
}

impl From<Fault> for Outcome {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused { detail, .. } | Fault::MandateInvalid { detail } => Self::Refused(detail),
            Fault::Unavailable { detail, retry_after } => Self::Retry { error: detail, after: retry_after },
            Fault::OutcomeUnknown { detail } => Self::Retry { error: detail, after: None },
            Fault::Forged => Self::Retry { error: fault.to_string(), after: None },
        }
    }
}

/// A command with its outcome.
pub(crate) struct CommandOutcome {
    pub command: ProviderCommand,
    pub outcome: Outcome,
    /// The links of the invoice that may change with its payment.
    pub links: Links,
}

/// Records the outcome of a command. The command leaves the queue in the same transaction, so that neither can be
/// without the other.
pub(crate) async fn record(tx: &mut Tx<'_>, executed: &CommandOutcome) -> Result<(), Error> {
    let CommandOutcome { command, outcome, .. } = executed;
    match outcome {
        Outcome::Retry { error, after } => postpone(tx, command, error, *after).await,
        Outcome::CustomerCreated { provider, customer } => {
            mandate::operations::set_customer(tx, command.subject, provider, customer).await?;
            commands::remove(tx, command.kind, command.subject).await
        }
        Outcome::Observed(observed) => {
            // A refresh stays: it is rescheduled with the payment below.
            if command.kind != CommandKind::RefreshPayment {
                commands::remove(tx, command.kind, command.subject).await?;
            }
            let mandates = observed.mandates.as_deref();
            let report = mandates.map(|mandates| MandateReport { mandates, at: observed.at });
            change_payment(tx, executed, |current| rules::apply(current, observed), report).await
        }
        Outcome::Refused(detail) => {
            let kind = command.kind.name();
            tracing::warn!(kind, subject = %command.subject, detail, "provider refused a command");
            commands::remove(tx, command.kind, command.subject).await?;
            match command.kind {
                CommandKind::CreatePayment => {
                    change_payment(tx, executed, |current| rules::fail(current, detail), None).await
                }
                _ => Ok(()),
            }
        }
        Outcome::MandateInvalid { detail, mandates, at } => {
            tracing::warn!(payment = %command.subject, detail, "provider refused the mandate of a collection");
            commands::remove(tx, command.kind, command.subject).await?;
            let report = MandateReport { mandates, at: *at };
            change_payment(tx, executed, |current| rules::fail(current, detail), Some(report)).await
        }
        Outcome::NotFound => {
            commands::remove(tx, command.kind, command.subject).await?;
            let reason = "The provider does not know this payment.";
            change_payment(tx, executed, |current| rules::fail(current, reason), None).await
        }
        Outcome::OtherProvider => Ok(()),
        Outcome::Superseded => commands::remove(tx, command.kind, command.subject).await,
    }
}

/// Postpones a command: by the backoff, or by what the provider asks for if that is longer.
async fn postpone(
    tx: &mut Tx<'_>,
    command: &ProviderCommand,
    error: &str,
    after: Option<u64>,
) -> Result<(), Error> {
    let requested = after.and_then(|seconds| TimeDelta::try_seconds(i64::try_from(seconds).ok()?));
    let requested = requested.unwrap_or_default().min(MAX_BACKOFF);
    let attempts = u32::try_from(command.attempts).unwrap_or(1);
    let delay = backoff(attempts, INITIAL_BACKOFF, MAX_BACKOFF).max(requested);
    let kind = command.kind.name();
    tracing::warn!(kind, subject = %command.subject, error, "command to the provider postponed");
    let until = tx.now() + delay;
    commands::postpone(tx, command, until, &rules::truncated(error)).await
}

/// Stores a change of a payment, with all that follows from it.
async fn change_payment(
    tx: &mut Tx<'_>,
    executed: &CommandOutcome,
    change: impl FnOnce(&OnlinePayment) -> OnlinePayment,
    report: Option<MandateReport<'_>>,
) -> Result<(), Error> {
    let (account, now, payment) = (tx.account(), tx.now(), executed.command.subject);
    let Some(unlocked) = store::find(tx.db(), account, payment).await? else { return Ok(()) };
    // Every transaction locks the invoice first, then the debtor, then the payment. The payment is read without a lock
    // before, only to find its invoice and its client, which never change.
    let mut family = match unlocked.document_id {
        Some(invoice) => Family::lock(tx, &executed.links, Kind::Invoice, &invoice.to_string()).await?,
        None => None,
    };
    if let Some(client) = unlocked.client_id {
        mandate::store::lock(tx.db(), account, client, &unlocked.provider).await?;
    }
    let Some(before) = store::lock(tx.db(), account, unlocked.id).await? else { return Ok(()) };
    let payment = change(&before);
    store::update(tx.db(), account, &payment, now).await?;
    let debtor = match payment.client_id {
        Some(client) if payment.purpose != Purpose::Checkout => {
            mandate::operations::apply_payment(tx, client, &before, &payment, report).await?
        }
        _ => None,
    };
    let is_verification = payment.purpose == Purpose::Verification;
    let awaits_mandate = is_verification && debtor.is_some_and(|debtor| debtor.awaits_mandate());
    let next_poll = rules::next_poll(&payment, awaits_mandate, now);
    commands::schedule_refresh(tx, payment.id, &payment.provider, next_poll).await?;
    if let Some(family) = &mut family {
        // Before the invoice takes the payment into account: what is open now is open without this payment.
        if before.status != Status::Paid && payment.status == Status::Paid {
            refund_surplus(tx, family, &payment).await?;
        }
        let is_changed = rules::invoice_entry(&before) != rules::invoice_entry(&payment);
        if is_changed || before.external_id != payment.external_id {
            show_on_invoice(tx, family, Some(&before), &payment).await?;
        }
    }
    Ok(())
}

/// Queues the refund of a payment that arrived when nothing was open any more. A payment of which only a part is too
/// much is kept, and reported as `meta.overpaid_amount`: a person has to decide what the payer meant.
async fn refund_surplus(tx: &mut Tx<'_>, family: &Family, payment: &OnlinePayment) -> Result<(), Error> {
    let open = family.settlement().map(|settlement| settlement.open).unwrap_or_default();
    if open > Decimal::ZERO {
        return Ok(());
    }
    let refund = NewCommand {
        kind: CommandKind::RefundPayment,
        subject: payment.id,
        provider: &payment.provider,
        amount: payment.amount,
        delay: TimeDelta::zero(),
    };
    commands::enqueue(tx, &refund).await
}
