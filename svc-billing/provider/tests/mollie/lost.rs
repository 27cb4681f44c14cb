//! Lost answers: nothing is created twice, and what was created is found.

use chrono::TimeDelta;
use http::Method;
use provider::testing::InjectedFault;
use provider::{Fault, Provider, Sequence};
use serde_json::json;

use crate::{anna, cents, key, mandated, moment, pair, payment, with_short_timeout};

#[tokio::test]
async fn a_lost_answer_and_the_same_key_make_one_payment() {
    let (stand_in, mollie) = pair().await;
    let (customer, mandate) = mandated(&stand_in, &mollie).await;
    let before = stand_in.payments().len();
    let new = payment("ours", Sequence::Recurring { customer, mandate }, cents(5000));
    for fault in
        [InjectedFault::Dropped, InjectedFault::Silent, InjectedFault::Failing(500), InjectedFault::Garbled]
    {
        stand_in.inject(&Method::POST, fault);
        let lost = with_short_timeout(&stand_in).create_payment(&key("collect"), &new).await;
        assert!(matches!(lost, Err(Fault::OutcomeUnknown { .. })), "{lost:?}");
    }
    let made = mollie.create_payment(&key("collect"), &new).await.unwrap();
    assert_eq!(stand_in.payments()[before..], [made.id]);
}

#[tokio::test]
async fn a_key_is_valid_for_one_request_only() {
    let (_stand_in, mollie) = pair().await;
    mollie.create_payment(&key("1"), &payment("a", Sequence::OneOff, cents(1))).await.unwrap();
    let other = mollie.create_payment(&key("1"), &payment("b", Sequence::OneOff, cents(2))).await;
    assert!(matches!(other, Err(Fault::Refused { .. })), "{other:?}");
}

#[tokio::test]
async fn a_payment_whose_answer_was_lost_is_found_by_our_reference() {
    let (stand_in, mollie) = pair().await;
    stand_in.inject(&Method::POST, InjectedFault::Dropped);
    let lost = mollie.create_payment(&key("1"), &payment("ours", Sequence::OneOff, cents(700))).await;
    assert!(matches!(lost, Err(Fault::OutcomeUnknown { .. })));
    // Payments of other programs with the same profile, over several pages.
    for metadata in [json!(null), json!("ours"), json!({ "order": "ours" }), json!({ "reference": "our" })] {
        stand_in.add_payment(metadata);
    }
    stand_in.page_size(2);
    let found = mollie.find_payment_by_reference("ours", moment()).await.unwrap().unwrap();
    assert_eq!((found.id.as_str(), found.amount), (stand_in.payments()[0].as_str(), cents(700)));
    assert_eq!(mollie.find_payment_by_reference("theirs", moment()).await, Ok(None));
}

#[tokio::test]
async fn the_search_ends_where_the_payment_cannot_be() {
    let (stand_in, mollie) = pair().await;
    for _ in 0..4 {
        stand_in.add_payment(json!({ "reference": "old" }));
    }
    stand_in.page_size(1);
    // A payment that is a little older is still found, because clocks differ.
    let soon = moment() + TimeDelta::minutes(5);
    assert!(mollie.find_payment_by_reference("old", soon).await.unwrap().is_some());
    let before = stand_in.requests();
    let late = moment() + TimeDelta::minutes(6);
    assert_eq!(mollie.find_payment_by_reference("older", late).await, Ok(None));
    assert_eq!(stand_in.requests(), before + 1);
}

#[tokio::test]
async fn a_refund_is_not_repeated_even_after_mollie_forgot_the_key() {
    let (stand_in, mollie) = pair().await;
    let made = mollie.create_payment(&key("1"), &payment("r", Sequence::OneOff, cents(1000))).await.unwrap();
    stand_in.pay(&made.id).await;
    stand_in.inject(&Method::POST, InjectedFault::Dropped);
    let lost = mollie.create_refund(&key("back"), &made.id, cents(300)).await;
    assert!(matches!(lost, Err(Fault::OutcomeUnknown { .. })), "{lost:?}");
    stand_in.forget_keys();
    let refund = mollie.create_refund(&key("back"), &made.id, cents(300)).await.unwrap();
    assert_eq!(refund.amount, cents(300));
    assert_eq!(mollie.find_payment(&made.id).await.unwrap().unwrap().refunded, cents(300));
}

#[tokio::test]
async fn a_lost_answer_and_the_same_key_make_one_customer() {
    let (stand_in, mollie) = pair().await;
    stand_in.inject(&Method::POST, InjectedFault::Dropped);
    let lost = mollie.create_customer(&key("1"), &anna()).await;
    assert!(matches!(lost, Err(Fault::OutcomeUnknown { .. })), "{lost:?}");
    let made = mollie.create_customer(&key("1"), &anna()).await.unwrap();
    assert_eq!(stand_in.customers(), [made]);
}

#[tokio::test]
async fn a_cancellation_whose_answer_was_lost_is_seen_when_it_is_repeated() {
    let (stand_in, mollie) = pair().await;
    let made = mollie.create_payment(&key("1"), &payment("r", Sequence::OneOff, cents(1))).await.unwrap();
    stand_in.cancelable(&made.id, true);
    stand_in.inject(&Method::DELETE, InjectedFault::Silent);
    let lost = with_short_timeout(&stand_in).cancel_payment(&key("2"), &made.id).await;
    assert!(matches!(lost, Err(Fault::OutcomeUnknown { .. })), "{lost:?}");
    stand_in.forget_keys();
    let canceled = mollie.cancel_payment(&key("2"), &made.id).await.unwrap().unwrap();
    assert_eq!(canceled.status, provider::Status::Canceled);
}
