//! Describes clients for events, by asking relations.

use std::collections::HashMap;
use std::time::Instant;

use chassis_base::Account;
use chassis_rpc::outgoing::{Outgoing, lookup_failed};
use chassis_work::scan::Describe;
use proto::relations::client_service_client::ClientServiceClient;
use proto::relations::{BatchGetClientsRequest, Relation, RelationType};
use serde_json::{Value, json};
use uuid::Uuid;

use super::DESCRIBE_TIMEOUT;
use crate::references::CLIENT;

pub(super) struct Clients {
    pub outgoing: Outgoing,
}

#[tonic::async_trait]
impl Describe for Clients {
    async fn describe(
        &self,
        account: &Account,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, Value>, chassis_base::Error> {
        let input = BatchGetClientsRequest { ids: ids.iter().map(ToString::to_string).collect() };
        let request =
            self.outgoing.request(CLIENT.service, account, Instant::now() + DESCRIBE_TIMEOUT, input)?;
        let found = ClientServiceClient::new(self.outgoing.channel(CLIENT.service)?)
            .batch_get_clients(request)
            .await
            .map_err(|status| lookup_failed(CLIENT.service, "Clients", &status))?;
        let client = |client: Relation| Some((chassis_base::id::parse(&client.id)?, event_data(&client)));
        Ok(found.into_inner().data.into_iter().filter_map(client).collect())
    }
}

/// The data of a client in the form that the events of relations have.
fn event_data(client: &Relation) -> Value {
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
