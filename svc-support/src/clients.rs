//! Clients of the account, looked up in the relations service: before a transaction begins, never inside one, because a
//! slow answer would keep its locks.

use chassis_rpc::Context;
use chassis_rpc::outgoing::{self, Outgoing};
use proto::relations::client_service_client::ClientServiceClient;
use proto::relations::{BatchGetClientsRequest, ListClientsRequest, Relation};
use uuid::Uuid;

use crate::error::Error;

#[derive(Clone)]
pub struct Clients {
    pub outgoing: Outgoing,
}

/// The result of looking up the client id of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Lookup {
    /// The request has no client id.
    #[default]
    NotGiven,
    Found(Client),
    NotFound,
}

/// The values that a ticket copies from a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    pub id: Uuid,
    pub name: String,
    pub email: String,
}

impl Clients {
    pub(crate) async fn look_up(&self, context: &Context, id: &str) -> Result<Lookup, Error> {
        let id = id.trim();
        if id.is_empty() {
            return Ok(Lookup::NotGiven);
        }
        let Some(id) = chassis_base::id::parse(id) else { return Ok(Lookup::NotFound) };
        let query = BatchGetClientsRequest { ids: vec![id.to_string()] };
        let request = self.outgoing.request("relations", context.account(), context.deadline, query)?;
        let found = ClientServiceClient::new(self.outgoing.channel("relations")?)
            .batch_get_clients(request)
            .await
            .map_err(|status| outgoing::lookup_failed("relations", "Clients", &status))?;
        // Nothing new is made for a client whom nobody knows any more.
        let is_known = |client: &Relation| client.meta.as_ref().is_none_or(|it| it.anonymized_at.is_none());
        let found = found.into_inner().data.into_iter().find(is_known);
        Ok(found.map_or(Lookup::NotFound, |relation| Lookup::Found(client(id, &relation))))
    }

    /// The only client with this address. Mail is accepted without the relations service: a user can set the client of
    /// the ticket later.
    pub async fn find_by_email(&self, context: &Context, address: &str) -> Option<Client> {
        match self.search_by_email(context, address).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "client lookup for the sender of a mail failed");
                None
            }
        }
    }

    async fn search_by_email(&self, context: &Context, address: &str) -> Result<Option<Client>, Error> {
        let query = ListClientsRequest { search: address.to_owned(), ..ListClientsRequest::default() };
        let request = self.outgoing.request("relations", context.account(), context.deadline, query)?;
        let found = ClientServiceClient::new(self.outgoing.channel("relations")?)
            .list_clients(request)
            .await
            .map_err(|status| outgoing::lookup_failed("relations", "Clients", &status))?;
        let found = found.into_inner().data;
        // The search also finds addresses that contain this one.
        let mut same = found.iter().filter(|relation| relation.email.eq_ignore_ascii_case(address));
        let (Some(only), None) = (same.next(), same.next()) else { return Ok(None) };
        Ok(chassis_base::id::parse(&only.id).map(|id| client(id, only)))
    }
}

fn client(id: Uuid, relation: &Relation) -> Client {
    let person = format!("{} {}", relation.firstname, relation.lastname).trim().to_owned();
    let name = if person.is_empty() { relation.company_name.clone() } else { person };
    Client { id, name: name.chars().take(255).collect(), email: relation.email.clone() }
}
