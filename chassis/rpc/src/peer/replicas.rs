//! The processes behind one name: which there are, whose turn it is, and which of them are left out for now, because
//! they say that they are about to stop or cannot be reached.

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

/// A replica that is to stop must drain for longer than this (`DRAIN_MS`) for all callers to have left it.
const HEALTH_INTERVAL: Duration = Duration::from_secs(1);
/// Names are looked up at every so manieth asking.
const LOOKUP_EVERY: u64 = 5;
/// Long enough for one that is only busy.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

/// One process.
#[derive(Clone)]
struct Replica {
    address: SocketAddr,
    channel: Channel,
    away: Arc<AtomicBool>,
}

type List = ArcSwap<Vec<Replica>>;

#[derive(Clone, Default)]
pub(super) struct Replicas {
    list: Arc<List>,
    next: Arc<AtomicUsize>,
}

/// What a call goes to.
pub struct Choice {
    pub channel: Channel,
    away: Option<Arc<AtomicBool>>,
}

impl Choice {
    /// The only one there is.
    pub(super) fn only(channel: Channel) -> Self {
        Self { channel, away: None }
    }

    /// Hands on the answer of a call. Where it failed on its way, the next attempt, of this and of every other request,
    /// goes elsewhere.
    pub(super) fn judge<T>(&self, answer: Result<T, Status>) -> Result<T, Status> {
        if answer.as_ref().is_err_and(is_transport) {
            self.failed();
        }
        answer
    }

    /// The call failed on its way: until this replica is known to be back, the others are asked.
    pub fn failed(&self) {
        if let Some(away) = &self.away {
            away.store(true, Ordering::Relaxed);
        }
    }
}

impl Replicas {
    /// Keeps in step with the addresses and their health for as long as the value lives. Must be called inside the
    /// runtime.
    pub(super) fn of(targets: &Arc<[Target]>) -> Result<Self, String> {
        let replicas = Self::default();
        let fixed: Option<Vec<SocketAddr>> = targets.iter().map(Target::address).collect();
        match fixed {
            // One process at a known place: nothing to choose from.
            Some(addresses) if addresses.len() == 1 => return Ok(replicas),
            Some(addresses) => {
                renew(&replicas.list, targets, &addresses.into_iter().enumerate().collect::<Vec<_>>())?;
            }
            None => {}
        }
        tokio::spawn(keep(Arc::downgrade(&replicas.list), Arc::clone(targets)));
        Ok(replicas)
    }

    /// The next in turn. One that is away has its turn only when all are.
    pub(super) fn choose(&self) -> Option<Choice> {
        let replicas = self.list.load();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = || replicas.iter().cycle().skip(turn % replicas.len().max(1)).take(replicas.len());
        let here = in_turn().find(|replica| !replica.away.load(Ordering::Relaxed));
        let chosen = here.or_else(|| in_turn().next())?;
        Some(Choice { channel: chosen.channel.clone(), away: Some(Arc::clone(&chosen.away)) })
    }
}

async fn keep(list: Weak<List>, targets: Arc<[Target]>) {
    let mut ticks = tokio::time::interval(HEALTH_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0_u64.. {
        ticks.tick().await;
        let Some(list) = list.upgrade() else { return };
        if round.is_multiple_of(LOOKUP_EVERY)
            // The last known addresses are better than none.
            && let Some(found) = look_up(&targets).await
            && let Err(error) = renew(&list, &targets, &found)
        {
            tracing::warn!(error, "addresses not usable");
        }
        ask_all(&list.load_full()).await;
    }
}

/// Each address with the target that it is of.
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
        Ok(Replica { address: *address, channel: targets[*index].at(*address)?, away: Arc::default() })
    };
    list.store(Arc::new(found.iter().map(replica).collect::<Result<_, String>>()?));
    Ok(())
}

/// Whoever has no twin is asked nothing: calls go there in any case.
async fn ask_all(replicas: &[Replica]) {
    if replicas.len() < 2 {
        return;
    }
    let ask = async |replica: &Replica| {
        let away = is_serving(replica.channel.clone(), HEALTH_TIMEOUT).await.err();
        if replica.away.swap(away.is_some(), Ordering::Relaxed) != away.is_some() {
            let reason = away.unwrap_or_default();
            tracing::info!(address = %replica.address, away = !reason.is_empty(), reason, "a replica changed");
        }
    };
    futures::future::join_all(replicas.iter().map(ask)).await;
}

/// Whether the process at the other end says that it serves; if not, why.
pub(super) async fn is_serving(channel: Channel, patience: Duration) -> Result<(), String> {
    let mut client = HealthClient::new(channel);
    let request = HealthCheckRequest { service: String::new() };
    match tokio::time::timeout(patience, client.check(request)).await {
        Ok(Ok(answer)) if answer.get_ref().status() == ServingStatus::Serving => Ok(()),
        Ok(Ok(_)) => Err("it says that it is not serving".to_owned()),
        Ok(Err(status)) => Err(reason(&status)),
        Err(_) => Err("it does not answer".to_owned()),
    }
}

/// Why a call failed; of one that failed on its way, what lies beneath.
pub(super) fn reason(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => chain(source),
        None => status.message().to_owned(),
    }
}
