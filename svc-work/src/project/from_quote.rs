//! A project of an accepted quote. Billing is asked before the transaction and told after it; both can be repeated, and
//! the quote stands with its project, so that any number of calls makes one.

use chassis::outgoing::{Outgoing, away};
use chassis::{Call, Context, Tx, id};
use proto::At;
use proto::api::Fault;
use proto::billing::quote_service_client::QuoteServiceClient;
use proto::billing::{Document, GetDocumentRequest, SetQuoteProjectRequest};
use proto::work::{CreateProjectFromQuoteRequest, CreateProjectFromQuoteResponse};
use tonic::{Code, Response, Status};
use uuid::Uuid;

use super::rpc::Projects;
use super::{Values, operations, store};
use crate::Error;

pub async fn convert(
    projects: &Projects,
    call: Call<CreateProjectFromQuoteRequest>,
) -> Result<Response<CreateProjectFromQuoteResponse>, Status> {
    let context = call.context.clone();
    let quote = find_quote(&projects.outgoing, &context, &call.input.quote_id).await?;
    let id = quote.as_ref().map(|quote| quote.id.clone());
    let response = projects.db.write_with(call, quote, create).await?;
    // Also after a repeat, whose first attempt may have ended here.
    let project = response.get_ref().data.as_ref();
    if let Some((id, project)) = id.zip(project) {
        mark(&projects.outgoing, &context, &id, &project.number).await?;
    }
    Ok(response)
}

/// The quote, if there is one of this id.
async fn find_quote(outgoing: &Outgoing, context: &Context, id: &str) -> Result<Option<Document>, Error> {
    let Some(id) = id::parse(id) else { return Ok(None) };
    let asked = GetDocumentRequest { id: id.to_string() };
    let request = outgoing.request("billing", context.account(), context.deadline, asked)?;
    match QuoteServiceClient::new(outgoing.channel("billing")?).get_quote(request).await {
        Ok(found) => Ok(found.into_inner().data),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(away("billing", "Quotes", &status).into()),
    }
}

/// Keeps the project's number with its quote.
async fn mark(outgoing: &Outgoing, context: &Context, id: &str, number: &str) -> Result<(), Error> {
    let told = SetQuoteProjectRequest { id: id.to_owned(), project_number: number.to_owned() };
    let request = outgoing.caused_request("billing", context, told)?;
    let marked = QuoteServiceClient::new(outgoing.channel("billing")?).set_quote_project(request).await;
    match marked {
        Ok(_) => Ok(()),
        // A final quote cannot go away; should it name another project, ours is there all the same.
        Err(status) if matches!(status.code(), Code::FailedPrecondition | Code::NotFound) => {
            Err(chassis::Error::Peer(Box::new(status)).into())
        }
        Err(status) => Err(away("billing", "Quotes", &status).into()),
    }
}

async fn create(
    tx: &mut Tx<'_>,
    (input, quote): &(CreateProjectFromQuoteRequest, Option<Document>),
) -> Result<CreateProjectFromQuoteResponse, Error> {
    let found = quote.as_ref().and_then(|quote| Some((quote, id::parse(&quote.id)?)));
    if found.is_none() && !input.quote_id.is_empty() {
        let detail = "quote_id must be the id of a quote of this account";
        tx.faults.add(&At::ROOT.name("quote_id"), Fault::UnknownReference, detail);
    }
    tx.valid()?;
    let (quote, quote_id) = found.ok_or(Error::NotFound("quote"))?;
    let account = tx.account();
    let record = match store::find_by_quote(tx.db(), account, quote_id).await? {
        Some(record) => record,
        None => operations::insert(tx, values(quote)?, Some(quote_id)).await?,
    };
    Ok(CreateProjectFromQuoteResponse { data: Some(record.into()) })
}

/// What a project takes from its quote.
fn values(quote: &Document) -> Result<Values, Error> {
    if quote.meta.as_ref().is_none_or(|meta| meta.accepted_at.is_none()) {
        let status = &quote.payment_status;
        return Err(Error::WrongStatus(format!(
            "The quote is not accepted; its payment_status is {status}. Accept it first."
        )));
    }
    let client: Option<Uuid> = id::parse(&quote.client_id);
    let budget = quote.total_excl_vat.parse().ok();
    Ok(Values { name: quote.title.clone(), client, budget, ..Values::default() })
}
