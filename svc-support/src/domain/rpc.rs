//! `EmailDomainService`: parse, ask the DNS, decide, write, reply.

use chassis::call::Context;
use chassis::outgoing::{self, Outgoing};
use chassis::{Call, Db, Tx, mail};
use futures::future::try_join_all;
use proto::api::mail_key_service_client::MailKeyServiceClient;
use proto::api::{DeleteMailKeyRequest, Fault, ListMeta, PutMailKeyRequest};
use proto::support::email_domain_service_server::EmailDomainService;
use proto::support::{
    AddEmailDomainRequest, AddEmailDomainResponse, DeleteEmailDomainRequest, DeleteEmailDomainResponse,
    EmailDomain, EmailDomainDetail, EmailDomainFilter, EmailDomainType, GetEmailDomainRequest,
    GetEmailDomainResponse, ListEmailDomainsRequest, ListEmailDomainsResponse, VerifyEmailDomainRequest,
    VerifyEmailDomainResponse,
};
use proto::{At, Faults};
use tonic::{Request, Response, Status};

use super::{Dns, Record, detail, key, rules, store};
use crate::Error;
use crate::address::OwnDomain;

const UNKNOWN: Error = Error::NotFound("email domain");
/// What the audit log calls it.
const AUDITED: &str = "email_domain";

#[derive(Clone)]
pub struct Domains {
    pub db: Db,
    pub own: OwnDomain,
    pub dns: Dns,
    pub outgoing: Outgoing,
    /// The other services that send mail.
    pub senders: Vec<String>,
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
        if receiving && self.own.name().is_none() {
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
            created_at: now,
            updated_at: now,
        };
        self.db.write_with(call, (record, self.own.clone()), add).await
    }

    async fn get_email_domain(
        &self,
        request: Request<GetEmailDomainRequest>,
    ) -> Result<Response<GetEmailDomainResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let (host, ..) = rules::host(&input.domain, &input.subdomain, &mut Faults::default());
        let record = self.find(&context, &host).await?.ok_or(UNKNOWN)?;
        Ok(Response::new(GetEmailDomainResponse { data: Some(detail(record, &self.own)?) }))
    }

    async fn verify_email_domain(
        &self,
        request: Request<VerifyEmailDomainRequest>,
    ) -> Result<Response<VerifyEmailDomainResponse>, Status> {
        let call = Call::open(request)?;
        let (host, ..) = rules::host(&call.input.domain, &call.input.subdomain, &mut Faults::default());
        let mut record = self.find(&call.context, &host).await?.ok_or(UNKNOWN)?;
        let was = record.verified;
        self.look(&mut record).await?;
        // The others first: a domain that says it is verified can be sent from everywhere.
        if record.verified {
            self.give_key(&call.context, &record).await?;
        } else if was {
            self.take_key(&call.context, &host).await?;
        }
        self.db.write_with(call, (record, self.own.clone()), verify).await
    }

    async fn delete_email_domain(
        &self,
        request: Request<DeleteEmailDomainRequest>,
    ) -> Result<Response<DeleteEmailDomainResponse>, Status> {
        let call = Call::open(request)?;
        let (host, ..) = rules::host(&call.input.domain, &call.input.subdomain, &mut Faults::default());
        if self.find(&call.context, &host).await?.is_some_and(|record| record.verified) {
            self.take_key(&call.context, &host).await?;
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

    /// Looks which of the wanted records the DNS has.
    async fn look(&self, record: &mut Record) -> Result<(), Error> {
        let wanted = rules::records(record, &mail::key_record(&record.private_key)?, &self.own);
        let (mut found, mut complete) = (Vec::new(), true);
        let values = try_join_all(wanted.iter().map(|wanted| self.dns.values(wanted))).await?;
        for (wanted, values) in wanted.iter().zip(&values) {
            if rules::is_met(wanted, values) {
                found.push(wanted.purpose.to_owned());
            } else {
                complete &= !wanted.required;
            }
        }
        record.found = found;
        record.verified = complete;
        Ok(())
    }

    async fn give_key(&self, context: &Context, record: &Record) -> Result<(), Error> {
        for sender in &self.senders {
            let request = self.outgoing.request(context.account(), context.deadline, put_request(record))?;
            MailKeyServiceClient::new(self.outgoing.channel(sender)?)
                .put_mail_key(request)
                .await
                .map_err(|status| outgoing::away(sender, "Mail keys", &status))?;
        }
        Ok(())
    }

    async fn take_key(&self, context: &Context, host: &str) -> Result<(), Error> {
        for sender in &self.senders {
            let asked = DeleteMailKeyRequest { domain: host.to_owned() };
            let request = self.outgoing.request(context.account(), context.deadline, asked)?;
            MailKeyServiceClient::new(self.outgoing.channel(sender)?)
                .delete_mail_key(request)
                .await
                .map_err(|status| outgoing::away(sender, "Mail keys", &status))?;
        }
        Ok(())
    }
}

fn put_request(record: &Record) -> PutMailKeyRequest {
    PutMailKeyRequest {
        domain: record.host.clone(),
        selector: record.selector.clone(),
        private_key: record.private_key.clone(),
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
        } else {
            store::delete_route(tx.db(), account, &record.host).await?;
        }
        store::update(tx.db(), account, &record).await?;
    }
    Ok(AddEmailDomainResponse { data: Some(audited(tx, record, own)?) })
}

/// A domain that was made or changed, as it is answered and as the audit log keeps it.
fn audited(tx: &mut Tx<'_>, record: Record, own: &OwnDomain) -> Result<EmailDomainDetail, Error> {
    let host = record.host.clone();
    let shown = detail(record, own)?;
    tx.changed(AUDITED, host, &shown);
    Ok(shown)
}

async fn verify(
    tx: &mut Tx<'_>,
    (_, (seen, own)): &(VerifyEmailDomainRequest, (Record, OwnDomain)),
) -> Result<VerifyEmailDomainResponse, Error> {
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let mut record = store::find_locked(tx.db(), account, &seen.host).await?.ok_or(UNKNOWN)?;
    // What the DNS was asked for must still be what is wanted.
    if record.receiving != seen.receiving {
        return Err(chassis::Error::Raced.into());
    }
    if record.verified != seen.verified {
        record.updated_at = now;
    }
    record.verified = seen.verified;
    record.found.clone_from(&seen.found);
    record.checked_at = Some(now);
    store::update(tx.db(), account, &record).await?;
    if record.verified {
        mail::put_key(tx, &put_request(&record)).await?;
    } else {
        mail::delete_key(tx, &record.host).await?;
    }
    if record.verified && record.receiving {
        let owner = store::put_route(tx.db(), account, &record.host, now).await?;
        if owner != account {
            return Err(Error::DomainTaken);
        }
    } else {
        store::delete_route(tx.db(), account, &record.host).await?;
    }
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
