//! `PipelineService`: parse, decide, write, reply. Every change begins with the account's lock, so that what was read is
//! still so when it is written.

use chassis::mask::Named;
use chassis::{Call, Db, Tx, id};
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
use uuid::Uuid;

use super::{MOST, Phase, Pipeline, phases_of, store};
use crate::{Error, ordering, provision};

const PIPELINE: &str = "pipeline";
const PHASE: &str = "phase";

pub struct Pipelines {
    pub db: Db,
}

#[tonic::async_trait]
impl PipelineService for Pipelines {
    async fn list_pipelines(
        &self,
        request: Request<ListPipelinesRequest>,
    ) -> Result<Response<ListPipelinesResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let mut connection = self.db.read().await?;
        let pipelines = store::list(&mut connection, context.account_id()).await?;
        connection.done();
        let data: Vec<_> = pipelines.into_iter().map(Into::into).collect();
        let meta = Some(meta(data.len()));
        Ok(Response::new(ListPipelinesResponse { data, meta }))
    }

    async fn list_phases(
        &self,
        request: Request<ListPhasesRequest>,
    ) -> Result<Response<ListPhasesResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let mut connection = self.db.read().await?;
        let pipelines = store::list(&mut connection, context.account_id()).await?;
        connection.done();
        // What is no id matches nothing.
        let wanted = (!input.pipeline_id.is_empty()).then(|| id::parse(&input.pipeline_id));
        let wanted = pipelines.into_iter().filter(|it| wanted.is_none_or(|wanted| wanted == Some(it.id)));
        let data: Vec<_> = wanted.flat_map(phases_of).collect();
        let meta = Some(meta(data.len()));
        Ok(Response::new(ListPhasesResponse { data, meta }))
    }

    async fn create_pipeline(
        &self,
        request: Request<CreatePipelineRequest>,
    ) -> Result<Response<CreatePipelineResponse>, Status> {
        self.db.write(Call::open(request)?, create).await
    }

    async fn update_pipeline(
        &self,
        request: Request<UpdatePipelineRequest>,
    ) -> Result<Response<UpdatePipelineResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_pipeline(
        &self,
        request: Request<DeletePipelineRequest>,
    ) -> Result<Response<DeletePipelineResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }

    async fn reorder_pipelines(
        &self,
        request: Request<ReorderPipelinesRequest>,
    ) -> Result<Response<ReorderPipelinesResponse>, Status> {
        self.db.write(Call::open(request)?, reorder).await
    }

    async fn create_phase(
        &self,
        request: Request<CreatePhaseRequest>,
    ) -> Result<Response<CreatePhaseResponse>, Status> {
        self.db.write(Call::open(request)?, create_phase).await
    }

    async fn update_phase(
        &self,
        request: Request<UpdatePhaseRequest>,
    ) -> Result<Response<UpdatePhaseResponse>, Status> {
        self.db.write(Call::open(request)?, update_phase).await
    }

    async fn delete_phase(
        &self,
        request: Request<DeletePhaseRequest>,
    ) -> Result<Response<DeletePhaseResponse>, Status> {
        self.db.write(Call::open(request)?, delete_phase).await
    }

    async fn reorder_phases(
        &self,
        request: Request<ReorderPhasesRequest>,
    ) -> Result<Response<ReorderPhasesResponse>, Status> {
        self.db.write(Call::open(request)?, reorder_phases).await
    }
}

fn meta(total: usize) -> ListMeta {
    ListMeta { total: i64::try_from(total).unwrap_or(i64::MAX) }
}

/// All pipelines, for who is about to change one.
async fn locked(tx: &mut Tx<'_>) -> Result<Vec<Pipeline>, Error> {
    provision::lock(tx).await?;
    let account = tx.account();
    store::list(tx.db(), account).await
}

fn find(pipelines: Vec<Pipeline>, id: &str) -> Result<Pipeline, Error> {
    let id = id::parse(id);
    pipelines.into_iter().find(|pipeline| Some(pipeline.id) == id).ok_or(Error::NotFound(PIPELINE))
}

/// The pipeline of a phase, and the phase.
fn find_phase(pipelines: Vec<Pipeline>, id: &str) -> Result<(Pipeline, Phase), Error> {
    let id = id::parse(id);
    let find = |pipeline: Pipeline| {
        let phase = pipeline.phases.iter().find(|phase| Some(phase.id) == id).cloned();
        phase.map(|phase| (pipeline, phase))
    };
    pipelines.into_iter().find_map(find).ok_or(Error::NotFound(PHASE))
}

async fn create(tx: &mut Tx<'_>, input: &CreatePipelineRequest) -> Result<CreatePipelineResponse, Error> {
    let place = At::ROOT.name("phases");
    for (index, _) in input.phases.iter().enumerate().filter(|(_, name)| name.is_empty()) {
        tx.faults.add(&place.index(index), Fault::Required, "a phase needs a name");
    }
    tx.valid()?;
    let others = locked(tx).await?;
    ordering::check_room(others.len(), MOST, "pipelines", &At::ROOT.name("pipeline"), &mut tx.faults);
    tx.valid()?;
    let given = input.pipeline.clone().unwrap_or_default();
    let (account, now, id) = (tx.account(), tx.now(), tx.id());
    let active = given.active.unwrap_or(true);
    store::insert(tx.db(), account, id, &given.name, active, now).await?;
    let mut phases = Vec::new();
    for (name, order) in input.phases.iter().zip(1..) {
        let phase = Phase { id: tx.id(), name: name.clone(), order };
        store::insert_phase(tx.db(), account, id, phase.id, name, now).await?;
        phases.push(phase);
    }
    let data = audited(tx, Pipeline { id, name: given.name, active, phases });
    Ok(CreatePipelineResponse { data: Some(data) })
}

async fn update(tx: &mut Tx<'_>, input: &UpdatePipelineRequest) -> Result<UpdatePipelineResponse, Error> {
    id::forgive(&mut tx.faults);
    let named = Named::from(input.update_mask.as_ref());
    named.check(|name| ["name", "active"].contains(&name), PIPELINE, &mut tx.faults);
    let given = input.pipeline.clone().unwrap_or_default();
    let active = match named {
        Named::All => Some(given.active.unwrap_or(true)),
        Named::Only(_) => given.active,
    };
    if named.has("active") && active.is_none() {
        let at = At::ROOT.name("pipeline");
        tx.faults.add(&at.name("active"), Fault::NotNullable, "active must be true or false");
    }
    tx.valid()?;
    let mut pipeline = find(locked(tx).await?, &input.id)?;
    named.put("name", &given.name, &mut pipeline.name);
    named.put("active", &active.unwrap_or(pipeline.active), &mut pipeline.active);
    let (account, now) = (tx.account(), tx.now());
    store::update(tx.db(), account, &pipeline, now).await?;
    Ok(UpdatePipelineResponse { data: Some(audited(tx, pipeline)) })
}

/// A pipeline that was made or changed, as it is answered and as the audit log keeps it.
pub fn audited(tx: &mut Tx<'_>, pipeline: Pipeline) -> proto::crm::Pipeline {
    let id = pipeline.id;
    let pipeline = proto::crm::Pipeline::from(pipeline);
    tx.changed(PIPELINE, id, &pipeline);
    pipeline
}

async fn delete(tx: &mut Tx<'_>, input: &DeletePipelineRequest) -> Result<DeletePipelineResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let pipelines = locked(tx).await?;
    let is_last = pipelines.len() == 1;
    let pipeline = find(pipelines, &input.id)?;
    if is_last {
        return Err(Error::IsLast(PIPELINE));
    }
    let account = tx.account();
    if store::has_deals(tx.db(), account, pipeline.id, None).await? {
        return Err(Error::HasDeals(PIPELINE));
    }
    store::delete(tx.db(), account, pipeline.id).await?;
    tx.removed(PIPELINE, pipeline.id);
    Ok(DeletePipelineResponse {})
}

async fn reorder(
    tx: &mut Tx<'_>,
    input: &ReorderPipelinesRequest,
) -> Result<ReorderPipelinesResponse, Error> {
    tx.valid()?;
    let known: Vec<Uuid> = locked(tx).await?.iter().map(|pipeline| pipeline.id).collect();
    let ids = wanted(tx, &input.ids, &known, PIPELINE)?;
    let (account, now) = (tx.account(), tx.now());
    store::reorder(tx.db(), account, &ids, now).await?;
    let data = store::list(tx.db(), account).await?.into_iter().map(Into::into).collect();
    Ok(ReorderPipelinesResponse { data })
}

/// The ids of a new order, when they are all there.
fn wanted(tx: &mut Tx<'_>, ids: &[String], known: &[Uuid], what: &str) -> Result<Vec<Uuid>, Error> {
    let wanted: Vec<Option<Uuid>> = ids.iter().map(|id| id::parse(id)).collect();
    ordering::check(&wanted, known, what, &At::ROOT.name("ids"), &mut tx.faults);
    tx.valid()?;
    Ok(wanted.into_iter().flatten().collect())
}

async fn create_phase(tx: &mut Tx<'_>, input: &CreatePhaseRequest) -> Result<CreatePhaseResponse, Error> {
    tx.valid()?;
    let pipeline = find(locked(tx).await?, &input.pipeline_id)?;
    ordering::check_room(pipeline.phases.len(), MOST, "phases", &At::ROOT.name("name"), &mut tx.faults);
    tx.valid()?;
    let (account, now, id) = (tx.account(), tx.now(), tx.id());
    store::insert_phase(tx.db(), account, pipeline.id, id, &input.name, now).await?;
    let order = i32::try_from(pipeline.phases.len() + 1).unwrap_or(i32::MAX);
    let phase = Phase { id, name: input.name.clone(), order };
    Ok(CreatePhaseResponse { data: audited_phase(tx, &pipeline, phase) })
}

async fn update_phase(tx: &mut Tx<'_>, input: &UpdatePhaseRequest) -> Result<UpdatePhaseResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let (pipeline, mut phase) = find_phase(locked(tx).await?, &input.id)?;
    let (account, now) = (tx.account(), tx.now());
    store::rename_phase(tx.db(), account, phase.id, &input.name, now).await?;
    phase.name.clone_from(&input.name);
    Ok(UpdatePhaseResponse { data: audited_phase(tx, &pipeline, phase) })
}

/// One phase of a pipeline that was made or changed, as it is answered and as the audit log keeps it.
fn audited_phase(tx: &mut Tx<'_>, pipeline: &Pipeline, phase: Phase) -> Option<proto::crm::Phase> {
    let id = phase.id;
    let shown = phases_of(Pipeline { phases: vec![phase], ..pipeline.clone() }).next()?;
    tx.changed(PHASE, id, &shown);
    Some(shown)
}

async fn delete_phase(tx: &mut Tx<'_>, input: &DeletePhaseRequest) -> Result<DeletePhaseResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let (pipeline, phase) = find_phase(locked(tx).await?, &input.id)?;
    if pipeline.phases.len() == 1 {
        return Err(Error::IsLast(PHASE));
    }
    let account = tx.account();
    if store::has_deals(tx.db(), account, pipeline.id, Some(phase.id)).await? {
        return Err(Error::HasDeals(PHASE));
    }
    store::delete_phase(tx.db(), account, pipeline.id, phase.id).await?;
    tx.removed(PHASE, phase.id);
    Ok(DeletePhaseResponse {})
}

async fn reorder_phases(
    tx: &mut Tx<'_>,
    input: &ReorderPhasesRequest,
) -> Result<ReorderPhasesResponse, Error> {
    tx.valid()?;
    let pipeline = find(locked(tx).await?, &input.pipeline_id)?;
    let known: Vec<Uuid> = pipeline.phases.iter().map(|phase| phase.id).collect();
    let ids = wanted(tx, &input.ids, &known, PHASE)?;
    let (account, now) = (tx.account(), tx.now());
    store::reorder_phases(tx.db(), account, &ids, now).await?;
    let pipeline = find(store::list(tx.db(), account).await?, &input.pipeline_id)?;
    Ok(ReorderPhasesResponse { data: phases_of(pipeline).collect() })
}
