//! What all parts of the gateway share: database, clock, context tokens, TLS and the services that it calls. Depends on
//! none of those parts, so that each of them can use it.

use std::sync::LazyLock;

use chassis_base::{Account, AccountId, Clock, Error, Timezone};
use chassis_data::Db;
use chassis_rpc::Context;
use chassis_rpc::peer::Peers;
use chassis_rpc::tls::Tls;
use chassis_rpc::token::{self, Tokens};
use chrono::{DateTime, Utc};
use sqlx::migrate::Migrator;
use tonic::Request;
use tonic::metadata::MetadataValue;
use uuid::Uuid;

use crate::settings::Settings;

/// The schema of the gateway, and its name among the processes.
pub const NAME: &str = "gateway";

/// The gateway's own tables.
pub static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| chassis_derive::migrations!("migrations"));

/// The actor of calls from the command line in the log.
const LOCAL_ACTOR: &str = "command line";

/// Cheap to clone; clones share the pool and the channels.
#[derive(Clone)]
pub struct Runtime {
    pub db: Db,
    pub clock: Clock,
    pub tokens: Tokens,
    pub tls: Tls,
    pub peers: Peers,
}

impl Runtime {
    /// Must be called inside the async runtime.
    pub fn open(settings: &Settings, clock: Clock) -> Result<Self, String> {
        let mesh = &settings.mesh;
        let db = Db::open(mesh.database.address(), NAME, mesh.database.pool, clock.clone(), Vec::new())?;
        let tls = Tls::open(&mesh.tls)?;
        let peers = Peers::new(&settings.peers, &tls)?;
        Ok(Self { db, clock, tokens: Tokens::new(&mesh.context_secret).of(NAME), tls, peers })
    }

    /// A request of the gateway itself to a service, with the context token that the service asks for.
    pub fn mesh_request<T>(
        &self,
        service: &str,
        account: &Account,
        actor: &str,
        now: DateTime<Utc>,
        message: T,
    ) -> Result<Request<T>, Error> {
        let token = self.tokens.to(service).mint_mesh(account, actor, now);
        let token = MetadataValue::try_from(token)
            .map_err(|_| Error::Internal("a context token is not a metadata value".to_owned()))?;
        let mut request = Request::new(message);
        request.metadata_mut().insert(token::HEADER, token);
        Ok(request)
    }

    /// A request to an rpc of this process, without a network in between, for the command line and tests. It may call
    /// every rpc: its caller has the configuration of this process, secrets included.
    pub fn local_request<T>(&self, rpc: &'static str, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let context = Context::internal(&no_account(), LOCAL_ACTOR, rpc, &self.clock);
        request.extensions_mut().insert(context);
        request
    }
}

/// The account of calls that are on behalf of no account.
pub fn no_account() -> Account {
    Account {
        id: AccountId::trust(Uuid::nil()),
        timezone: Timezone::UTC,
        country: String::new(),
        currency: String::new(),
    }
}
