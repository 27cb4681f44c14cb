//! What is managed over gRPC only, by whoever has the secret of the mesh.

use chassis_base::{Account, AccountId, Clock, Timezone};
use chassis_rpc::token::{self, Tokens};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use uuid::Uuid;

/// Who may call the services for an account.
pub struct MeshCaller {
    tokens: Tokens,
    account: Account,
    actor: &'static str,
    clock: Clock,
}

impl MeshCaller {
    /// `actor` is who calls, for logs and history.
    pub fn new(secret: &str, account: Uuid, actor: &'static str) -> Self {
        let account = Account {
            id: AccountId::trust(account),
            timezone: Timezone::AMSTERDAM,
            country: "NL".to_owned(),
            currency: "EUR".to_owned(),
        };
        Self { tokens: Tokens::new(secret), account, actor, clock: Clock::system() }
    }

    /// The way to the service with this name.
    pub async fn connect(&self, name: &str, url: &str) -> Result<Channel, String> {
        let fault = |fault: tonic::transport::Error| {
            format!("cannot reach {name} at {url}: {}", chassis_base::error::chain(&fault))
        };
        Endpoint::from_shared(url.to_owned()).map_err(fault)?.connect().await.map_err(fault)
    }

    pub fn request<T>(&self, message: T) -> Result<Request<T>, String> {
        let token = self.tokens.to_self().mint_mesh(&self.account, self.actor, self.clock.now());
        let token = token.parse().map_err(|_| "CONTEXT_SECRET is not usable".to_owned())?;
        let mut request = Request::new(message);
        request.metadata_mut().insert(token::HEADER, token);
        Ok(request)
    }

    /// A request that has its effect once, however often it is made.
    pub fn keyed<T>(&self, key: &str, message: T) -> Result<Request<T>, String> {
        let mut request = self.request(message)?;
        let key = key.parse().map_err(|_| format!("{key} is not usable as an idempotency key"))?;
        request.metadata_mut().insert(chassis_rpc::call::IDEMPOTENCY_KEY, key);
        Ok(request)
    }
}

/// The error of a service, with its name.
pub fn service_error(service: &'static str) -> impl Fn(Status) -> String {
    move |status| format!("{service}: {}", status.message())
}
