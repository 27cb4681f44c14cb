//! `DocumentPageService`: pages, acceptance, payment and PDFs for whoever has the link.

use std::sync::Arc;

use chassis_data::Tx;
use chassis_rpc::call::{is_head_only, takes_stream};
use chassis_rpc::link::unknown_link;
use chassis_rpc::{Call, Context};
use chassis_work::files::HttpBodies;
use proto::Check;
use proto::api::HttpBody;
use proto::billing::document_page_service_server::DocumentPageService;
use proto::billing::{AcceptOnPageRequest, DownloadPdfRequest, GetDocumentPageRequest, PayOnPageRequest};
use render::text::file_name;
use tonic::{Request, Response, Status};

use crate::document::operations::{self, Family, OperationContext};
use crate::document::shared::Shared;
use crate::document::{Full, Kind, Links, Record, store};
use crate::error::Error;
use crate::online_payment::{self, OnlinePayment};
use crate::page::{Last, Pay, State, html_answer, page};
use crate::processor::{Checkout, NO_PROVIDER, PaymentProcessor};
use crate::sandbox;

pub(crate) struct Pages {
    pub shared: Arc<Shared>,
    pub processor: Arc<PaymentProcessor>,
}

#[tonic::async_trait]
impl DocumentPageService for Pages {
    type DownloadPdfStream = HttpBodies;

    async fn get_document_page(
        &self,
        request: Request<GetDocumentPageRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let is_viewed = !is_head_only(request.metadata());
        let (call, full) = self.find(request, |request| &request.token).await?;
        let account = call.context.account();
        let today = call.context.clock.today(account.timezone);
        let (full, pay) = self.payment_state(&call.context, full).await?;
        let state = State::of(&full.record, today, account.timezone).with(pay);
        let printed = self.shared.renderer.printed(account, &full).await?;
        let shown = page(&printed, &state, &path(&call.input.token))?;
        // Checked before the write, so that a page that is opened again on the same day costs no transaction.
        let record = full.record;
        let is_offer = record.kind == Kind::Quote && record.is_final;
        if is_viewed && is_offer && record.viewed_on.is_none_or(|day| day < today) {
            self.record_view(call, record).await;
        }
        html_answer(shown)
    }

    async fn pay_on_page(&self, request: Request<PayOnPageRequest>) -> Result<Response<HttpBody>, Status> {
        let (call, full) = self.find(request, |request| &request.token).await?;
        if full.record.kind != Kind::Invoice {
            return Err(unknown_link().into());
        }
        let (context, input) = (&call.context, &call.input);
        let page = self.shared.links.page(context.account_id(), &full.record);
        let checkout = Checkout { invoice: &full.record, page };
        let location = self.processor.checkout(context, input, checkout).await?;
        let location = location.unwrap_or_else(|| path(&input.token));
        Ok(Response::new(HttpBody { status: 303, location, ..HttpBody::default() }))
    }

    async fn accept_on_page(
        &self,
        request: Request<AcceptOnPageRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let (call, full) = self.find(request, |request| &request.token).await?;
        if full.record.kind != Kind::Quote {
            return Err(unknown_link().into());
        }
        let context = OperationContext { kind: Kind::Quote, client: None, links: self.shared.links.clone() };
        let quote = Quote { context, id: full.record.id.to_string() };
        self.shared.db.write_with(call, quote, accept).await
    }

    async fn download_pdf(
        &self,
        request: Request<DownloadPdfRequest>,
    ) -> Result<Response<HttpBodies>, Status> {
        let streamed = takes_stream(request.metadata());
        let (call, full) = self.find(request, |request| &request.token).await?;
        let reading = self.shared.renderer.open_pdf(call.context.account(), &full).await?;
        let name = file_name(&full.record.number);
        let head = HttpBody {
            content_type: "application/pdf".to_owned(),
            disposition: format!("inline; filename=\"{name}.pdf\""),
            cache_control: "private, no-cache".to_owned(),
            ..HttpBody::default()
        };
        reading.answer(head, streamed).await
    }
}

impl Pages {
    /// The state of paying an invoice online, and the invoice read after it: the provider is asked, and may report a
    /// payment that changes the invoice.
    async fn payment_state(&self, context: &Context, full: Full) -> Result<(Full, Pay), Status> {
        let provider = self.processor.provider_for(context.account_id()).await?;
        let closed = provider == NO_PROVIDER;
        let none = Pay { last: Last::Nothing, elsewhere: !closed && provider != sandbox::NAME, closed };
        let (account, id) = (context.account_id(), full.record.id);
        if full.record.kind != Kind::Invoice || !full.record.is_final {
            return Ok((full, none));
        }
        let latest = self
            .shared
            .db
            .read(async |connection| online_payment::store::find_latest(connection, account, id).await)
            .await?;
        // A payment that is open with a former provider does not count: the next attempt abandons it, if there can be one.
        let counts = |begun: &OnlinePayment| begun.provider == provider || !begun.status.is_open() || closed;
        let Some(before) = latest.filter(counts) else { return Ok((full, none)) };
        let status = before.status;
        let latest = self.processor.refreshed(context, before).await?;
        // Without a provider there is no further attempt, so only a payment that is being processed is shown.
        let last = Last::of(&latest);
        let pay = if closed && last != Last::Processing { none } else { Pay { last, ..none } };
        if latest.status == status {
            return Ok((full, pay));
        }
        let again = self
            .shared
            .db
            .read(async |connection| store::find(connection, account, Kind::Invoice, id).await)
            .await?;
        Ok((again.unwrap_or(full), pay))
    }

    /// The document that the link of a request leads to.
    async fn find<R: Check + prost::Message>(
        &self,
        request: Request<R>,
        token: fn(&R) -> &String,
    ) -> Result<(Call<R>, Full), Status> {
        let (call, link) = self.shared.db.follow(Call::open(request)?, |input| token(input)).await?;
        let found = self
            .shared
            .db
            .read(async |connection| {
                store::find_by_token(connection, call.context.account_id(), link.secret).await
            })
            .await?;
        Ok((call, found.ok_or_else(unknown_link)?))
    }

    /// Records that a quote was viewed. The page is shown even if that fails.
    async fn record_view(&self, call: Call<GetDocumentPageRequest>, record: Record) {
        let id = record.id;
        let viewed = Viewed { record, links: self.shared.links.clone() };
        let recorded: Result<Response<()>, Status> = self.shared.db.write_with(call, viewed, view).await;
        if let Err(status) = recorded {
            tracing::warn!(%status, quote = %id, "view of a quote could not be recorded");
        }
    }
}

/// A quote whose page was opened.
struct Viewed {
    record: Record,
    links: Links,
}

async fn view(tx: &mut Tx<'_>, _: &GetDocumentPageRequest, viewed: &Viewed) -> Result<(), Error> {
    operations::view(tx, &viewed.links, &viewed.record).await
}

/// The quote that a link leads to, with what accepting it needs.
struct Quote {
    context: OperationContext,
    id: String,
}

/// Accepts the quote if its page still offers it. The answer always redirects to the page, which shows the result.
async fn accept(
    tx: &mut Tx<'_>,
    input: &AcceptOnPageRequest,
    Quote { context, id }: &Quote,
) -> Result<HttpBody, Error> {
    let family = Family::lock(tx, &context.links, context.kind, id).await?.ok_or_else(unknown_link)?;
    let (today, zone) = (tx.today(), tx.settings().timezone);
    if State::of(family.target(), today, zone) == State::Offered {
        operations::accept(tx, context, id).await?;
    }
    Ok(HttpBody { status: 303, location: path(&input.token), ..HttpBody::default() })
}

/// The path of the page. The token was read as a link, so nothing in it needs an escape.
fn path(token: &str) -> String {
    format!("/documents/{token}")
}
