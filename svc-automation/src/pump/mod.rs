//! Works through an account's due things, several at once. Things come in groups (the deliveries of an endpoint, the runs
//! of a flow), each of which has somebody outside to wait for: one who takes long holds up the things of its own group and
//! nobody else's, of this account or another. Knows nothing of what the things are.
//!
//! A group begins with one thing at a time and gets more with every one that is done quickly, so that whoever does not
//! answer has one request to be silent about. What takes long leaves its place to others; see [`places`].

mod places;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::Error;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};
use chrono::TimeDelta;
use places::{Place, Places};
pub(crate) use places::{SLOW_AFTER, outside};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use uuid::Uuid;

/// How often to look for more while something is being done; and while all of it takes long.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const IDLE_LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Things of one account after which its job ends, once nothing takes long: a job is not for ever.
const TURN: usize = 1000;
/// How long an account is left alone that another process is to have.
const HANDOVER: TimeDelta = TimeDelta::seconds(1);
/// Accounts whose things are looked up and begun at once.
const SEATS: usize = 8;

/// How much of an account is done at the same time. What takes long is not counted.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub at_once: usize,
    pub per_group: usize,
}

/// Something that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thing {
    pub id: Uuid,
    pub group: Uuid,
    /// Its group has kept everybody waiting lately: it is tried with one thing, in a place for such.
    pub probe: bool,
}

/// What not to look for: it has begun, or its group has enough.
pub(crate) struct Begun {
    pub ids: Vec<Uuid>,
    pub groups: Vec<Uuid>,
}

#[tonic::async_trait]
pub(crate) trait Work: Send + Sync + 'static {
    /// What is due, the longest waiting first, at most `most` and nothing of what has begun.
    async fn due(&self, job: &Job, begun: &Begun, most: i64) -> Result<Vec<Thing>, Error>;

    /// Does one of them as far as that goes now.
    async fn perform(&self, job: &Job, id: Uuid) -> Result<(), Error>;

    /// Puts off everything of a group that cannot be tried now, for want of a place.
    async fn put_off(&self, _job: &Job, _group: Uuid) -> Result<(), Error> {
        Ok(())
    }

    /// There was said to be something due, and nothing could be begun: puts off what only looks so.
    async fn tidy(&self, _job: &Job) -> Result<(), Error> {
        Ok(())
    }
}

/// A worker that does many things of an account, and of many accounts, at the same time.
pub(crate) fn worker<W: Work>(name: &'static str, due: Due, limits: Limits, work: Arc<W>) -> Worker {
    let places = Places::new();
    let run = move |job| Turn::new(job, limits, Arc::clone(&work), places.clone()).run();
    Worker::new(name, due, run).concurrency(SEATS)
}

/// How a group fares.
struct Group {
    begun: usize,
    /// How many of its things may be begun at once.
    window: usize,
}

/// One job: an account's things until there are no more.
struct Turn<W> {
    job: Job,
    limits: Limits,
    work: Arc<W>,
    places: Places,
    /// Dropped with the job, as a kill would: what was begun is taken up by whoever comes next.
    doing: JoinSet<(Uuid, Result<(), Error>)>,
    /// What is being done: of which group, and whether it takes long.
    begun: HashMap<Uuid, (Uuid, bool)>,
    groups: HashMap<Uuid, Group>,
    slow: (UnboundedSender<Uuid>, UnboundedReceiver<Uuid>),
    total: usize,
    failed: Option<Error>,
}

impl<W: Work> Turn<W> {
    fn new(job: Job, limits: Limits, work: Arc<W>, places: Places) -> Self {
        Self {
            job,
            limits,
            work,
            places,
            doing: JoinSet::new(),
            begun: HashMap::new(),
            groups: HashMap::new(),
            slow: unbounded_channel(),
            total: 0,
            failed: None,
        }
    }

    async fn run(mut self) -> Result<Next, Error> {
        loop {
            if self.may_begin()
                && let Err(error) = self.begin().await
            {
                self.failed = Some(error);
            }
            if self.doing.is_empty() {
                break;
            }
            self.job.release_slot();
            let interval = if self.quick() > 0 { LOOK_INTERVAL } else { IDLE_LOOK_INTERVAL };
            tokio::select! {
                Some(ended) = self.doing.join_next() => self.ended(ended),
                Some(id) = self.slow.1.recv() => self.takes_long(id),
                () = tokio::time::sleep(interval) => {}
            }
        }
        match self.failed {
            Some(error) => Err(error),
            None if self.job.should_stop() => Ok(Next::After(HANDOVER)),
            None if self.total >= TURN => Ok(Next::Now),
            None => {
                if self.total == 0 {
                    self.job.reacquire_slot().await;
                    self.work.tidy(&self.job).await?;
                }
                Ok(Next::WhenDue)
            }
        }
    }

    /// How many of the things that are being done do not take long.
    fn quick(&self) -> usize {
        self.begun.values().filter(|(_, slow)| !slow).count()
    }

    fn may_begin(&self) -> bool {
        let is_over = self.total >= TURN && self.quick() == self.begun.len();
        // Not for every single one that has ended: each look is a query.
        let has_room = self.quick() <= self.limits.at_once / 2;
        self.failed.is_none() && has_room && !is_over && !self.job.should_stop()
    }

    /// Begins what there is room for.
    async fn begin(&mut self) -> Result<(), Error> {
        self.job.reacquire_slot().await;
        loop {
            let room = self.limits.at_once.saturating_sub(self.quick());
            if room == 0 {
                return Ok(());
            }
            let most = i64::try_from(room).unwrap_or(i64::MAX);
            let due = self.work.due(&self.job, &self.begun(), most).await?;
            let found = due.len();
            let mut passed = 0;
            for thing in due {
                passed += usize::from(!self.begin_one(thing).await?);
            }
            // What was passed over has hidden what comes after it.
            if passed == 0 || passed == found {
                return Ok(());
            }
        }
    }

    fn begun(&self) -> Begun {
        let full = self.groups.iter().filter(|(_, group)| group.begun >= group.window);
        Begun { ids: self.begun.keys().copied().collect(), groups: full.map(|(id, _)| *id).collect() }
    }

    /// Begins a thing if its group has not enough; tells whether it did.
    async fn begin_one(&mut self, thing: Thing) -> Result<bool, Error> {
        let group = self.groups.entry(thing.group).or_insert(Group { begun: 0, window: 1 });
        if thing.probe {
            group.window = 1;
        }
        if group.begun >= group.window || self.begun.contains_key(&thing.id) {
            return Ok(false);
        }
        let place = if thing.probe { self.places.probe() } else { self.places.take().await };
        let Some(place) = place else {
            // Nothing more of it in this turn.
            group.window = 0;
            self.work.put_off(&self.job, thing.group).await?;
            return Ok(false);
        };
        group.begun += 1;
        self.begun.insert(thing.id, (thing.group, thing.probe));
        self.total += 1;
        let told = (thing.id, self.slow.0.clone());
        let place = Place::new(place, self.places.clone(), told, thing.probe);
        let (job, work) = (self.job.clone(), Arc::clone(&self.work));
        self.doing.spawn(async move {
            let done = place.hold(work.perform(&job, thing.id)).await;
            (thing.id, done)
        });
        Ok(true)
    }

    fn takes_long(&mut self, id: Uuid) {
        if let Some((group, slow)) = self.begun.get_mut(&id) {
            *slow = true;
            if let Some(group) = self.groups.get_mut(group) {
                group.window = 1;
            }
        }
    }

    fn ended(&mut self, ended: Result<(Uuid, Result<(), Error>), tokio::task::JoinError>) {
        match ended {
            Ok((id, done)) => {
                while let Ok(id) = self.slow.1.try_recv() {
                    self.takes_long(id);
                }
                if let Some((group, slow)) = self.begun.remove(&id)
                    && let Some(group) = self.groups.get_mut(&group)
                {
                    group.begun -= 1;
                    if !slow {
                        group.window = (group.window * 2).min(self.limits.per_group);
                    }
                }
                self.failed = self.failed.take().or(done.err());
            }
            // It stays among those that have begun, so that it is not begun again in this turn.
            Err(error) => self.failed = Some(Error::Internal(format!("a thing could not be done: {error}"))),
        }
    }
}
