//! `EmailDomainService`: parse, ask the DNS, decide, write, reply.

use chassis::call::Context;
use chassis::{Call, Db, Tx, mail};
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

use super::inspect::{Inspector, settle};
use super::{AUDITED, Record, UNKNOWN, audited, detail, key, rules, store};
use crate::Error;
use crate::address::OwnDomain;

#[derive(Clone)]
pub struct Domains {
    pub db: Db,
    pub inspector: Inspector,
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
        let mut connection = self.db.read().await?;
        let records = store::list(&mut connection, context.account_id(), verified).await?;
        connection.done();
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
        if receiving && self.inspector.own.name().is_none() {
            let detail = "type cannot be full: MAIL_DOMAIN is not set here, so no mail comes in";
            call.faults.add(&At::ROOT.name("type"), Fault::NotAllowed, detail);
        }
        let (host, domain, subdomain) =
            rules::host(&call.input.domain, &call.input.subdomain, &mut call.faults);
        // A key takes a while to make, so none is made in vain.
        let known = if call.faults.is_empty() { self.find(&call.context, &host).await? } else { None };
        let private_key = match (known, call.faults.is_empty()) {
            (Some(record), _) => record.private_key,
            (None, true) => key::generate().await?,
            (None, false) => String::new(),
        };
        let now = self.db.clock().now();
        let record = Record {
            host,
            domain,
            subdomain,
            receiving,
            verified: false,
            selector: selector(),
            private_key,
            found: Vec::new(),
            checked_at: None,
            check_at: now + rules::EVERY,
            missing_since: None,
            created_at: now,
            updated_at: now,
        };
        self.db.write_with(call, (record, self.inspector.own.clone()), add).await
    }

    async fn get_email_domain(
        &self,
        request: Request<GetEmailDomainRequest>,
    ) -> Result<Response<GetEmailDomainResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let (host, ..) = rules::host(&input.domain, &input.subdomain, &mut Faults::default());
        let record = self.find(&context, &host).await?.ok_or(UNKNOWN)?;
        Ok(Response::new(GetEmailDomainResponse { data: Some(detail(record, &self.inspector.own)?) }))
    }

    async fn verify_email_domain(
        &self,
        request: Request<VerifyEmailDomainRequest>,
    ) -> Result<Response<VerifyEmailDomainResponse>, Status> {
        let call = Call::open(request)?;
        let (host, ..) = rules::host(&call.input.domain, &call.input.subdomain, &mut Faults::default());
        let mut record = self.find(&call.context, &host).await?.ok_or(UNKNOWN)?;
        let was = record.verified;
        // Whoever asks wants to know what is there now.
        self.inspector.look(&mut record, TimeDelta::zero(), self.db.clock().now()).await?;
        let deadline = call.context.deadline;
        // The others first: a domain that says it is verified can be sent from everywhere.
        if record.verified {
            self.inspector.give_key(call.context.account(), deadline, &record).await?;
        } else if was {
            self.inspector.take_key(call.context.account(), deadline, &host).await?;
        }
        self.db.write_with(call, (record, self.inspector.own.clone()), verify).await
    }

    async fn delete_email_domain(
        &self,
        request: Request<DeleteEmailDomainRequest>,
    ) -> Result<Response<DeleteEmailDomainResponse>, Status> {
        let call = Call::open(request)?;
        let (host, ..) = rules::host(&call.input.domain, &call.input.subdomain, &mut Faults::default());
        if self.find(&call.context, &host).await?.is_some_and(|record| record.verified) {
            self.inspector.take_key(call.context.account(), call.context.deadline, &host).await?;
        }
        self.db.write(call, delete).await
    }
}

impl Domains {
    async fn find(&self, context: &Context, host: &str) -> Result<Option<Record>, Error> {
        let mut connection = self.db.read().await?;
        let found = store::find(&mut connection, context.account_id(), host).await?;
        connection.done();
        Ok(found)
    }
}

/// Another for every key, so that a domain can have several at once.
fn selector() -> String {
    format!("k{:08x}", rand::random::<u32>())
}

async fn add(
    tx: &mut Tx<'_>,
    (_, (new, own)): &(AddEmailDomainRequest, (Record, OwnDomain)),
) -> Result<AddEmailDomainResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    if store::count(tx.db(), account).await? >= store::MOST {
        let detail = format!("an account can have {} domains; remove one first", store::MOST);
        tx.faults.add(&At::ROOT.name("domain"), Fault::TooMany, detail);
    }
    tx.valid()?;
    if store::insert(tx.db(), account, new).await? {
        return Ok(AddEmailDomainResponse { data: Some(audited(tx, new.clone(), own)?) });
    }
    let mut record = store::find_locked(tx.db(), account, &new.host).await?.ok_or(UNKNOWN)?;
    if record.receiving != new.receiving {
        record.receiving = new.receiving;
        record.updated_at = now;
        if new.receiving {
            // Where its mail goes has to be looked at first.
            record.verified = false;
            record.missing_since = None;
        } else {
            store::delete_route(tx.db(), account, &record.host).await?;
        }
        store::update(tx.db(), account, &record).await?;
    }
    Ok(AddEmailDomainResponse { data: Some(audited(tx, record, own)?) })
}

async fn verify(
    tx: &mut Tx<'_>,
    (_, (seen, own)): &(VerifyEmailDomainRequest, (Record, OwnDomain)),
) -> Result<VerifyEmailDomainResponse, Error> {
    tx.valid()?;
    let record = settle(tx, seen).await?;
    Ok(VerifyEmailDomainResponse { data: Some(audited(tx, record, own)?) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteEmailDomainRequest,
) -> Result<DeleteEmailDomainResponse, Error> {
    tx.valid()?;
    let account = tx.account();
    let (host, ..) = rules::host(&input.domain, &input.subdomain, &mut Faults::default());
    store::find_locked(tx.db(), account, &host).await?.ok_or(UNKNOWN)?;
    store::delete(tx.db(), account, &host).await?;
    store::delete_route(tx.db(), account, &host).await?;
    mail::delete_key(tx, &host).await?;
    tx.removed(AUDITED, host);
    Ok(DeleteEmailDomainResponse {})
}
