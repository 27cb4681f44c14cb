//! Clients, as relations knows them. Asked before a transaction begins, never inside one.

use chassis::call::Context;
use chassis::outgoing::{self, Outgoing};
use proto::relations::client_service_client::ClientServiceClient;
use proto::relations::{BatchGetClientsRequest, ListClientsRequest, Relation};
use uuid::Uuid;

use crate::Error;

#[derive(Clone)]
pub struct Clients {
    pub outgoing: Outgoing,
}

/// The client that a request names.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Named {
    #[default]
    Nobody,
    Found(Client),
    Unknown,
}

/// What a ticket takes over of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    pub id: Uuid,
    pub name: String,
    pub email: String,
}

impl Clients {
    pub async fn named(&self, context: &Context, id: &str) -> Result<Named, Error> {
        let id = id.trim();
        if id.is_empty() {
            return Ok(Named::Nobody);
        }
        let Some(id) = chassis::id::parse(id) else { return Ok(Named::Unknown) };
        let asked = BatchGetClientsRequest { ids: vec![id.to_string()] };
        let request = self.outgoing.request("relations", context.account(), context.deadline, asked)?;
        let found = ClientServiceClient::new(self.outgoing.channel("relations")?)
            .batch_get_clients(request)
            .await
            .map_err(|status| outgoing::away("relations", "Clients", &status))?;
        let found = found.into_inner().data.into_iter().next();
        Ok(found.map_or(Named::Unknown, |relation| Named::Found(client(id, &relation))))
    }
}

impl Clients {
    /// The one client with this address. Mail does not wait for relations: whoever is not found can be named later.
    pub async fn with_address(&self, context: &Context, address: &str) -> Option<Client> {
        match self.list_with_address(context, address).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "the sender of a mail was not looked up");
                None
            }
        }
    }

    async fn list_with_address(&self, context: &Context, address: &str) -> Result<Option<Client>, Error> {
        let asked = ListClientsRequest { search: address.to_owned(), ..ListClientsRequest::default() };
        let request = self.outgoing.request("relations", context.account(), context.deadline, asked)?;
        let found = ClientServiceClient::new(self.outgoing.channel("relations")?)
            .list_clients(request)
            .await
            .map_err(|status| outgoing::away("relations", "Clients", &status))?;
        let found = found.into_inner().data;
        // A search also finds addresses that only contain this one.
        let mut same = found.iter().filter(|relation| relation.email.eq_ignore_ascii_case(address));
        let (Some(only), None) = (same.next(), same.next()) else { return Ok(None) };
        Ok(chassis::id::parse(&only.id).map(|id| client(id, only)))
    }
}

fn client(id: Uuid, relation: &Relation) -> Client {
    let person = format!("{} {}", relation.firstname, relation.lastname).trim().to_owned();
    let name = if person.is_empty() { relation.company_name.clone() } else { person };
    Client { id, name: name.chars().take(255).collect(), email: relation.email.clone() }
}
