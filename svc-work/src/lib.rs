//! Projects, hours, tasks, notes and files.
//!
//! So far the service only learns of its accounts; its operations are added resource by resource.

use chassis::{Runtime, Service};
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

pub struct Work;

#[tonic::async_trait]
impl Service for Work {
    const NAME: &'static str = "work";
    const ABOUT: &'static str = "Projects, hours, tasks, notes and files";

    fn migrations() -> &'static Migrator {
        static NONE_YET: Migrator = Migrator::DEFAULT;
        &NONE_YET
    }

    fn routes(_: &Runtime, _: &mut RoutesBuilder) {}
}
