//! The versions of records, and that the log holds each record as it is shown.

use chrono::TimeDelta;
use prost::Message;
use proto::relations::{
    ClientInput, ClientLinkInput, CreateCustomFieldRequest, CreateSupplierRequest, CustomField,
    CustomFieldEntity, CustomFieldInput, CustomFieldType, DeleteCustomFieldRequest, GetSupplierRequest,
    LinkClientRequest, ListCustomFieldsRequest, Relation, SupplierInput, UpdateCustomFieldRequest,
    UpdateSupplierRequest,
};

use crate::support::{Caller, World, company, mask, person};

/// The version and the encoded record of its last change in the log; no record if it was removed.
async fn logged(world: &World, caller: &Caller, kind: &str, id: &str) -> (i64, Option<Vec<u8>>) {
    sqlx::query_as(
        "select version, image from relations.log
         where account_id = $1 and kind = $2 and record_id = $3 and change is not null
         order by version desc limit 1",
    )
    .bind(caller.token.account.id)
    .bind(kind)
    .bind(id)
    .fetch_one(&mut world.database.connect().await)
    .await
    .unwrap()
}

/// Checks that the log holds a client or supplier as it is shown. Returns its version.
async fn version_of(world: &World, caller: &Caller, kind: &str, shown: &Relation) -> i64 {
    let version = shown.meta.as_ref().unwrap().version;
    assert_eq!(logged(world, caller, kind, &shown.id).await, (version, Some(shown.encode_to_vec())));
    version
}

#[tokio::test]
async fn each_change_of_a_client_is_one_version_and_a_repetition_is_none() {
    let world = World::new().await;
    let caller = world.caller();
    let created = caller.create(company("A")).await.unwrap();
    assert_eq!(version_of(&world, &caller, "client", &created).await, 1);
    for (version, name) in [(2, "B"), (2, "B"), (3, "C")] {
        world.clock.advance(TimeDelta::minutes(1));
        let patch = ClientInput { city: name.into(), ..company(name) };
        let changed = caller.update(&created.id, patch, &["company_name", "city"]).await.unwrap();
        let shown = caller.get(&created.id).await.unwrap();
        assert_eq!(
            (version_of(&world, &caller, "client", &shown).await, changed),
            (version, shown),
            "{name}"
        );
    }
    caller.update(&created.id, ClientInput::default(), &["company_name"]).await.unwrap_err();
    assert_eq!(caller.get(&created.id).await.unwrap().meta.unwrap().version, 3, "it was refused");
}

#[tokio::test]
async fn a_link_changes_neither_of_its_clients() {
    let world = World::new().await;
    let caller = world.caller();
    let clients = [caller.create(company("A")).await.unwrap(), caller.create(person("B")).await.unwrap()];
    let link = ClientLinkInput { client_id: clients[1].id.clone(), ..ClientLinkInput::default() };
    let request = LinkClientRequest { id: clients[0].id.clone(), link: Some(link) };
    caller.clients().link_client(caller.request(request)).await.unwrap();
    for client in &clients {
        assert_eq!(caller.get(&client.id).await.unwrap(), *client);
    }
}

#[tokio::test]
async fn each_change_of_a_supplier_is_one_version() {
    let world = World::new().await;
    let caller = world.caller();
    let input =
        |city: &str| SupplierInput { city: city.into(), company_name: "Molen".into(), ..Default::default() };
    let request = caller.request(CreateSupplierRequest { supplier: Some(input("Gent")) });
    let created = caller.suppliers().create_supplier(request).await.unwrap().into_inner().data.unwrap();
    assert_eq!(version_of(&world, &caller, "supplier", &created).await, 1);
    for (version, city) in [(2, "Brugge"), (2, "Brugge"), (3, "Gent")] {
        world.clock.advance(TimeDelta::minutes(1));
        let request = UpdateSupplierRequest {
            id: created.id.clone(),
            supplier: Some(input(city)),
            update_mask: Some(mask(&["city"])),
        };
        caller.suppliers().update_supplier(caller.request(request)).await.unwrap();
        let get = caller.request(GetSupplierRequest { id: created.id.clone() });
        let shown = caller.suppliers().get_supplier(get).await.unwrap().into_inner().data.unwrap();
        assert_eq!(version_of(&world, &caller, "supplier", &shown).await, version, "{city}");
    }
}

/// The one custom field, after a check that the log holds it as it is shown.
async fn shown_field(world: &World, caller: &Caller) -> CustomField {
    let request = caller.request(ListCustomFieldsRequest::default());
    let mut fields = caller.custom_fields().list_custom_fields(request).await.unwrap().into_inner().data;
    let field = fields.pop().unwrap();
    let expected = (field.version, Some(field.encode_to_vec()));
    assert_eq!(logged(world, caller, "custom_field", "client/size").await, expected);
    field
}

#[tokio::test]
async fn each_change_of_a_custom_field_is_one_version_and_one_that_comes_back_counts_on() {
    let world = World::new().await;
    let caller = world.mesh();
    let entity = i32::from(CustomFieldEntity::Client);
    let create = async || {
        world.clock.advance(TimeDelta::minutes(1));
        let field = CustomFieldInput {
            entity,
            key: "size".into(),
            label: "Size".into(),
            r#type: CustomFieldType::Select.into(),
            options: vec!["small".into()],
        };
        let request = caller.request(CreateCustomFieldRequest { field: Some(field) });
        caller.custom_fields().create_custom_field(request).await.unwrap().into_inner().data.unwrap()
    };
    assert_eq!(create().await, shown_field(&world, &caller).await);
    assert_eq!(shown_field(&world, &caller).await.version, 1);
    for (version, label, option) in
        [(1, "Size", " small "), (2, "Width", "small"), (3, "Width", "large"), (3, "Width", "large")]
    {
        world.clock.advance(TimeDelta::minutes(1));
        let request = UpdateCustomFieldRequest {
            entity,
            key: "size".into(),
            label: label.into(),
            options: vec![option.into()],
        };
        let changed = caller.custom_fields().update_custom_field(caller.request(request)).await.unwrap();
        let shown = shown_field(&world, &caller).await;
        assert_eq!((shown.version, changed.into_inner().data.unwrap()), (version, shown), "{label}");
    }
    let request = caller.request(DeleteCustomFieldRequest { entity, key: "size".into() });
    caller.custom_fields().delete_custom_field(request).await.unwrap();
    assert_eq!(logged(&world, &caller, "custom_field", "client/size").await, (4, None));
    create().await;
    assert_eq!(shown_field(&world, &caller).await.version, 5);
}
