//! Updates of clients.

use chassis_base::time::timestamp;
use chassis_testing::{expected_faults, faults};
use chrono::TimeDelta;
use proto::relations::{ClientInput, RelationType, UpdateClientRequest};

use crate::support::{World, company, person, problem};

#[tokio::test]
async fn a_patch_changes_the_fields_it_names_and_no_others() {
    let world = World::new().await;
    let caller = world.caller();
    let input =
        ClientInput { city: "Gent".into(), payment_term: Some(14), email: "a@b.nl".into(), ..company("A") };
    let created = caller.create(input).await.unwrap();
    world.clock.advance(TimeDelta::seconds(5));
    let patch = ClientInput { company_name: " B ".into(), phone: "ignored".into(), ..ClientInput::default() };
    let changed = caller.update(&created.id, patch, &["company_name", "city", "payment_term"]).await.unwrap();
    assert_eq!((changed.company_name.as_str(), changed.city.as_str(), changed.payment_term), ("B", "", None));
    assert_eq!((changed.email.as_str(), changed.phone.as_str()), ("a@b.nl", ""));
    let meta = changed.meta.clone().unwrap();
    assert_eq!(meta.created_at, created.meta.unwrap().created_at);
    assert_eq!(meta.updated_at, Some(timestamp(world.clock.now())));
    assert_eq!(caller.get(&created.id).await.unwrap(), changed);
}

#[tokio::test]
async fn a_patch_that_changes_nothing_stores_nothing() {
    let world = World::new().await;
    let caller = world.caller();
    let created =
        caller.create(ClientInput { iban: "NL91ABNA0417164300".into(), ..company("A") }).await.unwrap();
    world.clock.advance(TimeDelta::seconds(5));
    assert_eq!(caller.update(&created.id, ClientInput::default(), &[]).await.unwrap(), created);
    let same = ClientInput { iban: "nl91 abna 0417 1643 00".into(), ..company("A") };
    let named = ["company_name", "iban", "country", "external_id"];
    assert_eq!(caller.update(&created.id, same, &named).await.unwrap(), created);
}

#[tokio::test]
async fn a_patch_may_not_take_away_what_the_type_needs() {
    let world = World::new().await;
    let caller = world.caller();
    let id = caller.create(company("A")).await.unwrap().id;
    let refused =
        async |input: ClientInput, mask: &[&str]| faults(&caller.update(&id, input, mask).await.unwrap_err());
    let empty = ClientInput::default;
    assert_eq!(
        refused(empty(), &["company_name"]).await,
        expected_faults(&[("/client/company_name", "required")])
    );
    let private = ClientInput { r#type: RelationType::Private.into(), ..empty() };
    assert_eq!(refused(private, &["type"]).await, expected_faults(&[("/client/firstname", "required")]));
    assert_eq!(refused(empty(), &["type"]).await, expected_faults(&[("/client/type", "not_nullable")]));
    assert_eq!(
        refused(empty(), &["debtor_number"]).await,
        expected_faults(&[("/update_mask", "not_allowed")])
    );
    let all = ClientInput { email: "x".into(), website: "y".into(), ..empty() };
    let expected = [
        ("/client/email", "bad_email"),
        ("/client/website", "bad_url"),
        ("/client/company_name", "required"),
    ];
    assert_eq!(refused(all, &["email", "website", "company_name"]).await, expected_faults(&expected));
    assert_eq!(caller.get(&id).await.unwrap().company_name, "A");
}

#[tokio::test]
async fn an_emptied_country_is_the_accounts_again() {
    let world = World::new().await;
    let caller = world.caller();
    let id = caller.create(ClientInput { country: "be".into(), ..company("A") }).await.unwrap().id;
    let changed = caller.update(&id, ClientInput::default(), &["country"]).await.unwrap();
    assert_eq!(changed.country, "NL");
}

#[tokio::test]
async fn an_update_without_a_mask_replaces_everything() {
    let world = World::new().await;
    let caller = world.caller();
    let old = ClientInput { external_id: "x".into(), country: "BE".into(), ..company("A") };
    let created = caller.create(old).await.unwrap();
    let request = UpdateClientRequest { id: created.id, client: Some(person("B")), update_mask: None };
    let changed =
        caller.clients().update_client(caller.request(request)).await.unwrap().into_inner().data.unwrap();
    assert_eq!((changed.company_name.as_str(), changed.lastname.as_str()), ("", "B"));
    assert_eq!((changed.r#type(), changed.country.as_str()), (RelationType::Private, "NL"));
    assert_eq!(changed.meta.unwrap().external_id, None);
    assert_eq!(changed.debtor_number, "D-00001", "it was not the caller's to set");
}

#[tokio::test]
async fn a_patch_cannot_take_the_external_id_of_another() {
    let world = World::new().await;
    let caller = world.caller();
    let holder = caller.create(ClientInput { external_id: "x".into(), ..company("A") }).await.unwrap();
    let other = caller.create(company("B")).await.unwrap();
    let patch = ClientInput { external_id: "x".into(), ..ClientInput::default() };
    let status = caller.update(&other.id, patch.clone(), &["external_id"]).await.unwrap_err();
    assert_eq!(problem(&status), ("external_id_taken".into(), vec![("id".into(), holder.id.clone())]));
    caller.update(&holder.id, patch.clone(), &["external_id"]).await.unwrap();
    caller.update(&holder.id, ClientInput::default(), &["external_id"]).await.unwrap();
    let changed = caller.update(&other.id, patch, &["external_id"]).await.unwrap();
    assert_eq!(changed.meta.unwrap().external_id.as_deref(), Some("x"), "it was given up");
}

#[tokio::test]
async fn faults_of_the_body_are_reported_before_an_id_that_does_not_exist() {
    let world = World::new().await;
    let caller = world.caller();
    let bad = ClientInput { email: "x".into(), ..ClientInput::default() };
    let status = caller.update("nobody", bad, &["email"]).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/client/email", "bad_email")]));
}
