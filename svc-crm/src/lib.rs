//! Deals, pipelines, phases and sources.
//!
//! So far the service only learns of its accounts; its operations are added resource by resource.

use chassis::{Runtime, Service};
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

pub struct Crm;

#[tonic::async_trait]
impl Service for Crm {
    const NAME: &'static str = "crm";
    const ABOUT: &'static str = "Deals, pipelines, phases and sources";

    fn migrations() -> &'static Migrator {
        static NONE_YET: Migrator = Migrator::DEFAULT;
        &NONE_YET
    }

    fn routes(_: &Runtime, _: &mut RoutesBuilder) {}
}
