//! Adding, changing and removing payments. Each operation locks the invoice, and updates what it owes in the same
//! transaction.

use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use chrono::TimeDelta;
use proto::At;
use proto::api::Fault;
use proto::billing::{
    PaidInvoice, PaymentInput, PaymentMethod, PaymentPatch, PaymentResult, PaymentStatus, PaymentType,
};
use serde_json::json;

use super::{Payment, rules, store};
use crate::document::operations::{Family, record_history, settle};
use crate::document::rules::amounts::number;
use crate::document::rules::settlement::Settlement;
use crate::document::{Kind, Links, Record};
use crate::error::Error;
use crate::money::two_places;
use crate::online_payment::operations::request_cancellation;

/// The kind of record in the log.
pub(crate) const AUDIT_KIND: &str = "payment";
const PATCH_FIELDS: [&str; 7] =
    ["amount", "date", "status", "method", "external_id", "provider", "payment_data"];

pub(crate) async fn create(
    tx: &mut Tx<'_>,
    links: &Links,
    invoice: &str,
    given: &PaymentInput,
) -> Result<PaymentResult, Error> {
    let at = At::ROOT.name("payment");
    let mut family = lock(tx, links, invoice).await?;
    let open = family.settlement().map(|settlement| settlement.open).unwrap_or_default();
    let amount = match number(&given.amount) {
        Some(amount) => {
            rules::check_amount(amount, family.target().total_incl, &at, &mut tx.faults);
            amount
        }
        None if open.is_zero() => {
            let detail = "amount is required: nothing is open on this invoice";
            tx.faults.add(&at.name("amount"), Fault::Required, detail);
            open
        }
        None => open,
    };
    tx.valid()?;

    let kind = given.r#type().or(PaymentType::Manual);
    let default_status = if kind == PaymentType::Manual { PaymentStatus::Paid } else { PaymentStatus::Open };
    let now = tx.now();
    let payment = Payment {
        id: tx.id(),
        invoice: family.target().id,
        version: 1,
        amount: two_places(amount),
        date: given.date.parse().unwrap_or(tx.today()),
        status: given.status().or(default_status),
        kind,
        method: given.method().or(PaymentMethod::Banktransfer),
        external_id: given.external_id.clone(),
        provider: given.provider.clone(),
        sent_data: given.payment_data.clone(),
        feedback_data: given.feedback_data.clone(),
        created_at: now,
        updated_at: now,
    };
    save(tx, &mut family, None, payment, "payment_added").await
}

/// Changes the fields of the mask. A request that changes nothing writes nothing.
pub(crate) async fn update(
    tx: &mut Tx<'_>,
    links: &Links,
    invoice: &str,
    id: &str,
    given: &PaymentPatch,
    mask: Option<&prost_types::FieldMask>,
) -> Result<PaymentResult, Error> {
    let at = At::ROOT.name("payment");
    let named = UpdateMask::from(mask);
    named.check(|name| PATCH_FIELDS.contains(&name), "payment", &mut tx.faults);
    let mut family = lock(tx, links, invoice).await?;
    let Some(before) = find(tx, &family, id).await? else {
        tx.valid()?;
        return Err(Error::NotFound("payment"));
    };
    let mut payment = before.clone();
    if let Some(amount) = number(&given.amount).filter(|_| named.has("amount")) {
        rules::check_amount(amount, family.target().total_incl, &at, &mut tx.faults);
        payment.amount = two_places(amount);
    }
    tx.valid()?;
    if named.has("status") {
        if !rules::may_become(&payment, given.status()) {
            return Err(Error::PaymentFinal);
        }
        payment.status = given.status();
    }
    if let Some(date) = given.date.parse().ok().filter(|_| named.has("date")) {
        payment.date = date;
    }
    if named.has("method") {
        payment.method = given.method();
    }
    let texts = [
        ("external_id", &given.external_id, &mut payment.external_id),
        ("provider", &given.provider, &mut payment.provider),
        ("payment_data", &given.payment_data, &mut payment.sent_data),
    ];
    for (name, given, current) in texts {
        if named.has(name) {
            current.clone_from(given);
        }
    }
    if payment == before {
        return Ok(result(family.target(), payment));
    }
    payment.version += 1;
    payment.updated_at = tx.now();
    save(tx, &mut family, Some(&before), payment, "payment_changed").await
}

pub(crate) async fn delete(tx: &mut Tx<'_>, links: &Links, invoice: &str, id: &str) -> Result<(), Error> {
    let mut family = lock(tx, links, invoice).await?;
    let Some(payment) = find(tx, &family, id).await? else {
        tx.valid()?;
        return Err(Error::NotFound("payment"));
    };
    tx.valid()?;
    let before = family.settlements();
    let (account, document) = (tx.account(), family.target().id);
    store::delete(tx.db(), account, document, payment.id).await?;
    tx.unlist(&payment.listing());
    tx.removed(AUDIT_KIND, payment.id);
    // An online payment that is removed must not be paid any more. Other payments have no online payment of this id.
    request_cancellation(tx, payment.id, TimeDelta::zero()).await?;
    let target = family.target;
    let change = Change { before: &before, members: &[target], event: "payment_removed" };
    update_invoice(tx, &mut family, change, &payment).await
}

async fn lock(tx: &mut Tx<'_>, links: &Links, invoice: &str) -> Result<Family, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    if let Some(family) = Family::lock(tx, links, Kind::Invoice, invoice).await? {
        return Ok(family);
    }
    // Faults of the body are reported before an id that does not exist.
    tx.valid()?;
    Err(Error::NotFound(Kind::Invoice.name()))
}

async fn find(tx: &mut Tx<'_>, family: &Family, id: &str) -> Result<Option<Payment>, Error> {
    let account = tx.account();
    match chassis_base::id::parse(id) {
        Some(id) => store::find(tx.db(), account, family.target().id, id).await,
        None => Ok(None),
    }
}

/// `current` is the payment as it is stored.
async fn save(
    tx: &mut Tx<'_>,
    family: &mut Family,
    current: Option<&Payment>,
    payment: Payment,
    event: &'static str,
) -> Result<PaymentResult, Error> {
    let (account, document) = (tx.account(), family.target().id);
    // The invoice is locked, so that no other transaction can add the same external id after this check.
    let holder = store::find_by_external_id(tx.db(), account, document, &payment.external_id).await?;
    if let Some(holder) = holder.filter(|holder| *holder != payment.id) {
        return Err(Error::ExternalIdTaken { holder: Some(holder) });
    }
    let before = family.settlements();
    put(tx, current, &payment).await?;
    let target = family.target;
    let change = Change { before: &before, members: &[target], event };
    update_invoice(tx, family, change, &payment).await?;
    Ok(result(family.target(), payment))
}

/// Stores a payment as its provider reported it, new or changed. An external id that another payment of the invoice
/// has is left to that payment. A status of the invoice that was set by hand stays, until money is received or
/// returned. `current` is the payment as it is stored; if it stays the same, nothing is written.
pub(crate) async fn record_provider_payment(
    tx: &mut Tx<'_>,
    family: &mut Family,
    current: Option<&Payment>,
    mut payment: Payment,
    event: &'static str,
) -> Result<(), Error> {
    let (account, now, document) = (tx.account(), tx.now(), family.target().id);
    let holder = store::find_by_external_id(tx.db(), account, document, &payment.external_id).await?;
    if holder.is_some_and(|holder| holder != payment.id) {
        payment.external_id.clear();
    }
    if let Some(current) = current {
        if *current == payment {
            return Ok(());
        }
        payment.version = current.version + 1;
        payment.updated_at = now;
    }
    let before = family.settlements();
    put(tx, current, &payment).await?;
    update_invoice(tx, family, Change { before: &before, members: &[], event }, &payment).await
}

async fn put(tx: &mut Tx<'_>, current: Option<&Payment>, payment: &Payment) -> Result<(), Error> {
    let account = tx.account();
    store::put(tx.db(), account, payment).await?;
    match current {
        Some(current) => tx.relist(&current.listing(), &payment.listing()),
        None => tx.list(&payment.listing()),
    }
    tx.changed(AUDIT_KIND, payment.id, &proto::billing::Payment::from(payment.clone()));
    Ok(())
}

/// A change of the payments of an invoice.
#[derive(Clone, Copy)]
struct Change<'a> {
    /// What each member of the family owed before.
    before: &'a [Settlement],
    /// The members that are stored again even if they owe the same as before.
    members: &'a [usize],
    /// The entry in the history of the invoice.
    event: &'static str,
}

/// Updates the invoice, and its credits, after a payment changed. Its history shows the payment even if it owes the same as
/// before.
async fn update_invoice(
    tx: &mut Tx<'_>,
    family: &mut Family,
    change: Change<'_>,
    payment: &Payment,
) -> Result<(), Error> {
    family.load_payments(tx).await?;
    settle(tx, family, change.before, change.members).await?;
    family.touch(tx, family.target).await?;
    let data = json!({
        "payment_id": payment.id,
        "amount": payment.amount,
        "date": payment.date,
        "status": store::status_name(payment.status),
        "provider": payment.provider,
    });
    record_history(tx, family.target().id, change.event, data, None).await?;
    family.log_target(tx).await?;
    Ok(())
}

fn result(invoice: &Record, payment: Payment) -> PaymentResult {
    PaymentResult {
        invoice: Some(PaidInvoice {
            id: invoice.id.to_string(),
            paid_amount: invoice.paid_amount.to_string(),
            price: invoice.total_incl.to_string(),
        }),
        payment: Some(payment.into()),
    }
}

/// Replaces a value that was not sent by a default.
trait Or: Sized {
    fn or(self, default: Self) -> Self;
}

impl<E: Default + PartialEq> Or for E {
    fn or(self, default: Self) -> Self {
        if self == E::default() { default } else { self }
    }
}

/// Shows the payments with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for payment in store::list_by_ids(tx.db(), account, &uuids(ids)).await? {
        shown.add(payment.id, &proto::billing::Payment::from(payment));
    }
    Ok(())
}
