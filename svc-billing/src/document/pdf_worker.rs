//! Makes the PDFs of final documents that were committed without one: those of subscriptions, and those that came when the
//! renderer was busy. One worker for all accounts. Accounts take turns, both here, with a batch each, and in the renderer.

use std::sync::Arc;

use chassis_base::Error as ChassisError;
use chassis_data::Tx;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next, backoff};
use chrono::TimeDelta;
use futures::future::join_all;
use uuid::Uuid;

use super::Full;
use super::operations::{PDF_FAILED, PdfFailure, StoredPdf, record_pdf_failure, record_stored_pdfs};
use super::shared::Shared;
use super::store::{self, PendingPdf};
use crate::error::Error;

/// The number of documents that one job makes and records together.
const BATCH: i64 = 20;
/// How many an account makes at the same time. The others of a batch do not wait in the renderer, so that the account's
/// requests have their places there.
const PARALLEL: usize = 4;
/// The pause of an account after the renderer or the storage was busy.
const BUSY_PAUSE: TimeDelta = TimeDelta::seconds(2);
const INITIAL_BACKOFF: TimeDelta = TimeDelta::minutes(1);
const MAX_BACKOFF: TimeDelta = TimeDelta::hours(6);

/// The worker that makes PDFs that are pending.
pub(crate) fn worker(shared: Arc<Shared>) -> Worker {
    let due = Due::new("billing.pdf_pending work", "true", "work.due_at");
    Worker::new("pdfs", due, move |job| {
        let shared = Arc::clone(&shared);
        async move { run(&job, &shared).await }
    })
}

async fn run(job: &Job, shared: &Shared) -> Result<Next, ChassisError> {
    let (account, now) = (job.account_id(), job.now());
    let find = async |connection: &mut _| {
        let due = store::list_pending_pdfs(connection, account, now, BATCH).await?;
        let ids: Vec<Uuid> = due.iter().map(|pending| pending.document_id).collect();
        Ok::<_, Error>((due, store::list_full(connection, account, &ids).await?))
    };
    let (due, documents) = job.db().read(find).await?;
    if due.is_empty() {
        return Ok(Next::WhenDue);
    }
    let (made, failed) = make_all(job, shared, documents).await;
    if !made.0.is_empty() {
        job.write(&made, record).await?;
    }
    let mut is_busy = false;
    for (document, error) in failed {
        if matches!(error, ChassisError::Peer(_)) {
            is_busy = true;
        } else {
            tracing::error!(%error, %document, "a PDF could not be made");
            job.write(&failure(job, shared, &due, document), record_pdf_failure).await?;
        }
    }
    if i64::try_from(due.len()) == Ok(BATCH) {
        let count = async |connection: &mut _| store::count_pending_pdfs(connection, account).await;
        let left = job.db().read(count).await?;
        tracing::info!(made = made.0.len(), left, "PDFs of final documents made");
    }
    Ok(if is_busy { Next::After(BUSY_PAUSE) } else { Next::Now })
}

/// Renders and stores the PDFs of these documents; those that succeeded, and those that failed.
async fn make_all(job: &Job, shared: &Shared, documents: Vec<Full>) -> (Made, Vec<(Uuid, ChassisError)>) {
    let (mut made, mut failed, mut rest) = (Vec::new(), Vec::new(), documents.into_iter());
    while !job.should_stop() {
        let chunk: Vec<Full> = rest.by_ref().take(PARALLEL).collect();
        if chunk.is_empty() {
            break;
        }
        let makes =
            chunk.into_iter().map(|full| async move { (full.record.id, make(job, shared, full).await) });
        for (document, result) in join_all(makes).await {
            match result {
                Ok(pdf) => made.push(pdf),
                Err(error) => failed.push((document, error.into())),
            }
        }
    }
    (Made(made), failed)
}

async fn make(job: &Job, shared: &Shared, full: Full) -> Result<StoredPdf, Error> {
    let issued = shared.renderer.as_issued(job.account(), full).await?;
    shared.renderer.issue(job.account(), &issued).await
}

fn failure(job: &Job, shared: &Shared, due: &[PendingPdf], document: Uuid) -> PdfFailure {
    let failures = due.iter().find(|pending| pending.document_id == document).map_or(0, |it| it.failures);
    let failures = u32::try_from(failures).unwrap_or_default().saturating_add(1);
    let retry_at = job.now() + backoff(failures, INITIAL_BACKOFF, MAX_BACKOFF);
    PdfFailure { document, error: PDF_FAILED, retry_at: Some(retry_at), links: shared.links.clone() }
}

/// The PDFs that a job has made.
struct Made(Vec<StoredPdf>);

async fn record(tx: &mut Tx<'_>, Made(pdfs): &Made) -> Result<(), Error> {
    record_stored_pdfs(tx, pdfs).await
}
