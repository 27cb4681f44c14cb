use chassis_base::AccountId;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const STATUSES: [provider::Status; 7] = [
    provider::Status::Open,
    provider::Status::Pending,
    provider::Status::Authorized,
    provider::Status::Paid,
    provider::Status::Canceled,
    provider::Status::Expired,
    provider::Status::Failed,
];

fn at(minute: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
}

fn payment() -> OnlinePayment {
    let account = AccountId::trust(Uuid::nil());
    let new = OnlinePayment::new(Uuid::nil(), Purpose::Checkout, "sandbox", account, at(0));
    OnlinePayment { amount: 100.into(), ..new }
}

fn observed(status: provider::Status, minute: i64) -> Observed {
    let payment = provider::Payment {
        id: "tr_1".to_owned(),
        reference: String::new(),
        status,
        amount: 100.into(),
        refunded: Decimal::ZERO,
        charged_back: Decimal::ZERO,
        customer: None,
        mandate: None,
        checkout_url: Some("https://pay.example".to_owned()),
        paid_at: None,
        failure: None,
    };
    Observed { payment, mandates: None, at: at(minute), created: false }
}

fn entry(status: PaymentStatus, amount: i64) -> InvoiceEntry {
    InvoiceEntry { status, amount: amount.into() }
}

#[test]
fn an_answer_that_comes_late_changes_nothing() {
    let open = apply(&payment(), &observed(provider::Status::Open, 1));
    assert_eq!((open.status, open.checkout_url.as_str()), (Status::Open, "https://pay.example"));
    let mut back = observed(provider::Status::Paid, 5);
    back.payment.charged_back = 100.into();
    let charged_back = apply(&open, &back);
    assert_eq!(invoice_entry(&charged_back), entry(PaymentStatus::Chargeback, 100));
    assert_eq!(charged_back.checkout_url, "", "nothing is left to pay");
    assert_eq!(apply(&charged_back, &observed(provider::Status::Paid, 4)), charged_back);
    let repeated = Observed { created: true, ..observed(provider::Status::Open, 9) };
    assert_eq!(apply(&charged_back, &repeated), charged_back);
    let reversed = apply(&charged_back, &observed(provider::Status::Paid, 6));
    assert_eq!(invoice_entry(&reversed), entry(PaymentStatus::Paid, 100), "a chargeback can be taken back");
}

#[test]
fn a_partly_returned_payment_counts_with_the_rest() {
    let mut answer = observed(provider::Status::Paid, 1);
    (answer.payment.refunded, answer.payment.charged_back) = (30.into(), 20.into());
    assert_eq!(invoice_entry(&apply(&payment(), &answer)), entry(PaymentStatus::Paid, 50));
    answer.payment.refunded = 80.into();
    assert_eq!(invoice_entry(&apply(&payment(), &answer)).status, PaymentStatus::Chargeback);
    (answer.payment.refunded, answer.payment.charged_back) = (100.into(), 0.into());
    assert_eq!(invoice_entry(&apply(&payment(), &answer)), entry(PaymentStatus::Refunded, 100));
}

#[test]
fn polling_ends_for_payments_that_cannot_change_any_more() {
    let of = |status, purpose| OnlinePayment { purpose, status, ..payment() };
    for status in [Status::Canceled, Status::Expired, Status::Failed, Status::Requested] {
        assert_eq!(next_poll(&of(status, Purpose::Checkout), false, at(5)), None);
    }
    assert_eq!(next_poll(&of(Status::Open, Purpose::Checkout), false, at(0)), Some(at(1)));
    assert_eq!(next_poll(&of(Status::Open, Purpose::Checkout), false, at(10)), Some(at(20)));
    assert_eq!(next_poll(&of(Status::Paid, Purpose::Verification), false, at(10)), None);
    assert_eq!(next_poll(&of(Status::Paid, Purpose::Verification), true, at(10)), Some(at(20)));
    let (mut now, mut polls) = (at(0), 0);
    while let Some(next) = next_poll(&of(Status::Paid, Purpose::Collection), false, now) {
        assert!(next > now);
        (now, polls) = (next, polls + 1);
    }
    assert!((5..15).contains(&polls), "polled {polls} times in the months after");
}

proptest! {
    /// In whatever order answers arrive: a paid payment stays paid, and one that has ended does not become open again.
    #[test]
    fn a_payment_never_goes_back(told in proptest::collection::vec((0..7_usize, 0..10_i64, any::<bool>()), 0..12)) {
        let mut known = payment();
        let mut paid = false;
        for (status, minute, created) in told {
            let answer = Observed { created, ..observed(STATUSES[status], minute) };
            let after = apply(&known, &answer);
            paid |= after.status == Status::Paid;
            prop_assert!(rank(after.status) >= rank(known.status));
            prop_assert!(after.asked_at >= known.asked_at || known.status == Status::Requested);
            prop_assert_eq!(paid, after.status == Status::Paid);
            known = after;
        }
    }
}
