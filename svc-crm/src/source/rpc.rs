//! `DealSourceService`: parse, decide, write, reply. Every change begins with the account's lock.

use chassis::{Call, Db, Tx};
use proto::At;
use proto::api::{Fault, ListMeta};
use proto::crm::deal_source_service_server::DealSourceService;
use proto::crm::{
    CreateDealSourceRequest, CreateDealSourceResponse, DealSource, DeleteDealSourceRequest,
    DeleteDealSourceResponse, ListDealSourcesRequest, ListDealSourcesResponse, ReorderDealSourcesRequest,
    ReorderDealSourcesResponse, UpdateDealSourceRequest, UpdateDealSourceResponse,
};
use tonic::{Request, Response, Status};

use super::{MOST, store};
use crate::{Error, ordering, provision};

const UNKNOWN: Error = Error::NotFound("deal source");
/// What the audit log calls it.
pub const AUDITED: &str = "deal_source";

pub struct Sources {
    pub db: Db,
}

#[tonic::async_trait]
impl DealSourceService for Sources {
    async fn list_deal_sources(
        &self,
        request: Request<ListDealSourcesRequest>,
    ) -> Result<Response<ListDealSourcesResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let mut connection = self.db.read().await?;
        let data = store::list(&mut connection, context.account_id()).await?;
        connection.done();
        let total = i64::try_from(data.len()).unwrap_or(i64::MAX);
        Ok(Response::new(ListDealSourcesResponse { data, meta: Some(ListMeta { total }) }))
    }

    async fn create_deal_source(
        &self,
        request: Request<CreateDealSourceRequest>,
    ) -> Result<Response<CreateDealSourceResponse>, Status> {
        self.db.write(Call::open(request)?, create).await
    }

    async fn update_deal_source(
        &self,
        request: Request<UpdateDealSourceRequest>,
    ) -> Result<Response<UpdateDealSourceResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_deal_source(
        &self,
        request: Request<DeleteDealSourceRequest>,
    ) -> Result<Response<DeleteDealSourceResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }

    async fn reorder_deal_sources(
        &self,
        request: Request<ReorderDealSourcesRequest>,
    ) -> Result<Response<ReorderDealSourcesResponse>, Status> {
        self.db.write(Call::open(request)?, reorder).await
    }
}

/// All sources, for who is about to change one.
async fn locked(tx: &mut Tx<'_>) -> Result<Vec<DealSource>, Error> {
    provision::lock(tx).await?;
    let account = tx.account();
    store::list(tx.db(), account).await
}

fn check_new(name: &str, sources: &[DealSource], at: &At<'_>, tx: &mut Tx<'_>) -> Result<(), Error> {
    if sources.iter().any(|source| source.name == name) {
        let detail = format!("{} must differ from the names that there are", at.label());
        tx.faults.add(at, Fault::Repeated, detail);
    }
    Ok(tx.valid()?)
}

async fn create(tx: &mut Tx<'_>, input: &CreateDealSourceRequest) -> Result<CreateDealSourceResponse, Error> {
    tx.valid()?;
    let sources = locked(tx).await?;
    let at = At::ROOT.name("name");
    ordering::check_room(sources.len(), MOST, "deal sources", &at, &mut tx.faults);
    check_new(&input.name, &sources, &at, tx)?;
    let (account, now) = (tx.account(), tx.now());
    store::insert(tx.db(), account, &input.name, now).await?;
    let order = i32::try_from(sources.len() + 1).unwrap_or(i32::MAX);
    let source = DealSource { name: input.name.clone(), order };
    tx.changed(AUDITED, &source.name, &source);
    Ok(CreateDealSourceResponse { data: Some(source) })
}

async fn update(tx: &mut Tx<'_>, input: &UpdateDealSourceRequest) -> Result<UpdateDealSourceResponse, Error> {
    tx.valid()?;
    let sources = locked(tx).await?;
    let mut source = sources.iter().find(|source| source.name == input.name).cloned().ok_or(UNKNOWN)?;
    if input.new_name != input.name {
        check_new(&input.new_name, &sources, &At::ROOT.name("new_name"), tx)?;
        let (account, now) = (tx.account(), tx.now());
        store::rename(tx.db(), account, &input.name, &input.new_name, now).await?;
        source.name.clone_from(&input.new_name);
        tx.removed(AUDITED, &input.name);
        tx.changed(AUDITED, &source.name, &source);
    }
    Ok(UpdateDealSourceResponse { data: Some(source) })
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteDealSourceRequest) -> Result<DeleteDealSourceResponse, Error> {
    tx.valid()?;
    if !locked(tx).await?.iter().any(|source| source.name == input.name) {
        return Err(UNKNOWN);
    }
    let account = tx.account();
    store::delete(tx.db(), account, &input.name).await?;
    tx.removed(AUDITED, &input.name);
    Ok(DeleteDealSourceResponse {})
}

async fn reorder(
    tx: &mut Tx<'_>,
    input: &ReorderDealSourcesRequest,
) -> Result<ReorderDealSourcesResponse, Error> {
    tx.valid()?;
    let known: Vec<String> = locked(tx).await?.into_iter().map(|source| source.name).collect();
    let wanted: Vec<Option<String>> = input.names.iter().cloned().map(Some).collect();
    ordering::check(&wanted, &known, "deal source", &At::ROOT.name("names"), &mut tx.faults);
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    store::reorder(tx.db(), account, &input.names, now).await?;
    let data = store::list(tx.db(), account).await?;
    for source in &data {
        tx.changed(AUDITED, &source.name, source);
    }
    Ok(ReorderDealSourcesResponse { data })
}
