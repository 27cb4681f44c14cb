//! Every call without faults.

use provider::{Fault, Mandate, MandateStatus, Provider, Sequence, Status};
use rust_decimal::Decimal;

use crate::{anna, cents, key, mandated, moment, pair, payment};

#[tokio::test]
async fn a_one_off_payment_is_open_until_it_is_paid() {
    let (stand_in, mollie) = pair().await;
    let made =
        mollie.create_payment(&key("1"), &payment("ours", Sequence::OneOff, cents(1234))).await.unwrap();
    assert_eq!((made.status, made.amount, made.reference.as_str()), (Status::Open, cents(1234), "ours"));
    assert!(made.checkout_url.is_some() && made.paid_at.is_none() && made.customer.is_none());

    stand_in.pay(&made.id).await;
    let paid = mollie.find_payment(&made.id).await.unwrap().unwrap();
    assert_eq!((paid.status, paid.paid_at), (Status::Paid, Some(moment())));
    assert_eq!((paid.checkout_url, paid.refunded, paid.charged_back), (None, Decimal::ZERO, Decimal::ZERO));
}

#[tokio::test]
async fn a_first_payment_gives_a_mandate_that_collects() {
    let (stand_in, mollie) = pair().await;
    let (customer, mandate) = mandated(&stand_in, &mollie).await;
    assert_eq!(
        mollie.list_mandates(&customer).await.unwrap(),
        [Mandate { id: mandate.clone(), status: MandateStatus::Valid }]
    );

    let collect = Sequence::Recurring { customer: customer.clone(), mandate: mandate.clone() };
    let made = mollie.create_payment(&key("r"), &payment("collection", collect, cents(5000))).await.unwrap();
    assert_eq!((made.status, made.checkout_url), (Status::Pending, None));
    assert_eq!((made.customer, made.mandate), (Some(customer), Some(mandate)));

    stand_in.fail(&made.id, "Insufficient funds").await;
    let failed = mollie.find_payment(&made.id).await.unwrap().unwrap();
    assert_eq!((failed.status, failed.failure.as_deref()), (Status::Failed, Some("Insufficient funds")));
}

#[tokio::test]
async fn mandates_come_newest_first_and_with_their_status_from_all_pages() {
    let (stand_in, mollie) = pair().await;
    let customer = mollie.create_customer(&key("c"), &anna()).await.unwrap();
    assert_eq!(mollie.list_mandates(&customer).await, Ok(vec![]));
    for status in [MandateStatus::Valid, MandateStatus::Pending, MandateStatus::Invalid] {
        stand_in.new_mandates(status);
        let first = Sequence::First { customer: customer.clone() };
        let name = format!("{status:?}");
        let made = mollie.create_payment(&key(&name), &payment(&name, first, cents(1))).await.unwrap();
        stand_in.pay(&made.id).await;
    }
    stand_in.page_size(1);
    let mandates = mollie.list_mandates(&customer).await.unwrap();
    let statuses: Vec<_> = mandates.iter().map(|mandate| mandate.status).collect();
    assert_eq!(statuses, [MandateStatus::Invalid, MandateStatus::Pending, MandateStatus::Valid]);

    stand_in.set_mandate(&mandates[1].id, MandateStatus::Valid);
    assert_eq!(mollie.list_mandates(&customer).await.unwrap()[1].status, MandateStatus::Valid);
}

#[tokio::test]
async fn an_invalid_mandate_collects_nothing() {
    let (stand_in, mollie) = pair().await;
    let (customer, mandate) = mandated(&stand_in, &mollie).await;
    stand_in.set_mandate(&mandate, MandateStatus::Invalid);
    let collect = Sequence::Recurring { customer, mandate };
    let refused = mollie.create_payment(&key("r"), &payment("r", collect, cents(100))).await.unwrap_err();
    assert!(matches!(refused, Fault::MandateInvalid { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_withdrawn_mandate_is_gone_and_collects_nothing() {
    let (stand_in, mollie) = pair().await;
    let (customer, mandate) = mandated(&stand_in, &mollie).await;
    stand_in.withdraw_mandate(&mandate);
    assert_eq!(mollie.list_mandates(&customer).await.unwrap(), []);
    let collect = Sequence::Recurring { customer, mandate };
    let refused = mollie.create_payment(&key("r"), &payment("r", collect, cents(100))).await.unwrap_err();
    assert!(matches!(refused, Fault::MandateInvalid { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_collection_can_be_canceled_and_a_checkout_is_returned_as_it_is() {
    let (stand_in, mollie) = pair().await;
    let (customer, mandate) = mandated(&stand_in, &mollie).await;
    let collect = Sequence::Recurring { customer, mandate };
    let made = mollie.create_payment(&key("r"), &payment("r", collect, cents(100))).await.unwrap();
    let canceled = mollie.cancel_payment(&key("stop"), &made.id).await.unwrap().unwrap();
    assert_eq!(canceled.status, Status::Canceled);
    // Repeated much later: it stays as it is.
    stand_in.forget_keys();
    let again = mollie.cancel_payment(&key("stop"), &made.id).await.unwrap().unwrap();
    assert_eq!(again.status, Status::Canceled);

    let checkout =
        mollie.create_payment(&key("o"), &payment("o", Sequence::OneOff, cents(100))).await.unwrap();
    let open = mollie.cancel_payment(&key("stop o"), &checkout.id).await.unwrap().unwrap();
    assert_eq!(open.status, Status::Open);
    stand_in.cancelable(&checkout.id, true);
    let canceled = mollie.cancel_payment(&key("stop o again"), &checkout.id).await.unwrap().unwrap();
    assert_eq!(canceled.status, Status::Canceled);
}

#[tokio::test]
async fn a_payment_ends_unpaid_by_the_payer_or_by_time() {
    let (stand_in, mollie) = pair().await;
    for (name, status) in [("expired", Status::Expired), ("canceled", Status::Canceled)] {
        let made =
            mollie.create_payment(&key(name), &payment(name, Sequence::OneOff, cents(1))).await.unwrap();
        match status {
            Status::Expired => stand_in.expire(&made.id).await,
            _ => stand_in.cancel(&made.id).await,
        };
        let ended = mollie.find_payment(&made.id).await.unwrap().unwrap();
        assert_eq!((ended.status, ended.checkout_url), (status, None));
    }
}

#[tokio::test]
async fn refunds_add_up_to_the_payment_and_no_further() {
    let (stand_in, mollie) = pair().await;
    let made = mollie.create_payment(&key("1"), &payment("r", Sequence::OneOff, cents(1000))).await.unwrap();
    let early = mollie.create_refund(&key("early"), &made.id, cents(1)).await;
    assert!(matches!(early, Err(Fault::Refused { .. })), "{early:?}");
    stand_in.pay(&made.id).await;

    let refund = mollie.create_refund(&key("a"), &made.id, cents(250)).await.unwrap();
    assert_eq!(refund.amount, cents(250));
    stand_in.refund(&made.id, cents(50)).await;
    let rest = mollie.create_refund(&key("b"), &made.id, cents(700)).await.unwrap();
    assert_ne!(rest.id, refund.id);
    let paid = mollie.find_payment(&made.id).await.unwrap().unwrap();
    assert_eq!((paid.status, paid.refunded), (Status::Paid, cents(1000)));

    let more = mollie.create_refund(&key("c"), &made.id, cents(1)).await.unwrap_err();
    assert!(matches!(more, Fault::Refused { field: Some(field), .. } if field == "amount"));
}

#[tokio::test]
async fn a_charged_back_collection_stays_paid_with_the_amount_that_went_back() {
    let (stand_in, mollie) = pair().await;
    let (customer, mandate) = mandated(&stand_in, &mollie).await;
    let collect = Sequence::Recurring { customer, mandate };
    let made = mollie.create_payment(&key("r"), &payment("r", collect, cents(12100))).await.unwrap();
    stand_in.pay(&made.id).await;
    stand_in.charge_back(&made.id, cents(12100), "Refused by the payer").await;
    let back = mollie.find_payment(&made.id).await.unwrap().unwrap();
    assert_eq!((back.status, back.charged_back, back.refunded), (Status::Paid, cents(12100), Decimal::ZERO));
    assert_eq!(back.failure.as_deref(), Some("Refused by the payer"));
}

#[tokio::test]
async fn currencies_without_decimals_are_paid_and_refunded_whole() {
    let (stand_in, mollie) = pair().await;
    let mut yen = payment("yen", Sequence::OneOff, Decimal::from(1500));
    yen.currency = "JPY".to_owned();
    let made = mollie.create_payment(&key("1"), &yen).await.unwrap();
    assert_eq!(made.amount, Decimal::from(1500));
    stand_in.pay(&made.id).await;
    assert_eq!(
        mollie.create_refund(&key("2"), &made.id, Decimal::from(500)).await.unwrap().amount,
        Decimal::from(500)
    );
}

#[tokio::test]
async fn an_amount_finer_than_its_currency_is_refused_before_anything_is_asked() {
    let (stand_in, mollie) = pair().await;
    for amount in [Decimal::new(10_005, 3), cents(-1)] {
        let refused =
            mollie.create_payment(&key("1"), &payment("r", Sequence::OneOff, amount)).await.unwrap_err();
        assert!(matches!(refused, Fault::Refused { field: Some(field), .. } if field == "amount"));
    }
    assert_eq!(stand_in.requests(), 0);
}

#[tokio::test]
async fn what_is_not_there_is_none() {
    let (stand_in, mollie) = pair().await;
    assert_eq!(mollie.find_payment("tr_unknown").await, Ok(None));
    assert_eq!(mollie.cancel_payment(&key("1"), "tr_unknown").await, Ok(None));
    assert_eq!(mollie.list_mandates("cst_unknown").await, Ok(vec![]));
    assert!(matches!(
        mollie.create_refund(&key("2"), "tr_unknown", cents(1)).await,
        Err(Fault::Refused { .. })
    ));
    assert_eq!(mollie.find_payment_by_reference("unknown", moment()).await, Ok(None));

    // A text that is not an id is never put into a URL.
    let asked = stand_in.requests();
    for id in ["", "tr_", "../customers", "tr_1/refunds", "tr_1?embed=refunds", "tr_%2e%2e"] {
        assert_eq!(mollie.find_payment(id).await, Ok(None));
        assert_eq!(mollie.cancel_payment(&key("1"), id).await, Ok(None));
        assert_eq!(mollie.list_mandates(id).await, Ok(vec![]));
        assert!(mollie.create_refund(&key("2"), id, cents(1)).await.is_err());
    }
    assert_eq!(stand_in.requests(), asked);
}
