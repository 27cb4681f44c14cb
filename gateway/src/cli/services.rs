//! The services inside this process that commands call.

use chassis_base::Clock;
use tonic::Request;

use crate::accounts::Accounts;
use crate::credentials::Credentials;
use crate::runtime::Runtime;
use crate::settings::Settings;

/// The gRPC services that the commands call, in this process: the same operations that internal teams have.
pub(super) struct Services {
    pub accounts: Accounts,
    pub credentials: Credentials,
    pub runtime: Runtime,
}

impl Services {
    pub(super) fn new(settings: &Settings) -> Result<Self, String> {
        if !settings.peers.is_empty() {
            // The services would refuse tokens that are signed with another secret.
            settings.mesh.check()?;
        }
        let runtime = Runtime::open(settings, Clock::system())?;
        let accounts = Accounts::new(runtime.clone());
        let credentials = Credentials::new(runtime.clone());
        Ok(Self { accounts, credentials, runtime })
    }

    pub(super) fn request<T>(&self, rpc: &'static str, message: T) -> Request<T> {
        self.runtime.local_request(rpc, message)
    }
}
