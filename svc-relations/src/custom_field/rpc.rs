//! `CustomFieldService`: parse, call, answer.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::api::ListMeta;
use proto::relations::custom_field_service_server::CustomFieldService;
use proto::relations::{
    CreateCustomFieldRequest, CreateCustomFieldResponse, CustomField, CustomFieldEntity,
    DeleteCustomFieldRequest, DeleteCustomFieldResponse, ListCustomFieldsRequest, ListCustomFieldsResponse,
    UpdateCustomFieldRequest, UpdateCustomFieldResponse,
};
use tonic::{Request, Response, Status};

use super::{operations, store};
use crate::error::Error;

pub(crate) struct CustomFields {
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
        let records = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), entity).await)
            .await?;
        let data: Vec<CustomField> = records.into_iter().map(CustomField::from).collect();
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
    let field = operations::create(tx, input.field.as_ref()).await?;
    Ok(CreateCustomFieldResponse { data: Some(field) })
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateCustomFieldRequest,
) -> Result<UpdateCustomFieldResponse, Error> {
    let field = operations::update(tx, input).await?;
    Ok(UpdateCustomFieldResponse { data: Some(field) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteCustomFieldRequest,
) -> Result<DeleteCustomFieldResponse, Error> {
    operations::delete(tx, input.entity(), &input.key).await?;
    Ok(DeleteCustomFieldResponse {})
}
