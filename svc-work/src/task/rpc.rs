//! `TaskService`: parse, look references up, decide, write, reply.

use chassis::mask::Named as Mask;
use chassis::paging::Page;
use chassis::references::{Named, References};
use chassis::{Call, Db, Tx, id};
use proto::At;
use proto::work::task_service_server::TaskService;
use proto::work::{
    CompleteTaskRequest, CompleteTaskResponse, CreateTaskRequest, CreateTaskResponse, DeleteTaskRequest,
    DeleteTaskResponse, GetTaskRequest, GetTaskResponse, ListTasksRequest, ListTasksResponse,
    ReopenTaskRequest, ReopenTaskResponse, Task, TaskInput, TaskItem, TaskState, UpdateTaskRequest,
    UpdateTaskResponse,
};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{About, LIST, Record, rules, store};
use crate::refer::{CLIENT, DEAL};
use crate::{Error, project};

const UNKNOWN: Error = Error::NotFound("task");
/// What the audit log calls it.
const AUDITED: &str = "task";

pub struct Tasks {
    pub db: Db,
    pub references: References,
}

#[tonic::async_trait]
impl TaskService for Tasks {
    async fn list_tasks(
        &self,
        request: Request<ListTasksRequest>,
    ) -> Result<Response<ListTasksResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let mut connection = self.db.read().await?;
        let (records, meta) = store::list(&mut connection, context.account_id(), page).await?;
        connection.done();
        let data = records.into_iter().map(TaskItem::from).collect();
        Ok(Response::new(ListTasksResponse { data, meta: Some(meta) }))
    }

    async fn create_task(
        &self,
        request: Request<CreateTaskRequest>,
    ) -> Result<Response<CreateTaskResponse>, Status> {
        let mut call = Call::open(request)?;
        let (given, at) = (call.input.task.clone().unwrap_or_default(), At::ROOT.name("task"));
        let named = [
            Named { kind: CLIENT, at: &at.name("client_id"), id: &given.client_id },
            Named { kind: DEAL, at: &at.name("deal_id"), id: &given.deal_id },
        ];
        self.references.check(&mut call, &named).await?;
        self.db.write(call, create).await
    }

    async fn get_task(&self, request: Request<GetTaskRequest>) -> Result<Response<GetTaskResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(UNKNOWN)?;
        let mut connection = self.db.read().await?;
        let found = store::find(&mut connection, context.account_id(), id).await?;
        connection.done();
        let data = found.map(Task::from).ok_or(UNKNOWN)?;
        Ok(Response::new(GetTaskResponse { data: Some(data) }))
    }

    async fn update_task(
        &self,
        request: Request<UpdateTaskRequest>,
    ) -> Result<Response<UpdateTaskResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_task(
        &self,
        request: Request<DeleteTaskRequest>,
    ) -> Result<Response<DeleteTaskResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }

    async fn complete_task(
        &self,
        request: Request<CompleteTaskRequest>,
    ) -> Result<Response<CompleteTaskResponse>, Status> {
        let complete = async |tx: &mut Tx<'_>, input: &CompleteTaskRequest| {
            let data = set_completed(tx, &input.id, true).await?;
            Ok::<_, Error>(CompleteTaskResponse { data: Some(data) })
        };
        self.db.write(Call::open(request)?, complete).await
    }

    async fn reopen_task(
        &self,
        request: Request<ReopenTaskRequest>,
    ) -> Result<Response<ReopenTaskResponse>, Status> {
        let reopen = async |tx: &mut Tx<'_>, input: &ReopenTaskRequest| {
            let data = set_completed(tx, &input.id, false).await?;
            Ok::<_, Error>(ReopenTaskResponse { data: Some(data) })
        };
        self.db.write(Call::open(request)?, reopen).await
    }
}

async fn create(tx: &mut Tx<'_>, input: &CreateTaskRequest) -> Result<CreateTaskResponse, Error> {
    let given = input.task.clone().unwrap_or_default();
    let values = rules::create(&given);
    let about = about(tx, &given).await?;
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let record = Record { id: tx.id(), values, about, completed_at: None, created_at: now, updated_at: now };
    store::insert(tx.db(), account, &record).await?;
    tx.count(LIST, now, 1);
    audit(tx, &record);
    Ok(CreateTaskResponse { data: Some(record.into()) })
}

/// What the task belongs to. Records of other services have been looked up before.
async fn about(tx: &mut Tx<'_>, given: &TaskInput) -> Result<About, Error> {
    let at = At::ROOT.name("task");
    let project = project::referred(tx, &at.name("project_id"), &given.project_id).await?;
    Ok(About { client: id::parse(&given.client_id), project, deal: id::parse(&given.deal_id) })
}

/// Changes what the mask names; without a mask, everything. A change of nothing leaves no trace.
async fn update(tx: &mut Tx<'_>, input: &UpdateTaskRequest) -> Result<UpdateTaskResponse, Error> {
    id::forgive(&mut tx.faults);
    let named = Mask::from(input.update_mask.as_ref());
    let given = input.task.clone().unwrap_or_default();
    let account = tx.account();
    let found = match id::parse(&input.id) {
        Some(id) => store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let current = found.as_ref().map(|record| record.values.clone());
    let mut values = current.unwrap_or_else(|| rules::create(&TaskInput::default()));
    rules::change(named, &given, &mut values, &mut tx.faults);
    // The faults of the body come before an unknown id.
    tx.valid()?;
    let mut record = found.ok_or(UNKNOWN)?;
    if values != record.values {
        record.values = values;
        record.updated_at = tx.now();
        store::update(tx.db(), account, &record).await?;
        audit(tx, &record);
    }
    Ok(UpdateTaskResponse { data: Some(record.into()) })
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteTaskRequest) -> Result<DeleteTaskResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let created_at = store::delete(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    tx.count(LIST, created_at, -1);
    tx.removed(AUDITED, id);
    Ok(DeleteTaskResponse {})
}

async fn set_completed(tx: &mut Tx<'_>, text: &str, completed: bool) -> Result<TaskState, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let id = id::parse(text).ok_or(UNKNOWN)?;
    let record = store::set_completed(tx.db(), account, id, completed, now).await?.ok_or(UNKNOWN)?;
    audit(tx, &record);
    Ok(record.into())
}

/// Keeps a task in the audit log as it is now.
fn audit(tx: &mut Tx<'_>, record: &Record) {
    tx.changed(AUDITED, record.id, &Task::from(record.clone()));
}

/// Lets tasks belong to none of these deals, which are gone.
pub async fn forget_deals(tx: &mut Tx<'_>, deals: &[Uuid]) -> Result<(), Error> {
    if deals.is_empty() {
        return Ok(());
    }
    let (account, now) = (tx.account(), tx.now());
    for record in store::forget_deals(tx.db(), account, deals, now).await? {
        audit(tx, &record);
    }
    Ok(())
}
