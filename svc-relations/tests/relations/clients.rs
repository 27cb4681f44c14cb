//! Creating clients and finding them again.

use chassis_base::time::timestamp;
use chassis_rpc::call::REPLAY;
use chassis_testing::moment;
use chassis_testing::{expected_faults, faults};
use proto::relations::{
    BatchGetClientsRequest, ClientInput, CreateClientRequest, GetClientByExternalIdRequest, RelationType,
};

use crate::support::{World, company, is_not_found, person, problem};

#[tokio::test]
async fn a_created_client_is_stored_in_normal_form_and_found_again() {
    let world = World::new().await;
    let caller = world.caller();
    let created = caller
        .create(ClientInput {
            company_name: "  Bakkerij De Korenbloem ".into(),
            email: " sanne@korenbloem.example ".into(),
            iban: "nl91 abna 0417 1643 00".into(),
            bic: "abnanl2a".into(),
            vat_number: "nl 123456789 b01".into(),
            website: "https://korenbloem.example".into(),
            email_invoices: "a@b.nl, c@d.nl".into(),
            payment_term: Some(0),
            quote_expiration_days: Some(365),
            external_id: " crm-1 ".into(),
            ..ClientInput::default()
        })
        .await
        .unwrap();
    assert_eq!(created.r#type(), RelationType::Company);
    assert_eq!(created.company_name, "Bakkerij De Korenbloem");
    assert_eq!(created.email, "sanne@korenbloem.example");
    assert_eq!((created.iban.as_str(), created.bic.as_str()), ("NL91ABNA0417164300", "ABNANL2A"));
    assert_eq!(created.vat_number, "NL123456789B01");
    assert_eq!(created.email_invoices, "a@b.nl,c@d.nl");
    assert_eq!((created.payment_term, created.quote_expiration_days), (Some(0), Some(365)));
    assert_eq!(created.country, "NL", "the account's country");
    assert_eq!(created.debtor_number, "D-00001");
    let meta = created.meta.clone().unwrap();
    assert_eq!(meta.external_id.as_deref(), Some("crm-1"));
    assert_eq!(meta.created_at, Some(timestamp(moment())));
    assert_eq!(meta.updated_at, meta.created_at);
    assert_eq!(caller.get(&created.id).await.unwrap(), created);
}

#[tokio::test]
async fn a_person_needs_only_a_name_and_has_empty_values_elsewhere() {
    let world = World::new().await;
    let created = world.caller().create(person("de Vries")).await.unwrap();
    assert_eq!(created.r#type(), RelationType::Private);
    assert_eq!((created.payment_term, created.meta.unwrap().external_id), (None, None));
    assert_eq!((created.email.as_str(), created.default_revenue_account.as_str()), ("", ""));
}

#[tokio::test]
async fn a_bad_client_is_refused_with_every_fault_and_leaves_nothing() {
    let world = World::new().await;
    let caller = world.caller();
    let bad = ClientInput {
        r#type: RelationType::Company.into(),
        email: "x".into(),
        iban: "NL92ABNA0417164300".into(),
        payment_term: Some(366),
        city: "x".repeat(256),
        ..ClientInput::default()
    };
    let status = caller.create(bad).await.unwrap_err();
    let mut found = faults(&status);
    found.sort();
    let expected = [
        ("/client/city", "too_long"),
        ("/client/company_name", "required"),
        ("/client/email", "bad_email"),
        ("/client/iban", "bad_iban"),
        ("/client/payment_term", "out_of_range"),
    ];
    assert_eq!(found, expected_faults(&expected));
    assert_eq!(caller.total("").await, 0);
    let next = caller.create(company("A")).await.unwrap();
    assert_eq!(next.debtor_number, "D-00001", "a refused create takes no number");
}

#[tokio::test]
async fn a_create_without_anything_needs_a_name() {
    let world = World::new().await;
    let caller = world.caller();
    let empty = caller.request(CreateClientRequest { client: None });
    let status = caller.clients().create_client(empty).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/client/firstname", "required")]));
}

#[tokio::test]
async fn a_replayed_create_returns_the_first_response() {
    let world = World::new().await;
    let caller = world.caller();
    let request = CreateClientRequest { client: Some(company("A")) };
    let first = caller.clients().create_client(caller.token.keyed("k", request.clone())).await.unwrap();
    world.clock.advance(chrono::TimeDelta::seconds(30));
    let second = caller.clients().create_client(caller.token.keyed("k", request)).await.unwrap();
    assert_eq!(second.metadata().get(REPLAY).unwrap(), "true");
    assert_eq!(first.into_inner(), second.into_inner());
    assert_eq!(caller.total("").await, 1);
}

#[tokio::test]
async fn an_external_id_belongs_to_one_client() {
    let world = World::new().await;
    let caller = world.caller();
    let with_id = |name| ClientInput { external_id: "crm-1".into(), ..company(name) };
    let first = caller.create(with_id("A")).await.unwrap();
    let status = caller.create(with_id("B")).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    assert_eq!(problem(&status), ("external_id_taken".into(), vec![("id".into(), first.id.clone())]));
    assert_eq!(
        world.caller().create(with_id("C")).await.unwrap().debtor_number,
        "D-00001",
        "another account"
    );
    let next = caller.create(company("D")).await.unwrap();
    assert_eq!((next.debtor_number.as_str(), caller.total("").await), ("D-00002", 2));
}

#[tokio::test]
async fn an_id_that_is_not_a_uuid_is_not_found() {
    let world = World::new().await;
    let caller = world.caller();
    for id in ["", "x", &"x".repeat(300), "a\0b", "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05"] {
        assert!(is_not_found(&caller.get(id).await.unwrap_err()), "{id:?}");
        let status = caller.update(id, company("A"), &["company_name"]).await.unwrap_err();
        assert!(is_not_found(&status), "{id:?}");
    }
}

#[tokio::test]
async fn a_batch_keeps_the_order_asked_for_and_omits_ids_that_do_not_exist() {
    let world = World::new().await;
    let caller = world.caller().as_mesh();
    let a = caller.create(company("A")).await.unwrap();
    let b = caller.create(company("B")).await.unwrap();
    let ids = vec![b.id.clone(), "x".into(), world.clock.id().to_string(), a.id.clone(), b.id.clone()];
    let request = caller.request(BatchGetClientsRequest { ids });
    let found = caller.clients().batch_get_clients(request).await.unwrap().into_inner().data;
    assert_eq!(found, [b.clone(), a, b]);
    let many = caller.request(BatchGetClientsRequest { ids: vec![String::new(); 501] });
    let status = caller.clients().batch_get_clients(many).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/ids", "too_many")]));
}

#[tokio::test]
async fn a_client_is_found_by_its_external_id() {
    let world = World::new().await;
    let caller = world.caller().as_mesh();
    let created = caller.create(ClientInput { external_id: "crm-1".into(), ..company("A") }).await.unwrap();
    caller.create(company("B")).await.unwrap();
    let find = async |external_id: &str| {
        let request = GetClientByExternalIdRequest { external_id: external_id.to_owned() };
        caller.clients().get_client_by_external_id(caller.request(request)).await
    };
    assert_eq!(find("crm-1").await.unwrap().into_inner().data.unwrap(), created);
    assert!(is_not_found(&find("crm-2").await.unwrap_err()));
    assert_eq!(faults(&find(" ").await.unwrap_err()), expected_faults(&[("/external_id", "required")]));
}

#[tokio::test]
async fn a_stored_type_of_a_newer_version_is_an_error_and_not_another_type() {
    let world = World::new().await;
    let caller = world.caller();
    let id = caller.create(company("A")).await.unwrap().id;
    // A newer version may store more types, and its migration would allow them.
    sqlx::raw_sql(
        "alter table relations.relation drop constraint relation_type_known;
         update relations.relation set type = 'foundation'",
    )
    .execute(&mut world.database.connect().await)
    .await
    .unwrap();
    assert_eq!(caller.get(&id).await.unwrap_err().code(), tonic::Code::Internal);
    let status = caller.update(&id, company("B"), &["company_name"]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Internal);
}
