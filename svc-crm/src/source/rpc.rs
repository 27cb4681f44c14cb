//! `DealSourceService`: parses requests, calls the operations, answers.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::api::ListMeta;
use proto::crm::deal_source_service_server::DealSourceService;
use proto::crm::{
    CreateDealSourceRequest, CreateDealSourceResponse, DealSource, DeleteDealSourceRequest,
    DeleteDealSourceResponse, ListDealSourcesRequest, ListDealSourcesResponse, ReorderDealSourcesRequest,
    ReorderDealSourcesResponse, UpdateDealSourceRequest, UpdateDealSourceResponse,
};
use tonic::{Request, Response, Status};

use super::{operations, store};
use crate::error::Error;

pub(crate) struct Sources {
    pub db: Db,
}

#[tonic::async_trait]
impl DealSourceService for Sources {
    async fn list_deal_sources(
        &self,
        request: Request<ListDealSourcesRequest>,
    ) -> Result<Response<ListDealSourcesResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let records =
            self.db.read(async |connection| store::list(connection, context.account_id()).await).await?;
        let data: Vec<DealSource> = records.into_iter().map(Into::into).collect();
        let total = i64::try_from(data.len()).unwrap_or(i64::MAX);
        Ok(Response::new(ListDealSourcesResponse { data, meta: Some(ListMeta { total }) }))
    }

    async fn create_deal_source(
        &self,
        request: Request<CreateDealSourceRequest>,
    ) -> Result<Response<CreateDealSourceResponse>, Status> {
        let create = async |tx: &mut Tx<'_>, input: &CreateDealSourceRequest| {
            let record = operations::create(tx, &input.name).await?;
            Ok::<_, Error>(CreateDealSourceResponse { data: Some(record.into()) })
        };
        self.db.write(Call::open(request)?, create).await
    }

    async fn update_deal_source(
        &self,
        request: Request<UpdateDealSourceRequest>,
    ) -> Result<Response<UpdateDealSourceResponse>, Status> {
        let rename = async |tx: &mut Tx<'_>, input: &UpdateDealSourceRequest| {
            let record = operations::rename(tx, &input.name, &input.new_name).await?;
            Ok::<_, Error>(UpdateDealSourceResponse { data: Some(record.into()) })
        };
        self.db.write(Call::open(request)?, rename).await
    }

    async fn delete_deal_source(
        &self,
        request: Request<DeleteDealSourceRequest>,
    ) -> Result<Response<DeleteDealSourceResponse>, Status> {
        let delete = async |tx: &mut Tx<'_>, input: &DeleteDealSourceRequest| {
            operations::delete(tx, &input.name).await?;
            Ok::<_, Error>(DeleteDealSourceResponse {})
        };
        self.db.write(Call::open(request)?, delete).await
    }

    async fn reorder_deal_sources(
        &self,
        request: Request<ReorderDealSourcesRequest>,
    ) -> Result<Response<ReorderDealSourcesResponse>, Status> {
        let reorder = async |tx: &mut Tx<'_>, input: &ReorderDealSourcesRequest| {
            let records = operations::reorder(tx, &input.names).await?;
            Ok::<_, Error>(ReorderDealSourcesResponse { data: records.into_iter().map(Into::into).collect() })
        };
        self.db.write(Call::open(request)?, reorder).await
    }
}
