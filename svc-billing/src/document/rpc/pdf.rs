//! The PDF of a document that has just become final. It is made after the commit and outside any transaction, but before the
//! answer.

use std::time::{Duration, Instant};

use chassis_data::Tx;
use chassis_rpc::Context;
use proto::billing::{Document, GenerationMode};
use tonic::Response;

use super::DocumentService;
use crate::document::issued::Issued;
use crate::document::message;
use crate::document::operations::{self, NewPdf, PdfFailure};
use crate::error::Error;

/// The part of the caller's time that is reserved for the answer when a PDF takes long.
const RESPONSE_RESERVE: Duration = Duration::from_millis(500);

const PDF_FAILED: &str = "The PDF could not be made now. It is made when pdf_url is opened.";

/// Where an answer has the document.
type DocumentIn<T> = fn(&mut T) -> &mut Option<Document>;

impl DocumentService {
    /// Makes the PDF of the document in a response, if that has just become final. That there is one, or that it failed, is a
    /// change of the document. This answer, and the one that repeats of the call get, show the document after it. `issued` is
    /// what is known of the document; without it the document is read.
    ///
    /// When the process ends before that, a repeat of the call comes here again. When the PDF fails or takes too long, the
    /// call still succeeds, because the document exists: the PDF is made on the next request for it.
    pub(super) async fn render_pdf<T: prost::Message + Clone>(
        &self,
        context: &Context,
        response: &mut Response<T>,
        document: DocumentIn<T>,
        issued: Option<Issued>,
    ) {
        if context.dry_run {
            return;
        }
        let left =
            context.deadline.saturating_duration_since(Instant::now()).saturating_sub(RESPONSE_RESERVE);
        let rendering = Box::pin(self.try_render_pdf(context, response, document, issued));
        match tokio::time::timeout(left, rendering).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %chassis_base::Error::from(error), "the result of a PDF could not be stored");
            }
            Err(_) => tracing::warn!("a PDF was not ready before the deadline of the call"),
        }
    }

    async fn try_render_pdf<T: prost::Message + Clone>(
        &self,
        context: &Context,
        response: &mut Response<T>,
        document: DocumentIn<T>,
        issued: Option<Issued>,
    ) -> Result<(), Error> {
        let shown = document(response.get_mut()).as_ref().filter(|document| needs_pdf(document));
        let Some(id) = shown.map(|document| document.id.clone()) else { return Ok(()) };
        // The answer of a repeat is about another document than the one that this call made and undid.
        let issued = issued.filter(|issued| issued.full.record.id.to_string() == id);
        let made = match self.issue(context, &id, issued).await {
            Ok(new) => match self.answer_with_pdf(context, response, document, &new).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::debug!(%error, document = %id, "a document changed while its PDF was made");
                    self.shared
                        .renderer
                        .pdf(context.account(), &self.find(context, &id).await?)
                        .await
                        .map(|_| ())
                }
            },
            Err(error) => Err(error),
        };
        if let Err(error) = made {
            tracing::error!(error = %chassis_base::Error::from(error), document = %id, "a PDF could not be made");
            let document = chassis_base::id::parse(&id).ok_or(Error::NotFound(self.kind.name()))?;
            let failure = PdfFailure { document, error: PDF_FAILED, links: self.shared.links.clone() };
            self.shared.db.record(context.account(), &failure, operations::record_pdf_failure).await?;
        }
        let full = self.find(context, &id).await?;
        *document(response.get_mut()) =
            Some(message::document(context.account_id(), &self.shared.links, &full));
        if context.idempotency_key.is_some() {
            self.shared.db.amend(context, &(), response.get_ref(), keep_answer).await?;
        }
        Ok(())
    }

    /// Renders and stores the PDF.
    async fn issue(&self, context: &Context, id: &str, known: Option<Issued>) -> Result<NewPdf, Error> {
        let (account, renderer) = (context.account(), &self.shared.renderer);
        let issued = match known {
            Some(issued) => issued,
            None => renderer.as_issued(account, self.find(context, id).await?).await?,
        };
        let pdf = renderer.issue(account, &issued).await?;
        Ok(NewPdf::new(pdf, account.id, issued.full, self.shared.db.clock().now()))
    }

    /// Records the PDF together with the answer that shows it, in one transaction. Fails if the document has changed since
    /// it was read, and leaves the response as it was.
    async fn answer_with_pdf<T: prost::Message + Clone>(
        &self,
        context: &Context,
        response: &mut Response<T>,
        document: DocumentIn<T>,
        new: &NewPdf,
    ) -> Result<(), Error> {
        // Not in the response itself: time may be up before the transaction has ended.
        let mut answer = response.get_ref().clone();
        *document(&mut answer) = Some(new.shown.clone());
        self.shared.db.amend(context, new, &answer, operations::record_new_pdf).await?;
        *response.get_mut() = answer;
        Ok(())
    }
}

/// What is left of a call to do after its PDF was made: its answer is stored again.
async fn keep_answer(_: &mut Tx<'_>, (): &()) -> Result<(), Error> {
    Ok(())
}

/// Whether a document has just become final and its PDF is still to be made.
fn needs_pdf(document: &Document) -> bool {
    let made = document.pdf.as_ref().is_some_and(|pdf| pdf.status != "none");
    document.generation_mode() == GenerationMode::Final && !made
}
