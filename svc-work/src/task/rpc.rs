//! `TaskService`: parses requests, looks up references, calls the operations, answers.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_base::update_mask::UpdateMask as Mask;
use chassis_data::list::Selection;
use chassis_data::{Db, LazyTx, Tx};
use chassis_rpc::Call;
use chassis_rpc::references::{Lookup, References};
use proto::At;
use proto::work::task_service_server::TaskService;
use proto::work::{
    CompleteTaskRequest, CompleteTaskResponse, CreateTaskRequest, CreateTaskResponse, DeleteTaskRequest,
    DeleteTaskResponse, GetTaskRequest, GetTaskResponse, ListTasksRequest, ListTasksResponse,
    ReopenTaskRequest, ReopenTaskResponse, Task, TaskCategory, TaskItem, TaskStatus, UpdateTaskRequest,
    UpdateTaskResponse,
};
use tonic::{Request, Response, Status};

use super::store::Filter;
use super::{Related, operations, rules, store};
use crate::error::Error;
use crate::references::{CLIENT, DEAL};

const NOT_FOUND: Error = Error::NotFound("task");

pub(crate) struct Tasks {
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
        let account = context.account();
        let filter = Filter {
            selection: Selection::new(account, &input),
            status: Some(input.status()).filter(|status| *status != TaskStatus::Unspecified),
            category: Some(input.category()).filter(|category| *category != TaskCategory::Unspecified),
            related: Related {
                client: id::filter(&input.client_id),
                project: id::filter(&input.project_id),
                deal: id::filter(&input.deal_id),
            },
            deadline: rules::deadline_range(&input.deadline_from, &input.deadline_to, account.timezone),
            search: input.search.trim(),
        };
        let (records, meta) =
            self.db.read(async |connection| store::list(connection, account.id, &filter, page).await).await?;
        let data = records.into_iter().map(TaskItem::from).collect();
        Ok(Response::new(ListTasksResponse { data, meta: Some(meta) }))
    }

    async fn create_task(
        &self,
        request: Request<CreateTaskRequest>,
    ) -> Result<Response<CreateTaskResponse>, Status> {
        let mut call = Call::open(request)?;
        let given = call.input.task.clone().unwrap_or_default();
        let at = At::ROOT.name("task");
        let named = [
            Lookup { kind: CLIENT, at: &at.name("client_id"), id: &given.client_id },
            Lookup { kind: DEAL, at: &at.name("deal_id"), id: &given.deal_id },
        ];
        self.references.check(&mut call, &named).await?;
        let create = async |tx: &mut Tx<'_>, input: &CreateTaskRequest| {
            let given = input.task.clone().unwrap_or_default();
            let record = operations::create(tx, &given).await?;
            Ok::<_, Error>(CreateTaskResponse { data: Some(record.into()) })
        };
        self.db.write(call, create).await
    }

    async fn get_task(&self, request: Request<GetTaskRequest>) -> Result<Response<GetTaskResponse>, Status> {
        // `valid` is not called: a malformed id is answered as not found, and no other field can be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let found =
            self.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        let data = found.map(Task::from).ok_or(NOT_FOUND)?;
        Ok(Response::new(GetTaskResponse { data: Some(data) }))
    }

    async fn update_task(
        &self,
        request: Request<UpdateTaskRequest>,
    ) -> Result<Response<UpdateTaskResponse>, Status> {
        let update = async |tx: &mut LazyTx<'_>, input: &UpdateTaskRequest| {
            let given = input.task.clone().unwrap_or_default();
            let named = Mask::from(input.update_mask.as_ref());
            let record = operations::update(tx, &input.id, &given, named).await?;
            Ok::<_, Error>(UpdateTaskResponse { data: Some(record.into()) })
        };
        self.db.write_lazily(Call::open(request)?, update).await
    }

    async fn delete_task(
        &self,
        request: Request<DeleteTaskRequest>,
    ) -> Result<Response<DeleteTaskResponse>, Status> {
        let delete = async |tx: &mut Tx<'_>, input: &DeleteTaskRequest| {
            operations::delete(tx, &input.id).await?;
            Ok::<_, Error>(DeleteTaskResponse {})
        };
        self.db.write(Call::open(request)?, delete).await
    }

    async fn complete_task(
        &self,
        request: Request<CompleteTaskRequest>,
    ) -> Result<Response<CompleteTaskResponse>, Status> {
        let complete = async |tx: &mut LazyTx<'_>, input: &CompleteTaskRequest| {
            let record = operations::set_completed(tx, &input.id, true).await?;
            Ok::<_, Error>(CompleteTaskResponse { data: Some(record.into()) })
        };
        self.db.write_lazily(Call::open(request)?, complete).await
    }

    async fn reopen_task(
        &self,
        request: Request<ReopenTaskRequest>,
    ) -> Result<Response<ReopenTaskResponse>, Status> {
        let reopen = async |tx: &mut LazyTx<'_>, input: &ReopenTaskRequest| {
            let record = operations::set_completed(tx, &input.id, false).await?;
            Ok::<_, Error>(ReopenTaskResponse { data: Some(record.into()) })
        };
        self.db.write_lazily(Call::open(request)?, reopen).await
    }
}
