//! `InvoiceService`, `QuoteService` and `WorkorderService`: one desk for all three, which takes requests apart and puts
//! answers together.

mod invoices;
mod listing;
mod quotes;
mod workorders;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_data::{Db, Tx};
use chassis_rpc::{Call, Context};
use chassis_work::mail::Mailer;
use proto::billing::{
    CreateDocumentRequest, CreateDocumentResponse, DeleteDocumentRequest, DeleteDocumentResponse, Document,
    DocumentPdf, FinalizeDocumentRequest, FinalizeDocumentResponse, GenerationMode, GetDocumentPdfRequest,
    GetDocumentPdfResponse, GetDocumentRequest, GetDocumentResponse, ListDocumentsRequest,
    ListDocumentsResponse, SendDocumentRequest, SendDocumentResponse, UpdateDocumentRequest,
    UpdateDocumentResponse,
};
use proto::relations::Relation;
use tonic::{Request, Response, Status};

use super::operations::{self, Known, New};
use super::store::{self, Full};
use super::{Kind, Links, answer};
use crate::Error;
use crate::clients::Clients;
use crate::press::Press;

/// What is left of the caller's time for the answer, when a PDF takes long.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// Serves the documents of one kind.
#[derive(Clone)]
pub struct Desk {
    pub kind: Kind,
    pub shared: Arc<Shared>,
}

/// What all kinds have in common.
pub struct Shared {
    pub db: Db,
    pub clients: Clients,
    pub links: Links,
    pub press: Press,
    pub post: Mailer,
}

impl Desk {
    async fn list(
        &self,
        request: Request<ListDocumentsRequest>,
    ) -> Result<Response<ListDocumentsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let (wanted, page) = listing::wanted(&context, input);
        let (items, meta) = self
            .shared
            .db
            .read(async |connection| {
                store::list(connection, context.account_id(), self.kind, &wanted, page).await
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
        let client = self.shared.clients.named(&context, &given.client_id, &given.client_external_id).await?;
        let new = New { kind: self.kind, client, links: self.shared.links.clone(), origin: None };
        let mut response = self.shared.db.write_with(call, new, create).await?;
        self.print(&context, &mut response, |answer| &mut answer.data).await;
        Ok(response)
    }

    async fn get(
        &self,
        request: Request<GetDocumentRequest>,
    ) -> Result<Response<GetDocumentResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let full = self.find(&context, &input.id).await?;
        let data = answer::document(context.account_id(), &self.shared.links, &full);
        Ok(Response::new(GetDocumentResponse { data: Some(data) }))
    }

    async fn update(
        &self,
        request: Request<UpdateDocumentRequest>,
    ) -> Result<Response<UpdateDocumentResponse>, Status> {
        self.shared.db.write_with(Call::open(request)?, self.known(None), update).await
    }

    async fn delete(
        &self,
        request: Request<DeleteDocumentRequest>,
    ) -> Result<Response<DeleteDocumentResponse>, Status> {
        self.shared.db.write_with(Call::open(request)?, self.known(None), delete).await
    }

    async fn finalize(
        &self,
        request: Request<FinalizeDocumentRequest>,
    ) -> Result<Response<FinalizeDocumentResponse>, Status> {
        let call = Call::open(request)?;
        let context = call.context.clone();
        let client = self.client_of_draft(&context, &call.input.id).await?;
        let mut response = self.shared.db.write_with(call, self.known(client), finalize).await?;
        self.print(&context, &mut response, |answer| &mut answer.data).await;
        Ok(response)
    }

    async fn send(
        &self,
        request: Request<SendDocumentRequest>,
    ) -> Result<Response<SendDocumentResponse>, Status> {
        let call = Call::open(request)?;
        let client = self.client_of_draft(&call.context, &call.input.id).await?;
        self.shared.db.write_with(call, (self.known(client), self.shared.post.clone()), send).await
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

    /// The client of a document that is still a draft, which needs it to become final. A document never changes its
    /// client, and a final one stays final, so this can be asked before the transaction.
    async fn client_of_draft(&self, context: &Context, id: &str) -> Result<Option<Relation>, Error> {
        let Some(id) = chassis_base::id::parse(id) else { return Ok(None) };
        let state = self
            .shared
            .db
            .read(async |connection| store::find_state(connection, context.account_id(), self.kind, id).await)
            .await?;
        match state {
            Some((false, Some(client))) => {
                self.shared.clients.get(context.account(), client, context.deadline).await
            }
            _ => Ok(None),
        }
    }

    /// Makes the PDF of a document that has just become final, after the commit and outside any transaction, and keeps
    /// what became of it: with the document, in this answer, and in the answer that repeats of the call get. Should the
    /// process end before that, a repeat comes here again. Whatever fails here, and however long it takes, the document
    /// is there: the answer says so, and the PDF is made when somebody asks for it.
    async fn print<T: prost::Message>(
        &self,
        context: &Context,
        response: &mut Response<T>,
        document: fn(&mut T) -> &mut Option<Document>,
    ) {
        let left = context.deadline.saturating_duration_since(Instant::now()).saturating_sub(ANSWER_TIME);
        match tokio::time::timeout(left, Box::pin(self.try_print(context, response, document))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %chassis_base::Error::from(error), "what became of a PDF is not kept");
            }
            Err(_) => tracing::warn!("there was no time left to make a PDF"),
        }
    }

    async fn try_print<T: prost::Message>(
        &self,
        context: &Context,
        response: &mut Response<T>,
        document: fn(&mut T) -> &mut Option<Document>,
    ) -> Result<(), Error> {
        let Some(document) = document(response.get_mut()).as_mut().filter(|document| wants_pdf(document))
        else {
            return Ok(());
        };
        let mut full = self.find(context, &document.id).await?;
        let record = &mut full.record;
        let (id, version) = (record.id, record.content_version);
        let error = match self.shared.press.pdf(context.account(), &full).await {
            Ok(_) => "",
            Err(error) => {
                tracing::error!(error = %chassis_base::Error::from(error), document = %id, "a PDF could not be made");
                PDF_FAILED
            }
        };
        full.record.pdf_version = error.is_empty().then_some(version);
        error.clone_into(&mut full.record.pdf_error);
        *document = answer::document(context.account_id(), &self.shared.links, &full);
        let made = Printed { id, version: full.record.pdf_version, error };
        Ok(self.shared.db.amend(context, &made, response.get_ref(), note_pdf).await?)
    }

    /// What an operation on an existing document needs to know.
    fn known(&self, client: Option<Relation>) -> Known {
        Known { kind: self.kind, client, links: self.shared.links.clone() }
    }
}

async fn create(
    tx: &mut Tx<'_>,
    (input, new): &(CreateDocumentRequest, New),
) -> Result<CreateDocumentResponse, Error> {
    let given = input.document.clone().unwrap_or_default();
    Ok(CreateDocumentResponse { data: Some(operations::create(tx, new, &given).await?) })
}

async fn update(
    tx: &mut Tx<'_>,
    (input, known): &(UpdateDocumentRequest, Known),
) -> Result<UpdateDocumentResponse, Error> {
    let given = input.document.clone().unwrap_or_default();
    let data = operations::patch(tx, known, &input.id, &given, input.update_mask.as_ref()).await?;
    Ok(UpdateDocumentResponse { data: Some(data) })
}

async fn delete(
    tx: &mut Tx<'_>,
    (input, known): &(DeleteDocumentRequest, Known),
) -> Result<DeleteDocumentResponse, Error> {
    Ok(DeleteDocumentResponse { data: Some(operations::delete(tx, known, &input.id).await?) })
}

async fn finalize(
    tx: &mut Tx<'_>,
    (input, known): &(FinalizeDocumentRequest, Known),
) -> Result<FinalizeDocumentResponse, Error> {
    Ok(FinalizeDocumentResponse { data: Some(operations::finalize(tx, known, &input.id).await?) })
}

async fn send(
    tx: &mut Tx<'_>,
    (input, with): &(SendDocumentRequest, (Known, Mailer)),
) -> Result<SendDocumentResponse, Error> {
    let mail = input.mail.clone().unwrap_or_default();
    Ok(SendDocumentResponse { data: Some(operations::send(tx, with, &input.id, &mail).await?) })
}

/// What became of a PDF.
struct Printed {
    id: uuid::Uuid,
    version: Option<i64>,
    error: &'static str,
}

async fn note_pdf(tx: &mut Tx<'_>, made: &Printed) -> Result<(), Error> {
    let account = tx.account();
    tx.unaudited("whether its PDF is there is no change of a document");
    store::note_pdf(tx.db(), account, made.id, made.version, made.error).await
}

const PDF_FAILED: &str = "The PDF could not be made now. It is made when pdf_url is opened.";

/// Whether a document has just become final and its PDF is still to be made.
fn wants_pdf(document: &Document) -> bool {
    let made = document.pdf.as_ref().is_some_and(|pdf| pdf.status != "none");
    document.generation_mode() == GenerationMode::Final && !made
}
