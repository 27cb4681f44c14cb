//! Issuing, listing and revoking credentials: the gRPC service of operators. The command line calls it too.

use chassis::time::timestamp;
use chassis::{Call, Error, Tx};
use proto::At;
use proto::accounts::credential_service_server::CredentialService;
use proto::accounts::{
    Credential, IssueCredentialRequest, IssueCredentialResponse, ListCredentialsRequest,
    ListCredentialsResponse, RevokeCredentialRequest, RevokeCredentialResponse,
};
use proto::api::{Fault, Problem};
use tonic::{Request, Response, Status};

use super::store::{self, CredentialRow};
use crate::accounts::{get, rules};
use crate::keys::{NewKey, public_id_of};
use crate::serve::Runtime;

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
        self.runtime.db.write(Call::open(request)?, issue).await
    }

    async fn list_credentials(
        &self,
        request: Request<ListCredentialsRequest>,
    ) -> Result<Response<ListCredentialsResponse>, Status> {
        Call::open(request)?.valid()?;
        let mut connection = self.runtime.db.read().await?;
        let rows = store::list(&mut connection).await.map_err(Error::from)?;
        let credentials = rows.chunk_by(|one, next| one.public_id == next.public_id).filter_map(message);
        Ok(Response::new(ListCredentialsResponse { credentials: credentials.collect() }))
    }

    async fn revoke_credential(
        &self,
        request: Request<RevokeCredentialRequest>,
    ) -> Result<Response<RevokeCredentialResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, revoke).await
    }
}

async fn issue(tx: &mut Tx<'_>, input: &IssueCredentialRequest) -> Result<IssueCredentialResponse, Error> {
    let scopes = rules::credential_scopes(input, &mut tx.faults);
    let now = tx.now();
    let expires_at = rules::expiry(input.expires_at.as_ref(), now, &mut tx.faults);
    tx.valid()?;
    let mut accounts = Vec::new();
    for account in &input.accounts {
        accounts.push(get(tx.db(), account).await?.account_id);
    }
    accounts.sort_unstable();
    accounts.dedup();
    let new = NewKey::credential();
    let row = |account_id| CredentialRow {
        account_id,
        public_id: new.public_id.clone(),
        team: input.team.clone(),
        secret_hash: new.secret_hash.to_vec(),
        scopes: scopes.clone(),
        created_at: now,
        expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    let rows: Vec<CredentialRow> = accounts.into_iter().map(row).collect();
    for row in &rows {
        store::insert(tx.db(), row).await?;
    }
    Ok(IssueCredentialResponse { secret: new.text, credential: audited(tx, &rows) })
}

async fn revoke(tx: &mut Tx<'_>, input: &RevokeCredentialRequest) -> Result<RevokeCredentialResponse, Error> {
    let Some(public_id) = public_id_of(&input.credential) else {
        let detail = "credential must be a whole credential or its public id; check it for typing mistakes";
        tx.faults.add(&At::ROOT.name("credential"), Fault::BadFormat, detail);
        return Err(std::mem::take(&mut tx.faults).into());
    };
    let now = tx.now();
    let mut rows = store::revoke(tx.db(), public_id, now).await?;
    rows.sort_unstable_by_key(|row| row.account_id);
    let credential = audited(tx, &rows).ok_or_else(|| {
        Error::problem(Problem::NotFound, format!("There is no credential with the public id `{public_id}`."))
    })?;
    Ok(RevokeCredentialResponse { credential: Some(credential) })
}

/// A credential that was made or changed, as it is answered. The entry says for which accounts it is, and is in the log of
/// the first.
fn audited(tx: &mut Tx<'_>, rows: &[CredentialRow]) -> Option<Credential> {
    let credential = message(rows)?;
    tx.file_under(rows.first()?.account_id);
    tx.changed("credential", &credential.public_id, &credential);
    Some(credential)
}

/// A credential from its rows; `None` when there are none.
fn message(rows: &[CredentialRow]) -> Option<Credential> {
    let row = rows.first()?;
    Some(Credential {
        public_id: row.public_id.clone(),
        team: row.team.clone(),
        account_ids: rows.iter().map(|row| row.account_id.to_string()).collect(),
        scopes: row.scopes.clone(),
        created_at: Some(timestamp(row.created_at)),
        expires_at: row.expires_at.map(timestamp),
        last_used_at: rows.iter().filter_map(|row| row.last_used_at).max().map(timestamp),
        revoked_at: row.revoked_at.map(timestamp),
    })
}
