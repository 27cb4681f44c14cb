//! Trading a credential for a context token, as the gateway trades a key for one with every request.

use chassis::time::timestamp;
use chassis::token::LIFETIME_SECONDS;
use chassis::{Account, Call, Error};
use chrono::{DateTime, TimeDelta, Utc};
use proto::accounts::token_service_server::TokenService;
use proto::accounts::{CreateTokenRequest, CreateTokenResponse};
use proto::api::Problem;
use subtle::ConstantTimeEq;
use tonic::{Request, Response, Status};

use super::store::{self, CredentialRow};
use crate::accounts;
use crate::keys::PresentedKey;
use crate::serve::Runtime;

/// Makes context tokens for internal teams.
#[derive(Clone)]
pub struct ContextTokens {
    runtime: Runtime,
}

impl ContextTokens {
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }

    /// The credential's row for the account, with the account. Which of the two is wrong is nobody's business.
    async fn accept(
        &self,
        input: &CreateTokenRequest,
        now: DateTime<Utc>,
    ) -> Result<(CredentialRow, Account), Error> {
        let presented = PresentedKey::parse_credential(&input.credential).ok_or_else(refused)?;
        let mut connection = self.runtime.db.read().await?;
        let account = accounts::find(&mut connection, &input.account).await?.ok_or_else(refused)?;
        let row = store::find(&mut connection, account.account_id, presented.public_id).await?;
        let row = row.ok_or_else(refused)?;
        let same = row.secret_hash.ct_eq(&presented.secret_hash());
        let over = row.revoked_at.is_some() || row.expires_at.is_some_and(|end| end <= now);
        if !bool::from(same) || over {
            return Err(refused());
        }
        store::note_use(&mut connection, &row, now).await?;
        Ok((row, account.account()?))
    }
}

fn refused() -> Error {
    let detail = "The credential is not valid, or not for this account. Ask the operator of this installation: \
                  gateway credential list";
    Error::problem(Problem::Unauthenticated, detail.to_owned())
}

#[tonic::async_trait]
impl TokenService for ContextTokens {
    async fn create_token(
        &self,
        request: Request<CreateTokenRequest>,
    ) -> Result<Response<CreateTokenResponse>, Status> {
        let (_, input) = Call::open(request)?.valid()?;
        let Runtime { tokens, clock, .. } = &self.runtime;
        let now = clock.now();
        let (row, account) = self.accept(&input, now).await?;
        let audience = input.audience;
        let scopes = chosen(&row.scopes, input.scopes)?;
        let token = tokens.to(&audience).mint(&account, &row.public_id, &row.team, &scopes, now);
        tracing::info!(credential = row.public_id, team = row.team, account = %account.id, "a token was made");
        Ok(Response::new(CreateTokenResponse {
            token,
            expires_at: Some(timestamp(now + TimeDelta::seconds(LIFETIME_SECONDS))),
            account_id: account.id.to_string(),
            scopes,
        }))
    }
}

/// The scopes of the token: those that were asked for, all of which the credential must have.
fn chosen(have: &[String], wanted: Vec<String>) -> Result<Vec<String>, Error> {
    if wanted.is_empty() {
        return Ok(have.to_vec());
    }
    match wanted.iter().find(|scope| !have.contains(scope)) {
        Some(scope) => Err(Error::problem(
            Problem::InsufficientScope,
            format!("The credential does not have the scope `{scope}`; it has {}.", have.join(", ")),
        )),
        None => Ok(wanted),
    }
}
