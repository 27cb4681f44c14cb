//! Clients, as relations knows them. Asked before a transaction begins, never inside one.

use std::time::Instant;

use chassis_base::Account;
use chassis_rpc::Context;
use chassis_rpc::outgoing::{self, Outgoing};
use proto::relations::client_service_client::ClientServiceClient;
use proto::relations::{BatchGetClientsRequest, GetClientByExternalIdRequest, Relation};
use render::paper::Party;
use tonic::transport::Channel;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::Error;
use crate::document::Client;

const RELATIONS: &str = "relations";

#[derive(Clone)]
pub struct Clients {
    pub outgoing: Outgoing,
}

/// The client that a request names.
#[derive(Clone, Debug, Default)]
pub enum Named {
    #[default]
    Nobody,
    Found(Box<Relation>),
    /// The field that names one who does not exist.
    Unknown(&'static str),
    /// `client_id` and `client_external_id` name different ones.
    Disagreeing,
}

impl Named {
    pub fn found(&self) -> Option<&Relation> {
        match self {
            Self::Found(client) => Some(client),
            _ => None,
        }
    }
}

impl Clients {
    /// The client that a document is to have: by id, by external id, or by both when they agree.
    pub async fn named(&self, context: &Context, id: &str, external_id: &str) -> Result<Named, Error> {
        let by_id = match (id, chassis_base::id::parse(id)) {
            ("", _) => None,
            (_, None) => return Ok(Named::Unknown("client_id")),
            (_, Some(id)) => match self.get(context.account(), id, context.deadline).await? {
                Some(client) => Some(client),
                None => return Ok(Named::Unknown("client_id")),
            },
        };
        if external_id.is_empty() {
            return Ok(by_id.map_or(Named::Nobody, |client| Named::Found(Box::new(client))));
        }
        let Some(other) = self.get_by_external_id(context, external_id).await? else {
            return Ok(Named::Unknown("client_external_id"));
        };
        match by_id {
            Some(client) if client.id != other.id => Ok(Named::Disagreeing),
            _ => Ok(Named::Found(Box::new(other))),
        }
    }

    pub async fn get(
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
        let found = self.client()?.batch_get_clients(request).await.map_err(|status| away(&status))?;
        Ok(found.into_inner().data.into_iter().next())
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
            // What cannot be an external id at all belongs to nobody either.
            Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => Ok(None),
            Err(status) => Err(away(&status)),
        }
    }

    fn client(&self) -> Result<ClientServiceClient<Channel>, Error> {
        Ok(ClientServiceClient::new(self.outgoing.channel(RELATIONS)?))
    }
}

fn away(status: &Status) -> Error {
    outgoing::lookup_failed(RELATIONS, "Clients", status).into()
}

/// What a document itself shows of its client.
pub fn shown(client: &Relation) -> Client {
    Client {
        id: chassis_base::id::parse(&client.id).unwrap_or_default(),
        company_name: client.company_name.clone(),
        firstname: client.firstname.clone(),
        lastname: client.lastname.clone(),
    }
}

/// The client as the buyer on a document.
pub fn buyer(client: &Relation) -> Party {
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
