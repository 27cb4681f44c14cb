//! Requesting a payment, and showing it among the payments of its invoice.

use chassis_base::Timezone;
use chassis_data::Tx;
use chrono::{DateTime, TimeDelta, Utc};
use proto::billing::{PaymentMethod, PaymentType};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::document::operations::Family;
use crate::error::Error;
use crate::online_payment::store::{self, commands};
use crate::online_payment::{CommandKind, NewCommand, OnlinePayment, Purpose, Status, rules};
use crate::payment::{self, Payment};

/// Stores a new payment, shows it on its invoice, and queues the command that creates it at the provider. The worker
/// executes the command after `delay`, unless the caller does so before.
pub(crate) async fn request_payment(
    tx: &mut Tx<'_>,
    family: Option<&mut Family>,
    payment: &OnlinePayment,
    delay: TimeDelta,
) -> Result<(), Error> {
    let account = tx.account();
    store::insert(tx.db(), account, payment).await?;
    let create = NewCommand {
        kind: CommandKind::CreatePayment,
        subject: payment.id,
        provider: &payment.provider,
        amount: Decimal::ZERO,
        delay,
    };
    commands::enqueue(tx, &create).await?;
    match family {
        Some(family) => show_on_invoice(tx, family, None, payment).await,
        None => Ok(()),
    }
}

/// Gives up a payment of a provider that is no longer in use and cannot be asked any more. If that provider is
/// configured again and reports the payment as paid, it is recorded as paid.
pub(crate) async fn abandon(
    tx: &mut Tx<'_>,
    family: &mut Family,
    payment: OnlinePayment,
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let abandoned = OnlinePayment { status: Status::Canceled, closing: true, ..payment.clone() };
    store::update(tx.db(), account, &abandoned, now).await?;
    show_on_invoice(tx, family, Some(&payment), &abandoned).await
}

/// Stores an online payment among the payments of its invoice, which showed it as `before`. A status that was
/// changed, or an entry that was removed by hand stays so, until money is received or returned.
pub(crate) async fn show_on_invoice(
    tx: &mut Tx<'_>,
    family: &mut Family,
    before: Option<&OnlinePayment>,
    online: &OnlinePayment,
) -> Result<(), Error> {
    let (account, zone, now) = (tx.account(), tx.settings().timezone, tx.now());
    let current = payment::store::find(tx.db(), account, family.target().id, online.id).await?;
    // An entry that was removed may come back, and goes on counting then.
    let version = match &current {
        Some(current) => current.version,
        None => tx.first_version(payment::AUDIT_KIND, online.id).await?,
    };
    let entry = entry(online, family.target().id, current.as_ref(), zone, now);
    let mut entry = Payment { version, ..entry };
    let Some(before) = before else {
        return payment::record_provider_payment(tx, family, current.as_ref(), entry, "payment_added").await;
    };
    if online.status != Status::Paid {
        let Some(current) = &current else { return Ok(()) };
        if current.status != rules::invoice_entry(before).status {
            entry.status = current.status;
            entry.amount = current.amount;
            entry.date = current.date;
        }
    }
    payment::record_provider_payment(tx, family, current.as_ref(), entry, "payment_changed").await
}

/// An online payment as an entry of its invoice, apart from its version; `current` is the entry that is stored.
fn entry(
    online: &OnlinePayment,
    invoice: Uuid,
    current: Option<&Payment>,
    zone: Timezone,
    now: DateTime<Utc>,
) -> Payment {
    let rules::InvoiceEntry { status, amount } = rules::invoice_entry(online);
    let day = online.paid_at.unwrap_or(online.created_at).with_timezone(&zone).date_naive();
    Payment {
        id: online.id,
        invoice,
        version: 1,
        amount,
        date: day,
        status,
        kind: PaymentType::Online,
        method: match online.purpose {
            Purpose::Collection => PaymentMethod::Banktransfer,
            Purpose::Checkout | Purpose::Verification => PaymentMethod::Ideal,
        },
        external_id: online.external_id.clone(),
        provider: online.provider.clone(),
        sent_data: current.map(|current| current.sent_data.clone()).unwrap_or_default(),
        feedback_data: rules::feedback(online),
        created_at: current.map_or(now, |current| current.created_at),
        updated_at: current.map_or(now, |current| current.updated_at),
    }
}
