//! `ProjectService`: parses requests, looks up references, calls the operations, answers.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_base::update_mask::UpdateMask as Mask;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_rpc::outgoing::Outgoing;
use chassis_rpc::references::{Lookup, References};
use proto::billing::Document;
use proto::work::project_service_server::ProjectService;
use proto::work::{
    CreateProjectFromQuoteRequest, CreateProjectFromQuoteResponse, CreateProjectRequest,
    CreateProjectResponse, GetProjectRequest, GetProjectResponse, ListProjectsRequest, ListProjectsResponse,
    Project, ProjectStatus, UpdateProjectRequest, UpdateProjectResponse,
};
use proto::{At, Faults};
use tonic::{Request, Response, Status};

use super::store::Filter;
use super::{operations, quotes, store};
use crate::error::Error;
use crate::references::CLIENT;

const NOT_FOUND: Error = Error::NotFound("project");

pub(crate) struct Projects {
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
        let page = Page::new(input.page, input.per_page);
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            status: Some(input.status()).filter(|status| *status != ProjectStatus::Unspecified),
            client: id::filter(&input.client_id),
            quote: id::filter(&input.quote_id),
            search: input.search.trim(),
        };
        let (records, meta) = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), &filter, page).await)
            .await?;
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
        let client = Lookup { kind: CLIENT, at: &at.name("client_id"), id: &client };
        self.references.check(&mut call, &[client]).await?;
        let create = async |tx: &mut Tx<'_>, input: &CreateProjectRequest| {
            let given = input.project.clone().unwrap_or_default();
            let record = operations::create(tx, &given).await?;
            Ok::<_, Error>(CreateProjectResponse { data: Some(record.into()) })
        };
        self.db.write(call, create).await
    }

    async fn get_project(
        &self,
        request: Request<GetProjectRequest>,
    ) -> Result<Response<GetProjectResponse>, Status> {
        // `valid` is not called: a malformed id is answered as not found, and no other field can be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let found =
            self.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        let data = found.map(Project::from).ok_or(NOT_FOUND)?;
        Ok(Response::new(GetProjectResponse { data: Some(data) }))
    }

    async fn update_project(
        &self,
        request: Request<UpdateProjectRequest>,
    ) -> Result<Response<UpdateProjectResponse>, Status> {
        let call = Call::open(request)?;
        let missing = self.missing_references(&call).await?;
        self.db.write_with(call, missing, update).await
    }

    /// Billing is called before the transaction and after it. A crash in between leaves a project whose quote does not
    /// name it yet; the next call with the same quote finds that project and calls billing again.
    async fn create_project_from_quote(
        &self,
        request: Request<CreateProjectFromQuoteRequest>,
    ) -> Result<Response<CreateProjectFromQuoteResponse>, Status> {
        let call = Call::open(request)?;
        let context = call.context.clone();
        let quote = quotes::find(&self.outgoing, &context, &call.input.quote_id).await?;
        let quote_id = quote.as_ref().map(|quote| quote.id.clone());
        let response = self.db.write_with(call, FoundQuote(quote), create_from_quote).await?;
        if !context.dry_run
            && let Some((quote_id, project)) = quote_id.zip(response.get_ref().data.as_ref())
        {
            quotes::set_project(&self.outgoing, &context, &quote_id, &project.number).await?;
        }
        Ok(response)
    }
}

impl Projects {
    /// The faults of references in a change to records that do not exist.
    async fn missing_references(
        &self,
        call: &Call<UpdateProjectRequest>,
    ) -> Result<Faults, chassis_base::Error> {
        let input = &call.input;
        let Some(given) =
            input.project.as_ref().filter(|_| Mask::from(input.update_mask.as_ref()).has("client_id"))
        else {
            return Ok(Faults::default());
        };
        let at = At::ROOT.name("project");
        let client = Lookup { kind: CLIENT, at: &at.name("client_id"), id: &given.client_id };
        self.references.missing(&call.context, &[client]).await
    }
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateProjectRequest,
    missing: &Faults,
) -> Result<UpdateProjectResponse, Error> {
    let given = input.project.clone().unwrap_or_default();
    let named = Mask::from(input.update_mask.as_ref());
    let record = operations::update(tx, &input.id, &given, named, missing).await?;
    Ok(UpdateProjectResponse { data: Some(record.into()) })
}

/// What billing answered about a quote.
struct FoundQuote(Option<Document>);

async fn create_from_quote(
    tx: &mut Tx<'_>,
    input: &CreateProjectFromQuoteRequest,
    FoundQuote(quote): &FoundQuote,
) -> Result<CreateProjectFromQuoteResponse, Error> {
    let record = operations::create_from_quote(tx, &input.quote_id, quote.as_ref()).await?;
    Ok(CreateProjectFromQuoteResponse { data: Some(record.into()) })
}
