//! `SubscriptionService`: converts requests and answers.

use std::sync::Arc;

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_data::Tx;
use chassis_data::list::Selection;
use chassis_rpc::{Call, Context};
use proto::billing::subscription_service_server::SubscriptionService;
use proto::billing::{
    ActivateSubscriptionRequest, ActivateSubscriptionResponse, CreateSubscriptionRequest,
    CreateSubscriptionResponse, DeactivateSubscriptionRequest, DeactivateSubscriptionResponse,
    GetSubscriptionRequest, GetSubscriptionResponse, ListSubscriptionInvoicesRequest,
    ListSubscriptionInvoicesResponse, ListSubscriptionsRequest, ListSubscriptionsResponse,
    SubscriptionStatus, UpdateSubscriptionRequest, UpdateSubscriptionResponse,
};
use tonic::{Request, Response, Status};

use super::operations::{self, NOT_FOUND};
use super::rules::calendar::Term;
use super::rules::{plan, terms};
use super::store;
use crate::clients::ClientLookup;
use crate::document::shared::Shared;
use crate::document::store::Range;
use crate::document::{self, Kind};
use crate::error::Error;

pub(crate) struct SubscriptionRpc {
    pub shared: Arc<Shared>,
}

#[tonic::async_trait]
impl SubscriptionService for SubscriptionRpc {
    async fn list_subscriptions(
        &self,
        request: Request<ListSubscriptionsRequest>,
    ) -> Result<Response<ListSubscriptionsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let filter = filter(&context, input);
        let (records, meta) = self
            .shared
            .db
            .read(async |connection| store::list(connection, context.account_id(), &filter, page).await)
            .await?;
        let data = records.iter().map(Into::into).collect();
        Ok(Response::new(ListSubscriptionsResponse { data, meta: Some(meta) }))
    }

    async fn create_subscription(
        &self,
        request: Request<CreateSubscriptionRequest>,
    ) -> Result<Response<CreateSubscriptionResponse>, Status> {
        let call = Call::open(request)?;
        let given = call.input.subscription.clone().unwrap_or_default();
        let (by_id, by_reference) = (&given.client_id, &given.client_external_id);
        let client = self.shared.clients.resolve(&call.context, by_id, by_reference).await?;
        self.shared.db.write_with(call, client, create).await
    }

    async fn get_subscription(
        &self,
        request: Request<GetSubscriptionRequest>,
    ) -> Result<Response<GetSubscriptionResponse>, Status> {
        // Without `valid`: the id is the only field, and one of another form is not found.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let found = self
            .shared
            .db
            .read(async |connection| store::find(connection, context.account_id(), id).await)
            .await?;
        let data = (&found.ok_or(NOT_FOUND)?).into();
        Ok(Response::new(GetSubscriptionResponse { data: Some(data) }))
    }

    async fn update_subscription(
        &self,
        request: Request<UpdateSubscriptionRequest>,
    ) -> Result<Response<UpdateSubscriptionResponse>, Status> {
        self.shared.db.write(Call::open(request)?, update).await
    }

    async fn activate_subscription(
        &self,
        request: Request<ActivateSubscriptionRequest>,
    ) -> Result<Response<ActivateSubscriptionResponse>, Status> {
        self.shared.db.write(Call::open(request)?, activate).await
    }

    async fn deactivate_subscription(
        &self,
        request: Request<DeactivateSubscriptionRequest>,
    ) -> Result<Response<DeactivateSubscriptionResponse>, Status> {
        self.shared.db.write(Call::open(request)?, deactivate).await
    }

    async fn list_subscription_invoices(
        &self,
        request: Request<ListSubscriptionInvoicesRequest>,
    ) -> Result<Response<ListSubscriptionInvoicesResponse>, Status> {
        let mut call = Call::open(request)?;
        id::ignore_malformed(&mut call.faults);
        let (context, input) = call.valid()?;
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let account = context.account_id();
        let of_subscription = document::store::Filter {
            selection: Selection::new(context.account(), &input),
            subscription: Some(id),
            payment_status: input.payment_status.clone(),
            invoice_date: Range { from: input.date_from.parse().ok(), to: input.date_to.parse().ok() },
            ..document::store::Filter::default()
        };
        let page = Page::new(input.page, input.per_page);
        let (items, meta) = self
            .shared
            .db
            .read(async |connection| {
                if !store::exists(connection, account, id).await? {
                    return Err(NOT_FOUND);
                }
                document::store::list(connection, account, Kind::Invoice, &of_subscription, page).await
            })
            .await?;
        let data = items.into_iter().map(|item| item.0).collect();
        Ok(Response::new(ListSubscriptionInvoicesResponse { data, meta: Some(meta) }))
    }
}

/// The filter of a list request.
fn filter(context: &Context, input: ListSubscriptionsRequest) -> store::Filter {
    let status = match input.status() {
        SubscriptionStatus::Unspecified => None,
        SubscriptionStatus::Draft => Some(plan::Status::Draft),
        SubscriptionStatus::Active => Some(plan::Status::Active),
        SubscriptionStatus::Ended => Some(plan::Status::Ended),
    };
    store::Filter {
        selection: Selection::new(context.account(), &input),
        client: id::filter(&input.client_id),
        term: Term::ALL.into_iter().find(|term| terms::to_message(*term) == input.term()),
        number: input.number,
        status,
        start_from: input.start_from.parse().ok(),
        start_to: input.start_to.parse().ok(),
        search: input.search.trim().to_owned(),
    }
}

async fn create(
    tx: &mut Tx<'_>,
    input: &CreateSubscriptionRequest,
    client: &ClientLookup,
) -> Result<CreateSubscriptionResponse, Error> {
    let given = input.subscription.clone().unwrap_or_default();
    Ok(CreateSubscriptionResponse { data: Some(operations::create(tx, client, &given).await?) })
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateSubscriptionRequest,
) -> Result<UpdateSubscriptionResponse, Error> {
    let given = input.subscription.clone().unwrap_or_default();
    let data = operations::patch(tx, &input.id, &given, input.update_mask.as_ref()).await?;
    Ok(UpdateSubscriptionResponse { data: Some(data) })
}

async fn activate(
    tx: &mut Tx<'_>,
    input: &ActivateSubscriptionRequest,
) -> Result<ActivateSubscriptionResponse, Error> {
    Ok(ActivateSubscriptionResponse { data: Some(operations::activate(tx, &input.id).await?) })
}

async fn deactivate(
    tx: &mut Tx<'_>,
    input: &DeactivateSubscriptionRequest,
) -> Result<DeactivateSubscriptionResponse, Error> {
    let given = input.deactivation.clone().unwrap_or_default();
    Ok(DeactivateSubscriptionResponse { data: Some(operations::deactivate(tx, &input.id, &given).await?) })
}
