//! Nothing of one account is seen or changed by another, and the mesh's rpcs are closed to keys.

use proto::billing::{
    DeleteIdentityRequest, GetBillingSettingsRequest, IdentityInput, ListCorporateIdentitiesRequest,
    ListPaymentTermsRequest, ListProductsRequest, ListTaxRatesRequest, PutPaymentTermRequest,
    SetDefaultIdentityRequest, SetIdentityLogoRequest, TaxRateContext, UpdateIdentityRequest,
};
use tonic::Code;

use crate::support::{World, is_not_found, mask, product};

#[tokio::test]
async fn products_of_another_account_do_not_exist() {
    let world = World::new().await;
    let (owner, stranger) = (world.caller().await, world.caller().await);
    let theirs = owner.create(product("Bread", "X")).await.unwrap();
    assert!(is_not_found(&stranger.get(&theirs.id).await.unwrap_err()));
    assert!(is_not_found(&stranger.update(&theirs.id, product("A", ""), &["name"]).await.unwrap_err()));
    assert!(is_not_found(&stranger.delete(&theirs.id).await.unwrap_err()));
    for search in ["", "bread"] {
        let page = stranger.list(ListProductsRequest { search: search.into(), ..Default::default() }).await;
        assert_eq!((page.data.len(), page.meta.unwrap().total), (0, 0));
    }
    stranger.create(product("Own", "X")).await.unwrap();
    assert_eq!(owner.get(&theirs.id).await.unwrap(), theirs, "and it is as it was");
}

#[tokio::test]
async fn identities_of_another_account_do_not_exist() {
    let world = World::new().await;
    let (owner, stranger) = (world.caller().await, world.caller().await);
    let theirs = owner.identities().await.remove(0);
    let id = || theirs.id.clone();
    let values = IdentityInput { name: "Taken".into(), ..IdentityInput::default() };
    let mut settings = stranger.settings();
    let update =
        UpdateIdentityRequest { id: id(), identity: Some(values), update_mask: Some(mask(&["name"])) };
    assert!(is_not_found(&settings.update_identity(stranger.request(update)).await.unwrap_err()));
    let delete = stranger.request(DeleteIdentityRequest { id: id() });
    assert!(is_not_found(&settings.delete_identity(delete).await.unwrap_err()));
    let default = stranger.request(SetDefaultIdentityRequest { id: id() });
    assert!(is_not_found(&settings.set_default_identity(default).await.unwrap_err()));
    let logo = stranger.request(SetIdentityLogoRequest { id: id(), logo: b"<svg/>".to_vec().into() });
    assert!(is_not_found(&settings.set_identity_logo(logo).await.unwrap_err()));
    assert_eq!(owner.identities().await.remove(0), theirs, "and it is as it was");
}

#[tokio::test]
async fn settings_of_one_account_are_not_those_of_another() {
    let world = World::new().await;
    let (dutch, german) = (world.caller().await, world.caller_in("DE").await);
    let mut changed = dutch.billing_settings().await;
    changed.payment_days = Some(99);
    dutch.update_settings(changed, &["payment_days"]).await.unwrap();
    assert_eq!(german.billing_settings().await.payment_days, Some(14));
    assert_eq!(german.tax_rates(TaxRateContext::Sales).await[0].code, "VAT19");
    assert_eq!(dutch.tax_rates(TaxRateContext::Sales).await[0].code, "VAT21");
}

#[tokio::test]
async fn keys_read_what_their_scope_allows_and_manage_nothing() {
    let world = World::new().await;
    let mesh = world.caller().await;
    let key = mesh.with_scopes(&["products.read"]);
    key.list(ListProductsRequest::default()).await;
    let refused = |status: tonic::Status| assert_eq!(status.code(), Code::PermissionDenied);
    refused(key.create(product("A", "")).await.unwrap_err());
    let mut settings = key.settings();
    settings.list_tax_rates(key.request(ListTaxRatesRequest::default())).await.unwrap();
    let identities = key.request(ListCorporateIdentitiesRequest {});
    settings.list_corporate_identities(identities).await.unwrap();
    refused(settings.list_payment_terms(key.request(ListPaymentTermsRequest {})).await.unwrap_err());
    let reader = mesh.with_scopes(&["invoices.read"]);
    settings.list_payment_terms(reader.request(ListPaymentTermsRequest {})).await.unwrap();
    refused(settings.get_billing_settings(key.request(GetBillingSettingsRequest {})).await.unwrap_err());
    refused(settings.put_payment_term(key.request(PutPaymentTermRequest::default())).await.unwrap_err());
}
