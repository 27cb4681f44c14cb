//! References to records of other services. Checks that the records a request names exist in its account, with one
//! call to each service, all in parallel. Background work lists the records of another service here too. A service that is
//! about to remove a record asks here who refers to it.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use chassis_base::time::from_timestamp;
use chassis_base::{Account, Error, id};
use chrono::{DateTime, Utc};
use futures::future::{BoxFuture, join_all, try_join_all};
use proto::api::reference_service_client::ReferenceServiceClient;
use proto::api::{
    CountReferrersRequest, CreatedReference, EndWithdrawalRequest, Fault, FindReferencesRequest,
    ListReferencesRequest, Problem, Reference, Referrers,
};
use proto::{At, Faults};
use uuid::Uuid;

use crate::call::{Call, Context};
use crate::outgoing::{Outgoing, lookup_failed};

/// How long background work waits for a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after the begin of a withdrawal the record may be removed. Less than a withdrawal lasts.
const MAX_REMOVAL: Duration = Duration::from_mins(1);
/// The most records in one list, as the proto file says. A shorter list is the last.
pub const MAX_LISTED: usize = 1000;

/// A kind of record of another service that a reference can point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    pub service: &'static str,
    pub name: &'static str,
}

/// A reference in a request.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    pub kind: Kind,
    /// The field of the request message that holds the id.
    pub at: &'a At<'a>,
    /// Empty when the request refers to nothing.
    pub id: &'a str,
}

/// A record of this service that others must not refer to any more. They refuse every write that would.
#[derive(Debug)]
pub struct Withdrawal {
    /// `None` in a dry run, which withdraws nothing.
    name: Option<Uuid>,
    began: Instant,
    /// What refers to the record. If there is any, it is not withdrawn.
    pub referrers: Vec<Referrers>,
}

impl Withdrawal {
    /// Fails if it is too late to remove the record: the withdrawal could end too soon.
    pub fn check(&self) -> Result<(), Error> {
        if self.began.elapsed() < MAX_REMOVAL {
            return Ok(());
        }
        Err(Error::problem(Problem::Unavailable, "It took too long. Nothing was done; repeat the request."))
    }
}

/// A record that exists: its service, its kind and its id.
type Found = (&'static str, String, Uuid);

/// Looks up references.
#[derive(Clone)]
pub struct References {
    outgoing: Outgoing,
}

impl References {
    pub fn new(outgoing: Outgoing) -> Self {
        Self { outgoing }
    }

    /// For a create: adds a fault to the call for each reference to a missing record. Call it before the write. A
    /// replay returns the stored response and ignores the faults.
    pub async fn check<R>(&self, call: &mut Call<R>, lookups: &[Lookup<'_>]) -> Result<(), Error> {
        call.faults.extend(self.missing(&call.context, lookups).await?);
        Ok(())
    }

    /// For an update: returns a fault for each reference to a missing record. The write adds them after it has found
    /// its own record, because NOT_FOUND takes precedence over faults. A service that does not answer fails the call
    /// with UNAVAILABLE.
    pub async fn missing(&self, context: &Context, lookups: &[Lookup<'_>]) -> Result<Faults, Error> {
        let mut requests: BTreeMap<&'static str, Vec<Reference>> = BTreeMap::new();
        for Lookup { kind, id, .. } in lookups {
            if let Some(id) = id::parse(id) {
                let reference = Reference { kind: kind.name.to_owned(), id: id.to_string() };
                requests.entry(kind.service).or_default().push(reference);
            }
        }
        let calls = requests.into_iter().map(|(service, requests)| self.find(context, service, requests));
        let found: HashSet<Found> = try_join_all(calls).await?.into_iter().flatten().collect();
        let mut faults = Faults::default();
        for Lookup { kind, at, id } in lookups.iter().filter(|lookup| !lookup.id.is_empty()) {
            let is_found = |id: Uuid| found.contains(&(kind.service, kind.name.to_owned(), id));
            if !id::parse(id).is_some_and(is_found) {
                let detail = format!("{} must be the id of a {} of this account", at.label(), kind.name);
                faults.add(at, Fault::UnknownReference, detail);
            }
        }
        Ok(faults)
    }

    /// For background work: up to [`MAX_LISTED`] records of a kind after the id `after`, ordered by id, each with the
    /// time of its creation.
    pub async fn list(
        &self,
        account: &Account,
        kind: Kind,
        after: Uuid,
    ) -> Result<Vec<(Uuid, DateTime<Utc>)>, Error> {
        let request = ListReferencesRequest { kind: kind.name.to_owned(), after: after.to_string() };
        let request = self.outgoing.request(kind.service, account, Instant::now() + LIST_TIMEOUT, request)?;
        let mut client = ReferenceServiceClient::new(self.outgoing.channel(kind.service)?);
        let listed = client.list_references(request).await;
        let listed =
            listed.map_err(|status| lookup_failed(kind.service, "Records", &status))?.into_inner().references;
        let read = |it: CreatedReference| Some((id::parse(&it.id)?, from_timestamp(&it.created_at?)?));
        Ok(listed.into_iter().filter_map(read).collect())
    }

    /// Before a record of this service is removed: asks these services what refers to it. If nothing does, it is withdrawn from
    /// them. If it stays after all, call [`end`](Self::end). In a dry run this only asks.
    pub fn withdraw<'a>(
        &'a self,
        context: &'a Context,
        services: &'a [&'static str],
        reference: Reference,
        only_live: bool,
    ) -> BoxFuture<'a, Result<Withdrawal, Error>> {
        Box::pin(async move {
            let name = (!context.dry_run).then(|| context.clock.id());
            let mut withdrawal = Withdrawal { name, began: Instant::now(), referrers: Vec::new() };
            let named = name.map(|name| name.to_string()).unwrap_or_default();
            let request = CountReferrersRequest { reference: Some(reference), only_live, withdrawal: named };
            let counts = services.iter().map(|service| self.count(context, service, request.clone()));
            // All of them have ended before the withdrawal is ended.
            let counted: Result<Vec<_>, Error> = join_all(counts).await.into_iter().collect();
            match counted {
                Ok(referrers) => withdrawal.referrers = referrers.into_iter().flatten().collect(),
                Err(error) => {
                    self.end(context, services, &withdrawal).await;
                    return Err(error);
                }
            }
            if !withdrawal.referrers.is_empty() {
                self.end(context, services, &withdrawal).await;
            }
            Ok(withdrawal)
        })
    }

    /// Ends a withdrawal as far as the services can be reached; it ends by itself soon.
    pub fn end<'a>(
        &'a self,
        context: &'a Context,
        services: &'a [&'static str],
        withdrawal: &'a Withdrawal,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(name) = withdrawal.name else { return };
            let ends = services.iter().map(|service| self.end_in(context, service, name));
            for ended in join_all(ends).await {
                if let Err(error) = ended {
                    tracing::warn!(%error, "withdrawal could not be ended; it ends by itself");
                }
            }
        })
    }

    async fn count(
        &self,
        context: &Context,
        service: &'static str,
        request: CountReferrersRequest,
    ) -> Result<Vec<Referrers>, Error> {
        let request = self.outgoing.request(service, context.account(), context.deadline, request)?;
        let mut client = ReferenceServiceClient::new(self.outgoing.channel(service)?);
        let counted = client.count_referrers(request).await;
        let counted = counted.map_err(|status| lookup_failed(service, "Records", &status))?;
        Ok(counted.into_inner().referrers)
    }

    async fn end_in(&self, context: &Context, service: &'static str, name: Uuid) -> Result<(), Error> {
        let request = EndWithdrawalRequest { withdrawal: name.to_string() };
        let request = self.outgoing.request(service, context.account(), context.deadline, request)?;
        let mut client = ReferenceServiceClient::new(self.outgoing.channel(service)?);
        let ended = client.end_withdrawal(request).await;
        ended.map(|_| ()).map_err(|status| lookup_failed(service, "Records", &status))
    }

    /// Boxed, so that the client of the mesh is not compiled in every crate that awaits this.
    fn find<'a>(
        &'a self,
        context: &'a Context,
        service: &'static str,
        references: Vec<Reference>,
    ) -> BoxFuture<'a, Result<Vec<Found>, Error>> {
        Box::pin(async move {
            let request = self.outgoing.request(
                service,
                context.account(),
                context.deadline,
                FindReferencesRequest { references },
            )?;
            let mut client = ReferenceServiceClient::new(self.outgoing.channel(service)?);
            let found = client.find_references(request).await;
            let found = found.map_err(|status| lookup_failed(service, "References", &status))?;
            let found = found.into_inner().references.into_iter();
            Ok(found.filter_map(|it| Some((service, it.kind, id::parse(&it.id)?))).collect())
        })
    }
}
