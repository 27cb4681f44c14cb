use proto::billing::{
    DeletePaymentTermRequest, DeleteTaxRateRequest, DocumentLanguage, IdentityInput,
    ListCorporateIdentitiesRequest, ListPaymentTermsRequest, TaxRateContext, UpdateIdentityRequest,
};
use render::printed::{Category, Language};
use svc_billing::settings::{Settings, store::for_documents};

use crate::support::{Caller, World, mask};

async fn everything(caller: &Caller) -> String {
    let terms = caller.settings().list_payment_terms(caller.request(ListPaymentTermsRequest {})).await;
    format!(
        "{:?} {:?} {:?} {:?}",
        caller.billing_settings().await,
        caller.tax_rates(TaxRateContext::Unspecified).await,
        terms.unwrap().into_inner(),
        caller.identities().await
    )
}

#[tokio::test]
async fn an_account_starts_with_its_settings_rates_terms_and_one_identity() {
    let world = World::new().await;
    let caller = world.caller().await;
    let settings = caller.billing_settings().await;
    assert_eq!((settings.payment_days, settings.quote_days), (Some(14), Some(30)));
    assert_eq!((settings.default_tax_code.as_str(), settings.number_padding), ("VAT21", Some(5)));
    assert_eq!(settings.language(), DocumentLanguage::Nl);
    let prefixes = (settings.invoice_prefix, settings.quote_prefix, settings.workorder_prefix);
    assert_eq!(prefixes, ("INV".to_owned(), "QUO".to_owned(), "WO".to_owned()));

    let request = caller.request(ListCorporateIdentitiesRequest {});
    let identities = caller.settings().list_corporate_identities(request).await.unwrap().into_inner();
    assert_eq!((identities.data.len(), identities.meta.unwrap().total), (1, 1));
    let identity = &identities.data[0];
    assert_eq!((identity.name.as_str(), identity.is_default), ("Bakkerij De Korenbloem", true));
    assert_eq!((identity.primary_color.as_str(), identity.secondary_color.as_str()), ("#1f4e5f", "#c98b2b"));
}

#[tokio::test]
async fn provisioning_again_changes_nothing_also_at_the_same_time() {
    let world = World::new().await;
    let caller = world.stranger("DE");
    let provisioning: Vec<_> = (0..6)
        .map(|_| {
            let caller = caller.clone();
            tokio::spawn(async move { caller.provision("Bäckerei").await })
        })
        .collect();
    for task in provisioning {
        task.await.unwrap();
    }
    let before = everything(&caller).await;
    assert_eq!(caller.identities().await.len(), 1);
    assert_eq!(caller.billing_settings().await.language(), DocumentLanguage::En);
    world.clock.advance(chrono::TimeDelta::days(1));
    caller.provision("Bäckerei").await;
    assert_eq!(everything(&caller).await, before);
}

#[tokio::test]
async fn what_was_removed_or_changed_stays_so() {
    let world = World::new().await;
    let caller = world.caller().await;
    let term = caller.request(DeletePaymentTermRequest { code: "NET60".into() });
    caller.settings().delete_payment_term(term).await.unwrap();
    let rate = DeleteTaxRateRequest { context: TaxRateContext::Sales.into(), code: "VAT9".into() };
    caller.settings().delete_tax_rate(caller.request(rate)).await.unwrap();
    let before = everything(&caller).await;
    caller.provision("Bakkerij De Korenbloem").await;
    assert_eq!(everything(&caller).await, before);
}

#[tokio::test]
async fn an_untouched_identity_follows_the_name_of_the_account_and_an_edited_one_does_not() {
    let world = World::new().await;
    let caller = world.caller().await;
    caller.provision("Second").await;
    let identity = caller.identities().await.remove(0);
    assert_eq!(identity.name, "Second");

    let city = IdentityInput { city: "Utrecht".into(), ..IdentityInput::default() };
    let update =
        UpdateIdentityRequest { id: identity.id, identity: Some(city), update_mask: Some(mask(&["city"])) };
    caller.settings().update_identity(caller.request(update)).await.unwrap();
    caller.provision("Third").await;
    let values = caller.identities().await.remove(0);
    assert_eq!((values.name.as_str(), values.city.as_str()), ("Second", "Utrecht"));
}

#[tokio::test]
async fn documents_are_made_with_what_is_stored_or_else_with_the_defaults_of_the_country() {
    let world = World::new().await;
    let caller = world.caller_in("FI").await;
    let mut connection = world.database.connect().await;
    let stored = for_documents(&mut connection, caller.token.account.id).await.unwrap();
    assert_eq!(stored.settings, Settings::of_country("FI"));
    assert_eq!(stored.settings.language, Language::En);
    let default = stored.rates.iter().find(|rate| rate.is_default).unwrap();
    assert_eq!((default.code.as_str(), default.amount.to_string().as_str()), ("VAT25.5", "25.5"));
    assert_eq!(default.category, Category::S);
    assert_eq!(stored.rates.iter().filter(|rate| rate.is_default).count(), 1);

    sqlx::query("delete from billing.settings").execute(&mut connection).await.unwrap();
    assert_eq!(for_documents(&mut connection, caller.token.account.id).await.unwrap(), stored);
    let unknown = for_documents(&mut connection, world.stranger("US").token.account.id).await.unwrap();
    assert_eq!(unknown.settings, Settings::of_country("NL"), "of an account that nobody told of");
}

#[tokio::test]
async fn a_change_for_an_account_that_was_not_provisioned_gives_it_its_defaults_first() {
    let world = World::new().await;
    let caller = world.stranger("BE");
    assert_eq!(caller.tax_rates(TaxRateContext::Sales).await, []);
    let mut settings = caller.billing_settings().await;
    settings.payment_days = Some(21);
    let updated = caller.update_settings(settings, &["payment_days"]).await.unwrap();
    assert_eq!((updated.payment_days, updated.default_tax_code.as_str()), (Some(21), "VAT21"));
    assert_eq!(caller.tax_rates(TaxRateContext::Sales).await[1].label, "12% btw");
    caller.provision("Frituur").await;
    assert_eq!(caller.billing_settings().await, updated);
    assert_eq!(caller.identities().await[0].name, "Frituur");
}
