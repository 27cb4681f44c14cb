//! `FlowService`: parse, decide, write, reply.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::automation::flow_service_server::FlowService;
use proto::automation::{
    ApplyFlowRequest, ApplyFlowResponse, DeleteFlowRequest, DeleteFlowResponse, Flow,
    GetFlowDefinitionRequest, GetFlowDefinitionResponse, GetFlowRequest, GetFlowResponse,
    GetFlowSchemaRequest, GetFlowSchemaResponse, ListFlowsRequest, ListFlowsResponse, StartFlowRequest,
    StartFlowResponse, TestFlowRequest, TestFlowResponse, UpdateFlowRequest, UpdateFlowResponse,
};
use serde_json::Value;
use tonic::{Request, Response, Status};

use super::{AUDITED, definition, dry, operations, store, type_name};
use crate::Error;
use crate::event::Event;
use crate::event::rules::or_empty_object;
use crate::run::start;

const UNKNOWN: Error = Error::NotFound("flow");
/// Where faults of a document are.
const DOCUMENT: &str = "/definition";

pub(crate) struct Flows {
    pub db: Db,
}

#[tonic::async_trait]
impl FlowService for Flows {
    async fn list_flows(
        &self,
        request: Request<ListFlowsRequest>,
    ) -> Result<Response<ListFlowsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let filter = (type_name(input.trigger_type()), input.active);
        let (flows, meta) = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), filter, page).await)
            .await?;
        let data = flows.into_iter().map(Flow::from).collect();
        Ok(Response::new(ListFlowsResponse { data, meta: Some(meta) }))
    }

    async fn get_flow(&self, request: Request<GetFlowRequest>) -> Result<Response<GetFlowResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(UNKNOWN)?;
        let found =
            self.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        let data = found.map(Flow::from).ok_or(UNKNOWN)?;
        Ok(Response::new(GetFlowResponse { data: Some(data) }))
    }

    async fn update_flow(
        &self,
        request: Request<UpdateFlowRequest>,
    ) -> Result<Response<UpdateFlowResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn apply_flow(
        &self,
        request: Request<ApplyFlowRequest>,
    ) -> Result<Response<ApplyFlowResponse>, Status> {
        self.db.write(Call::open(request)?, apply).await
    }

    async fn get_flow_definition(
        &self,
        request: Request<GetFlowDefinitionRequest>,
    ) -> Result<Response<GetFlowDefinitionResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let (account, id) = (context.account_id(), id::parse(&input.id).ok_or(UNKNOWN)?);
        let (version, found) = self
            .db
            .read(async |connection| {
                let flow = store::find(connection, account, id).await?.ok_or(UNKNOWN)?;
                let version = if input.version == 0 { flow.version } else { input.version };
                let found = store::find_version(connection, account, id, version).await?;
                Ok::<_, Error>((version, found))
            })
            .await?;
        let definition = found.ok_or(Error::NotFound("version of the flow"))?.source;
        Ok(Response::new(GetFlowDefinitionResponse { definition, version }))
    }

    async fn delete_flow(
        &self,
        request: Request<DeleteFlowRequest>,
    ) -> Result<Response<DeleteFlowResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }

    async fn test_flow(
        &self,
        request: Request<TestFlowRequest>,
    ) -> Result<Response<TestFlowResponse>, Status> {
        let Call { context, input, mut faults } = Call::open(request)?;
        let (account, now) = (context.account(), context.clock.now());
        let (when, scopes) = ((now, account.timezone), &context.identity.scopes);
        let read = operations::understand(&input.definition, DOCUMENT, when, scopes, &mut faults);
        let Some(definition) = read.filter(|_| faults.is_empty()) else {
            return Err(Error::from(faults).into());
        };
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let tested = dry::run(&definition, &json(&input.event), &json(&input.answers), (account, now));
        Ok(Response::new(tested))
    }

    async fn start_flow(
        &self,
        request: Request<StartFlowRequest>,
    ) -> Result<Response<StartFlowResponse>, Status> {
        self.db.write(Call::open(request)?, start_now).await
    }

    async fn get_flow_schema(
        &self,
        request: Request<GetFlowSchemaRequest>,
    ) -> Result<Response<GetFlowSchemaResponse>, Status> {
        Call::open(request)?.valid()?;
        Ok(Response::new(GetFlowSchemaResponse { schema: definition::schema() }))
    }
}

async fn update(tx: &mut Tx<'_>, input: &UpdateFlowRequest) -> Result<UpdateFlowResponse, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let mut flow = store::find_locked(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    let active = input.flow.as_ref().and_then(|patch| patch.active).unwrap_or(flow.active);
    operations::switch(tx, &mut flow, active).await?;
    Ok(UpdateFlowResponse { data: Some(flow.into()) })
}

async fn apply(tx: &mut Tx<'_>, input: &ApplyFlowRequest) -> Result<ApplyFlowResponse, Error> {
    let when = (tx.now(), tx.settings().timezone);
    let scopes = tx.caller().map(|caller| caller.identity.scopes.clone()).unwrap_or_default();
    let read = if tx.faults.is_empty() {
        operations::understand(&input.definition, DOCUMENT, when, &scopes, &mut tx.faults)
    } else {
        None
    };
    tx.valid()?;
    let definition =
        read.ok_or_else(|| chassis_base::Error::Internal("a definition without a fault".to_owned()))?;
    let applied = operations::apply(tx, (&input.definition, &definition), &scopes, input.active, "").await?;
    let (created, changed) = (applied.created, applied.changed);
    Ok(ApplyFlowResponse { data: Some(applied.flow.into()), created, changed })
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteFlowRequest) -> Result<DeleteFlowResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    if !store::delete(tx.db(), account, id, now).await? {
        return Err(UNKNOWN);
    }
    tx.removed(AUDITED, id);
    Ok(DeleteFlowResponse {})
}

async fn start_now(tx: &mut Tx<'_>, input: &StartFlowRequest) -> Result<StartFlowResponse, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let flow = store::find(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    // Nothing happened but the start itself, so this is no event that is kept.
    let event = Event {
        id: tx.id(),
        kind: flow.trigger_key.clone(),
        entity_type: input.entity_type.clone(),
        entity_id: input.entity_id.clone(),
        sequence: None,
        data: or_empty_object(&input.data),
        occurred_at: tx.now(),
        depth: tx.depth(),
        actor: String::new(),
    };
    let started = start::of_flow(tx, &flow, &event).await?;
    Ok(StartFlowResponse { run_id: started.run_id.to_string(), status: started.status.to_owned() })
}
