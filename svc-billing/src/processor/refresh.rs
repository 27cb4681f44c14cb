//! Refreshing payments: fetching their state from the provider within a call. A file of its own, because it calls the
//! provider between transactions.

use std::time::{Duration, Instant};

use chassis_rpc::Context;
use chrono::TimeDelta;
use uuid::Uuid;

use super::{Origin, PaymentProcessor};
use crate::error::Error;
use crate::online_payment::{
    CommandKind, OnlinePayment, ProviderCommand, Status, provider_unavailable, store,
};

/// A page that is opened again within this time does not refresh its payment again.
const MIN_REFRESH_INTERVAL: TimeDelta = TimeDelta::seconds(10);
/// The part of the caller's time that is reserved for the answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

impl PaymentProcessor {
    /// Executes the queued command of this kind, if there is one, within the caller's deadline. A command that is not
    /// done by then stays in the queue for the worker.
    pub(crate) async fn execute_now(
        &self,
        context: &Context,
        kind: CommandKind,
        subject: Uuid,
    ) -> Result<(), Error> {
        let found = self
            .db
            .read(async |connection| {
                store::commands::find(connection, context.account_id(), kind, subject).await
            })
            .await?;
        match found {
            Some(command) => self.execute_within_deadline(context, &command).await,
            None => Ok(()),
        }
    }

    /// Fetches the state of a payment from the provider and records it.
    pub(crate) async fn refresh(&self, origin: &Origin<'_>, payment: Uuid) -> Result<(), Error> {
        let command = ProviderCommand::refresh(self.db.clock().id(), payment, origin.now());
        match origin {
            Origin::Call(context) => self.execute_within_deadline(context, &command).await,
            Origin::Job(_) => self.execute(origin, &command).await,
        }
    }

    /// The same, with failures logged instead of returned: the stored state is good enough for the caller.
    pub(crate) async fn refresh_best_effort(&self, context: &Context, payment: Uuid) {
        if let Err(error) = self.refresh(&Origin::Call(context), payment).await {
            let error = chassis_base::Error::from(error);
            tracing::warn!(%error, %payment, "payment could not be refreshed");
        }
    }

    /// A payment after a refresh, if it may have changed and was not refreshed just before. If the provider does not
    /// answer, the stored state is returned.
    pub(crate) async fn refreshed(
        &self,
        context: &Context,
        payment: OnlinePayment,
    ) -> Result<OnlinePayment, Error> {
        let is_recent = payment.asked_at + MIN_REFRESH_INTERVAL > context.clock.now();
        if !matches!(payment.status, Status::Open | Status::Pending) || is_recent {
            return Ok(payment);
        }
        self.refresh_best_effort(context, payment.id).await;
        let found = self
            .db
            .read(async |connection| store::find(connection, context.account_id(), payment.id).await)
            .await?;
        Ok(found.unwrap_or(payment))
    }

    async fn execute_within_deadline(
        &self,
        context: &Context,
        command: &ProviderCommand,
    ) -> Result<(), Error> {
        let remaining = context.deadline.saturating_duration_since(Instant::now());
        let remaining = remaining.saturating_sub(ANSWER_TIME);
        let origin = Origin::Call(context);
        match tokio::time::timeout(remaining, Box::pin(self.execute(&origin, command))).await {
            Ok(outcome) => outcome,
            Err(_) => Err(provider_unavailable()),
        }
    }
}
