//! Taking mail in over SMTP (RFC 5321) or LMTP (RFC 2033), for a mail server in front: no TLS, no authentication, and no
//! relay. Only addresses that lead to a ticket or a channel are accepted, and a mail is acknowledged when it is
//! committed, not before. Everything has a limit.

mod command;
mod line;
mod office;
mod session;

use std::sync::Arc;
use std::time::Duration;

use chassis::server::{Stage, asked_to_stop};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

pub use office::Office;

/// Conversations at once.
const MOST_SESSIONS: usize = 64;
/// How long conversations may go on after a stop was asked for.
const GRACE: Duration = Duration::from_secs(10);

/// Takes mail in until it is told to stop.
pub async fn serve(listener: TcpListener, office: Office, stop: watch::Receiver<Stage>) {
    let room = Arc::new(Semaphore::new(MOST_SESSIONS));
    let office = Arc::new(office);
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            () = asked_to_stop(stop.clone()) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let place = Arc::clone(&room).try_acquire_owned().ok();
                    let (office, stop) = (Arc::clone(&office), stop.clone());
                    sessions.spawn(async move {
                        converse(stream, &office, stop, place.is_some()).await;
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

async fn converse(stream: TcpStream, office: &Office, stop: watch::Receiver<Stage>, has_room: bool) {
    // A peer that goes away ends its own conversation only.
    let _ = stream.set_nodelay(true);
    if let Err(error) = session::run(stream, office, stop, has_room).await {
        tracing::debug!(%error, "a mail conversation ended early");
    }
}
