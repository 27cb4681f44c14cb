use chassis_testing::expected_faults;
use proto::billing::{BillingSettings, DocumentLanguage, UpdateBillingSettingsRequest};

use crate::support::{World, faults};

fn changed() -> BillingSettings {
    BillingSettings {
        payment_days: Some(0),
        quote_days: Some(365),
        default_tax_code: "VAT9".into(),
        language: DocumentLanguage::En.into(),
        invoice_prefix: "F/1".into(),
        quote_prefix: "OFF".into(),
        workorder_prefix: "W_O".into(),
        number_padding: Some(12),
        sandbox_payments: Some(true),
    }
}

#[tokio::test]
async fn settings_change_by_their_mask_or_all_at_once() {
    let world = World::new().await;
    let caller = world.caller().await;
    let before = caller.billing_settings().await;
    let one = caller.update_settings(changed(), &["quote_prefix"]).await.unwrap();
    assert_eq!(one, BillingSettings { quote_prefix: "OFF".into(), ..before });
    let request = UpdateBillingSettingsRequest { settings: Some(changed()), update_mask: None };
    let all = caller.settings().update_billing_settings(caller.request(request)).await.unwrap();
    assert_eq!(all.into_inner().data.unwrap(), changed());
    assert_eq!(caller.billing_settings().await, changed());
    assert_eq!(caller.update_settings(BillingSettings::default(), &[]).await.unwrap(), changed());
}

#[tokio::test]
async fn settings_outside_their_limits_are_refused_all_at_once() {
    let world = World::new().await;
    let caller = world.caller().await;
    let wrong = BillingSettings {
        payment_days: Some(-1),
        quote_days: Some(366),
        default_tax_code: "VAT99".into(),
        language: 7,
        invoice_prefix: "a".into(),
        quote_prefix: String::new(),
        workorder_prefix: "X".repeat(21),
        number_padding: Some(0),
        sandbox_payments: None,
    };
    let request = UpdateBillingSettingsRequest { settings: Some(wrong), update_mask: None };
    let status = caller.settings().update_billing_settings(caller.request(request)).await.unwrap_err();
    let expected = [
        ("/settings/default_tax_code", "unknown_reference"),
        ("/settings/invoice_prefix", "bad_format"),
        ("/settings/language", "not_allowed"),
        ("/settings/number_padding", "out_of_range"),
        ("/settings/payment_days", "out_of_range"),
        ("/settings/quote_days", "out_of_range"),
        ("/settings/quote_prefix", "required"),
        ("/settings/workorder_prefix", "too_long"),
    ];
    assert_eq!(faults(&status), expected_faults(&expected));
}

#[tokio::test]
async fn nothing_of_the_settings_can_be_emptied() {
    let world = World::new().await;
    let caller = world.caller().await;
    let before = caller.billing_settings().await;
    for name in ["payment_days", "default_tax_code", "language", "invoice_prefix", "number_padding"] {
        let status = caller.update_settings(BillingSettings::default(), &[name]).await.unwrap_err();
        assert_eq!(faults(&status), expected_faults(&[(&format!("/settings/{name}"), "required")]));
    }
    let status = caller.update_settings(changed(), &["colour"]).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/update_mask", "not_allowed")]));
    assert_eq!(caller.billing_settings().await, before);
}

#[tokio::test]
async fn a_purchase_rate_cannot_be_the_default() {
    let world = World::new().await;
    let caller = world.caller().await;
    let mut connection = world.database.connect().await;
    sqlx::query("delete from billing.tax_rate where context = 'sales' and code = 'ICP'")
        .execute(&mut connection)
        .await
        .unwrap();
    let settings = BillingSettings { default_tax_code: "ICP".into(), ..BillingSettings::default() };
    let status = caller.update_settings(settings, &["default_tax_code"]).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/settings/default_tax_code", "unknown_reference")]));
}
