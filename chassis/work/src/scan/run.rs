//! Scans one account: one scan after another, a page of causes at a time.

use std::collections::HashMap;
use std::sync::Arc;

use chassis_base::Error;
use chassis_base::error::chain;
use chassis_data::write::Tx;
use chassis_rpc::references::MAX_LISTED;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::ahead::{DUE_AT, DUE_FROM, look_ahead};
use super::store::{self, Key, Quiet, Turn};
use super::{Cause, ExternalRecords, Findings, Listed, Scan, ScanParameters};
use crate::worker::{Due, Job, Next, Worker};

/// The time between two turns of an account that is not quiet, and after a turn in which a scan failed.
const INTERVAL: TimeDelta = TimeDelta::hours(1);
const RETRY_INTERVAL: TimeDelta = TimeDelta::minutes(5);
/// How many causes one transaction reports, and how many pages one job handles.
const PAGE: usize = 200;
const MAX_PAGES: usize = 25;

pub fn worker(scans: Vec<Scan>) -> Worker {
    let scans: Arc<[Scan]> = scans.into();
    Worker::new("scans", Due::new(DUE_FROM, "true", DUE_AT), move |job| {
        let scans = Arc::clone(&scans);
        async move { run(&job, &scans).await }
    })
}

async fn run(job: &Job, scans: &Arc<[Scan]>) -> Result<Next, Error> {
    let now = job.now();
    let (mut turn, thresholds) = job
        .db()
        .read(async |connection| {
            let turn = store::find_turn(connection, job.account_id()).await?;
            let thresholds = store::list_thresholds(connection, job.account_id()).await?;
            Ok::<_, Error>((turn, thresholds))
        })
        .await?;
    let started_at = *turn.started_at.get_or_insert(now);
    let mut listed = HashMap::new();
    if scan_pages(job, scans, &thresholds, &mut turn, &mut listed).await? {
        job.write(&turn, save_progress).await?;
        return Ok(Next::Now);
    }
    let (next_at, quiet) = if turn.failed {
        (started_at + RETRY_INTERVAL, None)
    } else {
        let quiet = look_ahead(job, scans, &thresholds, listed, now).await.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "what comes in the next days could not be found");
            None
        });
        (started_at + INTERVAL, quiet)
    };
    job.write(&Ended { scans: Arc::clone(scans), turn, next_at, quiet }, finish_turn).await?;
    Ok(Next::WhenDue)
}

/// The records of other services that a job has listed, by event. Only complete lists.
type CompleteLists = HashMap<&'static str, Listed>;

/// Continues where the last job stopped, for up to `MAX_PAGES` pages; true if there are more. A failed scan is skipped
/// until the retry and does not hold up the next scans.
async fn scan_pages(
    job: &Job,
    scans: &[Scan],
    thresholds: &HashMap<String, i32>,
    turn: &mut Turn,
    listed: &mut CompleteLists,
) -> Result<bool, Error> {
    let mut left = MAX_PAGES;
    let first = scans.iter().position(|scan| scan.event == turn.place.event);
    if first.is_none() {
        turn.place = Key::default();
    }
    for scan in scans.iter().skip(first.unwrap_or_default()) {
        if turn.place.event != scan.event {
            turn.place = Key { event: scan.event.to_owned(), ..Key::default() };
        }
        let amount = scan.amount(thresholds);
        loop {
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            match page(job, scan, amount, &turn.place.cause, listed).await {
                Ok(Some(last)) => turn.place.cause = last,
                Ok(None) => break,
                Err(Error::LeaseLost) => return Err(Error::LeaseLost),
                Err(error) => {
                    let (event, error) = (scan.event, chain(&error));
                    tracing::warn!(event, error, "a scan failed and will be retried");
                    turn.failed = true;
                    break;
                }
            }
        }
    }
    Ok(false)
}

/// Reports the next causes after `after`; returns the last of them if there may be more.
async fn page(
    job: &Job,
    scan: &Scan,
    amount: i32,
    after: &Cause,
    listed: &mut CompleteLists,
) -> Result<Option<Cause>, Error> {
    let parameters = ScanParameters::of(scan.threshold, amount, job.now(), job.account().timezone);
    if let Some(external) = &scan.external {
        return page_of_records(job, scan, external, parameters, after.entity_id, listed).await;
    }
    let found = job
        .db()
        .read(async |connection| {
            store::find_causes(connection, job.account_id(), scan, &parameters, after, PAGE).await
        })
        .await?;
    let last = found.last().filter(|_| found.len() == PAGE).cloned();
    if !found.is_empty() {
        job.write(&Page { scan: scan.clone(), parameters, found, about: HashMap::new() }, report).await?;
    }
    Ok(last)
}

/// The same for the next records of another service: reports their causes, and forgets the causes of records that it no
/// longer has.
async fn page_of_records(
    job: &Job,
    scan: &Scan,
    external: &ExternalRecords,
    mut parameters: ScanParameters,
    after: Uuid,
    listed: &mut CompleteLists,
) -> Result<Option<Cause>, Error> {
    let (account, id) = (job.account(), job.account_id());
    let (ids, created): (Vec<Uuid>, Vec<DateTime<Utc>>) =
        external.references.list(account, external.kind, after).await?.into_iter().unzip();
    let last = ids.last().filter(|_| ids.len() >= MAX_LISTED).copied();
    parameters.listed = Listed { ids, created };
    if after.is_nil() && last.is_none() {
        listed.insert(scan.event, parameters.listed.clone());
    }
    let (found, gone) = job
        .db()
        .read(async |connection| {
            let before_all = Cause::default();
            let found =
                store::find_causes(connection, id, scan, &parameters, &before_all, MAX_LISTED).await?;
            let gone =
                store::find_reported_of_others(connection, id, scan, after, last, &parameters.listed.ids)
                    .await?;
            Ok::<_, Error>((found, gone))
        })
        .await?;
    if !gone.is_empty() {
        job.write(&Gone { scan: scan.clone(), causes: gone }, forget).await?;
    }
    for found in found.chunks(PAGE) {
        let ids: Vec<Uuid> = found.iter().map(|cause| cause.entity_id).collect();
        let about = external.describe.describe(account, &ids).await?;
        let found = found.iter().filter(|cause| about.contains_key(&cause.entity_id));
        let found: Vec<Cause> = found.cloned().collect();
        if !found.is_empty() {
            job.write(&Page { scan: scan.clone(), parameters: parameters.clone(), found, about }, report)
                .await?;
        }
    }
    Ok(last.map(|entity_id| Cause { entity_id, cause: String::new() }))
}

struct Gone {
    scan: Scan,
    causes: Vec<Cause>,
}

async fn forget(tx: &mut Tx<'_>, gone: &Gone) -> Result<(), Error> {
    let account = tx.account();
    store::forget(tx.db(), account, &gone.scan, "false", &gone.causes).await
}

struct Page {
    scan: Scan,
    parameters: ScanParameters,
    found: Vec<Cause>,
    /// The descriptions of another service's records.
    about: HashMap<Uuid, Value>,
}

/// Locks the entities, remembers the causes that still hold and emits their events. All of it commits together, so that
/// a crash neither loses nor repeats an event.
async fn report(tx: &mut Tx<'_>, page: &Page) -> Result<(), Error> {
    let (account, now, scan) = (tx.account(), tx.now(), &page.scan);
    if !scan.lock.is_empty() {
        store::lock(tx.db(), account, scan.lock, &page.found).await?;
    }
    let causes = store::remember(tx.db(), account, scan, &page.parameters, &page.found, now).await?;
    if causes.is_empty() {
        return Ok(());
    }
    let (event, threshold, amount) = (scan.event, scan.threshold, page.parameters.amount);
    let findings = Findings { event, causes, threshold, amount, about: page.about.clone() };
    tx.unaudited("the passing of time changes no record");
    (scan.emit)(tx, &findings).await
}

async fn save_progress(tx: &mut Tx<'_>, turn: &Turn) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    store::put_turn(tx.db(), account, turn, now, None).await
}

struct Ended {
    scans: Arc<[Scan]>,
    turn: Turn,
    next_at: DateTime<Utc>,
    quiet: Option<Quiet>,
}

async fn finish_turn(tx: &mut Tx<'_>, Ended { scans, turn, next_at, quiet }: &Ended) -> Result<(), Error> {
    let account = tx.account();
    let swept = store::sweep(tx.db(), account, scans, &turn.swept).await?;
    let rested = Turn { asked: turn.asked, swept, ..Turn::default() };
    store::put_turn(tx.db(), account, &rested, *next_at, *quiet).await
}
