//! Tickets, messages, channels, statuses and mail domains.
//!
//! So far the service only learns of its accounts; its operations are added resource by resource.

use chassis::{Runtime, Service};
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

pub struct Support;

#[tonic::async_trait]
impl Service for Support {
    const NAME: &'static str = "support";
    const ABOUT: &'static str = "Tickets, messages, channels, statuses and mail domains";

    fn migrations() -> &'static Migrator {
        static NONE_YET: Migrator = Migrator::DEFAULT;
        &NONE_YET
    }

    fn routes(_: &Runtime, _: &mut RoutesBuilder) {}
}
