//! A family of invoices in whole cents: what somebody may do with it, and where the rules say that it stands then, worked
//! out by handing out every cent that was paid. Shares no arithmetic with what it checks.

use chrono::Days;

use super::*;

/// What somebody does. Places are taken modulo what there is, so that every sequence means something.
#[derive(Clone, Debug)]
pub enum Step {
    /// On the invoice (0) or a credit: so many cents, in the direction of its total, on that day. A document of nothing has
    /// no direction: then the day gives one.
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
    /// Some of the rows that are left; the credit comes to this many cents more or less than its rows do in the whole.
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
pub struct Plain {
    pub is_final: bool,
    pub total: i64,
    pub rows: i32,
    pub payments: Vec<(u64, i64)>,
}

/// A family and which of the invoice's rows are taken.
#[derive(Clone, Debug)]
pub struct Plot {
    pub rows: Vec<i64>,
    pub taken: Vec<bool>,
    pub members: Vec<Plain>,
}

impl Plot {
    pub fn new(rows: Vec<i64>, is_final: bool) -> Self {
        let invoice = Plain {
            is_final,
            total: rows.iter().sum(),
            rows: i32::try_from(rows.len()).unwrap(),
            payments: Vec::new(),
        };
        Self { taken: vec![false; rows.len()], rows, members: vec![invoice] }
    }

    pub fn sign(&self) -> i64 {
        if self.members[0].total < 0 { -1 } else { 1 }
    }

    pub fn step(&mut self, step: &Step) {
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

    fn credit(&mut self, wanted: impl Fn(usize) -> bool, off: i64) {
        let chosen: Vec<usize> =
            (0..self.rows.len()).filter(|index| !self.taken[*index] && wanted(*index)).collect();
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

    pub fn standings(&self) -> Vec<Standing> {
        let claims: Vec<Claim> = self.members.iter().map(claim).collect();
        let (invoice, credits) = of_family(&claims[0], &claims[1..]);
        std::iter::once(invoice).chain(credits).collect()
    }
}

pub fn day(number: u64) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 1).unwrap() + Days::new(number)
}

/// The day on which an invoice of nothing became final.
pub const FINALIZED: u64 = 40;

fn claim(plain: &Plain) -> Claim {
    let mut payments: Vec<_> =
        plain.payments.iter().map(|(number, cents)| (day(*number), Decimal::new(*cents, 2))).collect();
    payments.sort_by_key(|(day, _)| *day);
    Claim {
        is_final: plain.is_final,
        total: Decimal::new(plain.total, 2),
        rows: plain.rows,
        finalized_on: Some(day(FINALIZED)),
        payments,
    }
}

/// What the rules say, worked out by handing out every cent that was paid.
pub fn poured(plot: &Plot) -> Vec<(String, Option<NaiveDate>, i64, i64, i64)> {
    let sign = plot.sign();
    let invoice = &plot.members[0];
    let credits = &plot.members[1..];
    let total = invoice.total * sign;
    let finals: Vec<&Plain> = credits.iter().filter(|credit| credit.is_final).collect();
    // What a credit asks for more is asked for and paid with the invoice.
    let is_claim = |credit: &Plain| credit.is_final && credit.total * sign > 0;
    let mut family = invoice.clone();
    let mut most = total;
    for claim in finals.iter().filter(|credit| is_claim(credit)) {
        most += claim.total * sign;
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
        } else if cent > most || !into_credits() {
            overpaid += 1;
        }
    }
    // The wrong way, as far as nothing was to go that way.
    overpaid += (paid - owed.min(0)).min(0);
    // Credited for more than the whole: that goes back, paid or not, unless it has gone.
    for _ in owed..paid.min(0) {
        assert!(into_credits(), "credits are worth what they took back");
    }

    let word = if !invoice.is_final {
        DRAFT
    } else if !finals.is_empty() && (rows_left == 0 || (owed <= 0 && total != 0)) {
        CREDITED
    } else if total == 0 && owed <= 0 {
        PAID
    } else if paid <= 0 {
        if finals.is_empty() { OPEN } else { PARTIALLY_CREDITED }
    } else if settled == owed {
        PAID
    } else {
        PARTIALLY_PAID
    };
    let paid_on = match word {
        PAID if total == 0 && owed <= 0 => Some(day(FINALIZED)),
        PAID => first_day(&family, owed, sign),
        CREDITED if total != 0 && paid >= total => first_day(&family, total, sign),
        _ => None,
    };
    let open = (owed.max(0) - settled) * sign;
    let mut all = vec![(word.to_owned(), paid_on, sum(invoice), open, overpaid * sign)];
    for (credit, due) in credits.iter().zip(due) {
        if is_claim(credit) {
            all.push((CREDITED.to_owned(), None, sum(credit), 0, 0));
            continue;
        }
        let refunded = -sum(credit) * sign;
        let (word, paid_on) = match (credit.is_final, due, refunded) {
            (false, ..) => (DRAFT, None),
            (true, 0, _) => (CREDITED, None),
            (true, _, ..=0) => (OPEN, None),
            (true, due, refunded) if refunded < due => (PARTIALLY_PAID, None),
            (true, due, _) => (PAID, first_day(credit, due, -sign)),
        };
        let beyond = if refunded < 0 { refunded } else { (refunded - due).max(0) };
        let open = (due - refunded.max(0)).max(0);
        all.push((word.to_owned(), paid_on, -refunded * sign, -open * sign, -beyond * sign));
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

pub fn in_cents(standing: &Standing) -> (String, Option<NaiveDate>, i64, i64, i64) {
    let cents = |amount: Decimal| {
        assert_eq!(amount.scale(), 2, "{amount} shows its cents");
        i64::try_from(amount.mantissa()).unwrap()
    };
    let Standing { status, paid_on, paid, open, overpaid } = standing;
    ((*status).to_owned(), *paid_on, cents(*paid), cents(*open), cents(*overpaid))
}
