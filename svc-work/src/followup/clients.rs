//! Clients, as relations knows them.

use std::collections::HashMap;
use std::time::Instant;

use chassis::Account;
use chassis::outgoing::{Outgoing, away};
use chassis::scan::Describe;
use proto::relations::client_service_client::ClientServiceClient;
use proto::relations::{BatchGetClientsRequest, Relation, RelationType};
use serde_json::{Value, json};
use uuid::Uuid;

use super::PATIENCE;
use crate::refer::CLIENT;

pub struct Clients {
    pub outgoing: Outgoing,
}

#[tonic::async_trait]
impl Describe for Clients {
    async fn describe(
        &self,
        account: &Account,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, Value>, chassis::Error> {
        let asked = BatchGetClientsRequest { ids: ids.iter().map(ToString::to_string).collect() };
        let request = self.outgoing.request(CLIENT.service, account, Instant::now() + PATIENCE, asked)?;
        let found = ClientServiceClient::new(self.outgoing.channel(CLIENT.service)?)
            .batch_get_clients(request)
            .await
            .map_err(|status| away(CLIENT.service, "Clients", &status))?;
        let client = |client: Relation| Some((chassis::id::parse(&client.id)?, told(&client)));
        Ok(found.into_inner().data.into_iter().filter_map(client).collect())
    }
}

/// As the other events of clients tell of them.
fn told(client: &Relation) -> Value {
    json!({
        "id": client.id,
        "type": if client.r#type() == RelationType::Company { "company" } else { "private" },
        "company_name": client.company_name,
        "firstname": client.firstname,
        "lastname": client.lastname,
        "email": client.email,
        "external_id": client.meta.as_ref().and_then(|meta| meta.external_id.as_ref()),
        "debtor_number": client.debtor_number,
    })
}
