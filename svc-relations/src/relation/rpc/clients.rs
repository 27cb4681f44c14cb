//! `ClientService`: parse, call, answer.

use std::collections::HashMap;
use std::sync::Arc;

use chassis_base::formats::vat;
use chassis_base::id;
use chassis_base::paging::Page;
use chassis_data::list::Selection;
use chassis_data::{Db, LazyTx, Tx};
use chassis_rpc::references::{References, Withdrawal};
use chassis_rpc::{Call, Context};
use proto::api::Reference;
use proto::relations::client_service_server::ClientService;
use proto::relations::{
    AnonymizeClientRequest, AnonymizeClientResponse, BatchGetClientsRequest, BatchGetClientsResponse,
    ClientLink, CreateClientRequest, CreateClientResponse, DeleteClientRequest, DeleteClientResponse,
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
use crate::{link, relation_type};

const ROLE: Role = Role::Client;
const NOT_FOUND: Error = Error::NotFound("client");

/// The services whose records can refer to a client.
const REFERRING: [&str; 4] = ["billing", "crm", "support", "work"];

pub(crate) struct Clients {
    pub db: Db,
    pub references: References,
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

    async fn delete_client(
        &self,
        request: Request<DeleteClientRequest>,
    ) -> Result<Response<DeleteClientResponse>, Status> {
        let call = Call::open(request)?;
        let (context, id) = (call.context.clone(), call.input.id.clone());
        self.remove(&context, &id, false, async |withdrawal| {
            self.db.write_with(call, withdrawal, delete).await
        })
        .await
    }

    async fn anonymize_client(
        &self,
        request: Request<AnonymizeClientRequest>,
    ) -> Result<Response<AnonymizeClientResponse>, Status> {
        let call = Call::open(request)?;
        let (context, id) = (call.context.clone(), call.input.id.clone());
        self.remove(&context, &id, true, async |withdrawal| {
            self.db.write_with(call, withdrawal, anonymize).await
        })
        .await
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

impl Clients {
    /// Withdraws a client from all services before `write` removes it or what it tells of somebody. If that fails, the client can
    /// be referred to as before. With `only_live`, records that stay as they are do not count.
    async fn remove<T>(
        &self,
        context: &Context,
        id: &str,
        only_live: bool,
        write: impl AsyncFnOnce(Arc<Withdrawal>) -> Result<T, Status>,
    ) -> Result<T, Status> {
        // What is not there is referred to by nothing.
        let id = id::parse(id).ok_or(NOT_FOUND)?.to_string();
        let reference = Reference { kind: ROLE.name().to_owned(), id };
        let withdrawal = self.references.withdraw(context, &REFERRING, reference, only_live).await;
        let withdrawal = Arc::new(withdrawal.map_err(Error::from)?);
        let written = write(Arc::clone(&withdrawal)).await;
        if written.is_err() && withdrawal.referrers.is_empty() {
            self.references.end(context, &REFERRING, &withdrawal).await;
        }
        written
    }
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteClientRequest,
    withdrawal: &Arc<Withdrawal>,
) -> Result<DeleteClientResponse, Error> {
    operations::delete_client(tx, &input.id, withdrawal).await?;
    Ok(DeleteClientResponse {})
}

async fn anonymize(
    tx: &mut Tx<'_>,
    input: &AnonymizeClientRequest,
    withdrawal: &Arc<Withdrawal>,
) -> Result<AnonymizeClientResponse, Error> {
    let data = operations::anonymize(tx, &input.id, withdrawal).await?;
    Ok(AnonymizeClientResponse { data: Some(data) })
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
