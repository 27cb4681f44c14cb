//! The validity of payments and of their changes. Pure.

use proto::api::Fault;
use proto::billing::{PaymentStatus, PaymentType};
use proto::{At, Faults};
use rust_decimal::Decimal;

use super::Payment;

/// Checks that an amount is not zero and has the sign of the invoice's total: a credit is paid back with negative
/// amounts.
pub(crate) fn check_amount(amount: Decimal, total: Decimal, at: &At<'_>, faults: &mut Faults) {
    let at = at.name("amount");
    if amount.is_zero() {
        faults.add(&at, Fault::OutOfRange, "amount must not be 0");
    } else if !total.is_zero() && amount.is_sign_negative() != total.is_sign_negative() {
        let sign = if total.is_sign_negative() { "negative" } else { "positive" };
        let detail = format!("amount must be {sign}, like the invoice's total of {total}");
        faults.add(&at, Fault::OutOfRange, detail);
    }
}

/// Whether a change of status is allowed. An online payment that has ended cannot become paid by hand.
pub(crate) fn may_become(payment: &Payment, status: PaymentStatus) -> bool {
    use PaymentStatus::{Canceled, Expired, Failed, Paid, Refunded};
    let ended = matches!(payment.status, Refunded | Canceled | Expired | Failed);
    !(payment.kind == PaymentType::Online && ended && status == Paid)
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, NaiveDate};
    use proto::billing::PaymentMethod;
    use uuid::Uuid;

    use super::*;

    fn payment(kind: PaymentType, status: PaymentStatus) -> Payment {
        Payment {
            id: Uuid::nil(),
            invoice: Uuid::nil(),
            version: 1,
            amount: 1.into(),
            date: NaiveDate::MIN,
            status,
            kind,
            method: PaymentMethod::Ideal,
            external_id: String::new(),
            provider: String::new(),
            sent_data: String::new(),
            feedback_data: String::new(),
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn only_an_online_payment_that_ended_cannot_become_paid() {
        let statuses = (1..=10).map(|number| PaymentStatus::try_from(number).unwrap());
        let stuck: Vec<_> = statuses
            .clone()
            .filter(|status| !may_become(&payment(PaymentType::Online, *status), PaymentStatus::Paid))
            .collect();
        let ended =
            [PaymentStatus::Failed, PaymentStatus::Canceled, PaymentStatus::Expired, PaymentStatus::Refunded];
        assert_eq!(stuck, ended);
        for status in statuses {
            assert!(may_become(&payment(PaymentType::Manual, status), PaymentStatus::Paid));
            assert!(may_become(&payment(PaymentType::Online, status), PaymentStatus::Open));
        }
    }

    #[test]
    fn an_amount_goes_in_the_direction_of_the_invoice() {
        let faulty = |amount: i64, total: i64| {
            let mut faults = Faults::default();
            check_amount(amount.into(), total.into(), &At::ROOT, &mut faults);
            !faults.is_empty()
        };
        assert!(faulty(0, 10) && faulty(-1, 10) && faulty(1, -10) && faulty(0, 0));
        assert!(!faulty(1, 10) && !faulty(20, 10) && !faulty(-1, -10) && !faulty(5, 0));
    }
}
