//! The events of clients.

use proto::relations::{ClientInput, CreateClientRequest, CreateSupplierRequest, SupplierInput};
use serde_json::{Value, json};

use crate::support::{Caller, World, company};

#[derive(Debug, PartialEq, chassis_derive::FromRow)]
struct Stored {
    r#type: String,
    entity_type: String,
    entity_id: String,
    version: i64,
    data: Value,
}

async fn events(world: &World, caller: &Caller) -> Vec<Stored> {
    sqlx::query_as(
        "select event as type, kind as entity_type, record_id as entity_id, sequence / 1000 as version, data::json as data
         from relations.log where event is not null and account_id = $1 order by record_id, sequence",
    )
    .bind(caller.token.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

#[tokio::test]
async fn creating_and_changing_a_client_emits_events_in_order() {
    let world = World::new().await;
    let caller = world.caller();
    let id = caller.create(ClientInput { email: "a@b.nl".into(), ..company("A") }).await.unwrap().id;
    let patch = ClientInput { external_id: "x".into(), city: "Gent".into(), ..company("A") };
    caller.update(&id, patch, &["company_name", "city", "external_id"]).await.unwrap();
    let event = |kind: &str, version, data| Stored {
        r#type: kind.into(),
        entity_type: "client".into(),
        entity_id: id.clone(),
        version,
        data,
    };
    let mut data = json!({
        "id": id, "type": "company", "company_name": "A", "firstname": "", "lastname": "", "email": "a@b.nl",
        "external_id": null, "debtor_number": "D-00001",
    });
    let created = event("customer.created", 1, data.clone());
    data["external_id"] = json!("x");
    data["changed"] = json!(["city", "external_id"]);
    assert_eq!(events(&world, &caller).await, [created, event("customer.updated", 2, data)]);
}

#[tokio::test]
async fn a_repeat_a_refusal_and_an_update_without_changes_emit_no_event() {
    let world = World::new().await;
    let caller = world.caller();
    let request = || caller.token.keyed("k", CreateClientRequest { client: Some(company("A")) });
    let id = caller.clients().create_client(request()).await.unwrap().into_inner().data.unwrap().id;
    caller.clients().create_client(request()).await.unwrap();
    caller.update(&id, company("A"), &["company_name"]).await.unwrap();
    caller.update(&id, ClientInput::default(), &["company_name"]).await.unwrap_err();
    caller.create(ClientInput::default()).await.unwrap_err();
    assert_eq!(events(&world, &caller).await.len(), 1);
}

#[tokio::test]
async fn suppliers_have_no_events() {
    let world = World::new().await;
    let caller = world.caller();
    let supplier = SupplierInput { company_name: "Molen".into(), ..SupplierInput::default() };
    let request = caller.request(CreateSupplierRequest { supplier: Some(supplier) });
    caller.suppliers().create_supplier(request).await.unwrap();
    assert_eq!(events(&world, &caller).await, []);
}
