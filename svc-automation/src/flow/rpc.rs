//! `FlowService`.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::peer::Peers;
use chassis_rpc::token::Tokens;
use chassis_rpc::{Call, Context};
use chassis_service::Runtime;
use proto::api::HttpBody;
use proto::automation::flow_service_server::FlowService;
use proto::automation::{
    ApplyFlowRequest, ApplyFlowResponse, CreateFlowRequest, CreateFlowResponse, DefinitionFormat,
    DeleteFlowRequest, DeleteFlowResponse, DownloadFlowDefinitionRequest, Flow, GetFlowDefinitionRequest,
    GetFlowDefinitionResponse, GetFlowRequest, GetFlowResponse, GetFlowSchemaRequest, GetFlowSchemaResponse,
    ListFlowsRequest, ListFlowsResponse, ListTriggeredFlowsRequest, ListTriggeredFlowsResponse,
    ReplaceFlowRequest, ReplaceFlowResponse, StartFlowRequest, StartFlowResponse, TestFlowRequest,
    TestFlowResponse, TriggeredFlow, UpdateFlowRequest, UpdateFlowResponse,
};
use serde_json::Value;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::dry_run::{self, Trial};
use super::operations::{self, Applied, Apply, ManualStart, NOT_FOUND, Target};
use super::rehearser::Rehearser;
use super::store::{self, Filter};
use crate::definition::check::{self, CheckContext};
use crate::definition::{FlowRef, TriggerType, Version, model, store as definitions};
use crate::error::Error;

/// The pointer of the document in requests, before the pointers of its faults.
const DOCUMENT: &str = "/definition";

pub(crate) struct Flows {
    db: Db,
    /// For trying what flows call.
    peers: Peers,
    tokens: Tokens,
}

impl Flows {
    pub(crate) fn new(runtime: &Runtime) -> Self {
        let Runtime { db, peers, tokens, .. } = runtime;
        Self { db: db.clone(), peers: peers.clone(), tokens: tokens.clone() }
    }
}

impl Flows {
    /// A version of a flow with its number; the latest for 0.
    async fn version(&self, context: &Context, id: &str, version: i64) -> Result<(i64, Version), Error> {
        let (account, id) = (context.account_id(), id::parse(id).ok_or(NOT_FOUND)?);
        self.db
            .read(async |connection| {
                let flow = store::find(connection, account, id).await?.ok_or(NOT_FOUND)?;
                let version = if version == 0 { flow.version } else { version };
                let found = definitions::find_version(connection, account, id, version).await?;
                let found = found.filter(|_| version <= flow.version);
                Ok((version, found.ok_or(Error::NotFound("version of the flow"))?))
            })
            .await
    }
}

#[tonic::async_trait]
impl FlowService for Flows {
    async fn list_flows(
        &self,
        request: Request<ListFlowsRequest>,
    ) -> Result<Response<ListFlowsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            trigger_type: TriggerType::from_message(input.trigger_type()),
            active: input.active,
            trigger_key: Some(input.trigger_key.clone()).filter(|key| !key.is_empty()),
            category: Some(input.category.clone()).filter(|category| !category.is_empty()),
        };
        let (flows, meta) = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), &filter, page).await)
            .await?;
        let data = flows.into_iter().map(Flow::from).collect();
        Ok(Response::new(ListFlowsResponse { data, meta: Some(meta) }))
    }

    async fn get_flow(&self, request: Request<GetFlowRequest>) -> Result<Response<GetFlowResponse>, Status> {
        // Without `valid`: a malformed id is not found, and the request has no other field.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let found =
            self.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        let data = found.map(Flow::from).ok_or(NOT_FOUND)?;
        Ok(Response::new(GetFlowResponse { data: Some(data) }))
    }

    async fn update_flow(
        &self,
        request: Request<UpdateFlowRequest>,
    ) -> Result<Response<UpdateFlowResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn create_flow(
        &self,
        request: Request<CreateFlowRequest>,
    ) -> Result<Response<CreateFlowResponse>, Status> {
        let create = async |tx: &mut Tx<'_>, input: &CreateFlowRequest| {
            let applied = store_definition(tx, Target::New, &input.definition, input.active).await?;
            Ok::<_, Error>(CreateFlowResponse { data: Some(applied.flow.into()) })
        };
        self.db.write(Call::open(request)?, create).await
    }

    async fn replace_flow(
        &self,
        request: Request<ReplaceFlowRequest>,
    ) -> Result<Response<ReplaceFlowResponse>, Status> {
        self.db.write(Call::open(request)?, replace).await
    }

    async fn download_flow_definition(
        &self,
        request: Request<DownloadFlowDefinitionRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let (_, found) = self.version(&context, &input.id, input.version).await?;
        let (text, media_type) = match input.format() {
            DefinitionFormat::Json => (found.definition, "application/json"),
            DefinitionFormat::Unspecified => (found.source, "application/yaml"),
        };
        let body = HttpBody { content_type: media_type.to_owned(), data: text.into(), ..HttpBody::default() };
        Ok(Response::new(body))
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
        let (version, found) = self.version(&context, &input.id, input.version).await?;
        Ok(Response::new(GetFlowDefinitionResponse { definition: found.source, version }))
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
        let check = CheckContext { now, zone: account.timezone, scopes: &context.identity.scopes };
        let parsed = check::parse(&input.definition, DOCUMENT, check, &mut faults);
        let Some(definition) = parsed.filter(|_| faults.is_empty()) else {
            return Err(Error::from(faults).into());
        };
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let (event, answers) = (json(&input.event), json(&input.answers));
        let rehearser = Rehearser { peers: &self.peers, tokens: &self.tokens, context: &context };
        let trial = Trial { event: &event, answers: &answers, account, now, rehearser: Some(rehearser) };
        Ok(Response::new(Box::pin(dry_run::run(&definition, &trial)).await))
    }

    async fn list_triggered_flows(
        &self,
        request: Request<ListTriggeredFlowsRequest>,
    ) -> Result<Response<ListTriggeredFlowsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let account = context.account_id();
        let flows = self
            .db
            .read(async |connection| definitions::find_triggered(connection, account, &input.types).await)
            .await?;
        let shown = |flow: FlowRef| TriggeredFlow { id: flow.id.to_string(), name: flow.name };
        Ok(Response::new(ListTriggeredFlowsResponse { flows: flows.into_iter().map(shown).collect() }))
    }

    async fn start_flow(
        &self,
        request: Request<StartFlowRequest>,
    ) -> Result<Response<StartFlowResponse>, Status> {
        self.db.write(Call::open(request)?, start).await
    }

    async fn get_flow_schema(
        &self,
        request: Request<GetFlowSchemaRequest>,
    ) -> Result<Response<GetFlowSchemaResponse>, Status> {
        Call::open(request)?.valid()?;
        Ok(Response::new(GetFlowSchemaResponse { schema: model::schema() }))
    }
}

/// Parses the id of the path, after the faults of all other fields were reported.
fn parse_id(tx: &mut Tx<'_>, text: &str) -> Result<Uuid, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    id::parse(text).ok_or(NOT_FOUND)
}

async fn update(tx: &mut Tx<'_>, input: &UpdateFlowRequest) -> Result<UpdateFlowResponse, Error> {
    let id = parse_id(tx, &input.id)?;
    let active = input.flow.as_ref().and_then(|patch| patch.active);
    let flow = operations::set_active(tx, id, active).await?;
    Ok(UpdateFlowResponse { data: Some(flow.into()) })
}

async fn apply(tx: &mut Tx<'_>, input: &ApplyFlowRequest) -> Result<ApplyFlowResponse, Error> {
    let applied = store_definition(tx, Target::OfItsName, &input.definition, input.active).await?;
    Ok(ApplyFlowResponse {
        data: Some(applied.flow.into()),
        created: applied.is_created,
        changed: applied.is_changed,
    })
}

async fn replace(tx: &mut Tx<'_>, input: &ReplaceFlowRequest) -> Result<ReplaceFlowResponse, Error> {
    id::ignore_malformed(&mut tx.faults);
    // A malformed id names no flow, which is told after the faults of the definition.
    let target = Target::Existing(id::parse(&input.id).unwrap_or_default());
    let applied = store_definition(tx, target, &input.definition, input.active).await?;
    Ok(ReplaceFlowResponse { data: Some(applied.flow.into()) })
}

/// Checks a definition and stores it.
async fn store_definition(
    tx: &mut Tx<'_>,
    target: Target,
    source: &str,
    active: Option<bool>,
) -> Result<Applied, Error> {
    let scopes = tx.caller().map(|caller| caller.identity.scopes.clone()).unwrap_or_default();
    let check = CheckContext { now: tx.now(), zone: tx.settings().timezone, scopes: &scopes };
    let parsed =
        if tx.faults.is_empty() { check::parse(source, DOCUMENT, check, &mut tx.faults) } else { None };
    tx.valid()?;
    let definition = parsed.ok_or_else(|| Error::internal("a definition was refused without a fault"))?;
    let apply = Apply { target, source, definition: &definition, scopes: &scopes, active, ready_made: "" };
    operations::apply(tx, apply).await
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteFlowRequest) -> Result<DeleteFlowResponse, Error> {
    let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
    operations::delete(tx, id).await?;
    Ok(DeleteFlowResponse {})
}

async fn start(tx: &mut Tx<'_>, input: &StartFlowRequest) -> Result<StartFlowResponse, Error> {
    let flow = parse_id(tx, &input.id)?;
    let start =
        ManualStart { flow, entity_type: &input.entity_type, entity_id: &input.entity_id, data: &input.data };
    let started = operations::start(tx, start).await?;
    Ok(StartFlowResponse { run_id: started.run_id.to_string(), status: started.status.name().to_owned() })
}
