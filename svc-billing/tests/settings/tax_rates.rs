use chassis_testing::expected_faults;
use proto::billing::{
    BillingSettings, DeleteTaxRateRequest, ListTaxRatesRequest, PutTaxRateRequest, TaxRate, TaxRateContext,
    TaxRateInput, TaxRateType,
};
use tonic::Status;

use crate::support::{Caller, World, faults, is_not_found, problem};

async fn put(caller: &Caller, rate: TaxRateInput) -> Result<TaxRate, Status> {
    let request = caller.request(PutTaxRateRequest { tax_rate: Some(rate) });
    Ok(caller.settings().put_tax_rate(request).await?.into_inner().data.unwrap())
}

async fn delete(caller: &Caller, context: TaxRateContext, code: &str) -> Result<(), Status> {
    let request = caller.request(DeleteTaxRateRequest { context: context.into(), code: code.into() });
    caller.settings().delete_tax_rate(request).await.map(|_| ())
}

fn rate(code: &str, kind: TaxRateType, amount: &str) -> TaxRateInput {
    TaxRateInput {
        code: code.into(),
        label: "A rate".into(),
        r#type: kind.into(),
        context: TaxRateContext::Sales.into(),
        amount: amount.into(),
    }
}

async fn codes(caller: &Caller, context: TaxRateContext) -> Vec<String> {
    caller.tax_rates(context).await.into_iter().map(|rate| rate.code).collect()
}

#[tokio::test]
async fn a_dutch_account_has_its_rates_in_their_order() {
    let world = World::new().await;
    let caller = world.caller().await;
    let shown: Vec<String> = caller
        .tax_rates(TaxRateContext::Sales)
        .await
        .into_iter()
        .map(|rate| {
            assert_eq!(rate.context(), TaxRateContext::Sales);
            let kind = rate.r#type().as_str_name().trim_start_matches("TAX_RATE_TYPE_").to_lowercase();
            format!("{} {} {} {} {}", rate.code, rate.amount, kind, rate.profile, rate.label)
        })
        .collect();
    let expected = [
        "VAT21 21 standard S 21% btw",
        "VAT9 9 reduced S 9% btw",
        "VAT0 0 zero Z 0% btw",
        "EXEMPT 0 exempt E Vrijgesteld van btw",
        "REVERSE 0 reverse_charge AE Btw verlegd",
        "ICP 0 intra_community K Intracommunautaire levering",
        "EXPORT 0 export G Export",
    ];
    assert_eq!(shown, expected);
    let sales = codes(&caller, TaxRateContext::Sales).await;
    assert_eq!(codes(&caller, TaxRateContext::Purchase).await, sales);
    assert_eq!(codes(&caller, TaxRateContext::Unspecified).await, [sales.clone(), sales].concat());
}

#[tokio::test]
async fn other_countries_have_their_own_rates() {
    let world = World::new().await;
    let cases: [(&str, &[&str]); 5] = [
        ("DE", &["VAT19", "VAT7", "VAT0", "EXEMPT", "REVERSE", "ICP", "EXPORT"]),
        ("FR", &["VAT20", "VAT10", "VAT5.5", "VAT2.1", "VAT0", "EXEMPT", "REVERSE", "ICP", "EXPORT"]),
        ("GB", &["VAT20", "VAT5", "VAT0", "EXEMPT", "REVERSE", "EXPORT"]),
        ("CH", &["VAT8.1", "VAT3.8", "VAT2.6", "VAT0", "EXEMPT", "REVERSE", "EXPORT"]),
        ("US", &["VAT0", "EXEMPT", "REVERSE", "EXPORT"]),
    ];
    for (country, expected) in cases {
        let caller = world.caller_in(country).await;
        assert_eq!(codes(&caller, TaxRateContext::Sales).await, expected, "{country}");
        assert_eq!(caller.billing_settings().await.default_tax_code, expected[0], "{country}");
    }
}

#[tokio::test]
async fn a_rate_is_added_or_replaced_in_its_context() {
    let world = World::new().await;
    let caller = world.caller().await;
    let added = put(&caller, rate("VAT6", TaxRateType::Reduced, "6.5")).await.unwrap();
    assert_eq!((added.amount.as_str(), added.profile.as_str()), ("6.5", "S"));
    put(&caller, rate("VAT21", TaxRateType::Standard, "22")).await.unwrap();
    let sales = caller.tax_rates(TaxRateContext::Sales).await;
    assert_eq!(sales.len(), 8);
    assert_eq!((sales[0].code.as_str(), sales[0].amount.as_str()), ("VAT21", "22"));
    assert_eq!(sales[2], added);
    let purchase = caller.tax_rates(TaxRateContext::Purchase).await;
    assert_eq!((purchase.len(), purchase[0].amount.as_str()), (7, "21"));
}

#[tokio::test]
async fn a_rate_that_makes_no_sense_is_refused() {
    let world = World::new().await;
    let caller = world.caller().await;
    let status = put(&caller, rate("a b", TaxRateType::Exempt, "5")).await.unwrap_err();
    let expected = [("/tax_rate/amount", "conflicting"), ("/tax_rate/code", "bad_format")];
    assert_eq!(faults(&status), expected_faults(&expected));
    let empty = put(&caller, TaxRateInput::default()).await.unwrap_err();
    let missing: Vec<String> = faults(&empty).into_iter().map(|(place, _)| place).collect();
    let expected =
        ["/tax_rate/amount", "/tax_rate/code", "/tax_rate/context", "/tax_rate/label", "/tax_rate/type"];
    assert_eq!(missing, expected);
    let nothing = caller.request(PutTaxRateRequest { tax_rate: None });
    assert!(caller.settings().put_tax_rate(nothing).await.is_err());
}

#[tokio::test]
async fn the_default_rate_stays_until_another_is_the_default() {
    let world = World::new().await;
    let caller = world.caller().await;
    let status = delete(&caller, TaxRateContext::Sales, "VAT21").await.unwrap_err();
    assert_eq!(problem(&status).0, "in_use");
    delete(&caller, TaxRateContext::Purchase, "VAT21").await.unwrap();
    assert!(is_not_found(&delete(&caller, TaxRateContext::Purchase, "VAT21").await.unwrap_err()));
    let settings = BillingSettings { default_tax_code: "VAT9".into(), ..BillingSettings::default() };
    caller.update_settings(settings, &["default_tax_code"]).await.unwrap();
    delete(&caller, TaxRateContext::Sales, "VAT21").await.unwrap();
    assert_eq!(codes(&caller, TaxRateContext::Sales).await[0], "VAT9");
}

#[tokio::test]
async fn a_rate_is_not_removed_while_it_becomes_the_default() {
    let world = World::new().await;
    for _ in 0..5 {
        let caller = world.caller().await;
        let (one, other) = (caller.clone(), caller.clone());
        let removing = tokio::spawn(async move { delete(&one, TaxRateContext::Sales, "VAT9").await });
        let choosing = tokio::spawn(async move {
            let settings = BillingSettings { default_tax_code: "VAT9".into(), ..BillingSettings::default() };
            other.update_settings(settings, &["default_tax_code"]).await
        });
        let (removed, chosen) = (removing.await.unwrap(), choosing.await.unwrap());
        assert_ne!(removed.is_ok(), chosen.is_ok());
        let default = caller.billing_settings().await.default_tax_code;
        assert!(codes(&caller, TaxRateContext::Sales).await.contains(&default));
    }
}

#[tokio::test]
async fn an_account_has_at_most_two_hundred_rates() {
    let world = World::new().await;
    let caller = world.caller().await;
    let mut connection = world.database.connect().await;
    sqlx::query(
        "insert into billing.tax_rate (account_id, context, code, label, type, amount, created_at, updated_at)
         select account_id, 'sales', 'X' || n, 'x', 'zero', 0, created_at, created_at
         from billing.settings, generate_series(1, 186) n",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let status = put(&caller, rate("ONE-MORE", TaxRateType::Zero, "0")).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/tax_rate", "too_many")]));
    put(&caller, rate("X1", TaxRateType::Zero, "0")).await.unwrap();
    assert_eq!(codes(&caller, TaxRateContext::Unspecified).await.len(), 200);
}

#[tokio::test]
async fn a_rate_of_an_unknown_type_fails_the_list_instead_of_being_shown_as_another() {
    let world = World::new().await;
    let caller = world.caller().await;
    let sql = "update billing.tax_rate set type = 'luxury' where account_id = $1 and context = 'sales' and code = 'VAT21'";
    let query = sqlx::query(sql).bind(caller.token.account.id);
    let updated = query.execute(&mut world.database.connect().await).await.unwrap();
    assert_eq!(updated.rows_affected(), 1);
    let request = caller.request(ListTaxRatesRequest { context: TaxRateContext::Sales.into() });
    let status = caller.settings().list_tax_rates(request).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Internal, "{status:?}");
    assert!(!codes(&caller, TaxRateContext::Purchase).await.is_empty(), "other rates can be read");
}
