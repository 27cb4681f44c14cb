//! `CustomFieldService`: parse, decide, write, reply.

use chassis::{Call, Db, Tx};
use proto::At;
use proto::api::ListMeta;
use proto::relations::custom_field_service_server::CustomFieldService;
use proto::relations::{
    CreateCustomFieldRequest, CreateCustomFieldResponse, CustomField, CustomFieldEntity,
    DeleteCustomFieldRequest, DeleteCustomFieldResponse, ListCustomFieldsRequest, ListCustomFieldsResponse,
    UpdateCustomFieldRequest, UpdateCustomFieldResponse,
};
use tonic::{Request, Response, Status};

use super::{rules, store};
use crate::Error;

const UNKNOWN: Error = Error::NotFound("custom field");
/// What the audit log calls it.
const AUDITED: &str = "custom_field";

pub struct CustomFields {
    pub db: Db,
}

#[tonic::async_trait]
impl CustomFieldService for CustomFields {
    async fn list_custom_fields(
        &self,
        request: Request<ListCustomFieldsRequest>,
    ) -> Result<Response<ListCustomFieldsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let entity = Some(input.entity()).filter(|entity| *entity != CustomFieldEntity::Unspecified);
        let mut connection = self.db.read().await?;
        let data = store::list(&mut connection, context.account_id(), entity).await?;
        connection.done();
        let total = i64::try_from(data.len()).unwrap_or(i64::MAX);
        Ok(Response::new(ListCustomFieldsResponse { data, meta: Some(ListMeta { total }) }))
    }

    async fn create_custom_field(
        &self,
        request: Request<CreateCustomFieldRequest>,
    ) -> Result<Response<CreateCustomFieldResponse>, Status> {
        self.db.write(Call::open(request)?, create).await
    }

    async fn update_custom_field(
        &self,
        request: Request<UpdateCustomFieldRequest>,
    ) -> Result<Response<UpdateCustomFieldResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_custom_field(
        &self,
        request: Request<DeleteCustomFieldRequest>,
    ) -> Result<Response<DeleteCustomFieldResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }
}

async fn create(
    tx: &mut Tx<'_>,
    input: &CreateCustomFieldRequest,
) -> Result<CreateCustomFieldResponse, Error> {
    let given = input.field.clone().unwrap_or_default();
    let at = At::ROOT.name("field");
    if input.field.is_some() {
        rules::check_key(&given.key, &at.name("key"), &mut tx.faults);
    }
    let options = rules::check_options(given.r#type(), &given.options, &at.name("options"), &mut tx.faults);
    tx.valid()?;
    let field = CustomField {
        entity: given.entity,
        key: given.key,
        label: given.label,
        r#type: given.r#type,
        options,
    };
    let (account, now) = (tx.account(), tx.now());
    store::insert(tx.db(), account, &field, now).await?;
    tx.changed(AUDITED, audit_id(field.entity(), &field.key), &field);
    Ok(CreateCustomFieldResponse { data: Some(field) })
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateCustomFieldRequest,
) -> Result<UpdateCustomFieldResponse, Error> {
    // A key with a fault in it could not even be looked up.
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let kind = store::find_type_locked(tx.db(), account, input.entity(), &input.key).await?.ok_or(UNKNOWN)?;
    let options = rules::check_options(kind, &input.options, &At::ROOT.name("options"), &mut tx.faults);
    tx.valid()?;
    let field = CustomField {
        entity: input.entity,
        key: input.key.clone(),
        label: input.label.clone(),
        r#type: kind.into(),
        options,
    };
    store::update(tx.db(), account, &field, now).await?;
    tx.changed(AUDITED, audit_id(field.entity(), &field.key), &field);
    Ok(UpdateCustomFieldResponse { data: Some(field) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteCustomFieldRequest,
) -> Result<DeleteCustomFieldResponse, Error> {
    tx.valid()?;
    let account = tx.account();
    if !store::delete(tx.db(), account, input.entity(), &input.key).await? {
        return Err(UNKNOWN);
    }
    tx.removed(AUDITED, audit_id(input.entity(), &input.key));
    Ok(DeleteCustomFieldResponse {})
}

/// What names a field in the audit log: the key alone is that of several.
fn audit_id(entity: CustomFieldEntity, key: &str) -> String {
    let entity = entity.as_str_name().trim_start_matches("CUSTOM_FIELD_ENTITY_").to_ascii_lowercase();
    format!("{entity}/{key}")
}
