//! The settlement of an invoice: what is paid, what is open, and the status that follows. A pure function of the invoice,
//! its payments and its credits, so that no order of operations can leave it wrong.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::status::Status;
use crate::money::two_places;

/// Money that was paid on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PaidAmount {
    pub on: NaiveDate,
    pub amount: Decimal,
}

/// The money side of an invoice or a credit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    pub is_final: bool,
    pub total: Decimal,
    pub rows: i32,
    /// The day on which an invoice of zero counts as paid.
    pub finalized_on: Option<NaiveDate>,
    /// What was actually paid, ordered by day.
    pub payments: Vec<PaidAmount>,
}

impl Claim {
    fn paid(&self) -> Decimal {
        self.payments.iter().map(|payment| payment.amount).sum()
    }

    /// Whether it is a final credit of rows with a negative sum. It raises what the client owes, and what is paid on it
    /// counts as paid on the invoice.
    fn raises_debt(&self, sign: Decimal) -> bool {
        self.is_final && self.total * sign > Decimal::ZERO
    }
}

/// The first day by the end of which the payments had reached an amount. `sign` makes both positive.
fn day_reached(payments: &[PaidAmount], amount: Decimal, sign: Decimal) -> Option<NaiveDate> {
    let until = |day: NaiveDate| -> Decimal {
        payments.iter().filter(|payment| payment.on <= day).map(|payment| payment.amount * sign).sum()
    };
    payments.iter().map(|payment| payment.on).filter(|day| until(*day) >= amount).min()
}

/// Amounts have the sign of the document's total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settlement {
    pub status: Status,
    pub paid_on: Option<NaiveDate>,
    pub paid: Decimal,
    pub open: Decimal,
    pub overpaid: Decimal,
}

/// The settlement of an invoice and of its credits, in the order in which these were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FamilySettlement {
    pub invoice: Settlement,
    pub credits: Vec<Settlement>,
}

/// Settles an invoice with its credits, which are given in the order in which they were made.
pub(crate) fn of_family(invoice: &Claim, credits: &[Claim]) -> FamilySettlement {
    // All arithmetic is done as if the invoice were positive; the sign comes back at the end.
    let sign = if invoice.total.is_sign_negative() { Decimal::NEGATIVE_ONE } else { Decimal::ONE };
    let total = invoice.total.abs();
    let raising = || credits.iter().filter(|credit| credit.raises_debt(sign));
    let payments: Vec<PaidAmount> =
        std::iter::once(invoice).chain(raising()).flat_map(|claim| claim.payments.iter().copied()).collect();
    let paid = payments.iter().map(|payment| payment.amount * sign).sum::<Decimal>();
    let final_credits = || credits.iter().filter(|credit| credit.is_final);
    let credited: Decimal = final_credits().map(|credit| -credit.total * sign).sum();
    let credited_rows: i32 = final_credits().map(|credit| credit.rows).sum();
    let any_credited = final_credits().next().is_some();
    let all_rows = any_credited && credited_rows >= invoice.rows;
    // Rows can have either sign, so the rest may be below zero, or above the total.
    let net = if all_rows { Decimal::ZERO } else { total - credited };
    let all_credited = all_rows || (any_credited && net <= Decimal::ZERO && !total.is_zero());
    let asks_nothing = total.is_zero() && net <= Decimal::ZERO;

    let status = if !invoice.is_final {
        Status::Draft
    } else if all_credited {
        Status::Credited
    } else if asks_nothing {
        Status::Paid
    } else if paid <= Decimal::ZERO {
        if any_credited { Status::PartiallyCredited } else { Status::Open }
    } else if paid >= net {
        Status::Paid
    } else {
        Status::PartiallyPaid
    };
    let paid_on = match status {
        Status::Paid if asks_nothing => invoice.finalized_on,
        Status::Paid => day_reached(&payments, net, sign),
        Status::Credited if paid >= total && !total.is_zero() => day_reached(&payments, total, sign),
        _ => None,
    };
    // The highest amount that was ever owed. What is paid beyond it was never asked for.
    let max_owed = total + raising().map(|credit| credit.total * sign).sum::<Decimal>();
    let refunds = refund(credits, (paid.min(max_owed) - net).max(Decimal::ZERO), sign);
    let invoice = Settlement {
        status,
        paid_on,
        paid: two_places(invoice.paid()),
        open: two_places((net.max(Decimal::ZERO) - paid.max(Decimal::ZERO)).max(Decimal::ZERO) * sign),
        overpaid: two_places((outside(paid, net.min(Decimal::ZERO), max_owed) + refunds.unassigned) * sign),
    };
    FamilySettlement { invoice, credits: refunds.credits }
}

/// By how much a paid amount is above `max`, or (negative) below `min`. Only a document of zero can be paid in the wrong
/// direction.
fn outside(paid: Decimal, min: Decimal, max: Decimal) -> Decimal {
    paid - paid.clamp(min, max)
}

struct Refunds {
    credits: Vec<Settlement>,
    /// What no credit has room for: credits of some rows each may add up to a cent less than the whole.
    unassigned: Decimal,
}

/// Distributes what was paid and is no longer owed over the credits, the latest first: the earlier ones reduced what was
/// open.
fn refund(credits: &[Claim], mut to_refund: Decimal, sign: Decimal) -> Refunds {
    let mut settlements: Vec<Settlement> = credits
        .iter()
        .rev()
        .map(|credit| {
            let worth =
                if credit.is_final { (-credit.total * sign).max(Decimal::ZERO) } else { Decimal::ZERO };
            let due = worth.min(to_refund);
            to_refund -= due;
            if credit.raises_debt(sign) { of_raising(credit) } else { of_credit(credit, due, -sign) }
        })
        .collect();
    settlements.reverse();
    Refunds { credits: settlements, unassigned: to_refund }
}

/// A credit that raises the debt: the invoice asks for its amount, and nothing is open on the credit itself.
fn of_raising(credit: &Claim) -> Settlement {
    let nothing = two_places(Decimal::ZERO);
    Settlement {
        status: Status::Credited,
        paid_on: None,
        paid: two_places(credit.paid()),
        open: nothing,
        overpaid: nothing,
    }
}

/// A credit of which `due` is to be refunded. Its own amounts have the sign `sign`.
fn of_credit(credit: &Claim, due: Decimal, sign: Decimal) -> Settlement {
    let refunded = credit.paid() * sign;
    let status = if !credit.is_final {
        Status::Draft
    } else if due.is_zero() {
        Status::Credited
    } else if refunded <= Decimal::ZERO {
        Status::Open
    } else if refunded >= due {
        Status::Paid
    } else {
        Status::PartiallyPaid
    };
    Settlement {
        paid_on: if status == Status::Paid { day_reached(&credit.payments, due, sign) } else { None },
        status,
        paid: two_places(refunded * sign),
        open: two_places((due - refunded.max(Decimal::ZERO)).max(Decimal::ZERO) * sign),
        overpaid: two_places(outside(refunded, Decimal::ZERO, due) * sign),
    }
}

#[cfg(test)]
#[path = "settlement_tests.rs"]
mod tests;
