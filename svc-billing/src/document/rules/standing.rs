//! Where an invoice stands: what is paid, what is open, and what its status is. A pure function of the invoice, its
//! payments and its credits, so that no order of operations can leave it wrong.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::amounts::two_places;

pub const DRAFT: &str = "draft";
pub const OPEN: &str = "open";
pub const PARTIALLY_PAID: &str = "partially_paid";
pub const PAID: &str = "paid";
pub const CREDITED: &str = "credited";
pub const PARTIALLY_CREDITED: &str = "partially_credited";
pub const ACCEPTED: &str = "accepted";

/// An invoice or a credit, as far as money goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    pub is_final: bool,
    pub total: Decimal,
    pub rows: i32,
    /// The day on which nothing was due any more, for an invoice of nothing.
    pub finalized_on: Option<NaiveDate>,
    /// What was really paid, in the order of the days.
    pub payments: Vec<(NaiveDate, Decimal)>,
}

impl Claim {
    fn paid(&self) -> Decimal {
        self.payments.iter().map(|(_, amount)| *amount).sum()
    }

    /// A final credit of rows that were negative together: the client owes more because of it, and what is paid on it is
    /// paid on the invoice.
    fn is_claim(&self, sign: Decimal) -> bool {
        self.is_final && self.total * sign > Decimal::ZERO
    }
}

/// The day at whose end the payments had reached an amount, both taken as positive.
fn reached(payments: &[(NaiveDate, Decimal)], amount: Decimal, sign: Decimal) -> Option<NaiveDate> {
    let until = |day: NaiveDate| -> Decimal {
        payments.iter().filter(|payment| payment.0 <= day).map(|payment| payment.1 * sign).sum()
    };
    payments.iter().map(|payment| payment.0).filter(|day| until(*day) >= amount).min()
}

/// Amounts have the sign of the invoice's total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub status: &'static str,
    pub paid_on: Option<NaiveDate>,
    pub paid: Decimal,
    pub open: Decimal,
    pub overpaid: Decimal,
}

/// An invoice with its credits, in the order in which they were made; the answer has the same order.
pub fn of_family(invoice: &Claim, credits: &[Claim]) -> (Standing, Vec<Standing>) {
    let sign = if invoice.total.is_sign_negative() { Decimal::NEGATIVE_ONE } else { Decimal::ONE };
    let total = invoice.total.abs();
    let claims = || credits.iter().filter(|credit| credit.is_claim(sign));
    let payments: Vec<_> =
        std::iter::once(invoice).chain(claims()).flat_map(|claim| claim.payments.iter().copied()).collect();
    let paid = payments.iter().map(|(_, amount)| *amount * sign).sum::<Decimal>();
    let counted = || credits.iter().filter(|credit| credit.is_final);
    let credited: Decimal = counted().map(|credit| -credit.total * sign).sum();
    let credited_rows: i32 = counted().map(|credit| credit.rows).sum();
    let any_credited = counted().next().is_some();
    let all_rows = any_credited && credited_rows >= invoice.rows;
    // Rows can have either sign, so what is left may be less than nothing, or more than the total.
    let net = if all_rows { Decimal::ZERO } else { total - credited };
    let all_credited = all_rows || (any_credited && net <= Decimal::ZERO && !total.is_zero());

    let status = if !invoice.is_final {
        DRAFT
    } else if all_credited {
        CREDITED
    } else if total.is_zero() && net <= Decimal::ZERO {
        PAID
    } else if paid <= Decimal::ZERO {
        if any_credited { PARTIALLY_CREDITED } else { OPEN }
    } else if paid >= net {
        PAID
    } else {
        PARTIALLY_PAID
    };
    let paid_on = match status {
        PAID if total.is_zero() && net <= Decimal::ZERO => invoice.finalized_on,
        PAID => reached(&payments, net, sign),
        CREDITED if paid >= total && !total.is_zero() => reached(&payments, total, sign),
        _ => None,
    };
    // The most that was ever owed: what is paid beyond that was never asked for.
    let most = total + claims().map(|credit| credit.total * sign).sum::<Decimal>();
    let (standings, left) = refunds(credits, (paid.min(most) - net).max(Decimal::ZERO), sign);
    let standing = Standing {
        status,
        paid_on,
        paid: two_places(invoice.paid()),
        open: two_places((net.max(Decimal::ZERO) - paid.max(Decimal::ZERO)).max(Decimal::ZERO) * sign),
        overpaid: two_places((beyond(paid, net.min(Decimal::ZERO), most) + left) * sign),
    };
    (standing, standings)
}

/// What was paid too much, or too much the wrong way, which only a document of nothing allows.
fn beyond(paid: Decimal, least: Decimal, most: Decimal) -> Decimal {
    paid - paid.clamp(least, most)
}

/// What was paid and is no longer owed goes back over the credits, the latest first: the earlier ones had taken it from
/// what was open. Also tells what none of them can take: credits of some rows each may come to a cent less than the
/// whole.
fn refunds(credits: &[Claim], mut to_refund: Decimal, sign: Decimal) -> (Vec<Standing>, Decimal) {
    let mut standings: Vec<Standing> = credits
        .iter()
        .rev()
        .map(|credit| {
            let worth =
                if credit.is_final { (-credit.total * sign).max(Decimal::ZERO) } else { Decimal::ZERO };
            let due = worth.min(to_refund);
            to_refund -= due;
            if credit.is_claim(sign) { of_claim(credit) } else { of_credit(credit, due, -sign) }
        })
        .collect();
    standings.reverse();
    (standings, to_refund)
}

/// A credit that the invoice asks for: nothing is open on itself.
fn of_claim(credit: &Claim) -> Standing {
    let nothing = two_places(Decimal::ZERO);
    Standing {
        status: CREDITED,
        paid_on: None,
        paid: two_places(credit.paid()),
        open: nothing,
        overpaid: nothing,
    }
}

/// A credit of which `due` is to be refunded; its own amounts have the sign `sign`.
fn of_credit(credit: &Claim, due: Decimal, sign: Decimal) -> Standing {
    let refunded = credit.paid() * sign;
    let status = if !credit.is_final {
        DRAFT
    } else if due.is_zero() {
        CREDITED
    } else if refunded <= Decimal::ZERO {
        OPEN
    } else if refunded >= due {
        PAID
    } else {
        PARTIALLY_PAID
    };
    Standing {
        status,
        paid_on: if status == PAID { reached(&credit.payments, due, sign) } else { None },
        paid: two_places(refunded * sign),
        open: two_places((due - refunded.max(Decimal::ZERO)).max(Decimal::ZERO) * sign),
        overpaid: two_places(beyond(refunded, Decimal::ZERO, due) * sign),
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
