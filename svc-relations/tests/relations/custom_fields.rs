//! Custom fields.

use chassis_testing::{expected_faults, faults};
use proto::relations::{
    CreateCustomFieldRequest, CustomField, CustomFieldEntity, CustomFieldInput, CustomFieldType,
    DeleteCustomFieldRequest, ListCustomFieldsRequest, UpdateCustomFieldRequest,
};
use tonic::Status;

use crate::support::{Caller, World, is_not_found, problem};

fn input(entity: CustomFieldEntity, key: &str) -> CustomFieldInput {
    CustomFieldInput {
        entity: entity.into(),
        key: key.into(),
        label: " Label ".into(),
        r#type: CustomFieldType::Text.into(),
        options: vec![],
    }
}

async fn create(caller: &Caller, field: CustomFieldInput) -> Result<CustomField, Status> {
    let request = caller.request(CreateCustomFieldRequest { field: Some(field) });
    Ok(caller.custom_fields().create_custom_field(request).await?.into_inner().data.unwrap())
}

async fn update(caller: &Caller, key: &str, options: &[&str]) -> Result<CustomField, Status> {
    let request = UpdateCustomFieldRequest {
        entity: CustomFieldEntity::Client.into(),
        key: key.into(),
        label: "New".into(),
        options: options.iter().map(ToString::to_string).collect(),
    };
    Ok(caller.custom_fields().update_custom_field(caller.request(request)).await?.into_inner().data.unwrap())
}

async fn delete(caller: &Caller, key: &str) -> Result<(), Status> {
    let entity = CustomFieldEntity::Client.into();
    let request = caller.request(DeleteCustomFieldRequest { entity, key: key.into() });
    caller.custom_fields().delete_custom_field(request).await.map(|_| ())
}

async fn keys(caller: &Caller, entity: CustomFieldEntity) -> Vec<String> {
    let request = caller.request(ListCustomFieldsRequest { entity: entity.into() });
    let answer = caller.custom_fields().list_custom_fields(request).await.unwrap().into_inner();
    assert_eq!(answer.meta.unwrap().total, i64::try_from(answer.data.len()).unwrap());
    answer.data.into_iter().map(|field| field.key).collect()
}

#[tokio::test]
async fn custom_fields_are_listed_by_entity_and_key() {
    let world = World::new().await;
    let caller = world.mesh();
    for (entity, key) in [
        (CustomFieldEntity::Supplier, "a"),
        (CustomFieldEntity::Client, "b_1"),
        (CustomFieldEntity::Client, "b1"),
        (CustomFieldEntity::Quote, "b1"),
    ] {
        let field = create(&caller, input(entity, key)).await.unwrap();
        assert_eq!((field.label.as_str(), field.entity()), ("Label", entity));
    }
    assert_eq!(keys(&caller, CustomFieldEntity::Unspecified).await, ["b1", "b_1", "b1", "a"]);
    assert_eq!(keys(&caller, CustomFieldEntity::Client).await, ["b1", "b_1"]);
    assert_eq!(keys(&caller, CustomFieldEntity::Invoice).await, Vec::<String>::new());
    assert_eq!(
        keys(&world.mesh(), CustomFieldEntity::Unspecified).await,
        Vec::<String>::new(),
        "another account"
    );
}

#[tokio::test]
async fn a_key_is_unique_within_its_entity() {
    let world = World::new().await;
    let caller = world.mesh();
    create(&caller, input(CustomFieldEntity::Client, "a")).await.unwrap();
    create(&caller, input(CustomFieldEntity::Quote, "a")).await.unwrap();
    create(&world.mesh(), input(CustomFieldEntity::Client, "a")).await.unwrap();
    let status = create(&caller, input(CustomFieldEntity::Client, "a")).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    assert_eq!(problem(&status).0, "key_taken");
}

#[tokio::test]
async fn a_bad_custom_field_is_refused_with_every_fault() {
    let world = World::new().await;
    let caller = world.mesh();
    let empty = CustomFieldInput::default();
    let expected = [
        ("/field/entity", "required"),
        ("/field/key", "required"),
        ("/field/label", "required"),
        ("/field/type", "required"),
    ];
    assert_eq!(faults(&create(&caller, empty).await.unwrap_err()), expected_faults(&expected));
    let select = CustomFieldInput {
        r#type: CustomFieldType::Select.into(),
        ..input(CustomFieldEntity::Client, "Bad Key")
    };
    let expected = [("/field/key", "bad_format"), ("/field/options", "required")];
    assert_eq!(faults(&create(&caller, select).await.unwrap_err()), expected_faults(&expected));
    let none = caller.request(CreateCustomFieldRequest { field: None });
    let status = caller.custom_fields().create_custom_field(none).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/field", "required")]));
    let unknown = caller.request(ListCustomFieldsRequest { entity: 99 });
    let status = caller.custom_fields().list_custom_fields(unknown).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/entity", "not_allowed")]));
}

#[tokio::test]
async fn label_and_options_can_be_replaced() {
    let world = World::new().await;
    let caller = world.mesh();
    let select = CustomFieldInput {
        r#type: CustomFieldType::Select.into(),
        options: vec!["a".into()],
        ..input(CustomFieldEntity::Client, "size")
    };
    create(&caller, select).await.unwrap();
    create(&caller, input(CustomFieldEntity::Client, "text")).await.unwrap();
    let changed = update(&caller, "size", &["b", " c "]).await.unwrap();
    assert_eq!((changed.label.as_str(), changed.r#type()), ("New", CustomFieldType::Select));
    assert_eq!(changed.options, ["b", "c"]);
    let status = update(&caller, "size", &[]).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/options", "required")]));
    let status = update(&caller, "text", &["a"]).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/options", "not_allowed")]));
    assert!(is_not_found(&update(&caller, "none", &[]).await.unwrap_err()));
    assert!(is_not_found(&update(&world.mesh(), "size", &["x"]).await.unwrap_err()), "another account");
}

#[tokio::test]
async fn a_removed_field_is_gone_and_its_key_free() {
    let world = World::new().await;
    let caller = world.mesh();
    create(&caller, input(CustomFieldEntity::Client, "a")).await.unwrap();
    assert!(is_not_found(&delete(&world.mesh(), "a").await.unwrap_err()), "another account");
    delete(&caller, "a").await.unwrap();
    assert!(is_not_found(&delete(&caller, "a").await.unwrap_err()));
    create(&caller, input(CustomFieldEntity::Client, "a")).await.unwrap();
}

#[tokio::test]
async fn any_key_may_list_and_only_the_mesh_may_manage() {
    let world = World::new().await;
    let caller = world.caller();
    assert_eq!(keys(&caller, CustomFieldEntity::Unspecified).await, Vec::<String>::new());
    let status = create(&caller, input(CustomFieldEntity::Client, "a")).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::PermissionDenied);
}

#[tokio::test]
async fn a_stored_text_of_a_newer_version_is_an_error_and_not_another_value() {
    let world = World::new().await;
    let caller = world.mesh();
    create(&caller, input(CustomFieldEntity::Client, "a")).await.unwrap();
    let list = async || {
        let request = caller.request(ListCustomFieldsRequest::default());
        caller.custom_fields().list_custom_fields(request).await
    };
    assert_eq!(list().await.unwrap().into_inner().data.len(), 1);
    let connection = &mut world.database.connect().await;
    sqlx::query("update relations.custom_field set type = 'colour'").execute(&mut *connection).await.unwrap();
    assert_eq!(list().await.unwrap_err().code(), tonic::Code::Internal);
    assert_eq!(update(&caller, "a", &[]).await.unwrap_err().code(), tonic::Code::Internal);
    sqlx::query("update relations.custom_field set type = 'text', entity = 'order'")
        .execute(&mut *connection)
        .await
        .unwrap();
    assert_eq!(list().await.unwrap_err().code(), tonic::Code::Internal);
}
