//! `ClientService`: parse, call, answer.

use std::collections::HashMap;

use chassis_base::id;
use chassis_base::formats::vat;
use chassis_base::paging::Page;
use chassis_data::list::Selection;
use chassis_data::{Db, LazyTx, Tx};
use chassis_rpc::Call;
use proto::relations::client_service_server::ClientService;
use proto::relations::{
    BatchGetClientsRequest, BatchGetClientsResponse, ClientLink, CreateClientRequest, CreateClientResponse,
    GetClientByExternalIdRequest, GetClientByExternalIdResponse, GetClientRequest, GetClientResponse,
    LinkClientRequest, LinkClientResponse, ListClientLinksRequest, ListClientLinksResponse,
    ListClientsRequest, ListClientsResponse, Relation, UpdateClientRequest, UpdateClientResponse,
};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{country, get, list};
use crate::error::Error;
use crate::relation::store::{self, Filter};
use crate::relation::{Record, Role, operations};

const ROLE: Role = Role::Client;
const NOT_FOUND: Error = Error::NotFound("client");

use crate::{link, relation_type};
pub(crate) struct Clients {
    pub db: Db,
}

#[tonic::async_trait]
impl ClientService for Clients {
    async fn list_clients(
        &self,
        request: Request<ListClientsRequest>,
    ) -> Result<Response<ListClientsResponse>, Status> {
        let mut call = Call::open(request)?;
        let country = country(&call.input.country, &mut call.faults);
        let (context, input) = call.valid()?;
        let page = Page::new(input.page, input.per_page);
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            search: input.search.trim(),
            // Another text than the name of a type does not filter.
            kind: relation_type::from_name(&input.contact_type),
            external_id: &input.external_id,
            email: &input.email,
            vat_number: vat::comparable(&input.vat_number),
            debtor_number: &input.debtor_number,
            city: &input.city,
            country,
        };
        let (data, meta) = list(&self.db, context.account_id(), ROLE, &filter, page).await?;
        Ok(Response::new(ListClientsResponse { data, meta: Some(meta) }))
    }

    async fn create_client(
        &self,
        request: Request<CreateClientRequest>,
    ) -> Result<Response<CreateClientResponse>, Status> {
        self.db.write_lazily(Call::open(request)?, create).await
    }

    async fn get_client(
        &self,
        request: Request<GetClientRequest>,
    ) -> Result<Response<GetClientResponse>, Status> {
        // `valid` is not called: a malformed id is answered as not found, and no other field can be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let data = get(&self.db, context.account_id(), ROLE, &input.id).await?;
        Ok(Response::new(GetClientResponse { data: Some(data) }))
    }

    async fn update_client(
        &self,
        request: Request<UpdateClientRequest>,
    ) -> Result<Response<UpdateClientResponse>, Status> {
        self.db.write_lazily(Call::open(request)?, update).await
    }

    async fn link_client(
        &self,
        request: Request<LinkClientRequest>,
    ) -> Result<Response<LinkClientResponse>, Status> {
        self.db.write(Call::open(request)?, link_client).await
    }

    async fn list_client_links(
        &self,
        request: Request<ListClientLinksRequest>,
    ) -> Result<Response<ListClientLinksResponse>, Status> {
        let Call { context, input, .. } = Call::open(request)?;
        let account = context.account_id();
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let links = self
            .db
            .read(async |connection| {
                if link::store::list_client_types(connection, account, &[id]).await?.is_empty() {
                    return Err(NOT_FOUND);
                }
                let links = link::store::list(connection, account, id).await?;
                Ok::<_, Error>(links)
            })
            .await?;
        let data = links.into_iter().map(ClientLink::from).collect();
        Ok(Response::new(ListClientLinksResponse { data }))
    }

    async fn batch_get_clients(
        &self,
        request: Request<BatchGetClientsRequest>,
    ) -> Result<Response<BatchGetClientsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let ids: Vec<Uuid> = input.ids.iter().filter_map(|id| id::parse(id)).collect();
        let found = self
            .db
            .read(async |connection| store::list_by_ids(connection, context.account_id(), ROLE, &ids).await)
            .await?;
        Ok(Response::new(BatchGetClientsResponse { data: in_order(&ids, found) }))
    }

    async fn get_client_by_external_id(
        &self,
        request: Request<GetClientByExternalIdRequest>,
    ) -> Result<Response<GetClientByExternalIdResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let (account, external_id) = (context.account_id(), input.external_id.trim());
        let found = self.db.read(async |connection| {
            store::find_by_external_id(connection, account, ROLE, external_id).await
        });
        let found = found.await?;
        let record = found.ok_or(NOT_FOUND)?;
        Ok(Response::new(GetClientByExternalIdResponse { data: Some(record.into()) }))
    }
}

async fn create(tx: &mut LazyTx<'_>, input: &CreateClientRequest) -> Result<CreateClientResponse, Error> {
    let given = input.client.clone().unwrap_or_default();
    Ok(CreateClientResponse { data: Some(operations::create(tx, ROLE, given).await?) })
}

async fn update(tx: &mut LazyTx<'_>, input: &UpdateClientRequest) -> Result<UpdateClientResponse, Error> {
    let given = input.client.clone().unwrap_or_default();
    let data = operations::update(tx, ROLE, &input.id, given, input.update_mask.as_ref()).await?;
    Ok(UpdateClientResponse { data: Some(data) })
}

async fn link_client(tx: &mut Tx<'_>, input: &LinkClientRequest) -> Result<LinkClientResponse, Error> {
    let given = input.link.clone().unwrap_or_default();
    let link = link::operations::link(tx, &input.id, given).await?;
    Ok(LinkClientResponse { data: Some(link) })
}

/// The records in the order of the ids. An id that occurs twice in the request occurs twice in the answer.
fn in_order(ids: &[Uuid], found: Vec<Record>) -> Vec<Relation> {
    let found: HashMap<Uuid, Record> = found.into_iter().map(|record| (record.id, record)).collect();
    ids.iter().filter_map(|id| found.get(id)).cloned().map(Relation::from).collect()
}
