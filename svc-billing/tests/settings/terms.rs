use chassis_testing::expected_faults;
use proto::billing::{
    DeletePaymentTermRequest, ListPaymentTermsRequest, PaymentTerm, PaymentTermInput, PutPaymentTermRequest,
};
use tonic::Status;

use crate::support::{Caller, World, faults, is_not_found};

async fn list(caller: &Caller) -> Vec<(String, i32, String)> {
    let request = caller.request(ListPaymentTermsRequest {});
    let answer = caller.settings().list_payment_terms(request).await.unwrap().into_inner();
    assert_eq!(answer.meta.unwrap().total, i64::try_from(answer.data.len()).unwrap());
    answer.data.into_iter().map(|term| (term.code, term.days, term.label)).collect()
}

async fn put(caller: &Caller, code: &str, days: Option<i32>, label: &str) -> Result<PaymentTerm, Status> {
    let term = PaymentTermInput { code: code.into(), days, label: label.into() };
    let request = caller.request(PutPaymentTermRequest { term: Some(term) });
    Ok(caller.settings().put_payment_term(request).await?.into_inner().data.unwrap())
}

#[tokio::test]
async fn the_usual_terms_are_there_in_the_language_of_the_country() {
    let world = World::new().await;
    let dutch = list(&world.caller().await).await;
    let days: Vec<i32> = dutch.iter().map(|(_, days, _)| *days).collect();
    assert_eq!(days, [0, 7, 14, 30, 60]);
    assert_eq!(dutch[2], ("NET14".to_owned(), 14, "14 dagen".to_owned()));
    assert_eq!(list(&world.caller_in("IE").await).await[2].2, "14 days");
}

#[tokio::test]
async fn terms_are_added_replaced_and_removed() {
    let world = World::new().await;
    let caller = world.caller().await;
    put(&caller, "MONTH", Some(31), "Een maand").await.unwrap();
    put(&caller, "NET7", Some(8), "Een week").await.unwrap();
    let days: Vec<i32> = list(&caller).await.iter().map(|(_, days, _)| *days).collect();
    assert_eq!(days, [0, 8, 14, 30, 31, 60]);
    let delete = async || {
        let request = caller.request(DeletePaymentTermRequest { code: "MONTH".into() });
        caller.settings().delete_payment_term(request).await
    };
    delete().await.unwrap();
    assert!(is_not_found(&delete().await.unwrap_err()));
    assert_eq!(list(&caller).await.len(), 5);
}

#[tokio::test]
async fn a_term_has_a_code_days_and_a_label() {
    let world = World::new().await;
    let caller = world.caller().await;
    let status = put(&caller, "a/b", None, " ").await.unwrap_err();
    let expected = [("/term/code", "bad_format"), ("/term/days", "required"), ("/term/label", "required")];
    assert_eq!(faults(&status), expected_faults(&expected));
    let status = put(&caller, "LATE", Some(366), "Late").await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/term/days", "out_of_range")]));
}
