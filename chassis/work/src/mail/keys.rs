//! The keys that sign mail: one for each domain that an account sends from. Every service stores the keys for its own
//! mail; other services of the mesh put them there.

use chassis_base::time::timestamp;
use chassis_base::{AccountId, Error};
use chassis_data::db::Db;
use chassis_data::write::Tx;
use chassis_rpc::call::Call;
use chrono::{DateTime, Utc};
use proto::api::mail_key_service_server::{MailKeyService, MailKeyServiceServer};
use proto::api::{
    DeleteMailKeyRequest, DeleteMailKeyResponse, Fault, ListMailKeysRequest, ListMailKeysResponse, MailKey,
    PutMailKeyRequest, PutMailKeyResponse,
};
use proto::{At, Faults};
use sqlx::PgConnection;
use tonic::{Request, Response, Status};

use super::dkim::Signer;

/// How many keys are listed.
const MAX_LISTED: i64 = 1000;

#[derive(chassis_derive::FromRow)]
pub(super) struct Key {
    pub domain: String,
    pub selector: String,
    /// The private key in PEM form.
    pub pem: String,
    pub created_at: DateTime<Utc>,
}

impl Key {
    fn message(&self) -> Result<MailKey, Error> {
        let signer =
            Signer::new(&self.pem).map_err(|error| Error::Internal(format!("a stored mail key {error}")))?;
        Ok(MailKey {
            domain: self.domain.clone(),
            selector: self.selector.clone(),
            record_name: format!("{}._domainkey.{}", self.selector, self.domain),
            record_value: signer.record(),
            created_at: Some(timestamp(self.created_at)),
        })
    }
}

/// The account's key for a domain; the case of `domain` does not matter.
pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    domain: &str,
) -> Result<Option<Key>, Error> {
    let key = sqlx::query_as(
        "select domain, selector, private_key as pem, created_at from mail_key where account_id = $1 and domain = $2",
    )
    .bind(account)
    .bind(domain.to_ascii_lowercase())
    .fetch_optional(connection)
    .await?;
    Ok(key)
}

pub fn server(db: Db) -> MailKeyServiceServer<MailKeys> {
    MailKeyServiceServer::new(MailKeys { db })
}

pub struct MailKeys {
    db: Db,
}

#[tonic::async_trait]
impl MailKeyService for MailKeys {
    async fn put_mail_key(
        &self,
        request: Request<PutMailKeyRequest>,
    ) -> Result<Response<PutMailKeyResponse>, Status> {
        self.db.write(Call::open(request)?, put).await
    }

    async fn delete_mail_key(
        &self,
        request: Request<DeleteMailKeyRequest>,
    ) -> Result<Response<DeleteMailKeyResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }

    async fn list_mail_keys(
        &self,
        request: Request<ListMailKeysRequest>,
    ) -> Result<Response<ListMailKeysResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let keys = self
            .db
            .read(async |connection| {
                let keys: Vec<Key> = sqlx::query_as(
                    "select domain, selector, private_key as pem, created_at from mail_key
                 where account_id = $1 order by domain limit $2",
                )
                .bind(context.account_id())
                .bind(MAX_LISTED)
                .fetch_all(&mut *connection)
                .await
                .map_err(Error::from)?;
                Ok::<_, Error>(keys)
            })
            .await?;
        let keys = keys.iter().map(Key::message).collect::<Result<_, _>>()?;
        Ok(Response::new(ListMailKeysResponse { keys }))
    }
}

/// The value of the TXT record that goes with a private key.
pub fn key_record(private_key: &str) -> Result<String, Error> {
    let signer = Signer::new(private_key).map_err(|error| Error::Internal(format!("a mail key {error}")))?;
    Ok(signer.record())
}

async fn put(tx: &mut Tx<'_>, input: &PutMailKeyRequest) -> Result<PutMailKeyResponse, Error> {
    Ok(PutMailKeyResponse { key: Some(put_key(tx, input).await?) })
}

/// Stores the key of a domain in this service, as the rpc does.
pub async fn put_key(tx: &mut Tx<'_>, input: &PutMailKeyRequest) -> Result<MailKey, Error> {
    let key = Key {
        domain: input.domain.to_ascii_lowercase(),
        selector: input.selector.to_ascii_lowercase(),
        pem: input.private_key.trim().to_owned(),
        created_at: tx.now(),
    };
    check(&key, &mut tx.faults);
    tx.valid()?;
    let (account, message) = (tx.account(), key.message()?);
    sqlx::query(
        "insert into mail_key (account_id, domain, selector, private_key, created_at) values ($1, $2, $3, $4, $5)
         on conflict (account_id, domain) do update
            set selector = excluded.selector, private_key = excluded.private_key, created_at = excluded.created_at",
    )
    .bind(account)
    .bind(&key.domain)
    .bind(&key.selector)
    .bind(&key.pem)
    .bind(key.created_at)
    .execute(tx.db())
    .await?;
    tx.changed("mail_key", &key.domain, &message);
    Ok(message)
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteMailKeyRequest) -> Result<DeleteMailKeyResponse, Error> {
    tx.valid()?;
    delete_key(tx, &input.domain).await?;
    Ok(DeleteMailKeyResponse {})
}

/// Deletes the key of a domain in this service, as the rpc does.
pub async fn delete_key(tx: &mut Tx<'_>, domain: &str) -> Result<(), Error> {
    let (account, domain) = (tx.account(), domain.to_ascii_lowercase());
    let deleted = sqlx::query("delete from mail_key where account_id = $1 and domain = $2")
        .bind(account)
        .bind(&domain)
        .execute(tx.db())
        .await?;
    if deleted.rows_affected() > 0 {
        tx.removed("mail_key", domain);
    }
    Ok(())
}

/// Empty fields are skipped, because they have a fault already.
fn check(key: &Key, faults: &mut Faults) {
    let names = |text: &str| text.split('.').all(is_label);
    let is_domain = key.domain.contains('.') && key.domain.len() <= 253 && names(&key.domain);
    if !key.domain.is_empty() && !is_domain {
        let detail = "domain must be a domain such as example.com, international names in their xn-- form";
        faults.add(&At::ROOT.name("domain"), Fault::BadFormat, detail);
    }
    if !key.selector.is_empty() && !names(&key.selector) {
        let detail = "selector must be made of letters, digits and hyphens, for example mail2026";
        faults.add(&At::ROOT.name("selector"), Fault::BadFormat, detail);
    }
    if !key.pem.is_empty()
        && let Err(detail) = Signer::new(&key.pem)
    {
        faults.add(&At::ROOT.name("private_key"), Fault::BadFormat, format!("private_key {detail}"));
    }
}

fn is_label(label: &str) -> bool {
    let fits = (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-');
    fits && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}
