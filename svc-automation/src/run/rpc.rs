//! `RunService`: parse, decide, write, reply.

use chassis_base::id;
use chassis_base::paging::Page;
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

use super::{operations, shown, store};
use crate::Error;

const UNKNOWN: Error = Error::NotFound("run");

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
        let status = Some(input.status.as_str()).filter(|status| !status.is_empty());
        // What is no id belongs to no flow, as the nil one does.
        let flow = Some(&input.flow_id).filter(|id| !id.is_empty());
        let flow = flow.map(|id| id::parse(id).unwrap_or_default());
        let page = Page::new(input.page, input.per_page);
        let (runs, meta) = self
            .db
            .read(async |connection| {
                store::list(connection, context.account_id(), (status, flow), page).await
            })
            .await?;
        let data = runs.into_iter().map(|run| shown(run, Vec::new())).collect();
        Ok(Response::new(ListRunsResponse { data, meta: Some(meta) }))
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let (account, id) = (context.account_id(), id::parse(&input.id).ok_or(UNKNOWN)?);
        let (run, steps) = self
            .db
            .read(async |connection| {
                let run = store::find(connection, account, id).await?.ok_or(UNKNOWN)?;
                let steps = store::list_steps(connection, account, id).await?;
                Ok::<_, Error>((run, steps))
            })
            .await?;
        Ok(Response::new(GetRunResponse { data: Some(shown(run, steps)) }))
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

/// The id of a path, after everything else that may be wrong.
fn id_of(tx: &mut Tx<'_>, text: &str) -> Result<Uuid, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    id::parse(text).ok_or(UNKNOWN)
}

async fn cancel(tx: &mut Tx<'_>, input: &CancelRunRequest) -> Result<CancelRunResponse, Error> {
    let id = id_of(tx, &input.id)?;
    let run = operations::cancel(tx, id).await?;
    let data = CancelledRun { id: run.id.to_string(), status: run.status.name().to_owned() };
    // As approving and the like are kept by their answers.
    tx.changed("run", run.id, &shown(run, Vec::new()));
    Ok(CancelRunResponse { data: Some(data) })
}

async fn approve(tx: &mut Tx<'_>, input: &ApproveRunRequest) -> Result<ApproveRunResponse, Error> {
    let data = decide(tx, &input.id, (true, input.decision.as_ref())).await?;
    Ok(ApproveRunResponse { data: Some(data) })
}

async fn reject(tx: &mut Tx<'_>, input: &RejectRunRequest) -> Result<RejectRunResponse, Error> {
    let data = decide(tx, &input.id, (false, input.decision.as_ref())).await?;
    Ok(RejectRunResponse { data: Some(data) })
}

async fn decide(
    tx: &mut Tx<'_>,
    id: &str,
    (approved, decision): (bool, Option<&Decision>),
) -> Result<Run, Error> {
    let id = id_of(tx, id)?;
    let decision = decision.cloned().unwrap_or_default();
    let (run, steps) = operations::decide(tx, id, (approved, &decision)).await?;
    Ok(shown(run, steps))
}

async fn restart(tx: &mut Tx<'_>, input: &RestartRunRequest) -> Result<RestartRunResponse, Error> {
    let account = tx.account();
    let id = id_of(tx, &input.id)?;
    let id = operations::restart(tx, id, input.from()).await?;
    let run = store::find(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    let steps = store::list_steps(tx.db(), account, id).await?;
    Ok(RestartRunResponse { data: Some(shown(run, steps)) })
}
