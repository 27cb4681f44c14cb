//! `RunService`.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::automation::run_service_server::RunService;
use proto::automation::{
    ApproveRunRequest, ApproveRunResponse, CancelRunRequest, CancelRunResponse, CancelledRun, Decision,
    GetRunRequest, GetRunResponse, ListRunsRequest, ListRunsResponse, RejectRunRequest, RejectRunResponse,
    RestartRunRequest, RestartRunResponse, Run,
};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::message;
use super::operations::{self, NOT_FOUND};
use super::store::{self, Filter};
use crate::definition::TriggerType;
use crate::error::Error;

pub(crate) struct Runs {
    pub db: Db,
}

#[tonic::async_trait]
impl RunService for Runs {
    async fn list_runs(
        &self,
        request: Request<ListRunsRequest>,
    ) -> Result<Response<ListRunsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            status: Some(input.status.as_str()).filter(|status| !status.is_empty()),
            flow: id::filter(&input.flow_id),
            trigger_type: TriggerType::from_message(input.trigger_type()),
            entity_type: &input.entity_type,
            entity_id: &input.entity_id,
        };
        let page = Page::new(input.page, input.per_page);
        let (runs, meta) = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), &filter, page).await)
            .await?;
        let data = runs.into_iter().map(Run::from).collect();
        Ok(Response::new(ListRunsResponse { data, meta: Some(meta) }))
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        // Without `valid`: a malformed id is not found, and the request has no other field.
        let Call { context, input, .. } = Call::open(request)?;
        let (account, id) = (context.account_id(), id::parse(&input.id).ok_or(NOT_FOUND)?);
        let (run, steps) = self
            .db
            .read(async |connection| {
                let run = store::find(connection, account, id).await?.ok_or(NOT_FOUND)?;
                let steps = store::list_steps(connection, account, id).await?;
                Ok::<_, Error>((run, steps))
            })
            .await?;
        Ok(Response::new(GetRunResponse { data: Some(run.with_steps(message::steps(&steps))) }))
    }

    async fn cancel_run(
        &self,
        request: Request<CancelRunRequest>,
    ) -> Result<Response<CancelRunResponse>, Status> {
        self.db.write(Call::open(request)?, cancel).await
    }

    async fn approve_run(
        &self,
        request: Request<ApproveRunRequest>,
    ) -> Result<Response<ApproveRunResponse>, Status> {
        self.db.write(Call::open(request)?, approve).await
    }

    async fn reject_run(
        &self,
        request: Request<RejectRunRequest>,
    ) -> Result<Response<RejectRunResponse>, Status> {
        self.db.write(Call::open(request)?, reject).await
    }

    async fn restart_run(
        &self,
        request: Request<RestartRunRequest>,
    ) -> Result<Response<RestartRunResponse>, Status> {
        self.db.write(Call::open(request)?, restart).await
    }
}

/// Parses the id of the path, after the faults of all other fields were reported.
fn parse_id(tx: &mut Tx<'_>, text: &str) -> Result<Uuid, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    id::parse(text).ok_or(NOT_FOUND)
}

async fn cancel(tx: &mut Tx<'_>, input: &CancelRunRequest) -> Result<CancelRunResponse, Error> {
    let id = parse_id(tx, &input.id)?;
    let run = operations::cancel(tx, id).await?;
    let data = CancelledRun { id: run.id, status: run.status };
    Ok(CancelRunResponse { data: Some(data) })
}

async fn approve(tx: &mut Tx<'_>, input: &ApproveRunRequest) -> Result<ApproveRunResponse, Error> {
    let data = decide(tx, &input.id, true, input.decision.as_ref()).await?;
    Ok(ApproveRunResponse { data: Some(data) })
}

async fn reject(tx: &mut Tx<'_>, input: &RejectRunRequest) -> Result<RejectRunResponse, Error> {
    let data = decide(tx, &input.id, false, input.decision.as_ref()).await?;
    Ok(RejectRunResponse { data: Some(data) })
}

async fn decide(
    tx: &mut Tx<'_>,
    id: &str,
    is_approved: bool,
    decision: Option<&Decision>,
) -> Result<Run, Error> {
    let id = parse_id(tx, id)?;
    let mut decision = decision.cloned().unwrap_or_default();
    if decision.who.is_empty() {
        decision.who = tx.caller().map(|caller| caller.identity.actor_name.clone()).unwrap_or_default();
    }
    operations::decide(tx, id, is_approved, &decision).await
}

async fn restart(tx: &mut Tx<'_>, input: &RestartRunRequest) -> Result<RestartRunResponse, Error> {
    let id = parse_id(tx, &input.id)?;
    let run = operations::restart(tx, id, input.from()).await?;
    Ok(RestartRunResponse { data: Some(run) })
}
