//! `DirectDebitService`: takes requests apart, has the provider called between transactions, and puts answers together.

use std::sync::Arc;

use chassis_data::Tx;
use chassis_rpc::{Call, Context};
use chrono::TimeDelta;
use proto::api::Problem;
use proto::billing::direct_debit_service_server::DirectDebitService;
use proto::billing::{
    ActivationStatus, CollectInvoiceRequest, CollectInvoiceResponse, GetMandateRequest, GetMandateResponse,
    Mandate, StartVerificationRequest, StartVerificationResponse, SubscriptionActivation,
};
use proto::relations::Relation;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::answer::{self, Known};
use super::look::look;
use super::operations::{self, Asked};
use super::{rules, store};
use crate::Error;
use crate::online::{self, By, Purpose, Till, wish};
use crate::subscription::operations::{Activation, activate as activate_for};

const WRITE: &str = "relations.write";
/// A mandate that was looked at within this time is believed in.
const MAX_AGE: TimeDelta = TimeDelta::minutes(5);

pub struct DirectDebit {
    pub till: Arc<Till>,
}

#[tonic::async_trait]
impl DirectDebitService for DirectDebit {
    async fn start_verification(
        &self,
        request: Request<StartVerificationRequest>,
    ) -> Result<Response<StartVerificationResponse>, Status> {
        let call = Call::open(request)?;
        let context = call.context.clone();
        let asked = Asked {
            provider: self.till.begins_with(context.account_id()).await?,
            client: self.client(&context, &call.input.id).await?,
            base: Arc::clone(&self.till.base),
        };
        let mut response = self.till.db.write_with(call, asked, operations::verify).await?;
        self.complete(&context, &mut response).await?;
        Ok(response)
    }

    async fn get_mandate(
        &self,
        request: Request<GetMandateRequest>,
    ) -> Result<Response<GetMandateResponse>, Status> {
        let mut call = Call::open(request)?;
        chassis_base::id::ignore_malformed(&mut call.faults);
        let (context, input) = call.valid()?;
        let names_one = !input.subscription_id.is_empty();
        if names_one && !context.identity.has_scope(WRITE) {
            let detail =
                format!("With subscription_id this needs the scope {WRITE} too. Make a key that has it.");
            return Err(chassis_base::Error::problem(Problem::InsufficientScope, detail).into());
        }
        let provider = self.till.provider_of(context.account_id()).await?;
        let Some(client) = self.client(&context, &input.id).await? else {
            let none = if names_one { ActivationStatus::NotAuthorized } else { ActivationStatus::Skipped };
            return Ok(answer_of(&Known::default(), provider, none));
        };
        let client = chassis_base::id::parse(&client.id).unwrap_or_default();
        if provider != online::NONE {
            self.refresh(&context, client, names_one).await?;
        }
        let known = self.known(&context, client, provider).await?;
        let activation = if !names_one {
            ActivationStatus::Skipped
        } else if rules::is_authorized(known.status()) {
            self.activate(&context, input, client).await?
        } else {
            ActivationStatus::NotAuthorized
        };
        Ok(answer_of(&known, provider, activation))
    }

    async fn collect_invoice(
        &self,
        request: Request<CollectInvoiceRequest>,
    ) -> Result<Response<CollectInvoiceResponse>, Status> {
        let call = Call::open(request)?;
        let provider = By(self.till.begins_with(call.context.account_id()).await?);
        self.till.db.write_with(call, provider, operations::collect_on_request).await
    }
}

impl DirectDebit {
    async fn client(&self, context: &Context, id: &str) -> Result<Option<Relation>, Error> {
        match chassis_base::id::parse(id) {
            Some(id) => self.till.clients.get(context.account(), id, context.deadline).await,
            None => Ok(None),
        }
    }

    /// Calls the provider, after the commit, and puts what it says into the answer: into this one, and into the one that
    /// repeats of the call get. Should the process end before that, a repeat comes here again.
    async fn complete(
        &self,
        context: &Context,
        response: &mut Response<StartVerificationResponse>,
    ) -> Result<(), Error> {
        let Some(data) = response.get_mut().data.as_mut().filter(|data| data.payment_url.is_empty()) else {
            return Ok(());
        };
        let id = data.meta.as_ref().and_then(|meta| chassis_base::id::parse(&meta.id)).unwrap_or_default();
        self.till.at_once(context, wish::Kind::Payment, id).await?;
        let found = self
            .till
            .db
            .read(async |connection| online::store::find(connection, context.account_id(), id).await)
            .await?;
        let payment = found.ok_or(Error::NotFound("verification"))?;
        match payment.status {
            online::Status::Wanted => return Err(online::away()),
            online::Status::Failed => return Err(Error::PaymentRefused(payment.failure)),
            _ => {}
        }
        // It may have ended before anyone could be told where to pay: then the page that says so.
        let urls = [payment.checkout_url, payment.return_url];
        data.payment_url = urls.into_iter().find(|url| !url.is_empty()).unwrap_or_default();
        data.external_id = payment.external_id;
        Ok(self.till.db.amend(context, &(), response.get_ref(), nothing).await?)
    }

    async fn known(&self, context: &Context, client: Uuid, provider: &str) -> Result<Known, Error> {
        let account = context.account_id();
        let mut connection = self.till.db.acquire().await?;
        let debtor = store::find(&mut connection, account, client, provider).await?;
        let verification = Purpose::Verification;
        let verification =
            online::store::find_of_client(&mut connection, account, client, provider, verification).await?;
        connection.done();
        Ok(Known { client_found: true, debtor, verification })
    }

    /// Asks the provider about what is open, and about a mandate that was not looked at lately. That it cannot be asked
    /// now is no reason not to say what is known, unless something `depends` on it.
    async fn refresh(&self, context: &Context, client: Uuid, depends: bool) -> Result<(), Error> {
        let (account, provider) = (context.account_id(), self.till.provider.name());
        let known = self.known(context, client, provider).await?;
        let waits = known.debtor.as_ref().is_some_and(super::Debtor::is_waiting);
        let verification = known.verification.filter(|payment| payment.status.is_open() || waits);
        let mut connection = self.till.db.acquire().await?;
        let collection = Purpose::Collection;
        let collection =
            online::store::find_of_client(&mut connection, account, client, provider, collection).await?;
        connection.done();
        let collection = collection.filter(|payment| payment.status.is_open());
        for payment in [verification, collection].into_iter().flatten() {
            self.till.ask_in_vain(context, payment.id).await;
        }
        let debtor = self
            .till
            .db
            .read(async |connection| store::find(connection, account, client, provider).await)
            .await?;
        let since = context.clock.now() - MAX_AGE;
        match debtor.filter(|debtor| debtor.is_stale(since)) {
            Some(debtor) => look(&self.till, context, &debtor)
                .await
                .or_else(|error| if depends { Err(error) } else { Ok(()) }),
            None => Ok(()),
        }
    }

    async fn activate(
        &self,
        context: &Context,
        input: GetMandateRequest,
        client: Uuid,
    ) -> Result<ActivationStatus, Status> {
        let call = Call { context: context.clone(), input, faults: proto::Faults::default() };
        let done = self.till.db.write_with(call, client, activate).await?.into_inner();
        let activation = done.data.and_then(|data| data.subscription_activation);
        Ok(activation.map(|activation| activation.status()).unwrap_or_default())
    }
}

fn answer_of(known: &Known, provider: &str, activation: ActivationStatus) -> Response<GetMandateResponse> {
    let data = answer::mandate(known, provider, activation);
    Response::new(GetMandateResponse { data: Some(data) })
}

async fn nothing(_: &mut Tx<'_>, (): &()) -> Result<(), Error> {
    Ok(())
}

async fn activate(
    tx: &mut Tx<'_>,
    (input, client): &(GetMandateRequest, Uuid),
) -> Result<GetMandateResponse, Error> {
    let status = match activate_for(tx, &client.to_string(), &input.subscription_id).await? {
        Activation::Activated => ActivationStatus::Activated,
        Activation::NotFound => ActivationStatus::NotFound,
        Activation::UpdateFailed => ActivationStatus::UpdateFailed,
    };
    let subscription_activation = Some(SubscriptionActivation { status: status.into() });
    Ok(GetMandateResponse { data: Some(Mandate { subscription_activation, ..Mandate::default() }) })
}
