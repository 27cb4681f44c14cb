//! Dispatches an account's due work items, several at the same time. Items come in groups (the deliveries of an endpoint,
//! the runs of a flow), and the items of a group wait for the same external receiver. A slow receiver delays the items of
//! its own group and no others, of this account or another. Knows nothing of what the items are.
//!
//! The concurrency window of a group starts at one and doubles with every item that ends quickly, so that a receiver that
//! never responds holds one request. Slow items give up their slot to others; see [`slots`].

mod slots;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::Error;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};
use chrono::TimeDelta;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinError, JoinSet};
use uuid::Uuid;

pub(crate) use slots::{SLOW_AFTER, await_external};
use slots::{Slot, Slots};

/// How often to query for more due items while some are in progress.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The same while every item in progress is slow.
const SLOW_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Items after which the job of an account ends, once none of them is slow: no account keeps a worker for ever.
const MAX_ITEMS_PER_JOB: usize = 1000;
/// How long an account is left alone after its lease is to pass to another process.
const HANDOVER_DELAY: TimeDelta = TimeDelta::seconds(1);
/// Accounts whose items are queried and started at the same time.
const CONCURRENT_ACCOUNTS: usize = 8;

/// How many items are in progress at the same time. Slow items are not counted.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub per_account: usize,
    pub per_group: usize,
}

/// A work item that is due.
#[derive(Clone, Copy, Debug, chassis_derive::FromRow)]
pub(crate) struct Item {
    pub id: Uuid,
    pub group_id: Uuid,
    /// The group was slow at the last attempt: it is tried with one item, in a slot of its own kind.
    pub probe: bool,
}

/// What a query for due items leaves out.
pub(crate) struct Excluded {
    /// Items in progress.
    pub ids: Vec<Uuid>,
    /// Groups whose window is full.
    pub groups: Vec<Uuid>,
}

/// The work of one kind that is dispatched.
#[tonic::async_trait]
pub(crate) trait WorkQueue: Send + Sync + 'static {
    /// Due items without the excluded ones, the longest due first, at most `limit`.
    async fn due(&self, job: &Job, excluded: &Excluded, limit: i64) -> Result<Vec<Item>, Error>;

    /// Performs one of them, as far as that is possible now.
    async fn perform(&self, job: &Job, id: Uuid) -> Result<(), Error>;

    /// Postpones all items of a group that cannot be probed now because no slot is free.
    async fn postpone_group(&self, _job: &Job, _group: Uuid) -> Result<(), Error> {
        Ok(())
    }

    /// Called when the account was reported due and nothing could be started: postpones what only looks due, so that the
    /// account is not reported again and again.
    async fn settle_undispatchable(&self, _job: &Job) -> Result<(), Error> {
        Ok(())
    }
}

/// A worker that performs many items of an account, and of many accounts, at the same time.
pub(crate) fn worker<Q: WorkQueue>(name: &'static str, due: Due, limits: Limits, queue: Arc<Q>) -> Worker {
    let slots = Slots::new();
    let run = move |job| Dispatch::new(job, limits, Arc::clone(&queue), slots.clone()).run();
    Worker::new(name, due, run).concurrency(CONCURRENT_ACCOUNTS)
}

struct Group {
    in_progress: usize,
    /// How many of its items may be in progress.
    window: usize,
}

struct InProgress {
    group: Uuid,
    is_slow: bool,
}

/// One job: dispatches an account's items until none is due.
struct Dispatch<Q> {
    job: Job,
    limits: Limits,
    queue: Arc<Q>,
    slots: Slots,
    /// Aborted when the job is dropped, as a kill of the process would: what was in progress is still due for the next
    /// owner of the account.
    tasks: JoinSet<(Uuid, Result<(), Error>)>,
    items: HashMap<Uuid, InProgress>,
    groups: HashMap<Uuid, Group>,
    slow_sender: UnboundedSender<Uuid>,
    slow_receiver: UnboundedReceiver<Uuid>,
    started: usize,
    error: Option<Error>,
}

impl<Q: WorkQueue> Dispatch<Q> {
    fn new(job: Job, limits: Limits, queue: Arc<Q>, slots: Slots) -> Self {
        let (slow_sender, slow_receiver) = unbounded_channel();
        Self {
            job,
            limits,
            queue,
            slots,
            tasks: JoinSet::new(),
            items: HashMap::new(),
            groups: HashMap::new(),
            slow_sender,
            slow_receiver,
            started: 0,
            error: None,
        }
    }

    async fn run(mut self) -> Result<Next, Error> {
        loop {
            if self.may_start()
                && let Err(error) = self.start_due().await
            {
                self.error = Some(error);
            }
            if self.tasks.is_empty() {
                break;
            }
            // While items only run, another account may use this job's share of the worker.
            self.job.release_slot();
            let interval = if self.quick() > 0 { POLL_INTERVAL } else { SLOW_POLL_INTERVAL };
            tokio::select! {
                Some(ended) = self.tasks.join_next() => self.record_end(ended),
                Some(id) = self.slow_receiver.recv() => self.mark_slow(id),
                () = tokio::time::sleep(interval) => {}
            }
        }
        match self.error {
            Some(error) => Err(error),
            None if self.job.should_stop() => Ok(Next::After(HANDOVER_DELAY)),
            None if self.started >= MAX_ITEMS_PER_JOB => Ok(Next::Now),
            None => {
                if self.started == 0 {
                    self.job.reacquire_slot().await;
                    self.queue.settle_undispatchable(&self.job).await?;
                }
                Ok(Next::WhenDue)
            }
        }
    }

    /// How many items in progress are not slow.
    fn quick(&self) -> usize {
        self.items.values().filter(|item| !item.is_slow).count()
    }

    fn may_start(&self) -> bool {
        let is_over = self.started >= MAX_ITEMS_PER_JOB && self.quick() == self.items.len();
        // Each look for items is a query, so not after every single item that has ended.
        let has_room = self.quick() <= self.limits.per_account / 2;
        self.error.is_none() && has_room && !is_over && !self.job.should_stop()
    }

    /// Starts as many due items as there is room for.
    async fn start_due(&mut self) -> Result<(), Error> {
        self.job.reacquire_slot().await;
        loop {
            let room = self.limits.per_account.saturating_sub(self.quick());
            if room == 0 {
                return Ok(());
            }
            let limit = i64::try_from(room).unwrap_or(i64::MAX);
            let due = self.queue.due(&self.job, &self.excluded(), limit).await?;
            let found = due.len();
            let mut skipped = 0;
            for item in due {
                skipped += usize::from(!self.start(item).await?);
            }
            // Skipped items took places of the limit that others could have had, so the query is repeated without them,
            // as long as it leads to something.
            if skipped == 0 || skipped == found {
                return Ok(());
            }
        }
    }

    fn excluded(&self) -> Excluded {
        let full = self.groups.iter().filter(|(_, group)| group.in_progress >= group.window);
        Excluded { ids: self.items.keys().copied().collect(), groups: full.map(|(id, _)| *id).collect() }
    }

    /// Starts an item if the window of its group allows it; tells whether it did.
    async fn start(&mut self, item: Item) -> Result<bool, Error> {
        let group = self.groups.entry(item.group_id).or_insert(Group { in_progress: 0, window: 1 });
        if item.probe {
            group.window = 1;
        }
        if group.in_progress >= group.window || self.items.contains_key(&item.id) {
            return Ok(false);
        }
        let permit = if item.probe { self.slots.try_acquire_probe() } else { self.slots.acquire().await };
        let Some(permit) = permit else {
            // The group starts nothing more in this job.
            group.window = 0;
            self.queue.postpone_group(&self.job, item.group_id).await?;
            return Ok(false);
        };
        group.in_progress += 1;
        self.items.insert(item.id, InProgress { group: item.group_id, is_slow: item.probe });
        self.started += 1;
        let slot = Slot::new(permit, self.slots.clone(), item.id, self.slow_sender.clone(), item.probe);
        let (job, queue) = (self.job.clone(), Arc::clone(&self.queue));
        self.tasks.spawn(async move {
            let result = slot.hold(queue.perform(&job, item.id)).await;
            (item.id, result)
        });
        Ok(true)
    }

    fn mark_slow(&mut self, id: Uuid) {
        if let Some(item) = self.items.get_mut(&id) {
            item.is_slow = true;
            if let Some(group) = self.groups.get_mut(&item.group) {
                group.window = 1;
            }
        }
    }

    fn record_end(&mut self, ended: Result<(Uuid, Result<(), Error>), JoinError>) {
        match ended {
            Ok((id, result)) => {
                // An item may have become slow just before it ended: then its group must not grow.
                while let Ok(id) = self.slow_receiver.try_recv() {
                    self.mark_slow(id);
                }
                if let Some(item) = self.items.remove(&id)
                    && let Some(group) = self.groups.get_mut(&item.group)
                {
                    group.in_progress -= 1;
                    if !item.is_slow {
                        group.window = (group.window * 2).min(self.limits.per_group);
                    }
                }
                self.error = self.error.take().or(result.err());
            }
            // The item stays in `items`, so that it is not started again in this job.
            Err(error) => self.error = Some(Error::Internal(format!("a work item panicked: {error}"))),
        }
    }
}
