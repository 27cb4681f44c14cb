//! `HourService`: parses requests, calls the operations, answers.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::work::hour_service_server::HourService;
use proto::work::{
    ApproveHoursRequest, ApproveHoursResponse, DeleteHoursRequest, DeleteHoursResponse, GetHoursRequest,
    GetHoursResponse, HourEntry, HourStatus, ListProjectHoursRequest, ListProjectHoursResponse,
    LogHoursRequest, LogHoursResponse, RejectHoursRequest, RejectHoursResponse, ReopenHoursRequest,
    ReopenHoursResponse, SubmitHoursRequest, SubmitHoursResponse, UpdateHoursRequest, UpdateHoursResponse,
};
use tonic::{Request, Response, Status};

use super::rules::Transition;
use super::store::{self, Days, Filter};
use super::{Record, operations};
use crate::error::Error;
use crate::project;

const PROJECT_NOT_FOUND: Error = Error::NotFound("project");

pub(crate) struct Hours {
    pub db: Db,
}

#[tonic::async_trait]
impl HourService for Hours {
    async fn list_project_hours(
        &self,
        request: Request<ListProjectHoursRequest>,
    ) -> Result<Response<ListProjectHoursResponse>, Status> {
        let mut call = Call::open(request)?;
        id::ignore_malformed(&mut call.faults);
        let (context, input) = call.valid()?;
        let account = context.account_id();
        let project = id::parse(&input.id).ok_or(PROJECT_NOT_FOUND)?;
        let status = Some(input.status()).filter(|status| *status != HourStatus::Unspecified);
        let selection = Selection::new(context.account(), &input);
        let days = [(&input.from, &input.to), (&input.date_from, &input.date_to)];
        let days = days.map(|(from, to)| Days { from: from.parse().ok(), to: to.parse().ok() });
        let filter = Filter { selection, project, days, status };
        let (records, meta) = self
            .db
            .read(async |connection| {
                if !project::exists(connection, account, project).await? {
                    return Err(PROJECT_NOT_FOUND);
                }
                let page = Page::new(input.page, input.per_page);
                let (records, meta) = store::list(connection, account, &filter, page).await?;
                Ok::<_, Error>((records, meta))
            })
            .await?;
        Ok(Response::new(ListProjectHoursResponse { data: messages(records), meta: Some(meta) }))
    }

    async fn get_hours(
        &self,
        request: Request<GetHoursRequest>,
    ) -> Result<Response<GetHoursResponse>, Status> {
        // Without `valid`: a malformed id is not found, and the request has no other field.
        let Call { context, input, .. } = Call::open(request)?;
        let account = context.account_id();
        let id = id::parse(&input.id).ok_or(operations::NOT_FOUND)?;
        let found = self.db.read(async |connection| store::find(connection, account, id).await).await?;
        let data = found.map(HourEntry::from).ok_or(operations::NOT_FOUND)?;
        Ok(Response::new(GetHoursResponse { data: Some(data) }))
    }

    async fn log_hours(
        &self,
        request: Request<LogHoursRequest>,
    ) -> Result<Response<LogHoursResponse>, Status> {
        let create = async |tx: &mut Tx<'_>, input: &LogHoursRequest| {
            let record = operations::create(tx, input).await?;
            Ok::<_, Error>(LogHoursResponse { data: Some(record.into()) })
        };
        self.db.write(Call::open(request)?, create).await
    }

    async fn update_hours(
        &self,
        request: Request<UpdateHoursRequest>,
    ) -> Result<Response<UpdateHoursResponse>, Status> {
        let update = async |tx: &mut Tx<'_>, input: &UpdateHoursRequest| {
            let record = operations::update(tx, &input.id, input.entry.as_ref()).await?;
            Ok::<_, Error>(UpdateHoursResponse { data: Some(record.into()) })
        };
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_hours(
        &self,
        request: Request<DeleteHoursRequest>,
    ) -> Result<Response<DeleteHoursResponse>, Status> {
        let delete = async |tx: &mut Tx<'_>, input: &DeleteHoursRequest| {
            operations::delete(tx, &input.id).await?;
            Ok::<_, Error>(DeleteHoursResponse {})
        };
        self.db.write(Call::open(request)?, delete).await
    }

    async fn submit_hours(
        &self,
        request: Request<SubmitHoursRequest>,
    ) -> Result<Response<SubmitHoursResponse>, Status> {
        let submit = async |tx: &mut Tx<'_>, input: &SubmitHoursRequest| {
            let records = operations::change_status(tx, Transition::Submit, &input.ids, "").await?;
            Ok::<_, Error>(SubmitHoursResponse { data: messages(records) })
        };
        self.db.write(Call::open(request)?, submit).await
    }

    async fn approve_hours(
        &self,
        request: Request<ApproveHoursRequest>,
    ) -> Result<Response<ApproveHoursResponse>, Status> {
        let approve = async |tx: &mut Tx<'_>, input: &ApproveHoursRequest| {
            let records = operations::change_status(tx, Transition::Approve, &input.ids, "").await?;
            Ok::<_, Error>(ApproveHoursResponse { data: messages(records) })
        };
        self.db.write(Call::open(request)?, approve).await
    }

    async fn reject_hours(
        &self,
        request: Request<RejectHoursRequest>,
    ) -> Result<Response<RejectHoursResponse>, Status> {
        let reject = async |tx: &mut Tx<'_>, input: &RejectHoursRequest| {
            let records =
                operations::change_status(tx, Transition::Reject, &input.ids, &input.reason).await?;
            Ok::<_, Error>(RejectHoursResponse { data: messages(records) })
        };
        self.db.write(Call::open(request)?, reject).await
    }

    async fn reopen_hours(
        &self,
        request: Request<ReopenHoursRequest>,
    ) -> Result<Response<ReopenHoursResponse>, Status> {
        let reopen = async |tx: &mut Tx<'_>, input: &ReopenHoursRequest| {
            let records = operations::change_status(tx, Transition::Reopen, &input.ids, "").await?;
            Ok::<_, Error>(ReopenHoursResponse { data: messages(records) })
        };
        self.db.write(Call::open(request)?, reopen).await
    }
}

fn messages(records: Vec<Record>) -> Vec<HourEntry> {
    records.into_iter().map(HourEntry::from).collect()
}
