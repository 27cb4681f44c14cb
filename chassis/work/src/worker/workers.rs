//! All background work of a process.

use std::sync::Arc;
use std::time::Duration;

use chassis_data::Db;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::board::{Board, Boards};
use super::definition::Worker;
use super::sequencer::Sequencer;
use super::timing::Timing;
use super::wake::{Inbox, MAX_WORKERS};
use super::{drive, examine, exchange, keeper, sweep};

/// The running workers of a process. When this is dropped without [`Workers::stop`], they are aborted and keep their
/// leases until these expire, as if the process had been killed.
pub struct Workers {
    tasks: JoinSet<()>,
    boards: Arc<Boards>,
    stop: watch::Sender<Option<Duration>>,
}

impl Workers {
    /// Starts the workers as one replica, and what numbers its log entries.
    pub fn start(db: &Db, workers: Vec<Worker>, timing: Timing) -> Self {
        assert!(workers.len() <= MAX_WORKERS, "more than {MAX_WORKERS} kinds of background work");
        let (stop, stopped) = watch::channel(None);
        let owner = db.clock().id();
        let (drained, all_drained) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let mut all = Vec::new();
        let prompt = workers.iter().enumerate().filter(|(_, worker)| worker.interval.is_none());
        let inbox = Arc::new(Inbox::new(prompt.fold(0, |which, (number, _)| which | 1 << number)));
        let sequencer = Arc::new(Sequencer::new(db.clone(), Arc::clone(&inbox)));
        db.wake().add(&sequencer);
        for (number, worker) in workers.into_iter().enumerate() {
            let (board, found) = Board::new(&worker, timing.sweep);
            let board = Arc::new(board);
            all.push(Arc::clone(&board));
            let (inbox, drained) = (Arc::clone(&inbox), drained.clone());
            let assignment = drive::Assignment { number, board, found, inbox, drained };
            let driver = drive::Driver::new(db.clone(), worker, owner, timing, assignment);
            tasks.spawn(driver.drive(stopped.clone()));
        }
        let boards = Arc::new(Boards::new(inbox, all));
        let poll = timing.poll;
        let keeper = keeper::Keeper::new(db.clone(), Arc::clone(&boards), owner, timing, all_drained);
        // The keeper waits until all other senders are dropped.
        drop(drained);
        tasks.spawn(keeper.run(stopped.clone()));
        tasks.spawn(exchange::Exchange::new(db.clone(), Arc::clone(&boards), poll).run(stopped.clone()));
        tasks.spawn(examine::Examiner::new(db.clone(), Arc::clone(&boards), poll).run(stopped.clone()));
        tasks.spawn(sweep::Sweeper::new(db.clone(), Arc::clone(&boards), poll).run(stopped.clone()));
        tasks.spawn(sequencer.run(stopped));
        Self { tasks, boards, stop }
    }

    /// Whether this process currently does the work that only one replica does. The answer changes with the leases.
    pub fn is_first(&self) -> impl Fn() -> bool + use<> {
        let boards = Arc::clone(&self.boards);
        move || boards.all.first().is_some_and(|board| board.is_first())
    }

    /// Starts no more jobs, waits up to `grace` for the running ones and releases the leases.
    pub async fn stop(mut self, grace: Duration) {
        self.stop.send_replace(Some(grace));
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a worker task failed");
            }
        }
    }
}
