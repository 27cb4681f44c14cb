//! A running service with its own database, its callers, and helpers that read refusals.

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{Started, TestCaller, TestDatabase};
use proto::relations::client_service_client::ClientServiceClient;
use proto::relations::custom_field_service_client::CustomFieldServiceClient;
use proto::relations::supplier_service_client::SupplierServiceClient;
use proto::relations::{
    ClientInput, CreateClientRequest, GetClientRequest, ListClientsRequest, ListClientsResponse, Relation,
    UpdateClientRequest,
};
use svc_relations::Relations;
use tonic::transport::Channel;
use tonic::{Request, Status};

pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    pub service: Started,
}

impl World {
    pub(crate) async fn new() -> Self {
        let database = TestDatabase::new(&[("relations", Relations::migrations())]).await;
        let clock = chassis_testing::clock();
        let service = chassis_testing::start::<Relations>(database.url(), &clock).await;
        Self { database, clock, service }
    }

    /// A caller for an account of its own, with the scopes that the public operations need.
    pub(crate) fn caller(&self) -> Caller {
        self.caller_with(&["relations.read", "relations.write"])
    }

    /// A process of the mesh, for an account of its own.
    pub(crate) fn mesh(&self) -> Caller {
        self.caller_with(&[chassis_rpc::token::MESH_SCOPE])
    }

    fn caller_with(&self, scopes: &[&str]) -> Caller {
        let mut token = TestCaller::mesh(&chassis_testing::account(), &self.clock);
        token.scopes = scopes.iter().map(ToString::to_string).collect();
        Caller { token, channel: self.service.channel() }
    }
}

/// Calls on behalf of one account.
#[derive(Clone)]
pub(crate) struct Caller {
    pub token: TestCaller,
    channel: Channel,
}

impl Caller {
    /// The same account, as a process of the mesh.
    pub(crate) fn as_mesh(&self) -> Self {
        let token = TestCaller::mesh(&self.token.account, &self.token.clock);
        Self { token, channel: self.channel.clone() }
    }

    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        self.token.request(message)
    }

    pub(crate) fn clients(&self) -> ClientServiceClient<Channel> {
        ClientServiceClient::new(self.channel.clone())
    }

    pub(crate) fn suppliers(&self) -> SupplierServiceClient<Channel> {
        SupplierServiceClient::new(self.channel.clone())
    }

    pub(crate) fn custom_fields(&self) -> CustomFieldServiceClient<Channel> {
        CustomFieldServiceClient::new(self.channel.clone())
    }

    pub(crate) async fn create(&self, client: ClientInput) -> Result<Relation, Status> {
        let request = self.request(CreateClientRequest { client: Some(client) });
        Ok(self.clients().create_client(request).await?.into_inner().data.unwrap())
    }

    pub(crate) async fn get(&self, id: &str) -> Result<Relation, Status> {
        let request = self.request(GetClientRequest { id: id.to_owned() });
        Ok(self.clients().get_client(request).await?.into_inner().data.unwrap())
    }

    /// Changes the fields that `mask` names.
    pub(crate) async fn update(
        &self,
        id: &str,
        client: ClientInput,
        mask: &[&str],
    ) -> Result<Relation, Status> {
        let request = UpdateClientRequest {
            id: id.to_owned(),
            client: Some(client),
            update_mask: Some(self::mask(mask)),
        };
        Ok(self.clients().update_client(self.request(request)).await?.into_inner().data.unwrap())
    }

    pub(crate) async fn list(&self, request: ListClientsRequest) -> ListClientsResponse {
        self.clients().list_clients(self.request(request)).await.unwrap().into_inner()
    }

    pub(crate) async fn total(&self, contact_type: &str) -> i64 {
        let request =
            ListClientsRequest { contact_type: contact_type.to_owned(), ..ListClientsRequest::default() };
        self.list(request).await.meta.unwrap().total
    }
}

pub(crate) fn mask(names: &[&str]) -> prost_types::FieldMask {
    prost_types::FieldMask { paths: names.iter().map(ToString::to_string).collect() }
}

pub(crate) fn company(name: &str) -> ClientInput {
    ClientInput { company_name: name.to_owned(), ..ClientInput::default() }
}

pub(crate) fn person(name: &str) -> ClientInput {
    ClientInput { lastname: name.to_owned(), ..ClientInput::default() }
}

/// The code of a problem and what the caller finds in `data`.
pub(crate) fn problem(status: &Status) -> (String, Vec<(String, String)>) {
    let info = chassis_testing::error_info(status);
    (info.reason, info.metadata.into_iter().collect())
}

pub(crate) fn is_not_found(status: &Status) -> bool {
    status.code() == tonic::Code::NotFound && problem(status).0 == "not_found"
}
