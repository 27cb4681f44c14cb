//! `EventService`: what has happened lately.

use chassis_base::paging::Page;
use chassis_base::time::{first_moment, last_moment, timestamp};
use chassis_data::Db;
use chassis_rpc::Call;
use proto::automation::event_service_server::EventService;
use proto::automation::{ListEventsRequest, ListEventsResponse, RecordedEvent};
use tonic::{Request, Response, Status};

use super::readers::Reader;
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
        let oldest = context.clock.now() - store::KEPT;
        let filter = Filter {
            kind: super::rules::canonical(&input.r#type),
            entity_type: &input.entity_type,
            entity_id: &input.entity_id,
            from: first_moment(&input.from, zone).map_or(oldest, |from| from.max(oldest)),
            to: last_moment(&input.to, zone),
        };
        let page = Page::new(input.page, input.per_page);
        let reader = Reader::of_caller(&context.identity);
        let rows = self.db.read(async |connection| {
            store::list(connection, context.account_id(), &reader, &filter, page).await
        });
        let (rows, meta) = rows.await?;
        let data = rows.into_iter().map(|row| RecordedEvent {
            id: row.id.to_string(),
            r#type: row.kind,
            entity_type: row.entity_type,
            entity_id: row.entity_id,
            data: row.data,
            occurred_at: Some(timestamp(row.occurred_at)),
            created_at: Some(timestamp(row.received_at)),
        });
        Ok(Response::new(ListEventsResponse { data: data.collect(), meta: Some(meta) }))
    }
}
