//! Every kind of bad answer, and the fault it becomes.

use provider::mollie::{Mollie, Settings};
use provider::testing::InjectedFault;
use provider::{Fault, Provider, Sequence};

use http::Method;

use crate::{anna, cents, key, moment, pair, payment, with_short_timeout};

#[tokio::test]
async fn a_refusal_has_mollies_words_and_the_field() {
    let (_stand_in, mollie) = pair().await;
    let mut without = payment("r", Sequence::OneOff, cents(100));
    without.return_url = None;
    assert_eq!(
        mollie.create_payment(&key("1"), &without).await,
        Err(Fault::Refused {
            detail: "The redirect URL is required".to_owned(),
            field: Some("redirectUrl".to_owned())
        })
    );
}

#[tokio::test]
async fn a_busy_mollie_says_when_to_come_back_and_did_nothing() {
    let (stand_in, mollie) = pair().await;
    for wait in [Some(17), None] {
        stand_in.inject(&Method::POST, InjectedFault::Busy { retry_after: wait });
        let busy = mollie.create_customer(&key("1"), &anna()).await.unwrap_err();
        assert!(matches!(busy, Fault::Unavailable { retry_after, .. } if retry_after == wait), "{busy:?}");
    }
    assert!(stand_in.customers().is_empty());
    mollie.create_customer(&key("1"), &anna()).await.unwrap();
}

#[tokio::test]
async fn an_unexpected_answer_to_a_write_has_an_unknown_outcome() {
    let (stand_in, _) = pair().await;
    let mollie = with_short_timeout(&stand_in);
    let conflict =
        InjectedFault::Refusing { status: 409, detail: "It is being worked on".to_owned(), field: None };
    let injected = [
        InjectedFault::Silent,
        InjectedFault::Dropped,
        InjectedFault::Failing(500),
        InjectedFault::Failing(503),
        InjectedFault::Failing(302),
        InjectedFault::Garbled,
        InjectedFault::Huge,
        conflict,
    ];
    for (number, fault) in injected.into_iter().enumerate() {
        let name = format!("{fault:?}");
        stand_in.inject(&Method::POST, fault);
        let made = mollie.create_payment(&key(&name), &payment(&name, Sequence::OneOff, cents(100))).await;
        assert!(matches!(made, Err(Fault::OutcomeUnknown { .. })), "{number} {name}: {made:?}");
    }
}

#[tokio::test]
async fn the_same_faults_on_reading_are_no_different() {
    let (stand_in, _) = pair().await;
    let mollie = with_short_timeout(&stand_in);
    for fault in
        [InjectedFault::Silent, InjectedFault::Dropped, InjectedFault::Failing(502), InjectedFault::Garbled]
    {
        stand_in.inject(&Method::GET, fault.clone());
        let read = mollie.find_payment("tr_1").await;
        assert!(matches!(read, Err(Fault::OutcomeUnknown { .. })), "{fault:?}: {read:?}");
        stand_in.inject(&Method::GET, fault.clone());
        let found = mollie.find_payment_by_reference("r", moment()).await;
        assert!(matches!(found, Err(Fault::OutcomeUnknown { .. })), "{fault:?}: {found:?}");
        stand_in.inject(&Method::GET, fault.clone());
        let listed = mollie.list_mandates("cst_1").await;
        assert!(matches!(listed, Err(Fault::OutcomeUnknown { .. })), "{fault:?}: {listed:?}");
    }
    stand_in.inject(&Method::DELETE, InjectedFault::Dropped);
    let canceled = mollie.cancel_payment(&key("1"), "tr_1").await;
    assert!(matches!(canceled, Err(Fault::OutcomeUnknown { .. })), "{canceled:?}");
}

#[tokio::test]
async fn a_refund_that_was_never_asked_for_is_only_unavailable() {
    let (stand_in, mollie) = pair().await;
    let made = mollie.create_payment(&key("1"), &payment("r", Sequence::OneOff, cents(100))).await.unwrap();
    stand_in.pay(&made.id).await;
    stand_in.inject(&Method::GET, InjectedFault::Dropped);
    let unread = mollie.create_refund(&key("2"), &made.id, cents(100)).await;
    assert!(matches!(unread, Err(Fault::Unavailable { .. })), "{unread:?}");
    stand_in.inject(&Method::POST, InjectedFault::Dropped);
    let asked = mollie.create_refund(&key("2"), &made.id, cents(100)).await;
    assert!(matches!(asked, Err(Fault::OutcomeUnknown { .. })), "{asked:?}");
}

#[tokio::test]
async fn without_a_connection_nothing_was_done() {
    let (stand_in, _) = pair().await;
    // No program listens on a privileged port.
    let settings = Settings { mollie_api_url: "http://127.0.0.1:1/v2".to_owned(), ..stand_in.settings() };
    let mollie = Mollie::new(&settings).unwrap();
    let unreached = mollie.create_customer(&key("1"), &anna()).await;
    assert!(matches!(unreached, Err(Fault::Unavailable { retry_after: None, .. })), "{unreached:?}");
}

#[tokio::test]
async fn a_wrong_key_is_for_the_operator_and_gives_up_nothing() {
    let (stand_in, _) = pair().await;
    let mut settings = stand_in.settings();
    settings.mollie_api_key = "test_wrong".to_owned();
    let mollie = Mollie::new(&settings).unwrap();
    let refused = mollie.create_customer(&key("1"), &anna()).await.unwrap_err();
    assert!(matches!(refused, Fault::Unavailable { .. }), "{refused:?}");
    assert!(!refused.to_string().contains("test_wrong"));
}

#[tokio::test]
async fn a_key_that_no_header_can_carry_is_refused() {
    let (stand_in, mollie) = pair().await;
    let refused = mollie.create_customer(&key("a\nb"), &anna()).await;
    assert!(matches!(refused, Err(Fault::Refused { .. })), "{refused:?}");
    assert_eq!(stand_in.requests(), 0);
}

#[tokio::test]
async fn settings_that_cannot_work_are_named() {
    let (stand_in, _) = pair().await;
    let mut settings = stand_in.settings();
    settings.mollie_api_key = String::new();
    assert!(!settings.is_set());
    assert!(Mollie::new(&settings).is_err_and(|error| error.contains("MOLLIE_API_KEY")));
    settings = stand_in.settings();
    settings.mollie_api_url = "http://api.mollie.com/v2".to_owned();
    assert!(Mollie::new(&settings).is_err_and(|error| error.contains("MOLLIE_API_URL")));
}
