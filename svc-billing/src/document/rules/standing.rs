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

    /// The day on which the payments reached an amount, both taken as positive.
    fn reached(&self, amount: Decimal, sign: Decimal) -> Option<NaiveDate> {
        let mut sum = Decimal::ZERO;
        let reaches = |(_, payment): &&(NaiveDate, Decimal)| {
            sum += *payment * sign;
            sum >= amount
        };
        self.payments.iter().find(reaches).map(|(day, _)| *day)
    }
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
    let paid = invoice.paid() * sign;
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
        PAID => invoice.reached(net, sign),
        CREDITED if paid >= total && !total.is_zero() => invoice.reached(total, sign),
        _ => None,
    };
    let most = total.max(net);
    let (standings, left) = refunds(credits, (paid.min(most) - net).max(Decimal::ZERO), sign);
    let standing = Standing {
        status,
        paid_on,
        paid: two_places(paid * sign),
        open: two_places((net.max(Decimal::ZERO) - paid).max(Decimal::ZERO) * sign),
        overpaid: two_places(((paid - most).max(Decimal::ZERO) + left) * sign),
    };
    (standing, standings)
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
            of_credit(credit, due, -sign)
        })
        .collect();
    standings.reverse();
    (standings, to_refund)
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
        paid_on: if status == PAID { credit.reached(due, sign) } else { None },
        paid: two_places(refunded * sign),
        open: two_places((due - refunded).max(Decimal::ZERO) * sign),
        overpaid: two_places((refunded - due).max(Decimal::ZERO) * sign),
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
