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
    let new = OnlinePayment::wanted(Uuid::nil(), Purpose::Checkout, "sandbox", account, at(0));
    OnlinePayment { amount: 100.into(), ..new }
}

fn seen(status: provider::Status, minute: i64) -> Seen {
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
    Seen { payment, mandates: None, at: at(minute), created: false }
}

#[test]
fn an_answer_that_comes_late_changes_nothing() {
    let open = learn(&payment(), &seen(provider::Status::Open, 1));
    assert_eq!((open.status, open.checkout_url.as_str()), (Status::Open, "https://pay.example"));
    let mut back = seen(provider::Status::Paid, 5);
    back.payment.charged_back = 100.into();
    let charged_back = learn(&open, &back);
    assert_eq!(shown(&charged_back), (PaymentStatus::Chargeback, 100.into()));
    assert_eq!(charged_back.checkout_url, "", "nothing is left to pay");
    assert_eq!(learn(&charged_back, &seen(provider::Status::Paid, 4)), charged_back);
    let repeated = Seen { created: true, ..seen(provider::Status::Open, 9) };
    assert_eq!(learn(&charged_back, &repeated), charged_back);
    let reversed = learn(&charged_back, &seen(provider::Status::Paid, 6));
    assert_eq!(shown(&reversed), (PaymentStatus::Paid, 100.into()), "a chargeback can be taken back");
}

#[test]
fn what_partly_went_back_counts_with_what_is_left() {
    let mut told = seen(provider::Status::Paid, 1);
    (told.payment.refunded, told.payment.charged_back) = (30.into(), 20.into());
    assert_eq!(shown(&learn(&payment(), &told)), (PaymentStatus::Paid, 50.into()));
    told.payment.refunded = 80.into();
    assert_eq!(shown(&learn(&payment(), &told)).0, PaymentStatus::Chargeback);
    (told.payment.refunded, told.payment.charged_back) = (100.into(), 0.into());
    assert_eq!(shown(&learn(&payment(), &told)), (PaymentStatus::Refunded, 100.into()));
}

#[test]
fn asking_ends_for_what_cannot_change_any_more() {
    let of = |status, purpose| OnlinePayment { purpose, status, ..payment() };
    for status in [Status::Canceled, Status::Expired, Status::Failed, Status::Wanted] {
        assert_eq!(next_ask(&of(status, Purpose::Checkout), false, at(5)), None);
    }
    assert_eq!(next_ask(&of(Status::Open, Purpose::Checkout), false, at(0)), Some(at(1)));
    assert_eq!(next_ask(&of(Status::Open, Purpose::Checkout), false, at(10)), Some(at(20)));
    assert_eq!(next_ask(&of(Status::Paid, Purpose::Verification), false, at(10)), None);
    assert_eq!(next_ask(&of(Status::Paid, Purpose::Verification), true, at(10)), Some(at(20)));
    let (mut now, mut asked) = (at(0), 0);
    while let Some(next) = next_ask(&of(Status::Paid, Purpose::Collection), false, now) {
        assert!(next > now);
        (now, asked) = (next, asked + 1);
    }
    assert!((5..15).contains(&asked), "asked {asked} times in the months after");
}

proptest! {
    /// In whatever order answers come: money that came is never forgotten, and what ended does not begin again.
    #[test]
    fn a_payment_never_goes_back(told in proptest::collection::vec((0..7_usize, 0..10_i64, any::<bool>()), 0..12)) {
        let mut known = payment();
        let mut paid = false;
        for (status, minute, created) in told {
            let seen = Seen { created, ..seen(STATUSES[status], minute) };
            let after = learn(&known, &seen);
            paid |= after.status == Status::Paid;
            prop_assert!(rank(after.status) >= rank(known.status));
            prop_assert!(after.asked_at >= known.asked_at || known.status == Status::Wanted);
            prop_assert_eq!(paid, after.status == Status::Paid);
            known = after;
        }
    }
}
