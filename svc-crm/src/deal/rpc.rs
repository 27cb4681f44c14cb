//! `DealService`: parses requests, looks up references, calls the operations, answers.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_base::update_mask::UpdateMask;
use chassis_data::list::Selection;
use chassis_data::{Db, LazyTx, Tx};
use chassis_rpc::Call;
use chassis_rpc::references::{self, Kind, References};
use proto::crm::deal_service_server::DealService;
use proto::crm::{
    BatchGetDealsRequest, BatchGetDealsResponse, CreateDealRequest, CreateDealResponse, Deal, DealPriority,
    DealStatus, DeleteDealRequest, DeleteDealResponse, GetDealRequest, GetDealResponse, ListDealsRequest,
    ListDealsResponse, LoseDealRequest, LoseDealResponse, MoveDealRequest, MoveDealResponse,
    UpdateDealRequest, UpdateDealResponse, WinDealRequest, WinDealResponse,
};
use proto::{At, Faults};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::operations;
use super::store::{self, Filter};
use crate::error::Error;

const NOT_FOUND: Error = Error::NotFound("deal");
const CLIENT: Kind = Kind { service: "relations", name: "client" };

pub(crate) struct Deals {
    pub db: Db,
    pub references: References,
}

#[tonic::async_trait]
impl DealService for Deals {
    async fn list_deals(
        &self,
        request: Request<ListDealsRequest>,
    ) -> Result<Response<ListDealsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            client: id::filter(&input.client_id),
            status: Some(input.status()).filter(|status| *status != DealStatus::Unspecified),
            pipeline: id::filter(&input.pipeline_id),
            phase: id::filter(&input.phase_id),
            source: Some(input.source.as_str()).filter(|source| !source.is_empty()),
            priority: Some(input.priority()).filter(|priority| *priority != DealPriority::Unspecified),
            amount_from: input.amount_from.parse().ok(),
            amount_to: input.amount_to.parse().ok(),
            expected_close_from: input.expected_close_from.parse().ok(),
            expected_close_to: input.expected_close_to.parse().ok(),
            search: input.search.trim(),
        };
        let page = Page::new(input.page, input.per_page);
        let (records, meta) = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), &filter, page).await)
            .await?;
        let data = records.into_iter().map(Deal::from).collect();
        Ok(Response::new(ListDealsResponse { data, meta: Some(meta) }))
    }

    async fn create_deal(
        &self,
        request: Request<CreateDealRequest>,
    ) -> Result<Response<CreateDealResponse>, Status> {
        let mut call = Call::open(request)?;
        let client = call.input.deal.as_ref().map(|deal| deal.client_id.clone()).unwrap_or_default();
        let at = At::ROOT.name("deal");
        let client = references::Lookup { kind: CLIENT, at: &at.name("client_id"), id: &client };
        self.references.check(&mut call, &[client]).await?;
        self.db.write_lazily(call, create).await
    }

    async fn get_deal(&self, request: Request<GetDealRequest>) -> Result<Response<GetDealResponse>, Status> {
        // `valid` is not called: a malformed id is answered as not found, and no other field can be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let account = context.account_id();
        let find = async |connection: &mut _| store::list_with_history(connection, account, &[id]).await;
        let deal = self.db.read(find).await?.pop().ok_or(NOT_FOUND)?;
        Ok(Response::new(GetDealResponse { data: Some(deal.into()) }))
    }

    async fn update_deal(
        &self,
        request: Request<UpdateDealRequest>,
    ) -> Result<Response<UpdateDealResponse>, Status> {
        let call = Call::open(request)?;
        let named = UpdateMask::from(call.input.update_mask.as_ref());
        let client = call.input.deal.as_ref().map(|deal| deal.client_id.as_str()).unwrap_or_default();
        let client = if named.has("client_id") { client } else { "" };
        let at = At::ROOT.name("deal");
        let client = references::Lookup { kind: CLIENT, at: &at.name("client_id"), id: client };
        let missing = self.references.missing(&call.context, &[client]).await?;
        self.db.write_lazily_with(call, missing, update).await
    }

    async fn delete_deal(
        &self,
        request: Request<DeleteDealRequest>,
    ) -> Result<Response<DeleteDealResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }

    async fn move_deal(
        &self,
        request: Request<MoveDealRequest>,
    ) -> Result<Response<MoveDealResponse>, Status> {
        self.db.write_lazily(Call::open(request)?, move_deal).await
    }

    async fn win_deal(&self, request: Request<WinDealRequest>) -> Result<Response<WinDealResponse>, Status> {
        self.db.write_lazily(Call::open(request)?, win).await
    }

    async fn lose_deal(
        &self,
        request: Request<LoseDealRequest>,
    ) -> Result<Response<LoseDealResponse>, Status> {
        self.db.write_lazily(Call::open(request)?, lose).await
    }

    async fn batch_get_deals(
        &self,
        request: Request<BatchGetDealsRequest>,
    ) -> Result<Response<BatchGetDealsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let ids: Vec<Uuid> = input.ids.iter().filter_map(|id| id::parse(id)).collect();
        let found = self
            .db
            .read(async |connection| store::list_by_ids(connection, context.account_id(), &ids).await)
            .await?;
        let data = found.into_iter().map(Deal::from).collect();
        Ok(Response::new(BatchGetDealsResponse { data }))
    }
}

async fn create(tx: &mut LazyTx<'_>, input: &CreateDealRequest) -> Result<CreateDealResponse, Error> {
    let given = input.deal.clone().unwrap_or_default();
    Ok(CreateDealResponse { data: Some(operations::create(tx, &given).await?) })
}

async fn update(
    tx: &mut LazyTx<'_>,
    input: &UpdateDealRequest,
    missing: &Faults,
) -> Result<UpdateDealResponse, Error> {
    let given = input.deal.clone().unwrap_or_default();
    let named = UpdateMask::from(input.update_mask.as_ref());
    let data = operations::update(tx, &input.id, &given, named, missing).await?;
    Ok(UpdateDealResponse { data: Some(data) })
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteDealRequest) -> Result<DeleteDealResponse, Error> {
    Ok(DeleteDealResponse { data: Some(operations::delete(tx, &input.id).await?) })
}

async fn move_deal(tx: &mut LazyTx<'_>, input: &MoveDealRequest) -> Result<MoveDealResponse, Error> {
    let given = input.r#move.clone().unwrap_or_default();
    Ok(MoveDealResponse { data: Some(operations::move_deal(tx, &input.id, &given).await?) })
}

async fn win(tx: &mut LazyTx<'_>, input: &WinDealRequest) -> Result<WinDealResponse, Error> {
    Ok(WinDealResponse { data: Some(operations::close(tx, &input.id, DealStatus::Won).await?) })
}

async fn lose(tx: &mut LazyTx<'_>, input: &LoseDealRequest) -> Result<LoseDealResponse, Error> {
    Ok(LoseDealResponse { data: Some(operations::close(tx, &input.id, DealStatus::Lost).await?) })
}
