//! `PipelineService`: parses requests, calls the operations, answers.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::At;
use proto::api::{Fault, ListMeta};
use proto::crm::pipeline_service_server::PipelineService;
use proto::crm::{
    CreatePhaseRequest, CreatePhaseResponse, CreatePipelineRequest, CreatePipelineResponse,
    DeletePhaseRequest, DeletePhaseResponse, DeletePipelineRequest, DeletePipelineResponse,
    ListPhasesRequest, ListPhasesResponse, ListPipelinesRequest, ListPipelinesResponse, ReorderPhasesRequest,
    ReorderPhasesResponse, ReorderPipelinesRequest, ReorderPipelinesResponse, UpdatePhaseRequest,
    UpdatePhaseResponse, UpdatePipelineRequest, UpdatePipelineResponse,
};
use tonic::{Request, Response, Status};

use super::{Pipeline, operations, store};
use crate::error::Error;

pub(crate) struct Pipelines {
    pub db: Db,
}

#[tonic::async_trait]
impl PipelineService for Pipelines {
    async fn list_pipelines(
        &self,
        request: Request<ListPipelinesRequest>,
    ) -> Result<Response<ListPipelinesResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let pipelines =
            self.db.read(async |connection| store::list(connection, context.account_id()).await).await?;
        let data: Vec<_> = pipelines.into_iter().map(Into::into).collect();
        let meta = Some(list_meta(data.len()));
        Ok(Response::new(ListPipelinesResponse { data, meta }))
    }

    async fn list_phases(
        &self,
        request: Request<ListPhasesRequest>,
    ) -> Result<Response<ListPhasesResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let pipelines =
            self.db.read(async |connection| store::list(connection, context.account_id()).await).await?;
        // A text that is not an id matches nothing.
        let filter = (!input.pipeline_id.is_empty()).then(|| id::parse(&input.pipeline_id));
        let is_listed = |pipeline: &Pipeline| filter.is_none_or(|id| id == Some(pipeline.id));
        let listed = pipelines.into_iter().filter(is_listed);
        let data: Vec<_> = listed.flat_map(Pipeline::into_phase_messages).collect();
        let meta = Some(list_meta(data.len()));
        Ok(Response::new(ListPhasesResponse { data, meta }))
    }

    async fn create_pipeline(
        &self,
        request: Request<CreatePipelineRequest>,
    ) -> Result<Response<CreatePipelineResponse>, Status> {
        let create = async |tx: &mut Tx<'_>, input: &CreatePipelineRequest| {
            let given = input.pipeline.clone().unwrap_or_default();
            let in_pipeline = !given.phases.is_empty();
            let phases = if in_pipeline { &given.phases } else { &input.phases };
            if phases.is_empty() {
                let at = At::ROOT.name("pipeline");
                tx.faults.add(
                    &at.name("phases"),
                    Fault::Required,
                    "phases is required: a pipeline has at least one",
                );
            }
            let pipeline = operations::create(tx, &given, phases).await?;
            Ok::<_, Error>(CreatePipelineResponse { data: Some(pipeline.into()) })
        };
        self.db.write(Call::open(request)?, create).await
    }

    async fn update_pipeline(
        &self,
        request: Request<UpdatePipelineRequest>,
    ) -> Result<Response<UpdatePipelineResponse>, Status> {
        let update = async |tx: &mut Tx<'_>, input: &UpdatePipelineRequest| {
            let given = input.pipeline.clone().unwrap_or_default();
            let named = UpdateMask::from(input.update_mask.as_ref());
            let pipeline = operations::update(tx, &input.id, &given, named).await?;
            Ok::<_, Error>(UpdatePipelineResponse { data: Some(pipeline.into()) })
        };
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_pipeline(
        &self,
        request: Request<DeletePipelineRequest>,
    ) -> Result<Response<DeletePipelineResponse>, Status> {
        let delete = async |tx: &mut Tx<'_>, input: &DeletePipelineRequest| {
            operations::delete(tx, &input.id).await?;
            Ok::<_, Error>(DeletePipelineResponse {})
        };
        self.db.write(Call::open(request)?, delete).await
    }

    async fn reorder_pipelines(
        &self,
        request: Request<ReorderPipelinesRequest>,
    ) -> Result<Response<ReorderPipelinesResponse>, Status> {
        let reorder = async |tx: &mut Tx<'_>, input: &ReorderPipelinesRequest| {
            let pipelines = operations::reorder(tx, &input.ids).await?;
            Ok::<_, Error>(ReorderPipelinesResponse { data: pipelines.into_iter().map(Into::into).collect() })
        };
        self.db.write(Call::open(request)?, reorder).await
    }

    async fn create_phase(
        &self,
        request: Request<CreatePhaseRequest>,
    ) -> Result<Response<CreatePhaseResponse>, Status> {
        let create = async |tx: &mut Tx<'_>, input: &CreatePhaseRequest| {
            let created = operations::create_phase(tx, &input.pipeline_id, &input.name).await?;
            Ok::<_, Error>(CreatePhaseResponse { data: Some(created.into()) })
        };
        self.db.write(Call::open(request)?, create).await
    }

    async fn update_phase(
        &self,
        request: Request<UpdatePhaseRequest>,
    ) -> Result<Response<UpdatePhaseResponse>, Status> {
        let rename = async |tx: &mut Tx<'_>, input: &UpdatePhaseRequest| {
            let renamed = operations::rename_phase(tx, &input.id, &input.name).await?;
            Ok::<_, Error>(UpdatePhaseResponse { data: Some(renamed.into()) })
        };
        self.db.write(Call::open(request)?, rename).await
    }

    async fn delete_phase(
        &self,
        request: Request<DeletePhaseRequest>,
    ) -> Result<Response<DeletePhaseResponse>, Status> {
        let delete = async |tx: &mut Tx<'_>, input: &DeletePhaseRequest| {
            operations::delete_phase(tx, &input.id).await?;
            Ok::<_, Error>(DeletePhaseResponse {})
        };
        self.db.write(Call::open(request)?, delete).await
    }

    async fn reorder_phases(
        &self,
        request: Request<ReorderPhasesRequest>,
    ) -> Result<Response<ReorderPhasesResponse>, Status> {
        let reorder = async |tx: &mut Tx<'_>, input: &ReorderPhasesRequest| {
            let pipeline = operations::reorder_phases(tx, &input.pipeline_id, &input.ids).await?;
            Ok::<_, Error>(ReorderPhasesResponse { data: pipeline.into_phase_messages().collect() })
        };
        self.db.write(Call::open(request)?, reorder).await
    }
}

fn list_meta(total: usize) -> ListMeta {
    ListMeta { total: i64::try_from(total).unwrap_or(i64::MAX) }
}
