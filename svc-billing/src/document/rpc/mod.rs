//! `InvoiceService`, `QuoteService` and `WorkorderService`. One type serves all three; each service only forwards to it.

mod filter;
mod invoices;
mod pdf;
mod quotes;
mod workorders;

use std::sync::Arc;

use chassis_base::paging::Page;
use chassis_data::{LazyTx, Tx};
use chassis_rpc::{Call, Context};
use proto::At;
use proto::billing::{
    CreateDocumentRequest, CreateDocumentResponse, DeleteDocumentRequest, DeleteDocumentResponse,
    DocumentPdf, FinalizeDocumentRequest, FinalizeDocumentResponse, GetDocumentPdfRequest,
    GetDocumentPdfResponse, GetDocumentRequest, GetDocumentResponse, ListDocumentsRequest,
    ListDocumentsResponse, SendDocumentRequest, SendDocumentResponse, UpdateDocumentRequest,
    UpdateDocumentResponse,
};
use proto::relations::Relation;
use tonic::{Request, Response, Status};

use super::issued::PrintedAhead;
use super::operations::{self, Ahead, New, OperationContext, SendContext};
use super::shared::Shared;
use super::store::{self, DraftState};
use super::{Full, Kind, message};
use crate::error::Error;

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
        let (renderer, printed) = (self.shared.renderer.clone(), PrintedAhead::default());
        let ahead = Ahead { renderer, printed: printed.clone() };
        let response = self.shared.db.write_lazily_with(call, (new, ahead), create).await?;
        let answered = response.get_ref().data.as_ref().map(|document| document.id.as_str());
        if let Some(document) = printed.take()
            && answered.is_some_and(|answered| answered != document.to_string())
        {
            // The call is a repeat, which has stored nothing.
            self.shared.renderer.discard(context.account_id(), document).await;
        }
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
        let mut call = Call::open(request)?;
        let named = call.input.mail.as_ref().map_or(&[][..], |mail| &mail.attachments);
        let (root, faults) = (At::ROOT, &mut call.faults);
        let at = root.name("mail");
        let files = self.shared.files.attach(&call.context, named, &at.name("attachments"), faults).await?;
        let client = self.client_of_draft(&call.context, &call.input.id).await?;
        let operation = self.context(client);
        let send_context = SendContext { operation, mailer: self.shared.mailer.clone(), files };
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

    fn context(&self, client: Option<Relation>) -> OperationContext {
        OperationContext { kind: self.kind, client, links: self.shared.links.clone() }
    }
}

async fn create(
    tx: &mut LazyTx<'_>,
    input: &CreateDocumentRequest,
    (new, ahead): &(New, Ahead),
) -> Result<CreateDocumentResponse, Error> {
    let given = input.document.clone().unwrap_or_default();
    Ok(CreateDocumentResponse { data: Some(operations::create(tx, new, ahead, &given).await?) })
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
