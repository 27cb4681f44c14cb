//! Taking mail in over SMTP (RFC 5321) or LMTP (RFC 2033), for a mail server in front: no TLS, no authentication, and no
//! relay. Only addresses that lead to a ticket or a channel are accepted, and a mail is acknowledged when it is
//! committed, not before. Everything has a limit.

mod command;
mod line;
mod office;
mod session;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis::server::{Stage, asked_to_stop};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use office::Office;

/// Conversations at once, and those with one address: that of the mail server in front, as a rule.
const MAX_SESSIONS: usize = 64;
const MAX_SESSIONS_PER_ADDRESS: usize = 32;
/// Conversations and refusals at once. Whoever comes then is not even refused.
const MAX_CONNECTIONS: usize = 128;
/// How long conversations may go on after a stop was asked for.
const GRACE: Duration = Duration::from_secs(10);

/// Takes mail in until it is told to stop.
pub async fn serve(listener: TcpListener, office: Office, stop: watch::Receiver<Stage>) {
    let room = Arc::new(Room::default());
    let office = Arc::new(office);
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            () = asked_to_stop(stop.clone()) => break,
            accepted = listener.accept() => match accepted {
                Ok(_) if sessions.len() >= MAX_CONNECTIONS => {}
                Ok((stream, peer)) => {
                    let peer = peer.ip().to_canonical();
                    let place = Room::enter(&room, peer);
                    let (office, stop) = (Arc::clone(&office), stop.clone());
                    sessions.spawn(async move {
                        converse((stream, peer), &office, stop, place.is_some()).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Too many open files, most likely: others have to end first.
                    tracing::warn!(%error, "a mail connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = sessions.join_next() => {}
        }
    }
    let ended = async { while sessions.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("stopped with mail still coming in");
    }
}

/// Who is conversed with.
#[derive(Debug, Default)]
struct Room {
    places: Mutex<HashMap<IpAddr, usize>>,
}

/// A place in the room, until it is dropped.
struct Place {
    room: Arc<Room>,
    peer: IpAddr,
}

impl Room {
    /// A place, if there is one.
    fn enter(room: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let mut places = room.places.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = places.get(&peer).copied().unwrap_or_default();
        if places.values().sum::<usize>() >= MAX_SESSIONS || theirs >= MAX_SESSIONS_PER_ADDRESS {
            return None;
        }
        places.insert(peer, theirs + 1);
        Some(Place { room: Arc::clone(room), peer })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.room.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(theirs) = places.get_mut(&self.peer) {
            *theirs -= 1;
            if *theirs == 0 {
                places.remove(&self.peer);
            }
        }
    }
}

async fn converse(
    (stream, peer): (TcpStream, IpAddr),
    office: &Office,
    stop: watch::Receiver<Stage>,
    has_room: bool,
) {
    // A peer that goes away ends its own conversation only.
    let _ = stream.set_nodelay(true);
    if let Err(error) = session::run((stream, peer), office, stop, has_room).await {
        tracing::debug!(%error, "a mail conversation ended early");
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn one_address_does_not_take_every_place() {
        let room = Arc::new(Room::default());
        let peer = |last: u8| Ipv4Addr::new(192, 0, 2, last).into();
        let enter = |last: u8| Room::enter(&room, peer(last));
        let first: Vec<Place> = (0..99).filter_map(|_| enter(1)).collect();
        assert_eq!(first.len(), MAX_SESSIONS_PER_ADDRESS);
        let others: Vec<Place> = (2..99).filter_map(enter).collect();
        assert_eq!(others.len(), MAX_SESSIONS - MAX_SESSIONS_PER_ADDRESS);
        drop(first);
        assert!(enter(1).is_some() && enter(200).is_some());
        drop(others);
        assert!(room.places.lock().unwrap().is_empty());
    }
}
