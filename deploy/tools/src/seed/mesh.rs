//! Calls over gRPC, for what the public API does not have. Made by whoever has the secret of the mesh.

use chassis::token::{self, Tokens};
use chassis::{Account, AccountId, Clock};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use uuid::Uuid;

/// Who calls, and for which account.
pub struct Caller {
    tokens: Tokens,
    account: Account,
    clock: Clock,
}

impl Caller {
    pub fn new(secret: &str, account: Uuid) -> Self {
        let account = Account {
            id: AccountId::trust(account),
            timezone: chrono_tz::Europe::Amsterdam,
            country: "NL".to_owned(),
            currency: "EUR".to_owned(),
        };
        Self { tokens: Tokens::new(secret), account, clock: Clock::system() }
    }

    pub fn request<T>(&self, message: T) -> Result<Request<T>, String> {
        let token = self.tokens.mint_mesh(&self.account, "seed", self.clock.now());
        let token = token.parse().map_err(|_| "CONTEXT_SECRET is not usable".to_owned())?;
        let mut request = Request::new(message);
        request.metadata_mut().insert(token::HEADER, token);
        Ok(request)
    }

    /// A request that has its effect once, however often it is made.
    pub fn keyed<T>(&self, key: &str, message: T) -> Result<Request<T>, String> {
        let mut request = self.request(message)?;
        let key = key.parse().map_err(|_| format!("{key} is no usable key"))?;
        request.metadata_mut().insert(chassis::call::IDEMPOTENCY_KEY, key);
        Ok(request)
    }
}

/// The way to a service.
pub async fn connect(service: &str, url: &str) -> Result<Channel, String> {
    let fault = |fault: &dyn std::error::Error| {
        format!("cannot reach {service} at {url}: {}", chassis::service::chain(fault))
    };
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| fault(&error))?;
    endpoint.connect().await.map_err(|error| fault(&error))
}

/// What a service said when it refused.
pub fn said(service: &'static str) -> impl Fn(Status) -> String {
    move |status| format!("{service}: {}", status.message())
}
