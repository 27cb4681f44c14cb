//! `MailIntakeService`: parse, call, answer. The bytes of a mail are freed when it has been parsed, those of its files
//! as they are stored.

use chassis_data::Tx;
use chassis_rpc::Call;
use proto::At;
use proto::api::Fault;
use proto::support::mail_intake_service_server::MailIntakeService;
use proto::support::{IntakeOutcome, ReceiveMailRequest, ReceiveMailResponse};
use sha2::{Digest, Sha256};
use tonic::{Request, Response, Status};

use super::memory_layer::RequestReservation;
use super::prepare::RawMail;
use super::{Intake, Prepared, max_bytes, operations};
use crate::error::Error;

#[tonic::async_trait]
impl MailIntakeService for Intake {
    async fn receive_mail(
        &self,
        request: Request<ReceiveMailRequest>,
    ) -> Result<Response<ReceiveMailResponse>, Status> {
        let reservation = request.extensions().get::<RequestReservation>().cloned();
        let mut call = Call::open(request)?;
        let raw = std::mem::take(&mut call.input.message);
        if let Some(reservation) = &reservation {
            reservation.shrink_to(raw.len());
        }
        // Two calls with one idempotency key are the same if their mails are; the digest stands for the mail.
        if call.context.idempotency_key.is_some() {
            call.input.message = Sha256::digest(&raw).to_vec().into();
        }
        let at = At::ROOT;
        let max = max_bytes(&self.memory);
        if raw.is_empty() {
            call.faults.add(&at.name("message"), Fault::Required, "message is required");
        } else if raw.len() > max {
            let detail = format!("message must have at most {max} bytes");
            call.faults.add(&at.name("message"), Fault::TooLong, detail);
        }
        let prepared = if call.faults.is_empty() {
            self.prepare(&call.context, RawMail { bytes: raw, sender: &call.input.sender }).await?
        } else {
            None
        };
        if prepared.is_none() && call.faults.is_empty() {
            let detail = "message must be a mail as RFC 5322 describes it, with fewer parts";
            call.faults.add(&at.name("message"), Fault::BadFormat, detail);
        }
        let prepared = prepared.unwrap_or_else(|| self.empty());
        let answer = self.db.write_with(call, prepared, receive).await?;
        log_outcome(answer.get_ref());
        Ok(answer)
    }
}

async fn receive(
    tx: &mut Tx<'_>,
    input: &ReceiveMailRequest,
    prepared: &Prepared,
) -> Result<ReceiveMailResponse, Error> {
    operations::receive(tx, input, prepared).await
}

fn log_outcome(answer: &ReceiveMailResponse) {
    let outcome = match answer.outcome() {
        IntakeOutcome::Opened => "opened",
        IntakeOutcome::Added => "added",
        IntakeOutcome::Duplicate => "duplicate",
        IntakeOutcome::Ignored | IntakeOutcome::Unspecified => "ignored",
    };
    metrics::counter!("mails_in_total", "outcome" => outcome).increment(1);
    tracing::info!(outcome, ticket = answer.ticket_id, reason = answer.reason, "mail received");
}
