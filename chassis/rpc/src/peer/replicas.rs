//! The processes behind one name: which exist, which is next in turn, and which are down because they are about to
//! stop or cannot be reached.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use chassis_base::error::chain;
use tokio::time::MissedTickBehavior;
use tonic::Status;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::status::is_transport;
use super::target::Target;

/// A replica that stops must drain for longer than this (`DRAIN_MS`), so that every caller notices in time.
const HEALTH_INTERVAL: Duration = Duration::from_secs(1);
/// Names are resolved on every fifth health check.
const LOOKUP_EVERY: u64 = 5;
/// Long enough that a busy replica does not count as down.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

/// One process.
#[derive(Clone)]
struct Replica {
    address: SocketAddr,
    channel: Channel,
    down: Arc<AtomicBool>,
}

type List = ArcSwap<Vec<Replica>>;

#[derive(Clone, Default)]
pub(super) struct Replicas {
    list: Arc<List>,
    next: Arc<AtomicUsize>,
}

/// The replica that a call goes to.
pub struct Choice {
    pub channel: Channel,
    down: Option<Arc<AtomicBool>>,
}

impl Choice {
    /// The only replica, which is never marked as down.
    pub(super) fn only(channel: Channel) -> Self {
        Self { channel, down: None }
    }

    /// Returns the response of a call. After a transport error the next attempt, of this and of every other request,
    /// goes to another replica.
    pub(super) fn judge<T>(&self, answer: Result<T, Status>) -> Result<T, Status> {
        if answer.as_ref().is_err_and(is_transport) {
            self.failed();
        }
        answer
    }

    /// Records a transport error: calls go to other replicas until a health check of this one succeeds.
    pub fn failed(&self) {
        if let Some(down) = &self.down {
            down.store(true, Ordering::Relaxed);
        }
    }
}

impl Replicas {
    /// Follows the addresses and their health until the value is dropped. Must be called inside the runtime.
    pub(super) fn of(targets: &Arc<[Target]>) -> Result<Self, String> {
        let replicas = Self::default();
        let fixed: Option<Vec<SocketAddr>> = targets.iter().map(Target::address).collect();
        match fixed {
            // A single fixed address leaves nothing to choose from.
            Some(addresses) if addresses.len() == 1 => return Ok(replicas),
            Some(addresses) => {
                renew(&replicas.list, targets, &addresses.into_iter().enumerate().collect::<Vec<_>>())?;
            }
            None => {}
        }
        tokio::spawn(maintain(Arc::downgrade(&replicas.list), Arc::clone(targets)));
        Ok(replicas)
    }

    /// The next replica in turn. A replica that is down is chosen only when all are.
    pub(super) fn choose(&self) -> Option<Choice> {
        let replicas = self.list.load();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = || replicas.iter().cycle().skip(turn % replicas.len().max(1)).take(replicas.len());
        let up = in_turn().find(|replica| !replica.down.load(Ordering::Relaxed));
        let chosen = up.or_else(|| in_turn().next())?;
        Some(Choice { channel: chosen.channel.clone(), down: Some(Arc::clone(&chosen.down)) })
    }
}

async fn maintain(list: Weak<List>, targets: Arc<[Target]>) {
    let mut ticks = tokio::time::interval(HEALTH_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0_u64.. {
        ticks.tick().await;
        let Some(list) = list.upgrade() else { return };
        if round.is_multiple_of(LOOKUP_EVERY)
            // When the lookup fails, the addresses of the last successful one stay in use.
            && let Some(found) = look_up(&targets).await
            && let Err(error) = renew(&list, &targets, &found)
        {
            tracing::warn!(error, "addresses are not usable");
        }
        check_all(&list.load_full()).await;
    }
}

/// Each address with the index of its target.
pub(super) async fn look_up(targets: &[Target]) -> Option<Vec<(usize, SocketAddr)>> {
    let mut found = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        match tokio::net::lookup_host((target.host.as_str(), target.port)).await {
            Ok(addresses) => found.extend(addresses.map(|address| (index, address))),
            Err(error) => {
                tracing::warn!(host = target.host, %error, "name not found");
                return None;
            }
        }
    }
    found.sort_unstable_by_key(|(_, address)| *address);
    found.dedup_by_key(|(_, address)| *address);
    Some(found)
}

fn renew(list: &List, targets: &[Target], found: &[(usize, SocketAddr)]) -> Result<(), String> {
    let known = list.load();
    if known.iter().map(|replica| replica.address).eq(found.iter().map(|(_, address)| *address)) {
        return Ok(());
    }
    let replica = |(index, address): &(usize, SocketAddr)| {
        if let Some(same) = known.iter().find(|replica| replica.address == *address) {
            return Ok(same.clone());
        }
        Ok(Replica { address: *address, channel: targets[*index].at(*address)?, down: Arc::default() })
    };
    list.store(Arc::new(found.iter().map(replica).collect::<Result<_, String>>()?));
    Ok(())
}

/// Checks the health of all replicas. A single replica is not checked, because calls go to it in any case.
async fn check_all(replicas: &[Replica]) {
    if replicas.len() < 2 {
        return;
    }
    let check = async |replica: &Replica| {
        let down = is_serving(replica.channel.clone(), HEALTH_TIMEOUT).await.err();
        if replica.down.swap(down.is_some(), Ordering::Relaxed) != down.is_some() {
            let reason = down.unwrap_or_default();
            let (address, down) = (replica.address, !reason.is_empty());
            tracing::info!(%address, down, reason, "replica health changed");
        }
    };
    futures::future::join_all(replicas.iter().map(check)).await;
}

/// Whether the process reports that it is serving; if not, the reason.
pub(super) async fn is_serving(channel: Channel, timeout: Duration) -> Result<(), String> {
    let mut client = HealthClient::new(channel);
    let request = HealthCheckRequest { service: String::new() };
    match tokio::time::timeout(timeout, client.check(request)).await {
        Ok(Ok(answer)) if answer.get_ref().status() == ServingStatus::Serving => Ok(()),
        Ok(Ok(_)) => Err("it reports that it is not serving".to_owned()),
        Ok(Err(status)) => Err(reason(&status)),
        Err(_) => Err("it does not answer".to_owned()),
    }
}

/// Why a call failed; for a transport error, its chain of causes.
pub(super) fn reason(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => chain(source),
        None => status.message().to_owned(),
    }
}
