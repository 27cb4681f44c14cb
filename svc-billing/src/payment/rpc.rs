//! `PaymentService`: converts requests and answers.

use chassis_base::paging::Page;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::api::WholeListMeta;
use proto::billing::payment_service_server::PaymentService;
use proto::billing::{
    CreatePaymentRequest, CreatePaymentResponse, DeletePaymentRequest, DeletePaymentResponse,
    ListPaymentsRequest, ListPaymentsResponse, UpdatePaymentRequest, UpdatePaymentResponse,
};
use tonic::{Request, Response, Status};

use super::operations;
use super::store::{self, Filter};
use crate::document::Links;
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
        let (status, kind) = (input.status(), input.r#type());
        let selection = Selection::new(context.account(), &input);
        let filter = Filter { selection, external_id: input.external_id, status, kind };
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
