//! `OnlinePaymentService`: what providers and payers meet of a payment.

use std::sync::Arc;

use chassis::Call;
use chassis::link::unknown_link;
use proto::Check;
use proto::api::HttpBody;
use proto::billing::online_payment_service_server::OnlinePaymentService;
use proto::billing::{GetPaymentPageRequest, HearProviderRequest};
use tonic::{Request, Response, Status};

use super::perform::{Hand, Till};
use super::{OnlinePayment, page, store};
use crate::Error;
use crate::page::html_answer;

pub struct OnlinePayments {
    pub till: Arc<Till>,
}

#[tonic::async_trait]
impl OnlinePaymentService for OnlinePayments {
    async fn get_payment_page(
        &self,
        request: Request<GetPaymentPageRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let (call, payment) = self.find(request, |request| &request.token).await?;
        let payment = self.till.refreshed(&call.context, payment).await?;
        let mut connection = self.till.db.read().await?;
        let shown = page::page(&mut connection, call.context.account_id(), &payment).await?;
        connection.done();
        html_answer(shown)
    }

    async fn hear_provider(
        &self,
        request: Request<HearProviderRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let (call, payment) = self.find(request, |request| &request.token).await?;
        hear(&self.till, &Hand::Call(&call.context), payment.token).await?;
        Ok(Response::new(HttpBody {
            content_type: "text/plain; charset=utf-8".to_owned(),
            data: "Heard.\n".into(),
            ..HttpBody::default()
        }))
    }
}

impl OnlinePayments {
    /// The payment that the link of a request leads to.
    async fn find<R: Check + prost::Message>(
        &self,
        request: Request<R>,
        token: fn(&R) -> &String,
    ) -> Result<(Call<R>, OnlinePayment), Status> {
        let (call, link) = self.till.db.follow(Call::open(request)?, |input| token(input)).await?;
        let mut connection = self.till.db.read().await?;
        let found = store::find_by_token(&mut connection, call.context.account_id(), link.secret).await?;
        connection.done();
        Ok((call, found.ok_or_else(unknown_link)?))
    }
}

/// A provider says that something changed about the payment with this secret. What it says is not believed; it is asked.
/// Whether it answers or not, the question is written down by then.
pub async fn hear(till: &Till, hand: &Hand<'_>, secret: [u8; 16]) -> Result<(), Error> {
    let account = hand.account().id;
    let mut connection = till.db.read().await?;
    let found = store::find_by_token(&mut connection, account, secret).await?;
    connection.done();
    match found {
        Some(payment) => till.ask(hand, payment.id).await,
        None => Ok(()),
    }
}
