//! Adding, changing and removing payments. The invoice is locked meanwhile, and follows each change.

use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use proto::At;
use proto::api::Fault;
use proto::billing::{
    PaidInvoice, PaymentInput, PaymentMethod, PaymentPatch, PaymentResult, PaymentStatus, PaymentType,
};
use rust_decimal::Decimal;
use serde_json::json;
use uuid::Uuid;

use super::{Payment, rules, store};
use crate::document::Kind;
use crate::document::operations::{Family, log, settle};
use crate::document::rules::input::number;
use crate::document::rules::standing::Standing;
use crate::{Error, online};

/// What the audit log calls it.
const AUDITED: &str = "payment";
const PATCHED: [&str; 7] = ["amount", "date", "status", "method", "external_id", "provider", "payment_data"];

pub async fn create(tx: &mut Tx<'_>, invoice: &str, given: &PaymentInput) -> Result<PaymentResult, Error> {
    let at = At::ROOT.name("payment");
    let mut family = lock(tx, invoice).await?;
    let open = family.standing().map(|standing| standing.open).unwrap_or_default();
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
    let paid = if kind == PaymentType::Manual { PaymentStatus::Paid } else { PaymentStatus::Open };
    let now = tx.now();
    let payment = Payment {
        id: tx.id(),
        amount: crate::document::rules::amounts::two_places(amount),
        date: given.date.parse().unwrap_or(tx.today()),
        status: given.status().or(paid),
        kind,
        method: given.method().or(PaymentMethod::Banktransfer),
        external_id: given.external_id.clone(),
        provider: given.provider.clone(),
        sent_data: given.payment_data.clone(),
        feedback_data: given.feedback_data.clone(),
        created_at: now,
        updated_at: now,
    };
    save(tx, &mut family, payment, "payment_added").await
}

pub async fn update(
    tx: &mut Tx<'_>,
    invoice: &str,
    id: &str,
    given: &PaymentPatch,
    mask: Option<&prost_types::FieldMask>,
) -> Result<PaymentResult, Error> {
    let at = At::ROOT.name("payment");
    let named = UpdateMask::from(mask);
    named.check(|name| PATCHED.contains(&name), "payment", &mut tx.faults);
    let mut family = lock(tx, invoice).await?;
    let Some(mut payment) = find(tx, &family, id).await? else {
        tx.valid()?;
        return Err(Error::NotFound("payment"));
    };
    if let Some(amount) = number(&given.amount).filter(|_| named.has("amount")) {
        rules::check_amount(amount, family.target().total_incl, &at, &mut tx.faults);
        payment.amount = crate::document::rules::amounts::two_places(amount);
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
    payment.updated_at = tx.now();
    save(tx, &mut family, payment, "payment_changed").await
}

pub async fn delete(tx: &mut Tx<'_>, invoice: &str, id: &str) -> Result<(), Error> {
    let mut family = lock(tx, invoice).await?;
    let Some(payment) = find(tx, &family, id).await? else {
        tx.valid()?;
        return Err(Error::NotFound("payment"));
    };
    tx.valid()?;
    let before = family.standings();
    let (account, document) = (tx.account(), family.target().id);
    store::delete(tx.db(), account, document, payment.id).await?;
    tx.removed(AUDITED, payment.id);
    online::withdraw(tx, payment.id).await?;
    let target = family.target;
    follow(tx, &mut family, (&before, &[target]), &payment, "payment_removed").await
}

async fn lock(tx: &mut Tx<'_>, invoice: &str) -> Result<Family, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    if let Some(family) = Family::lock(tx, Kind::Invoice, invoice).await? {
        return Ok(family);
    }
    // The faults of the body come before an unknown id.
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

async fn save(
    tx: &mut Tx<'_>,
    family: &mut Family,
    payment: Payment,
    event: &'static str,
) -> Result<PaymentResult, Error> {
    let (account, document) = (tx.account(), family.target().id);
    // The invoice is locked, so nobody can take the reference after this look.
    let holder = store::find_by_external_id(tx.db(), account, document, &payment.external_id).await?;
    if let Some(holder) = holder.filter(|holder| *holder != payment.id) {
        return Err(Error::ExternalIdTaken { holder: Some(holder) });
    }
    let before = family.standings();
    put(tx, document, &payment).await?;
    let target = family.target;
    follow(tx, family, (&before, &[target]), &payment, event).await?;
    Ok(result(document, family.target().paid_amount, family.target().total_incl, payment))
}

/// Stores a payment as its provider tells of it, new or changed. A reference that another payment has is left to that.
/// A status of the invoice that was set by hand stays until money comes or goes.
pub async fn take(
    tx: &mut Tx<'_>,
    family: &mut Family,
    mut payment: Payment,
    event: &'static str,
) -> Result<(), Error> {
    let (account, document) = (tx.account(), family.target().id);
    let holder = store::find_by_external_id(tx.db(), account, document, &payment.external_id).await?;
    if holder.is_some_and(|holder| holder != payment.id) {
        payment.external_id.clear();
    }
    let before = family.standings();
    put(tx, document, &payment).await?;
    follow(tx, family, (&before, &[]), &payment, event).await
}

async fn put(tx: &mut Tx<'_>, document: Uuid, payment: &Payment) -> Result<(), Error> {
    let account = tx.account();
    store::put(tx.db(), account, document, payment).await?;
    tx.changed(AUDITED, payment.id, &proto::billing::Payment::from(payment.clone()));
    Ok(())
}

/// The invoice after its payments changed. Given are the standings before, and the members that are brought up to date
/// even if they stand as they did.
async fn follow(
    tx: &mut Tx<'_>,
    family: &mut Family,
    (before, changed): (&[Standing], &[usize]),
    payment: &Payment,
    event: &'static str,
) -> Result<(), Error> {
    family.load_payments(tx).await?;
    settle(tx, family, before, changed).await?;
    let data = json!({
        "payment_id": payment.id,
        "amount": payment.amount,
        "date": payment.date,
        "status": store::status_name(payment.status),
        "provider": payment.provider,
    });
    log(tx, family.target().id, event, data, None).await
}

fn result(invoice: Uuid, paid: Decimal, price: Decimal, payment: Payment) -> PaymentResult {
    let (paid_amount, price) = (paid.to_string(), price.to_string());
    PaymentResult {
        invoice: Some(PaidInvoice { id: invoice.to_string(), paid_amount, price }),
        payment: Some(payment.into()),
    }
}

/// A value that was not sent has a default.
trait Or: Sized {
    fn or(self, default: Self) -> Self;
}

impl<E: Default + PartialEq> Or for E {
    fn or(self, default: Self) -> Self {
        if self == E::default() { default } else { self }
    }
}
