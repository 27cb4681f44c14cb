//! `InvoiceService`, `QuoteService` and `WorkorderService`. One type serves all three; each service only forwards to it.

mod filter;
mod invoices;
mod quotes;
mod workorders;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_base::paging::Page;
use chassis_data::Tx;
use chassis_rpc::{Call, Context};
use proto::billing::{
    CreateDocumentRequest, CreateDocumentResponse, DeleteDocumentRequest, DeleteDocumentResponse, Document,
    DocumentPdf, FinalizeDocumentRequest, FinalizeDocumentResponse, GenerationMode, GetDocumentPdfRequest,
    GetDocumentPdfResponse, GetDocumentRequest, GetDocumentResponse, ListDocumentsRequest,
    ListDocumentsResponse, SendDocumentRequest, SendDocumentResponse, UpdateDocumentRequest,
    UpdateDocumentResponse,
};
use proto::relations::Relation;
use tonic::{Request, Response, Status};

use super::operations::{self, New, OperationContext, PdfFailure, SendContext};
use super::shared::Shared;
use super::store::{self, DraftState};
use super::{Full, Kind, message};
use crate::error::Error;

/// The part of the caller's time that is reserved for the answer when a PDF takes long.
const RESPONSE_RESERVE: Duration = Duration::from_millis(500);

/// Serves the documents of one kind.
#[derive(Clone)]
pub(crate) struct DocumentService {
    pub kind: Kind,
    pub shared: Arc<Shared>,
}

impl DocumentService {
    async fn list(
        &self,
        request: Request<ListDocumentsRequest>,
    ) -> Result<Response<ListDocumentsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let filter = filter::filter(&context, input);
        let (items, meta) = self
            .shared
            .db
            .read(async |connection| {
                store::list(connection, context.account_id(), self.kind, &filter, page).await
            })
            .await?;
        let data = items.into_iter().map(|item| item.0).collect();
        Ok(Response::new(ListDocumentsResponse { data, meta: Some(meta) }))
    }

    async fn create(
        &self,
        request: Request<CreateDocumentRequest>,
    ) -> Result<Response<CreateDocumentResponse>, Status> {
        let call = Call::open(request)?;
        let context = call.context.clone();
        let given = call.input.document.clone().unwrap_or_default();
        let client =
            self.shared.clients.resolve(&context, &given.client_id, &given.client_external_id).await?;
        let new = New { kind: self.kind, client, links: self.shared.links.clone(), billed_period: None };
        let mut response = self.shared.db.write_with(call, new, create).await?;
        self.render_pdf(&context, &mut response, |answer| &mut answer.data).await;
        Ok(response)
    }

    async fn get(
        &self,
        request: Request<GetDocumentRequest>,
    ) -> Result<Response<GetDocumentResponse>, Status> {
        // Not `valid`: an id of another form does not exist, and nothing else in the request can be invalid.
        let Call { context, input, .. } = Call::open(request)?;
        let full = self.find(&context, &input.id).await?;
        let data = message::document(context.account_id(), &self.shared.links, &full);
        Ok(Response::new(GetDocumentResponse { data: Some(data) }))
    }

    async fn update(
        &self,
        request: Request<UpdateDocumentRequest>,
    ) -> Result<Response<UpdateDocumentResponse>, Status> {
        self.shared.db.write_with(Call::open(request)?, self.context(None), update).await
    }

    async fn delete(
        &self,
        request: Request<DeleteDocumentRequest>,
    ) -> Result<Response<DeleteDocumentResponse>, Status> {
        self.shared.db.write_with(Call::open(request)?, self.context(None), delete).await
    }

    async fn finalize(
        &self,
        request: Request<FinalizeDocumentRequest>,
    ) -> Result<Response<FinalizeDocumentResponse>, Status> {
        let call = Call::open(request)?;
        let context = call.context.clone();
        let client = self.client_of_draft(&context, &call.input.id).await?;
        let mut response = self.shared.db.write_with(call, self.context(client), finalize).await?;
        self.render_pdf(&context, &mut response, |answer| &mut answer.data).await;
        Ok(response)
    }

    async fn send(
        &self,
        request: Request<SendDocumentRequest>,
    ) -> Result<Response<SendDocumentResponse>, Status> {
        let call = Call::open(request)?;
        let client = self.client_of_draft(&call.context, &call.input.id).await?;
        let operation = self.context(client);
        let send_context = SendContext { operation, mailer: self.shared.mailer.clone() };
        self.shared.db.write_with(call, send_context, send).await
    }

    async fn pdf(
        &self,
        request: Request<GetDocumentPdfRequest>,
    ) -> Result<Response<GetDocumentPdfResponse>, Status> {
        let Call { context, input, .. } = Call::open(request)?;
        let full = self.find(&context, &input.id).await?;
        let pdf_url = self.shared.links.pdf(context.account_id(), &full.record);
        let data = DocumentPdf { id: full.record.id.to_string(), pdf_url };
        Ok(Response::new(GetDocumentPdfResponse { data: Some(data) }))
    }

    async fn find(&self, context: &Context, id: &str) -> Result<Full, Error> {
        let id = chassis_base::id::parse(id).ok_or(Error::NotFound(self.kind.name()))?;
        let found = self
            .shared
            .db
            .read(async |connection| store::find(connection, context.account_id(), self.kind, id).await)
            .await?;
        found.ok_or(Error::NotFound(self.kind.name()))
    }

    /// The client of a draft, which needs it to become final. A document never changes its client, and a final one stays
    /// final, so this can be read before the transaction begins.
    async fn client_of_draft(&self, context: &Context, id: &str) -> Result<Option<Relation>, Error> {
        let Some(id) = chassis_base::id::parse(id) else { return Ok(None) };
        let state = self
            .shared
            .db
            .read(async |connection| store::find_state(connection, context.account_id(), self.kind, id).await)
            .await?;
        match state {
            Some(DraftState { is_final: false, client_id: Some(client) }) => {
                self.shared.clients.get(context.account(), client, context.deadline).await
            }
            _ => Ok(None),
        }
    }

    /// Makes the PDF of a document that has just become final, after the commit and outside any transaction. That there is
    /// one, or that it failed, is a change of the document. This answer, and the one that repeats of the call get, show the
    /// document after it.
    ///
    /// When the process ends before that, a repeat of the call comes here again. When the PDF fails or takes too long, the
    /// call still succeeds, because the document exists: the PDF is made on the next request for it.
    async fn render_pdf<T: prost::Message>(
        &self,
        context: &Context,
        response: &mut Response<T>,
        document: fn(&mut T) -> &mut Option<Document>,
    ) {
        if context.dry_run {
            return;
        }
        let left =
            context.deadline.saturating_duration_since(Instant::now()).saturating_sub(RESPONSE_RESERVE);
        match tokio::time::timeout(left, Box::pin(self.try_render_pdf(context, response, document))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %chassis_base::Error::from(error), "the result of a PDF could not be stored");
            }
            Err(_) => tracing::warn!("a PDF was not ready before the deadline of the call"),
        }
    }

    async fn try_render_pdf<T: prost::Message>(
        &self,
        context: &Context,
        response: &mut Response<T>,
        document: fn(&mut T) -> &mut Option<Document>,
    ) -> Result<(), Error> {
        let Some(document) = document(response.get_mut()).as_mut().filter(|document| needs_pdf(document))
        else {
            return Ok(());
        };
        let full = self.find(context, &document.id).await?;
        let id = full.record.id;
        if let Err(error) = self.shared.renderer.pdf(context.account(), &full).await {
            tracing::error!(error = %chassis_base::Error::from(error), document = %id, "a PDF could not be made");
            let failure = PdfFailure { document: id, error: PDF_FAILED, links: self.shared.links.clone() };
            self.shared.db.record(context.account(), &failure, operations::record_pdf_failure).await?;
        }
        let full = self.find(context, &document.id).await?;
        *document = message::document(context.account_id(), &self.shared.links, &full);
        if context.idempotency_key.is_some() {
            self.shared.db.amend(context, &(), response.get_ref(), keep_answer).await?;
        }
        Ok(())
    }

    fn context(&self, client: Option<Relation>) -> OperationContext {
        OperationContext { kind: self.kind, client, links: self.shared.links.clone() }
    }
}

async fn create(
    tx: &mut Tx<'_>,
    input: &CreateDocumentRequest,
    new: &New,
) -> Result<CreateDocumentResponse, Error> {
    let given = input.document.clone().unwrap_or_default();
    Ok(CreateDocumentResponse { data: Some(operations::create(tx, new, &given).await?) })
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateDocumentRequest,
    context: &OperationContext,
) -> Result<UpdateDocumentResponse, Error> {
    let given = input.document.clone().unwrap_or_default();
    let data = operations::patch(tx, context, &input.id, &given, input.update_mask.as_ref()).await?;
    Ok(UpdateDocumentResponse { data: Some(data) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteDocumentRequest,
    context: &OperationContext,
) -> Result<DeleteDocumentResponse, Error> {
    Ok(DeleteDocumentResponse { data: Some(operations::delete(tx, context, &input.id).await?) })
}

async fn finalize(
    tx: &mut Tx<'_>,
    input: &FinalizeDocumentRequest,
    context: &OperationContext,
) -> Result<FinalizeDocumentResponse, Error> {
    Ok(FinalizeDocumentResponse { data: Some(operations::finalize(tx, context, &input.id).await?) })
}

async fn send(
    tx: &mut Tx<'_>,
    input: &SendDocumentRequest,
    context: &SendContext,
) -> Result<SendDocumentResponse, Error> {
    let mail = input.mail.clone().unwrap_or_default();
    Ok(SendDocumentResponse { data: Some(operations::send(tx, context, &input.id, &mail).await?) })
}

/// What is left of a call to do after its PDF was made: its answer is stored again.
async fn keep_answer(_: &mut Tx<'_>, (): &()) -> Result<(), Error> {
    Ok(())
}

const PDF_FAILED: &str = "The PDF could not be made now. It is made when pdf_url is opened.";

/// Whether a document has just become final and its PDF is still to be made.
fn needs_pdf(document: &Document) -> bool {
    let made = document.pdf.as_ref().is_some_and(|pdf| pdf.status != "none");
    document.generation_mode() == GenerationMode::Final && !made
}
