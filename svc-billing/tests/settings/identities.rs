use chassis_testing::expected_faults;
use chrono::TimeDelta;
use proto::billing::{
    CreateIdentityRequest, DeleteIdentityRequest, Identity, IdentityInput, SetDefaultIdentityRequest,
    UpdateIdentityRequest,
};
use render::printed::{Bank, Look, Party};
use svc_billing::identity::{Seller, seller as find_seller};
use tonic::Status;

use crate::support::{Caller, World, faults, is_not_found, mask, problem};

async fn create(caller: &Caller, identity: IdentityInput) -> Result<Identity, Status> {
    let request = caller.request(CreateIdentityRequest { identity: Some(identity) });
    Ok(caller.settings().create_identity(request).await?.into_inner().data.unwrap())
}

async fn update(
    caller: &Caller,
    id: &str,
    identity: IdentityInput,
    names: Option<&[&str]>,
) -> Result<Identity, Status> {
    let request =
        UpdateIdentityRequest { id: id.into(), identity: Some(identity), update_mask: names.map(mask) };
    Ok(caller.settings().update_identity(caller.request(request)).await?.into_inner().data.unwrap())
}

async fn delete(caller: &Caller, id: &str) -> Result<(), Status> {
    let request = caller.request(DeleteIdentityRequest { id: id.into() });
    caller.settings().delete_identity(request).await.map(|_| ())
}

async fn set_default(caller: &Caller, id: &str) -> Result<Identity, Status> {
    let request = caller.request(SetDefaultIdentityRequest { id: id.into() });
    Ok(caller.settings().set_default_identity(request).await?.into_inner().data.unwrap())
}

fn mill() -> IdentityInput {
    IdentityInput {
        name: "Molen".into(),
        primary_color: "#ABCDEF".into(),
        company_name: "Molen B.V.".into(),
        address: "Dijk 1".into(),
        zipcode: "3511 AA".into(),
        city: "Utrecht".into(),
        email: "post@molen.example".into(),
        website: "https://molen.example".into(),
        company_registration_number: "12345678".into(),
        vat_number: "nl123456789b01".into(),
        iban: "nl91 abna 0417 1643 00".into(),
        bic: "abnanl2a".into(),
        bank_account_name: "Molen".into(),
        footer: "Tot ziens".into(),
        ..IdentityInput::default()
    }
}

#[tokio::test]
async fn an_identity_is_kept_in_its_normal_form() {
    let world = World::new().await;
    let caller = world.caller().await;
    let created = create(&caller, mill()).await.unwrap();
    let values = created.clone();
    assert_eq!((values.primary_color.as_str(), values.secondary_color.as_str()), ("#abcdef", "#c98b2b"));
    assert_eq!((values.country.as_str(), values.vat_number.as_str()), ("NL", "NL123456789B01"));
    assert_eq!((values.iban.as_str(), values.bic.as_str()), ("NL91ABNA0417164300", "ABNANL2A"));
    assert_eq!((created.is_default, created.logo_type.as_str()), (false, ""));
    let all = caller.identities().await;
    assert_eq!(all.len(), 2);
    assert!(all[0].is_default, "the default comes first");
    // The list fills `values` as well, for programs of the release before.
    assert_eq!(all[1].values.as_ref().unwrap().iban, created.iban);
    assert_eq!(Identity { values: None, ..all[1].clone() }, created);
}

#[tokio::test]
async fn every_wrong_value_is_named_and_nothing_is_stored() {
    let world = World::new().await;
    let caller = world.caller().await;
    let wrong = IdentityInput {
        name: String::new(),
        primary_color: "#12345".into(),
        country: "XX".into(),
        email: "x".into(),
        website: "x".into(),
        vat_number: "x".into(),
        iban: "x".into(),
        bic: "x".into(),
        ..mill()
    };
    let expected = [
        ("/identity/bic", "bad_bic"),
        ("/identity/country", "bad_country"),
        ("/identity/email", "bad_email"),
        ("/identity/iban", "bad_iban"),
        ("/identity/name", "required"),
        ("/identity/primary_color", "bad_format"),
        ("/identity/vat_number", "bad_vat_number"),
        ("/identity/website", "bad_url"),
    ];
    assert_eq!(faults(&create(&caller, wrong.clone()).await.unwrap_err()), expected_faults(&expected));
    let id = caller.identities().await.remove(0).id;
    assert_eq!(
        faults(&update(&caller, &id, wrong.clone(), None).await.unwrap_err()),
        expected_faults(&expected)
    );
    assert_eq!(faults(&update(&caller, "x", wrong, None).await.unwrap_err()), expected_faults(&expected));
    assert_eq!(caller.identities().await.len(), 1);
}

#[tokio::test]
async fn a_change_touches_what_the_mask_names() {
    let world = World::new().await;
    let caller = world.caller().await;
    let created = create(&caller, mill()).await.unwrap();
    world.clock.advance(TimeDelta::seconds(1));
    assert_eq!(update(&caller, &created.id, mill(), Some(&["city"])).await.unwrap(), created, "no change");
    let given = IdentityInput { city: "Gent".into(), ..IdentityInput::default() };
    let changed =
        update(&caller, &created.id, given, Some(&["city", "email", "primary_color"])).await.unwrap();
    let values = changed.clone();
    assert_eq!((values.city.as_str(), values.email.as_str()), ("Gent", ""));
    assert_eq!((values.primary_color.as_str(), values.zipcode.as_str()), ("#1f4e5f", "3511 AA"));
    assert_ne!(changed.updated_at, created.updated_at);
    let status = update(&caller, &created.id, mill(), Some(&["is_default"])).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/update_mask", "not_allowed")]));
    assert!(is_not_found(&update(&caller, "x", mill(), None).await.unwrap_err()));
}

#[tokio::test]
async fn there_is_always_one_default_and_it_cannot_be_removed() {
    let world = World::new().await;
    let caller = world.caller().await;
    let first = caller.identities().await.remove(0).id;
    let second = create(&caller, mill()).await.unwrap().id;
    assert_eq!(problem(&delete(&caller, &first).await.unwrap_err()).0, "in_use");
    assert!(set_default(&caller, &second).await.unwrap().is_default);
    assert!(set_default(&caller, &second).await.unwrap().is_default, "again");
    let defaults: Vec<bool> = caller.identities().await.iter().map(|identity| identity.is_default).collect();
    assert_eq!(defaults, [true, false]);
    delete(&caller, &first).await.unwrap();
    assert!(is_not_found(&delete(&caller, &first).await.unwrap_err()));
    assert!(is_not_found(&set_default(&caller, &first).await.unwrap_err()));
    assert!(is_not_found(&set_default(&caller, "x").await.unwrap_err()));
}

#[tokio::test]
async fn many_who_choose_a_default_at_once_leave_one() {
    let world = World::new().await;
    let caller = world.caller().await;
    let mut choosing = Vec::new();
    for _ in 0..6 {
        let id = create(&caller, mill()).await.unwrap().id;
        let caller = caller.clone();
        choosing.push(tokio::spawn(async move { set_default(&caller, &id).await }));
    }
    for task in choosing {
        task.await.unwrap().unwrap();
    }
    assert_eq!(caller.identities().await.iter().filter(|identity| identity.is_default).count(), 1);
}

#[tokio::test]
async fn documents_get_the_default_identity_as_the_seller() {
    let world = World::new().await;
    let caller = world.caller().await;
    let account = caller.token.account.id;
    let mut connection = world.database.connect().await;
    let seller = find_seller(&mut connection, account).await.unwrap();
    assert_eq!(seller.party.name, "Bakkerij De Korenbloem", "without a legal name, the name");

    let id = create(&caller, mill()).await.unwrap().id;
    set_default(&caller, &id).await.unwrap();
    let seller = find_seller(&mut connection, account).await.unwrap();
    let party = Party {
        name: "Molen B.V.".into(),
        address: "Dijk 1".into(),
        zipcode: "3511 AA".into(),
        city: "Utrecht".into(),
        country: "NL".into(),
        email: "post@molen.example".into(),
        website: "https://molen.example".into(),
        registration_number: "12345678".into(),
        vat_number: "NL123456789B01".into(),
        ..Party::default()
    };
    let bank = Bank { iban: "NL91ABNA0417164300".into(), bic: "ABNANL2A".into(), holder: "Molen".into() };
    let look = Look {
        primary_color: "#abcdef".into(),
        secondary_color: "#c98b2b".into(),
        footer: "Tot ziens".into(),
        logo: None,
    };
    assert_eq!(seller, Seller { party, bank, look });
    let text = serde_json::to_string(&seller).unwrap();
    assert_eq!(serde_json::from_str::<Seller>(&text).unwrap(), seller);
    let stranger = world.stranger("NL").token.account.id;
    assert_eq!(find_seller(&mut connection, stranger).await.unwrap(), Seller::default());
}
