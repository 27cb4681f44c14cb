//! `PaymentService`: converts requests and answers.

use chassis_base::paging::Page;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::api::WholeListMeta;
use proto::billing::payment_service_server::PaymentService;
use proto::billing::{
    CreatePaymentRequest, CreatePaymentResponse, DeletePaymentRequest, DeletePaymentResponse,
    ListAllPaymentsRequest, ListAllPaymentsResponse, ListPaymentsRequest, ListPaymentsResponse,
    UpdatePaymentRequest, UpdatePaymentResponse,
};
use tonic::{Request, Response, Status};

use super::operations;
use super::store::{self, AllFilter, Filter};
use crate::document::Links;
use crate::document::store::Range;
use crate::error::Error;

/// The largest number of payments in one answer without paging.
const MAX_LISTED: i64 = 10_000;

pub(crate) struct PaymentRpc {
    pub db: Db,
    /// The links of invoices, which change with their payments.
    pub links: Links,
}

#[tonic::async_trait]
impl PaymentService for PaymentRpc {
    async fn list_payments(
        &self,
        request: Request<ListPaymentsRequest>,
    ) -> Result<Response<ListPaymentsResponse>, Status> {
        let mut call = Call::open(request)?;
        chassis_base::id::ignore_malformed(&mut call.faults);
        let (context, input) = call.valid()?;
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            status: input.status(),
            kind: input.r#type(),
            method: input.method(),
            date: Range { from: input.date_from.parse().ok(), to: input.date_to.parse().ok() },
            external_id: input.external_id,
        };
        let id = chassis_base::id::parse(&input.id).ok_or(Error::NotFound("invoice"))?;
        let page = match (input.page, input.per_page) {
            // Without per_page the list is not paged, and page is ignored like any unknown parameter.
            (_, None) => Page::whole(MAX_LISTED),
            (page, per_page) => Page::new(page, per_page),
        };
        let found = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), id, &filter, page).await)
            .await?;
        let (payments, meta) = found.ok_or(Error::NotFound("invoice"))?;
        let data: Vec<_> = payments.into_iter().map(Into::into).collect();
        let meta = Some(WholeListMeta { total: meta.total, cut: meta.cut });
        Ok(Response::new(ListPaymentsResponse { data, meta }))
    }

    async fn list_all_payments(
        &self,
        request: Request<ListAllPaymentsRequest>,
    ) -> Result<Response<ListAllPaymentsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let filter = AllFilter {
            common: Filter {
                selection: Selection::new(context.account(), &input),
                status: input.status(),
                kind: input.r#type(),
                method: input.method(),
                date: Range { from: input.date_from.parse().ok(), to: input.date_to.parse().ok() },
                external_id: input.external_id,
            },
            invoice: chassis_base::id::filter(&input.invoice_id),
            client: chassis_base::id::filter(&input.client_id),
            provider: input.provider,
            amount: Range { from: input.amount_from.parse().ok(), to: input.amount_to.parse().ok() },
        };
        let (payments, meta) = self
            .db
            .read(async |connection| store::list_all(connection, context.account_id(), &filter, page).await)
            .await?;
        let data = payments.into_iter().map(Into::into).collect();
        Ok(Response::new(ListAllPaymentsResponse { data, meta: Some(meta) }))
    }

    async fn create_payment(
        &self,
        request: Request<CreatePaymentRequest>,
    ) -> Result<Response<CreatePaymentResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.links.clone(), create).await
    }

    async fn update_payment(
        &self,
        request: Request<UpdatePaymentRequest>,
    ) -> Result<Response<UpdatePaymentResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.links.clone(), update).await
    }

    async fn delete_payment(
        &self,
        request: Request<DeletePaymentRequest>,
    ) -> Result<Response<DeletePaymentResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.links.clone(), delete).await
    }
}

async fn create(
    tx: &mut Tx<'_>,
    input: &CreatePaymentRequest,
    links: &Links,
) -> Result<CreatePaymentResponse, Error> {
    let given = input.payment.clone().unwrap_or_default();
    Ok(CreatePaymentResponse { data: Some(operations::create(tx, links, &input.id, &given).await?) })
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdatePaymentRequest,
    links: &Links,
) -> Result<UpdatePaymentResponse, Error> {
    let given = input.payment.clone().unwrap_or_default();
    let mask = input.update_mask.as_ref();
    let data = operations::update(tx, links, &input.id, &input.payment_id, &given, mask).await?;
    Ok(UpdatePaymentResponse { data: Some(data) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeletePaymentRequest,
    links: &Links,
) -> Result<DeletePaymentResponse, Error> {
    operations::delete(tx, links, &input.id, &input.payment_id).await?;
    Ok(DeletePaymentResponse {})
}
