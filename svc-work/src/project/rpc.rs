//! `ProjectService`: parse, look references up, write, reply.

use chassis::mask::Named as Mask;
use chassis::outgoing::Outgoing;
use chassis::paging::Page;
use chassis::references::{Named, References};
use chassis::{Call, Db, id};
use proto::work::project_service_server::ProjectService;
use proto::work::{
    CreateProjectFromQuoteRequest, CreateProjectFromQuoteResponse, CreateProjectRequest,
    CreateProjectResponse, GetProjectRequest, GetProjectResponse, ListProjectsRequest, ListProjectsResponse,
    Project, UpdateProjectRequest, UpdateProjectResponse,
};
use proto::{At, Faults};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::operations::{self, UNKNOWN};
use super::{from_quote, store};
use crate::refer::CLIENT;

pub struct Projects {
    pub db: Db,
    pub references: References,
    pub outgoing: Outgoing,
}

#[tonic::async_trait]
impl ProjectService for Projects {
    async fn list_projects(
        &self,
        request: Request<ListProjectsRequest>,
    ) -> Result<Response<ListProjectsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let search = input.search.trim();
        let client = wanted(&input.client_id);
        let page = Page::new(input.page, input.per_page);
        let mut connection = self.db.read().await?;
        let (records, meta) =
            store::list(&mut connection, context.account_id(), search, client, page).await?;
        connection.done();
        let data = records.into_iter().map(Project::from).collect();
        Ok(Response::new(ListProjectsResponse { data, meta: Some(meta) }))
    }

    async fn create_project(
        &self,
        request: Request<CreateProjectRequest>,
    ) -> Result<Response<CreateProjectResponse>, Status> {
        let mut call = Call::open(request)?;
        let at = At::ROOT.name("project");
        let client = call.input.project.as_ref().map(|given| given.client_id.clone()).unwrap_or_default();
        let client = Named { kind: CLIENT, at: &at.name("client_id"), id: &client };
        self.references.check(&mut call, &[client]).await?;
        self.db.write(call, operations::create).await
    }

    async fn get_project(
        &self,
        request: Request<GetProjectRequest>,
    ) -> Result<Response<GetProjectResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(UNKNOWN)?;
        let mut connection = self.db.read().await?;
        let found = store::find(&mut connection, context.account_id(), id).await?;
        connection.done();
        let data = found.map(Project::from).ok_or(UNKNOWN)?;
        Ok(Response::new(GetProjectResponse { data: Some(data) }))
    }

    async fn update_project(
        &self,
        request: Request<UpdateProjectRequest>,
    ) -> Result<Response<UpdateProjectResponse>, Status> {
        let call = Call::open(request)?;
        let missing = self.missing(&call).await?;
        self.db.write_with(call, missing, operations::update).await
    }

    async fn create_project_from_quote(
        &self,
        request: Request<CreateProjectFromQuoteRequest>,
    ) -> Result<Response<CreateProjectFromQuoteResponse>, Status> {
        from_quote::convert(self, Call::open(request)?).await
    }
}

impl Projects {
    /// What a change refers to and is not there.
    async fn missing(&self, call: &Call<UpdateProjectRequest>) -> Result<Faults, chassis::Error> {
        let input = &call.input;
        let Some(given) =
            input.project.as_ref().filter(|_| Mask::from(input.update_mask.as_ref()).has("client_id"))
        else {
            return Ok(Faults::default());
        };
        let at = At::ROOT.name("project");
        let client = Named { kind: CLIENT, at: &at.name("client_id"), id: &given.client_id };
        self.references.missing(&call.context, &[client]).await
    }
}

/// The id of a filter. One that is none matches nothing.
pub fn wanted(text: &str) -> Option<Uuid> {
    (!text.is_empty()).then(|| id::parse(text).unwrap_or_default())
}
