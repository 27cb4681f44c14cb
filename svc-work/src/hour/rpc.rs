//! `HourService`: parse, decide, write, reply.

use std::collections::HashMap;

use chassis::paging::Page;
use chassis::{Call, Db, Tx, id};
use proto::At;
use proto::api::Fault;
use proto::work::hour_service_server::HourService;
use proto::work::{
    ApproveHoursRequest, ApproveHoursResponse, DeleteHoursRequest, DeleteHoursResponse, HourEntry, HourInput,
    HourStatus, ListProjectHoursRequest, ListProjectHoursResponse, LogHoursRequest, LogHoursResponse,
    RejectHoursRequest, RejectHoursResponse, ReopenHoursRequest, ReopenHoursResponse, SubmitHoursRequest,
    SubmitHoursResponse, UpdateHoursRequest, UpdateHoursResponse,
};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::rules::{self, Step};
use super::store::{self, Wanted};
use super::{Record, Values};
use crate::{Error, project};

const UNKNOWN: Error = Error::NotFound("hour entry");
const UNKNOWN_PROJECT: Error = Error::NotFound("project");

pub struct Hours {
    pub db: Db,
}

#[tonic::async_trait]
impl HourService for Hours {
    async fn list_project_hours(
        &self,
        request: Request<ListProjectHoursRequest>,
    ) -> Result<Response<ListProjectHoursResponse>, Status> {
        let mut call = Call::open(request)?;
        id::forgive(&mut call.faults);
        let (context, input) = call.valid()?;
        let account = context.account_id();
        let project = id::parse(&input.id).ok_or(UNKNOWN_PROJECT)?;
        let status = Some(input.status()).filter(|status| *status != HourStatus::Unspecified);
        let wanted = Wanted { project, from: input.from.parse().ok(), to: input.to.parse().ok(), status };
        let mut connection = self.db.read().await?;
        if !project::exists(&mut connection, account, project).await? {
            return Err(UNKNOWN_PROJECT.into());
        }
        let page = Page::new(input.page, input.per_page);
        let (records, meta) = store::list(&mut connection, account, &wanted, page).await?;
        connection.done();
        let data = records.into_iter().map(HourEntry::from).collect();
        Ok(Response::new(ListProjectHoursResponse { data, meta: Some(meta) }))
    }

    async fn log_hours(
        &self,
        request: Request<LogHoursRequest>,
    ) -> Result<Response<LogHoursResponse>, Status> {
        self.db.write(Call::open(request)?, log).await
    }

    async fn update_hours(
        &self,
        request: Request<UpdateHoursRequest>,
    ) -> Result<Response<UpdateHoursResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_hours(
        &self,
        request: Request<DeleteHoursRequest>,
    ) -> Result<Response<DeleteHoursResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }

    async fn submit_hours(
        &self,
        request: Request<SubmitHoursRequest>,
    ) -> Result<Response<SubmitHoursResponse>, Status> {
        let submit = async |tx: &mut Tx<'_>, input: &SubmitHoursRequest| {
            let data = take(tx, Step::Submit, &input.ids, "").await?;
            Ok::<_, Error>(SubmitHoursResponse { data })
        };
        self.db.write(Call::open(request)?, submit).await
    }

    async fn approve_hours(
        &self,
        request: Request<ApproveHoursRequest>,
    ) -> Result<Response<ApproveHoursResponse>, Status> {
        let approve = async |tx: &mut Tx<'_>, input: &ApproveHoursRequest| {
            let data = take(tx, Step::Approve, &input.ids, "").await?;
            Ok::<_, Error>(ApproveHoursResponse { data })
        };
        self.db.write(Call::open(request)?, approve).await
    }

    async fn reject_hours(
        &self,
        request: Request<RejectHoursRequest>,
    ) -> Result<Response<RejectHoursResponse>, Status> {
        let reject = async |tx: &mut Tx<'_>, input: &RejectHoursRequest| {
            let data = take(tx, Step::Reject, &input.ids, &input.reason).await?;
            Ok::<_, Error>(RejectHoursResponse { data })
        };
        self.db.write(Call::open(request)?, reject).await
    }

    async fn reopen_hours(
        &self,
        request: Request<ReopenHoursRequest>,
    ) -> Result<Response<ReopenHoursResponse>, Status> {
        let reopen = async |tx: &mut Tx<'_>, input: &ReopenHoursRequest| {
            let data = take(tx, Step::Reopen, &input.ids, "").await?;
            Ok::<_, Error>(ReopenHoursResponse { data })
        };
        self.db.write(Call::open(request)?, reopen).await
    }
}

async fn log(tx: &mut Tx<'_>, input: &LogHoursRequest) -> Result<LogHoursResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    let values = read(tx, input.entry.as_ref());
    let project = known_project(tx, &input.project_id).await?;
    tx.valid()?;
    let (values, project) = values.zip(project).ok_or(UNKNOWN_PROJECT)?;
    let record = Record {
        id: tx.id(),
        project,
        values,
        status: HourStatus::Draft,
        reason: String::new(),
        created_at: now,
        updated_at: now,
    };
    store::insert(tx.db(), account, &record).await?;
    Ok(LogHoursResponse { data: Some(record.into()) })
}

/// Replaces an entry. What was rejected is a draft again then.
async fn update(tx: &mut Tx<'_>, input: &UpdateHoursRequest) -> Result<UpdateHoursResponse, Error> {
    id::forgive(&mut tx.faults);
    let account = tx.account();
    let values = read(tx, input.entry.as_ref());
    let found = find(tx, &input.id).await?;
    // The faults of the body come before an unknown id.
    tx.valid()?;
    let (mut record, values) = found.zip(values).ok_or(UNKNOWN)?;
    rules::check_editable(record.status)?;
    if values != record.values || record.status != HourStatus::Draft {
        record = Record {
            values,
            status: HourStatus::Draft,
            reason: String::new(),
            updated_at: tx.now(),
            ..record
        };
        store::update(tx.db(), account, &record).await?;
    }
    Ok(UpdateHoursResponse { data: Some(record.into()) })
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteHoursRequest) -> Result<DeleteHoursResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let record = find(tx, &input.id).await?.ok_or(UNKNOWN)?;
    rules::check_removable(record.status)?;
    store::delete(tx.db(), account, record.id).await?;
    tx.removed("hour_entry", record.id);
    Ok(DeleteHoursResponse {})
}

/// Takes a step with every entry, or with none of them.
async fn take(tx: &mut Tx<'_>, step: Step, ids: &[String], reason: &str) -> Result<Vec<HourEntry>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let wanted: Vec<Uuid> = ids.iter().filter_map(|id| id::parse(id)).collect();
    let found = store::find_locked(tx.db(), account, &wanted).await?;
    let mut found: HashMap<Uuid, Record> = found.into_iter().map(|record| (record.id, record)).collect();
    let place = At::ROOT.name("ids");
    for (index, text) in ids.iter().enumerate() {
        if !id::parse(text).is_some_and(|id| found.contains_key(&id)) {
            let detail = "ids must be those of hours of this account";
            tx.faults.add(&place.index(index), Fault::UnknownReference, detail);
        }
    }
    tx.valid()?;
    let mut changed = Vec::new();
    for record in found.values_mut() {
        if step.changes(record.status)? {
            record.status = step.target();
            reason.clone_into(&mut record.reason);
            record.updated_at = now;
            changed.push(record.id);
        }
    }
    if !changed.is_empty() {
        store::set_status(tx.db(), account, &changed, (step.target(), reason), now).await?;
    }
    Ok(wanted.iter().filter_map(|id| found.get(id).cloned()).map(HourEntry::from).collect())
}

fn read(tx: &mut Tx<'_>, given: Option<&HourInput>) -> Option<Values> {
    let today = tx.today();
    given.and_then(|given| rules::read(given, today, &mut tx.faults))
}

/// The project that hours are logged on; a fault when there is none.
async fn known_project(tx: &mut Tx<'_>, text: &str) -> Result<Option<Uuid>, Error> {
    project::referred(tx, &At::ROOT.name("project_id"), text).await
}

async fn find(tx: &mut Tx<'_>, text: &str) -> Result<Option<Record>, Error> {
    let account = tx.account();
    match id::parse(text) {
        Some(id) => Ok(store::find_locked(tx.db(), account, &[id]).await?.pop()),
        None => Ok(None),
    }
}
