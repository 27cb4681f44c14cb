//! The PDF of a draft that has just become final, and of a credit. If the renderer is free, it is made after the commit and
//! outside any transaction, but before the answer. Otherwise it is pending, and the worker makes it.

use std::time::{Duration, Instant};

use chassis_data::Tx;
use chassis_rpc::Context;
use chassis_rpc::call::REPLAY;
use proto::billing::Document;
use tonic::Response;

use super::DocumentService;
use crate::document::message;
use crate::document::operations::{self, NewPdf, PDF_FAILED, PdfFailure};
use crate::error::Error;
use crate::renderer::Slot;

/// The part of the caller's time that is reserved for the answer when a PDF takes long.
const RESPONSE_RESERVE: Duration = Duration::from_millis(500);

/// Where an answer has the document.
type DocumentIn<T> = fn(&mut T) -> &mut Option<Document>;

impl DocumentService {
    /// Makes the PDF of the document in a response, if that has just become final and the renderer is free. That there is one, or
    /// that it failed, is a change of the document. This answer, and the one that repeats of the call get, show the document
    /// after it.
    ///
    /// When the process ends before that, or it fails or takes too long, the call still succeeds, because the document exists:
    /// the worker makes the PDF.
    pub(super) async fn render_pdf<T: prost::Message + Clone>(
        &self,
        context: &Context,
        response: &mut Response<T>,
        document: DocumentIn<T>,
    ) {
        let is_repeat = response.metadata().contains_key(REPLAY);
        let shown = document(response.get_mut()).as_ref().filter(|document| is_pending(document));
        let Some(shown) = shown.filter(|_| !context.dry_run && !is_repeat) else { return };
        let (id, rows) = (shown.id.clone(), shown.rows.len());
        let Some(slot) = self.shared.renderer.reserve(context.account_id(), rows).await else { return };
        let left =
            context.deadline.saturating_duration_since(Instant::now()).saturating_sub(RESPONSE_RESERVE);
        let rendering = Box::pin(self.try_render_pdf(context, response, document, &id, slot));
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
        id: &str,
        slot: Slot,
    ) -> Result<(), Error> {
        let made = match self.issue(context, id, slot).await {
            Ok(new) => match self.answer_with_pdf(context, response, document, &new).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::debug!(%error, document = %id, "a document changed while its PDF was made");
                    let full = self.find(context, id).await?;
                    self.shared.renderer.pdf(context.account(), &full).await.map(|_| ())
                }
            },
            Err(error) => Err(error),
        };
        if let Err(error) = made {
            tracing::error!(error = %chassis_base::Error::from(error), document = %id, "a PDF could not be made");
            let document = chassis_base::id::parse(id).ok_or(Error::NotFound(self.kind.name()))?;
            let links = self.shared.links.clone();
            let failure = PdfFailure { document, error: PDF_FAILED, retry_at: None, links };
            self.shared.db.record(context.account(), &failure, operations::record_pdf_failure).await?;
        }
        let full = self.find(context, id).await?;
        *document(response.get_mut()) =
            Some(message::document(context.account_id(), &self.shared.links, &full));
        if context.idempotency_key.is_some() {
            self.shared.db.amend(context, &(), response.get_ref(), keep_answer).await?;
        }
        Ok(())
    }

    /// Renders and stores the PDF.
    async fn issue(&self, context: &Context, id: &str, slot: Slot) -> Result<NewPdf, Error> {
        let (account, renderer) = (context.account(), &self.shared.renderer);
        let issued = renderer.as_issued(account, self.find(context, id).await?).await?;
        let pdf = renderer.issue_reserved(slot, account, &issued).await?;
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

/// Whether a document is final and its PDF is still to be made.
fn is_pending(document: &Document) -> bool {
    document.pdf.as_ref().is_some_and(|pdf| pdf.status == message::PENDING)
}
