//! Receives mail over SMTP (RFC 5321) or LMTP (RFC 2033) from a mail server in front: no TLS, no authentication, and no
//! relay. Only addresses of tickets and channels are accepted, and a mail is acknowledged after its commit, not before.
//! Everything has a limit. Not a resource, so the files have the names of the parts of the protocol.

mod command;
mod reader;
mod receiver;
mod session;
mod session_slots;

use std::sync::Arc;
use std::time::Duration;

use chassis_service::stage::{Stage, asked_to_stop};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use receiver::MailReceiver;

use session::Connection;
use session_slots::SessionSlots;

/// The number of connections, those that are being refused included. Above it, a connection is closed without a reply.
const MAX_CONNECTIONS: usize = 128;
/// How long sessions may continue after the process was asked to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a connection that could not be accepted, most likely because too many files are open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Receives mail until the process is asked to stop.
pub async fn serve(listener: TcpListener, receiver: MailReceiver, stop: watch::Receiver<Stage>) {
    let slots = Arc::new(SessionSlots::default());
    let receiver = Arc::new(receiver);
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            () = asked_to_stop(stop.clone()) => break,
            accepted = listener.accept() => match accepted {
                Ok(_) if sessions.len() >= MAX_CONNECTIONS => {}
                Ok((stream, peer)) => {
                    let connection = Connection { stream, peer: peer.ip().to_canonical() };
                    let (slots, receiver, stop) = (Arc::clone(&slots), Arc::clone(&receiver), stop.clone());
                    sessions.spawn(async move { serve_connection(connection, &slots, &receiver, stop).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting a mail connection failed");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(_) = sessions.join_next() => {}
        }
    }
    let ended = async { while sessions.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_TIMEOUT, ended).await.is_err() {
        tracing::warn!("stopped while mail sessions were open");
    }
}

/// Serves or refuses one client. An error ends this session only.
async fn serve_connection(
    connection: Connection<TcpStream>,
    slots: &Arc<SessionSlots>,
    receiver: &MailReceiver,
    stop: watch::Receiver<Stage>,
) {
    // Otherwise a short reply could wait for the acknowledgement of the previous reply. A failure only costs time.
    let _ = connection.stream.set_nodelay(true);
    // The slot is held until the session ends.
    let slot = SessionSlots::acquire(slots, connection.peer);
    let outcome = if slot.is_some() {
        session::run(connection, receiver, stop).await
    } else {
        session::refuse(connection, receiver).await
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "mail session ended early");
    }
}
