//! `EmailDomainService`: parse, call, answer. Calls to the DNS and to other services come before the transaction.

use chassis_data::{Db, Tx};
use chassis_rpc::{Call, Context};
use chrono::TimeDelta;
use proto::api::{Fault, ListMeta};
use proto::support::email_domain_service_server::EmailDomainService;
use proto::support::{
    AddEmailDomainRequest, AddEmailDomainResponse, DeleteEmailDomainRequest, DeleteEmailDomainResponse,
    EmailDomain, EmailDomainFilter, EmailDomainType, GetEmailDomainRequest, GetEmailDomainResponse,
    ListEmailDomainsRequest, ListEmailDomainsResponse, VerifyEmailDomainRequest, VerifyEmailDomainResponse,
};
use proto::{At, Faults};
use tonic::{Request, Response, Status};

use super::{NOT_FOUND, Record, Verifier, key, operations, rules, store};
use crate::address::OwnDomain;
use crate::error::Error;

#[derive(Clone)]
pub(crate) struct Domains {
    pub db: Db,
    pub verifier: Verifier,
}

#[tonic::async_trait]
impl EmailDomainService for Domains {
    async fn list_email_domains(
        &self,
        request: Request<ListEmailDomainsRequest>,
    ) -> Result<Response<ListEmailDomainsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let verified = match input.status() {
            EmailDomainFilter::Verified => Some(true),
            EmailDomainFilter::Pending => Some(false),
            EmailDomainFilter::All | EmailDomainFilter::Unspecified => None,
        };
        let records = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), verified).await)
            .await?;
        let data: Vec<EmailDomain> = records.into_iter().map(EmailDomain::from).collect();
        let total = i64::try_from(data.len()).unwrap_or(i64::MAX);
        Ok(Response::new(ListEmailDomainsResponse { data, meta: Some(ListMeta { total }) }))
    }

    async fn add_email_domain(
        &self,
        request: Request<AddEmailDomainRequest>,
    ) -> Result<Response<AddEmailDomainResponse>, Status> {
        let mut call = Call::open(request)?;
        let receiving = call.input.r#type() == EmailDomainType::Full;
        if receiving && self.verifier.own.name().is_none() {
            let detail = "type cannot be full: MAIL_DOMAIN is not set here, so no mail comes in";
            call.faults.add(&At::ROOT.name("type"), Fault::NotAllowed, detail);
        }
        let name = rules::host_name(&call.input.domain, &call.input.subdomain, &mut call.faults);
        // A request with faults is not stored, so no key is generated for it.
        let private_key = if call.faults.is_empty() {
            self.find_or_generate_key(&call.context, &name.host).await?
        } else {
            String::new()
        };
        let now = self.db.clock().now();
        let record = Record {
            version: 1,
            host: name.host,
            domain: name.domain,
            subdomain: name.subdomain,
            receiving,
            verified: false,
            selector: selector(),
            private_key,
            found: Vec::new(),
            checked_at: None,
            check_at: now + rules::CHECK_INTERVAL,
            missing_since: None,
            created_at: now,
            updated_at: now,
        };
        self.db.write_with(call, Write { record, own: self.verifier.own.clone() }, add).await
    }

    async fn get_email_domain(
        &self,
        request: Request<GetEmailDomainRequest>,
    ) -> Result<Response<GetEmailDomainResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let host = host(&input.domain, &input.subdomain);
        let record = self.find(&context, &host).await?.ok_or(NOT_FOUND)?;
        let detail = record.into_proto_detail(&self.verifier.own)?;
        Ok(Response::new(GetEmailDomainResponse { data: Some(detail) }))
    }

    async fn verify_email_domain(
        &self,
        request: Request<VerifyEmailDomainRequest>,
    ) -> Result<Response<VerifyEmailDomainResponse>, Status> {
        let call = Call::open(request)?;
        let host = host(&call.input.domain, &call.input.subdomain);
        let mut record = self.find(&call.context, &host).await?.ok_or(NOT_FOUND)?;
        let was_verified = record.verified;
        // No grace period: the caller asks for the current state of the DNS.
        self.verifier.check(&mut record, TimeDelta::zero(), self.db.clock().now()).await?;
        let account = call.context.account();
        let deadline = call.context.deadline;
        // The other services come first, so that every service can send from a domain that is shown as verified.
        if record.verified {
            self.verifier.distribute_key(account, deadline, &record).await?;
        } else if was_verified {
            self.verifier.revoke_key(account, deadline, &host).await?;
        }
        self.db.write_with(call, Write { record, own: self.verifier.own.clone() }, verify).await
    }

    async fn delete_email_domain(
        &self,
        request: Request<DeleteEmailDomainRequest>,
    ) -> Result<Response<DeleteEmailDomainResponse>, Status> {
        let call = Call::open(request)?;
        let host = host(&call.input.domain, &call.input.subdomain);
        // The other services come first: after a crash in between, a repeat still finds the domain and its key.
        if self.find(&call.context, &host).await?.is_some_and(|record| record.verified) {
            self.verifier.revoke_key(call.context.account(), call.context.deadline, &host).await?;
        }
        self.db.write(call, delete).await
    }
}

impl Domains {
    async fn find(&self, context: &Context, host: &str) -> Result<Option<Record>, Error> {
        let found = self
            .db
            .read(async |connection| store::find(connection, context.account_id(), host).await)
            .await?;
        Ok(found)
    }

    /// The key of a domain that the account has already, or a new one. Generating a key takes a while, so it happens
    /// before the transaction.
    async fn find_or_generate_key(&self, context: &Context, host: &str) -> Result<String, Error> {
        match self.find(context, host).await? {
            Some(record) => Ok(record.private_key),
            None => key::generate().await,
        }
    }
}

/// What a write needs besides its request.
struct Write {
    record: Record,
    own: OwnDomain,
}

/// The name of a domain that should exist. A malformed name is answered as not found.
fn host(domain: &str, subdomain: &str) -> String {
    rules::host_name(domain, subdomain, &mut Faults::default()).host
}

/// A different selector for every key, so that a domain can have several keys at the same time.
fn selector() -> String {
    format!("k{:08x}", rand::random::<u32>())
}

async fn add(
    tx: &mut Tx<'_>,
    _: &AddEmailDomainRequest,
    write: &Write,
) -> Result<AddEmailDomainResponse, Error> {
    let detail = operations::add(tx, &write.record, &write.own).await?;
    Ok(AddEmailDomainResponse { data: Some(detail) })
}

async fn verify(
    tx: &mut Tx<'_>,
    _: &VerifyEmailDomainRequest,
    write: &Write,
) -> Result<VerifyEmailDomainResponse, Error> {
    let detail = operations::apply_check(tx, &write.record, &write.own).await?;
    Ok(VerifyEmailDomainResponse { data: Some(detail) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteEmailDomainRequest,
) -> Result<DeleteEmailDomainResponse, Error> {
    operations::delete(tx, &host(&input.domain, &input.subdomain)).await?;
    Ok(DeleteEmailDomainResponse {})
}
