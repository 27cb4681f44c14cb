//! Diagnoses the whole mesh: the gateway checks its own database, and asks every replica of every service for its own
//! findings, because only a service has access to its schema, files and peers.

use std::time::Duration;

use chassis_base::time::from_timestamp;
use chassis_rpc::peer::Peer;
use chassis_service::doctor::{Span, VERSION, assess, bad, doubtful, examine_database, good};
use chrono::TimeDelta;
use proto::api::doctor_service_client::DoctorServiceClient;
use proto::api::{ExamineRequest, ExamineResponse, Finding, Outcome};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::runtime::{MIGRATIONS, NAME, Runtime, no_account};

/// Longer than the time limits of the checks of a service.
const EXAMINE_TIMEOUT: Duration = Duration::from_secs(20);
/// The second attempt dates its token this far into the future, so that a service whose clock is ahead accepts it.
const CLOCK_AHEAD: TimeDelta = TimeDelta::days(1);
/// The name of the check whether a service answers.
const ANSWERS: &str = "answers";
const UNREACHABLE_ADVICE: &str =
    "See that it runs, what its log says, and that its address in PEERS is right.";

/// A finding, and the process that it is about.
pub struct Line {
    pub who: String,
    pub finding: Finding,
}

/// Runs all checks concurrently. The gateway's own findings come first, then the services by name.
pub async fn examine(runtime: &Runtime) -> Vec<Line> {
    let mut peers: Vec<&Peer> = runtime.peers.iter().collect();
    peers.sort_by_key(|peer| peer.name());
    let services = futures::future::join_all(peers.iter().map(|peer| examine_service(runtime, peer)));
    let own = examine_database(&runtime.db, "gateway", NAME, &MIGRATIONS);
    let (own, services) = tokio::join!(own, services);
    let mut lines: Vec<Line> = lines_of(NAME, own).collect();
    if peers.is_empty() {
        let none = bad("services", "none is known", "Set PEERS to the services: name=url, comma-separated.");
        lines.extend(lines_of(NAME, [none]));
    }
    lines.extend(services.into_iter().flatten());
    lines
}

/// The number of findings that are failures.
pub fn failures(lines: &[Line]) -> usize {
    lines.iter().filter(|line| line.finding.outcome() == Outcome::Failed).count()
}

fn lines_of(who: &str, findings: impl IntoIterator<Item = Finding>) -> impl Iterator<Item = Line> {
    findings.into_iter().map(move |finding| Line { who: who.to_owned(), finding })
}

/// Every replica of a service.
async fn examine_service(runtime: &Runtime, peer: &Peer) -> Vec<Line> {
    let replicas = match peer.each().await {
        Ok(replicas) if !replicas.is_empty() => replicas,
        found => {
            let reason = found.err().unwrap_or_else(|| "the name has no address".to_owned());
            return lines_of(peer.name(), [bad(ANSWERS, reason, UNREACHABLE_ADVICE)]).collect();
        }
    };
    let alone = replicas.len() == 1;
    let each = replicas.into_iter().map(async |(address, channel)| {
        let who = if alone { peer.name().to_owned() } else { format!("{} {address}", peer.name()) };
        lines_of(&who, examine_replica(runtime, peer.name(), channel).await).collect::<Vec<_>>()
    });
    futures::future::join_all(each).await.into_iter().flatten().collect()
}

async fn examine_replica(runtime: &Runtime, service: &str, channel: Channel) -> Vec<Finding> {
    let span = Span::begin(&runtime.clock);
    let answer = match ask(runtime, service, channel.clone(), TimeDelta::zero()).await {
        // Either the secret differs, or the clock of the service is so far ahead that the token has expired there.
        Err(status) if status.code() == Code::Unauthenticated => {
            ask(runtime, service, channel, CLOCK_AHEAD).await
        }
        other => other,
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(status) => return vec![refused(&status)],
    };
    let now = answer.now.as_ref().and_then(from_timestamp).unwrap_or_default();
    let clock = assess("its clock", span.end(&runtime.clock, now));
    [version(&answer.version), clock].into_iter().chain(answer.findings).collect()
}

async fn ask(
    runtime: &Runtime,
    service: &str,
    channel: Channel,
    ahead: TimeDelta,
) -> Result<ExamineResponse, Status> {
    let now = runtime.clock.now() + ahead;
    let mut request = runtime.mesh_request(service, &no_account(), "doctor", now, ExamineRequest {})?;
    request.set_timeout(EXAMINE_TIMEOUT);
    let mut client = DoctorServiceClient::new(channel);
    match tokio::time::timeout(EXAMINE_TIMEOUT, client.examine(request)).await {
        Ok(answer) => answer.map(tonic::Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded("it does not answer")),
    }
}

fn refused(status: &Status) -> Finding {
    match status.code() {
        Code::Unauthenticated => bad(
            ANSWERS,
            "it refuses the context token",
            "Give it and the gateway the same CONTEXT_SECRET, and restart what was changed.",
        ),
        Code::Unimplemented => doubtful(
            ANSWERS,
            "it cannot be examined",
            "It is of an older release, or not a service of ours: see PEERS and what runs at that address.",
        ),
        _ => bad(ANSWERS, Peer::reason(status), UNREACHABLE_ADVICE),
    }
}

fn version(theirs: &str) -> Finding {
    if theirs == VERSION {
        good(ANSWERS, format!("release {theirs}"))
    } else {
        let advice = "Fine while a release is rolled out; otherwise bring both to the same release.";
        doubtful(ANSWERS, format!("release {theirs}, the gateway is {VERSION}"), advice)
    }
}
