//! The gRPC services of credentials: issuing, listing and revoking for operators, and tokens for internal teams. The
//! command line calls the first too.

use chassis_base::Error;
use chassis_rpc::Call;
use proto::accounts::credential_service_server::CredentialService;
use proto::accounts::token_service_server::TokenService;
use proto::accounts::{
    CreateTokenRequest, CreateTokenResponse, IssueCredentialRequest, IssueCredentialResponse,
    ListCredentialsRequest, ListCredentialsResponse, RevokeCredentialRequest, RevokeCredentialResponse,
};
use tonic::{Request, Response, Status};

use super::{credential_message, operations, store};
use crate::runtime::Runtime;

/// The credentials of this installation.
#[derive(Clone)]
pub struct Credentials {
    runtime: Runtime,
}

impl Credentials {
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }
}

#[tonic::async_trait]
impl CredentialService for Credentials {
    async fn issue_credential(
        &self,
        request: Request<IssueCredentialRequest>,
    ) -> Result<Response<IssueCredentialResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, operations::issue).await
    }

    async fn list_credentials(
        &self,
        request: Request<ListCredentialsRequest>,
    ) -> Result<Response<ListCredentialsResponse>, Status> {
        Call::open(request)?.valid()?;
        let records = self.runtime.db.read(async |connection| Ok::<_, Error>(store::list(connection).await?));
        let records = records.await?;
        let credentials = records.chunk_by(|one, next| one.public_id == next.public_id);
        let credentials = credentials.filter_map(credential_message).collect();
        Ok(Response::new(ListCredentialsResponse { credentials }))
    }

    async fn revoke_credential(
        &self,
        request: Request<RevokeCredentialRequest>,
    ) -> Result<Response<RevokeCredentialResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, operations::revoke).await
    }
}

#[tonic::async_trait]
impl TokenService for Credentials {
    async fn create_token(
        &self,
        request: Request<CreateTokenRequest>,
    ) -> Result<Response<CreateTokenResponse>, Status> {
        let (_, input) = Call::open(request)?.valid()?;
        Ok(Response::new(operations::create_token(&self.runtime, input).await?))
    }
}
