//! Every record counts its changes, and the log has it as it is shown.

use chrono::TimeDelta;
use proto::billing::{
    CorporateIdentity, CreateIdentityRequest, DeletePaymentTermRequest, DeleteTaxRateRequest, IdentityInput,
    ListCorporateIdentitiesRequest, ListPaymentTermsRequest, PaymentTerm, PaymentTermInput, Product,
    ProductInput, PutPaymentTermRequest, PutTaxRateRequest, SetDefaultIdentityRequest,
    SetIdentityLogoRequest, TaxRate, TaxRateContext, TaxRateInput, TaxRateType, UpdateIdentityRequest,
};

use crate::support::{Caller, World, mask, product};

const LOGO: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><path d='M0 0h1v1z'/></svg>";

#[tokio::test]
async fn a_product_counts_its_changes() {
    let world = World::new().await;
    let caller = world.caller().await;
    let created = caller.create(product("Bread", "B")).await.unwrap();
    let version = |product: &Product| product.meta.as_ref().unwrap().version;
    assert_eq!(version(&created), 1);
    assert_eq!(world.logged(&caller, "product", &created.id).await, Some(created.clone()));
    world.clock.advance(TimeDelta::seconds(1));
    assert_eq!(caller.update(&created.id, product("Bread", ""), &["name"]).await.unwrap(), created);

    let priced = ProductInput { price: "4.50".into(), ..ProductInput::default() };
    let changed = caller.update(&created.id, priced, &["price"]).await.unwrap();
    assert_eq!(version(&changed), 2);
    assert_eq!(caller.get(&created.id).await.unwrap(), changed);
    assert_eq!(world.logged(&caller, "product", &created.id).await, Some(changed));
    caller.delete(&created.id).await.unwrap();
    assert_eq!(world.logged::<Product>(&caller, "product", &created.id).await, None);
}

async fn put_rate(caller: &Caller, label: &str) -> TaxRate {
    let rate = TaxRateInput {
        code: "VAT6".into(),
        label: label.into(),
        r#type: TaxRateType::Reduced.into(),
        context: TaxRateContext::Sales.into(),
        amount: "6.50".into(),
    };
    let request = caller.request(PutTaxRateRequest { tax_rate: Some(rate) });
    caller.settings().put_tax_rate(request).await.unwrap().into_inner().data.unwrap()
}

#[tokio::test]
async fn a_tax_rate_counts_its_changes_and_goes_on_after_its_removal() {
    let world = World::new().await;
    let caller = world.caller().await;
    let shown = async || {
        let rates = caller.tax_rates(TaxRateContext::Sales).await;
        rates.into_iter().find(|rate| rate.code == "VAT6").unwrap()
    };
    assert!(caller.tax_rates(TaxRateContext::Unspecified).await.iter().all(|rate| rate.version == 1));
    let first = put_rate(&caller, "6,5%").await;
    assert_eq!((first.version, shown().await), (1, first.clone()));
    world.clock.advance(TimeDelta::seconds(1));
    assert_eq!(put_rate(&caller, "6,5%").await, first, "no change");
    let second = put_rate(&caller, "Laag").await;
    assert_eq!((second.version, shown().await), (2, second.clone()));
    assert_ne!(second.updated_at, first.updated_at);
    assert_eq!(world.logged(&caller, "tax_rate", "sales/VAT6").await, Some(second));

    let removal = DeleteTaxRateRequest { context: TaxRateContext::Sales.into(), code: "VAT6".into() };
    caller.settings().delete_tax_rate(caller.request(removal)).await.unwrap();
    assert_eq!(world.logged::<TaxRate>(&caller, "tax_rate", "sales/VAT6").await, None);
    let again = put_rate(&caller, "6,5%").await;
    assert_eq!((again.version, shown().await), (4, again.clone()), "the removal is a version too");
    assert_eq!(world.logged(&caller, "tax_rate", "sales/VAT6").await, Some(again));
}

async fn put_term(caller: &Caller, days: i32) -> PaymentTerm {
    let term = PaymentTermInput { code: "MONTH".into(), days: Some(days), label: "Een maand".into() };
    let request = caller.request(PutPaymentTermRequest { term: Some(term) });
    caller.settings().put_payment_term(request).await.unwrap().into_inner().data.unwrap()
}

#[tokio::test]
async fn a_payment_term_counts_its_changes_and_goes_on_after_its_removal() {
    let world = World::new().await;
    let caller = world.caller().await;
    let list = async || {
        let request = caller.request(ListPaymentTermsRequest {});
        caller.settings().list_payment_terms(request).await.unwrap().into_inner().data
    };
    let shown = async || list().await.into_iter().find(|term| term.code == "MONTH").unwrap();
    for term in list().await {
        assert_eq!(term.version, 1, "{}", term.code);
        let code = term.code.clone();
        assert_eq!(world.logged(&caller, "payment_term", &code).await, Some(term));
    }
    let first = put_term(&caller, 30).await;
    assert_eq!((first.version, shown().await), (1, first.clone()));
    world.clock.advance(TimeDelta::seconds(1));
    assert_eq!(put_term(&caller, 30).await, first, "no change");
    let second = put_term(&caller, 31).await;
    assert_eq!((second.version, shown().await), (2, second.clone()));
    assert_eq!(world.logged(&caller, "payment_term", "MONTH").await, Some(second));
    let removal = caller.request(DeletePaymentTermRequest { code: "MONTH".into() });
    caller.settings().delete_payment_term(removal).await.unwrap();
    let again = put_term(&caller, 31).await;
    assert_eq!((again.version, shown().await), (4, again), "the removal is a version too");
}

/// The identities as the public API shows them, which the log must have too; the default first.
async fn corporate(world: &World, caller: &Caller) -> Vec<CorporateIdentity> {
    let request = caller.request(ListCorporateIdentitiesRequest {});
    let shown = caller.settings().list_corporate_identities(request).await.unwrap().into_inner().data;
    for identity in &shown {
        let logged = world.logged(caller, "corporate_identity", &identity.id).await;
        assert_eq!(logged.as_ref(), Some(identity));
    }
    shown
}

async fn versions(world: &World, caller: &Caller) -> Vec<i64> {
    corporate(world, caller).await.iter().map(|identity| identity.version).collect()
}

#[tokio::test]
async fn an_identity_counts_its_changes() {
    let world = World::new().await;
    let caller = world.caller().await;
    assert_eq!(versions(&world, &caller).await, [1]);
    world.clock.advance(TimeDelta::seconds(1));
    caller.provision("Bakkerij De Korenbloem").await;
    assert_eq!(versions(&world, &caller).await, [1]);
    caller.provision("Molen").await;
    assert_eq!(versions(&world, &caller).await, [2], "it follows the name of the account");

    let id = corporate(&world, &caller).await.remove(0).id;
    for expected in [3, 3] {
        let city = IdentityInput { city: "Utrecht".into(), ..IdentityInput::default() };
        let update = UpdateIdentityRequest {
            id: id.clone(),
            identity: Some(city),
            update_mask: Some(mask(&["city"])),
        };
        caller.settings().update_identity(caller.request(update)).await.unwrap();
        assert_eq!(versions(&world, &caller).await, [expected]);
    }
    for (logo, expected) in [(LOGO, 4), (LOGO, 4), (b"", 5), (b"", 5)] {
        let set = SetIdentityLogoRequest { id: id.clone(), logo: logo.to_vec().into() };
        caller.settings().set_identity_logo(caller.request(set)).await.unwrap();
        assert_eq!(versions(&world, &caller).await, [expected]);
    }
}

#[tokio::test]
async fn another_default_changes_two_identities() {
    let world = World::new().await;
    let caller = world.caller().await;
    for name in ["Second", "Third"] {
        world.clock.advance(TimeDelta::seconds(1));
        let identity = IdentityInput { name: name.into(), ..IdentityInput::default() };
        let request = caller.request(CreateIdentityRequest { identity: Some(identity) });
        caller.settings().create_identity(request).await.unwrap();
    }
    let third = corporate(&world, &caller).await.pop().unwrap().id;
    for _ in 0..2 {
        let request = caller.request(SetDefaultIdentityRequest { id: third.clone() });
        caller.settings().set_default_identity(request).await.unwrap();
        assert_eq!(versions(&world, &caller).await, [2, 2, 1], "the default, the one before, the other");
    }
}
