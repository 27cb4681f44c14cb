//! A model of an invoice with its credits in whole cents: what somebody may do with it, and the settlement that the rules
//! ask for then, computed by assigning every cent that was paid. Shares no arithmetic with what it checks.

use chrono::Days;

use super::*;

/// What somebody does. Indexes are taken modulo the number of entries, so that every sequence is valid.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Pays cents on the invoice (0) or a credit, in the direction of its total, on that day. A document of zero has no
    /// direction: then the parity of the day decides.
    Pay {
        on: usize,
        day: u64,
        cents: i64,
    },
    Unpay {
        on: usize,
        which: usize,
    },
    Repay {
        on: usize,
        which: usize,
        day: u64,
        cents: i64,
    },
    /// Credits some of the rows that are left. The credit's total is `off` cents more than the share of its rows.
    CreditSome {
        mask: u32,
        off: i64,
    },
    CreditRest {
        off: i64,
    },
    Finalize {
        which: usize,
    },
}

/// An invoice or a credit in cents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plain {
    pub is_final: bool,
    pub total: i64,
    pub rows: i32,
    pub payments: Vec<(u64, i64)>,
}

/// A settlement in whole cents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InCents {
    pub status: Status,
    pub paid_on: Option<NaiveDate>,
    pub paid: i64,
    pub open: i64,
    pub overpaid: i64,
}

/// A family and which of the invoice's rows are credited.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    pub rows: Vec<i64>,
    pub taken: Vec<bool>,
    pub members: Vec<Plain>,
}

impl Plot {
    pub(crate) fn new(rows: Vec<i64>, is_final: bool) -> Self {
        let invoice = Plain {
            is_final,
            total: rows.iter().sum(),
            rows: i32::try_from(rows.len()).unwrap(),
            payments: Vec::new(),
        };
        Self { taken: vec![false; rows.len()], rows, members: vec![invoice] }
    }

    pub(crate) fn sign(&self) -> i64 {
        if self.members[0].total < 0 { -1 } else { 1 }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        let count = self.members.len();
        match *step {
            Step::Pay { on, day, cents } => {
                let on = on % count;
                let member = &mut self.members[on];
                let direction = match member.total.signum() {
                    0 if day % 2 == 0 => 1,
                    0 => -1,
                    sign => sign,
                };
                member.payments.push((day, cents * direction));
            }
            Step::Unpay { on, which } => {
                let payments = &mut self.members[on % count].payments;
                if !payments.is_empty() {
                    payments.remove(which % payments.len());
                }
            }
            Step::Repay { on, which, day, cents } => {
                self.step(&Step::Unpay { on, which });
                self.step(&Step::Pay { on, day, cents });
            }
            Step::CreditSome { mask, off } => self.credit(|index| mask >> index & 1 == 1, off),
            Step::CreditRest { off } => self.credit(|_| true, off),
            Step::Finalize { which } => {
                let which = which % count;
                if which == 0 || self.members[0].is_final {
                    self.members[which].is_final = true;
                }
            }
        }
    }

    fn credit(&mut self, is_chosen: impl Fn(usize) -> bool, off: i64) {
        let chosen: Vec<usize> =
            (0..self.rows.len()).filter(|index| !self.taken[*index] && is_chosen(*index)).collect();
        if chosen.is_empty() {
            return;
        }
        let mut total = 0;
        for index in &chosen {
            self.taken[*index] = true;
            total -= self.rows[*index];
        }
        self.members.push(Plain {
            is_final: self.members[0].is_final,
            total: total + off,
            rows: i32::try_from(chosen.len()).unwrap(),
            payments: Vec::new(),
        });
    }

    pub(crate) fn settlements(&self) -> Vec<Settlement> {
        let claims: Vec<Claim> = self.members.iter().map(claim).collect();
        let FamilySettlement { invoice, credits } = of_family(&claims[0], &claims[1..]);
        std::iter::once(invoice).chain(credits).collect()
    }
}

pub(crate) fn day(number: u64) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 1).unwrap() + Days::new(number)
}

/// The day on which an invoice of zero became final.
pub(crate) const FINALIZED: u64 = 40;

fn claim(plain: &Plain) -> Claim {
    let paid =
        |(number, cents): &(u64, i64)| PaidAmount { on: day(*number), amount: Decimal::new(*cents, 2) };
    let mut payments: Vec<PaidAmount> = plain.payments.iter().map(paid).collect();
    payments.sort_by_key(|payment| payment.on);
    Claim {
        is_final: plain.is_final,
        total: Decimal::new(plain.total, 2),
        rows: plain.rows,
        finalized_on: Some(day(FINALIZED)),
        payments,
    }
}

/// The settlement that the rules ask for, computed by assigning every cent that was paid.
pub(crate) fn expected(plot: &Plot) -> Vec<InCents> {
    let sign = plot.sign();
    let invoice = &plot.members[0];
    let credits = &plot.members[1..];
    let total = invoice.total * sign;
    let finals: Vec<&Plain> = credits.iter().filter(|credit| credit.is_final).collect();
    // A credit that raises the debt is asked for and paid with the invoice.
    let raises_debt = |credit: &Plain| credit.is_final && credit.total * sign > 0;
    let mut family = invoice.clone();
    let mut max_owed = total;
    for claim in finals.iter().filter(|credit| raises_debt(credit)) {
        max_owed += claim.total * sign;
        family.payments.extend(&claim.payments);
    }
    let paid = sum(&family) * sign;
    let rows_left = invoice.rows - finals.iter().map(|credit| credit.rows).sum::<i32>();
    let owed = match (finals.is_empty(), rows_left) {
        (false, 0) => 0,
        _ => total + finals.iter().map(|credit| credit.total * sign).sum::<i64>(),
    };

    let mut room: Vec<i64> = credits
        .iter()
        .map(|credit| if credit.is_final { (-credit.total * sign).max(0) } else { 0 })
        .collect();
    let mut due = vec![0; credits.len()];
    let mut into_credits = || {
        let free = (0..room.len()).rev().find(|index| room[*index] > 0);
        if let Some(index) = free {
            room[index] -= 1;
            due[index] += 1;
        }
        free.is_some()
    };
    let (mut settled, mut overpaid) = (0, 0);
    for cent in 1..=paid {
        if settled < owed {
            settled += 1;
        } else if cent > max_owed || !into_credits() {
            overpaid += 1;
        }
    }
    // Paid in the wrong direction, beyond what was to be paid that way.
    overpaid += (paid - owed.min(0)).min(0);
    // More was credited than the total: the difference is refunded, whether paid or not, unless it was already.
    for _ in owed..paid.min(0) {
        assert!(into_credits(), "credits are worth what they took back");
    }

    let status = if !invoice.is_final {
        Status::Draft
    } else if !finals.is_empty() && (rows_left == 0 || (owed <= 0 && total != 0)) {
        Status::Credited
    } else if total == 0 && owed <= 0 {
        Status::Paid
    } else if paid <= 0 {
        if finals.is_empty() { Status::Open } else { Status::PartiallyCredited }
    } else if settled == owed {
        Status::Paid
    } else {
        Status::PartiallyPaid
    };
    let paid_on = match status {
        Status::Paid if total == 0 && owed <= 0 => Some(day(FINALIZED)),
        Status::Paid => first_day(&family, owed, sign),
        Status::Credited if total != 0 && paid >= total => first_day(&family, total, sign),
        _ => None,
    };
    let open = (owed.max(0) - settled) * sign;
    let mut all = vec![InCents { status, paid_on, paid: sum(invoice), open, overpaid: overpaid * sign }];
    for (credit, due) in credits.iter().zip(due) {
        if raises_debt(credit) {
            let paid = sum(credit);
            all.push(InCents { status: Status::Credited, paid_on: None, paid, open: 0, overpaid: 0 });
            continue;
        }
        let refunded = -sum(credit) * sign;
        let (status, paid_on) = match (credit.is_final, due, refunded) {
            (false, ..) => (Status::Draft, None),
            (true, 0, _) => (Status::Credited, None),
            (true, _, ..=0) => (Status::Open, None),
            (true, due, refunded) if refunded < due => (Status::PartiallyPaid, None),
            (true, due, _) => (Status::Paid, first_day(credit, due, -sign)),
        };
        let beyond = if refunded < 0 { refunded } else { (refunded - due).max(0) };
        let open = -(due - refunded.max(0)).max(0) * sign;
        let (paid, overpaid) = (-refunded * sign, -beyond * sign);
        all.push(InCents { status, paid_on, paid, open, overpaid });
    }
    all
}

fn sum(plain: &Plain) -> i64 {
    plain.payments.iter().map(|(_, cents)| cents).sum()
}

/// The first day at whose end so much was paid.
fn first_day(plain: &Plain, cents: i64, sign: i64) -> Option<NaiveDate> {
    let until = |last: u64| -> i64 {
        plain.payments.iter().filter(|(day, _)| *day <= last).map(|(_, cents)| cents * sign).sum()
    };
    let days: std::collections::BTreeSet<u64> = plain.payments.iter().map(|(day, _)| *day).collect();
    days.into_iter().find(|last| until(*last) >= cents).map(day)
}

pub(crate) fn in_cents(settlement: &Settlement) -> InCents {
    let cents = |amount: Decimal| {
        assert_eq!(amount.scale(), 2, "{amount} shows its cents");
        i64::try_from(amount.mantissa()).unwrap()
    };
    InCents {
        status: settlement.status.clone(),
        paid_on: settlement.paid_on,
        paid: cents(settlement.paid),
        open: cents(settlement.open),
        overpaid: cents(settlement.overpaid),
    }
}
