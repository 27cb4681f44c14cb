//! `ClientService`: takes requests apart and puts answers together.

use std::collections::HashMap;

use chassis::paging::Page;
use chassis::{Call, Db, Tx, id};
use proto::relations::client_service_server::ClientService;
use proto::relations::{
    BatchGetClientsRequest, BatchGetClientsResponse, CreateClientRequest, CreateClientResponse,
    GetClientByExternalIdRequest, GetClientByExternalIdResponse, GetClientRequest, GetClientResponse,
    LinkClientRequest, LinkClientResponse, ListClientLinksRequest, ListClientLinksResponse,
    ListClientsRequest, ListClientsResponse, Relation, UpdateClientRequest, UpdateClientResponse,
};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::operations::{self, Wanted};
use super::{Record, Role, store};
use crate::{Error, link};

const ROLE: Role = Role::Client;

pub struct Clients {
    pub db: Db,
}

#[tonic::async_trait]
impl ClientService for Clients {
    async fn list_clients(
        &self,
        request: Request<ListClientsRequest>,
    ) -> Result<Response<ListClientsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let ListClientsRequest { page, per_page, search, contact_type } = &input;
        let wanted = Wanted { page: Page::new(*page, *per_page), search, contact_type };
        let (data, meta) = operations::list(&self.db, context.account_id(), ROLE, wanted).await?;
        Ok(Response::new(ListClientsResponse { data, meta: Some(meta) }))
    }

    async fn create_client(
        &self,
        request: Request<CreateClientRequest>,
    ) -> Result<Response<CreateClientResponse>, Status> {
        self.db.write(Call::open(request)?, create).await
    }

    async fn get_client(
        &self,
        request: Request<GetClientRequest>,
    ) -> Result<Response<GetClientResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let data = operations::get(&self.db, context.account_id(), ROLE, &input.id).await?;
        Ok(Response::new(GetClientResponse { data: Some(data) }))
    }

    async fn update_client(
        &self,
        request: Request<UpdateClientRequest>,
    ) -> Result<Response<UpdateClientResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn link_client(
        &self,
        request: Request<LinkClientRequest>,
    ) -> Result<Response<LinkClientResponse>, Status> {
        self.db.write(Call::open(request)?, link::rpc::link).await
    }

    async fn list_client_links(
        &self,
        request: Request<ListClientLinksRequest>,
    ) -> Result<Response<ListClientLinksResponse>, Status> {
        let Call { context, input, .. } = Call::open(request)?;
        let data = link::rpc::list(&self.db, context.account_id(), &input.id).await?;
        Ok(Response::new(ListClientLinksResponse { data }))
    }

    async fn batch_get_clients(
        &self,
        request: Request<BatchGetClientsRequest>,
    ) -> Result<Response<BatchGetClientsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let ids: Vec<Uuid> = input.ids.iter().filter_map(|id| id::parse(id)).collect();
        let mut connection = self.db.read().await?;
        let found = store::list_by_ids(&mut connection, context.account_id(), ROLE, &ids).await?;
        connection.done();
        Ok(Response::new(BatchGetClientsResponse { data: in_order(&ids, found) }))
    }

    async fn get_client_by_external_id(
        &self,
        request: Request<GetClientByExternalIdRequest>,
    ) -> Result<Response<GetClientByExternalIdResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let mut connection = self.db.read().await?;
        let external_id = input.external_id.trim();
        let found =
            store::find_by_external_id(&mut connection, context.account_id(), ROLE, external_id).await?;
        connection.done();
        let record = found.ok_or(Error::NotFound(ROLE.name()))?;
        Ok(Response::new(GetClientByExternalIdResponse { data: Some(record.into()) }))
    }
}

async fn create(tx: &mut Tx<'_>, input: &CreateClientRequest) -> Result<CreateClientResponse, Error> {
    let given = input.client.clone().unwrap_or_default();
    Ok(CreateClientResponse { data: Some(operations::create(tx, ROLE, given).await?) })
}

async fn update(tx: &mut Tx<'_>, input: &UpdateClientRequest) -> Result<UpdateClientResponse, Error> {
    let given = input.client.clone().unwrap_or_default();
    let data = operations::update(tx, ROLE, &input.id, given, input.update_mask.as_ref()).await?;
    Ok(UpdateClientResponse { data: Some(data) })
}

/// The records in the order of the ids; an id that is asked for twice is answered twice.
fn in_order(ids: &[Uuid], found: Vec<Record>) -> Vec<Relation> {
    let found: HashMap<Uuid, Record> = found.into_iter().map(|record| (record.id, record)).collect();
    ids.iter().filter_map(|id| found.get(id)).cloned().map(Relation::from).collect()
}
