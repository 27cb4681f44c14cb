//! Checks of what a service needs besides its database: file storage, mail, and the services that it calls.

use chassis_base::Clock;
use chassis_rpc::peer::Peer;
use chassis_work::files::Files;
use chassis_work::mail::Mailer;
use proto::api::Finding;

use super::finding::{LOOK_TIMEOUT, bad, good};
use crate::runtime::Runtime;

/// `None` for a service that keeps no files.
pub(super) async fn storage(files: Option<&Files>, clock: &Clock) -> Option<Finding> {
    const NAME: &str = "storage";
    let advice = "Let FILES_DIR name a folder that the program may write to, with room left; or see that FILES_S3_BUCKET \
                  exists, FILES_S3_ENDPOINT is reached and the key may put, get and delete.";
    let files = files?;
    Some(match tokio::time::timeout(LOOK_TIMEOUT, files.probe(clock.id())).await {
        Ok(Ok(())) => good(NAME, format!("written, read and deleted in {}", files.place())),
        Ok(Err(reason)) => bad(NAME, format!("{}: {reason}", files.place()), advice),
        Err(_) => bad(NAME, format!("{} does not answer", files.place()), advice),
    })
}

pub(super) async fn mail(mailer: &Mailer) -> Finding {
    const NAME: &str = "mail";
    let advice = "See that SMTP_URL has the right host, port, user and password and the scheme that the server wants \
                  (smtps, or smtp with ?tls=required); without it, that MAIL_DIR can be written to.";
    match tokio::time::timeout(LOOK_TIMEOUT, mailer.probe()).await {
        Ok(Ok(saw)) => good(NAME, saw),
        Ok(Err(reason)) => bad(NAME, reason, advice),
        Err(_) => bad(NAME, "the mail server does not answer", advice),
    }
}

/// Each service that this one calls or sends events to.
pub(super) async fn peers(runtime: &Runtime) -> Vec<Finding> {
    let called = runtime.peers.iter().map(|peer| check("calls", peer, "PEERS"));
    let notified = runtime.listeners.iter().map(|peer| check("tells", peer, "LISTENERS"));
    let (mut called, mut notified) =
        tokio::join!(futures::future::join_all(called), futures::future::join_all(notified));
    called.sort_by(|one, other| one.name.cmp(&other.name));
    notified.sort_by(|one, other| one.name.cmp(&other.name));
    called.into_iter().chain(notified).collect()
}

async fn check(verb: &str, peer: &Peer, variable: &str) -> Finding {
    let name = format!("{verb} {}", peer.name());
    match peer.is_serving(LOOK_TIMEOUT).await {
        Ok(()) => good(&name, "it serves"),
        Err(reason) => {
            let advice = format!("See that it runs and that its address in {variable} is right.");
            bad(&name, reason, &advice)
        }
    }
}
