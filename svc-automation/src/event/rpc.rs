//! `EventService`: lists recent events.

use chassis_base::paging::Page;
use chassis_base::time::{first_moment, last_moment};
use chassis_data::Db;
use chassis_data::list::Selection;
use chassis_rpc::Call;
use proto::automation::event_service_server::EventService;
use proto::automation::{ListEventsRequest, ListEventsResponse, RecordedEvent};
use tonic::{Request, Response, Status};

use super::ReadAccess;
use super::rules::canonical;
use super::store::{self, Filter};

pub(crate) struct Events {
    pub db: Db,
}

#[tonic::async_trait]
impl EventService for Events {
    async fn list_events(
        &self,
        request: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let zone = context.account().timezone;
        // Events that are about to be purged are not shown, whether the purge has come to them or not.
        let oldest = context.clock.now() - store::RETENTION;
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            kind: canonical(&input.r#type),
            entity_type: &input.entity_type,
            entity_id: &input.entity_id,
            from: first_moment(&input.from, zone).map_or(oldest, |from| from.max(oldest)),
            to: last_moment(&input.to, zone),
        };
        let page = Page::new(input.page, input.per_page);
        let access = ReadAccess::of_caller(&context.identity);
        let (rows, meta) = self
            .db
            .read(async |connection| {
                store::list(connection, context.account_id(), &access, &filter, page).await
            })
            .await?;
        let data = rows.into_iter().map(RecordedEvent::from).collect();
        Ok(Response::new(ListEventsResponse { data, meta: Some(meta) }))
    }
}
