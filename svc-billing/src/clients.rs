//! Clients, which belong to the relations service. They are fetched before a transaction begins, never inside one: a
//! transaction must not hold its locks while it waits for another service.

use std::time::Instant;

use chassis_base::Account;
use chassis_rpc::Context;
use chassis_rpc::outgoing::{self, Outgoing};
use proto::relations::client_service_client::ClientServiceClient;
use proto::relations::{BatchGetClientsRequest, GetClientByExternalIdRequest, Relation};
use render::printed::Party;
use tonic::transport::Channel;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::error::Error;

const RELATIONS: &str = "relations";

/// The names of a client, as documents and subscriptions store them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    pub id: Uuid,
    pub company_name: String,
    pub firstname: String,
    pub lastname: String,
}

impl From<&Relation> for Client {
    fn from(client: &Relation) -> Self {
        Self {
            id: chassis_base::id::parse(&client.id).unwrap_or_default(),
            company_name: client.company_name.clone(),
            firstname: client.firstname.clone(),
            lastname: client.lastname.clone(),
        }
    }
}

/// The connection to the service of clients.
#[derive(Clone)]
pub(crate) struct Clients {
    pub outgoing: Outgoing,
}

/// The result of looking up the client that a request names.
#[derive(Clone, Debug, Default)]
pub(crate) enum ClientLookup {
    /// The request names no client.
    #[default]
    None,
    Found(Box<Relation>),
    /// There is no such client; with the field that names it.
    NotFound(&'static str),
    /// `client_id` and `client_external_id` name different clients.
    Conflicting,
}

impl ClientLookup {
    pub(crate) fn found(&self) -> Option<&Relation> {
        match self {
            Self::Found(client) => Some(client),
            _ => None,
        }
    }
}

impl Clients {
    /// Looks up the client of a request: by id, by external id, or by both.
    pub(crate) async fn resolve(
        &self,
        context: &Context,
        id: &str,
        external_id: &str,
    ) -> Result<ClientLookup, Error> {
        let by_id = match (id, chassis_base::id::parse(id)) {
            ("", _) => None,
            (_, None) => return Ok(ClientLookup::NotFound("client_id")),
            (_, Some(id)) => match self.get(context.account(), id, context.deadline).await? {
                Some(client) => Some(client),
                None => return Ok(ClientLookup::NotFound("client_id")),
            },
        };
        if external_id.is_empty() {
            return Ok(by_id.map_or(ClientLookup::None, |client| ClientLookup::Found(Box::new(client))));
        }
        let Some(other) = self.get_by_external_id(context, external_id).await? else {
            return Ok(ClientLookup::NotFound("client_external_id"));
        };
        match by_id {
            Some(client) if client.id != other.id => Ok(ClientLookup::Conflicting),
            _ => Ok(ClientLookup::Found(Box::new(other))),
        }
    }

    pub(crate) async fn get(
        &self,
        account: &Account,
        id: Uuid,
        deadline: Instant,
    ) -> Result<Option<Relation>, Error> {
        let request = self.outgoing.request(
            RELATIONS,
            account,
            deadline,
            BatchGetClientsRequest { ids: vec![id.to_string()] },
        )?;
        let found = self.client()?.batch_get_clients(request).await.map_err(|status| unavailable(&status))?;
        Ok(found.into_inner().data.into_iter().find(|client| !is_anonymized(client)))
    }

    async fn get_by_external_id(
        &self,
        context: &Context,
        external_id: &str,
    ) -> Result<Option<Relation>, Error> {
        let asked = GetClientByExternalIdRequest { external_id: external_id.to_owned() };
        let request = self.outgoing.request(RELATIONS, context.account(), context.deadline, asked)?;
        match self.client()?.get_client_by_external_id(request).await {
            Ok(found) => Ok(found.into_inner().data),
            // A text that is not a valid external id belongs to no client either.
            Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => Ok(None),
            Err(status) => Err(unavailable(&status)),
        }
    }

    fn client(&self) -> Result<ClientServiceClient<Channel>, Error> {
        Ok(ClientServiceClient::new(self.outgoing.channel(RELATIONS)?))
    }
}

/// Nothing new is made for a client whom nobody knows any more.
fn is_anonymized(client: &Relation) -> bool {
    client.meta.as_ref().is_some_and(|meta| meta.anonymized_at.is_some())
}

fn unavailable(status: &Status) -> Error {
    outgoing::lookup_failed(RELATIONS, "Clients", status).into()
}

/// The client as the buyer on a document.
pub(crate) fn buyer(client: &Relation) -> Party {
    let person = format!("{} {}", client.firstname, client.lastname).trim().to_owned();
    let (name, contact) = if client.company_name.is_empty() {
        (person, String::new())
    } else {
        (client.company_name.clone(), person)
    };
    Party {
        name,
        contact,
        address: client.address.clone(),
        zipcode: client.zipcode.clone(),
        city: client.city.clone(),
        country: client.country.clone(),
        email: client.email.clone(),
        phone: client.phone.clone(),
        website: client.website.clone(),
        registration_number: client.company_registration_number.clone(),
        vat_number: client.vat_number.clone(),
        debtor_number: client.debtor_number.clone(),
    }
}
