//! Quotes, which belong to billing: the calls that the conversion of a quote into a project makes. Not in `operations`,
//! because a call to another service is never made inside a transaction.

use chassis_base::id;
use chassis_rpc::Context;
use chassis_rpc::outgoing::{Outgoing, lookup_failed};
use proto::billing::quote_service_client::QuoteServiceClient;
use proto::billing::{Document, GetDocumentRequest, SetQuoteProjectRequest};
use tonic::Code;

use crate::error::Error;

const SERVICE: &str = "billing";

/// Finds a quote of the account. `None` also for a text that is not an id.
pub(super) async fn find(
    outgoing: &Outgoing,
    context: &Context,
    id: &str,
) -> Result<Option<Document>, Error> {
    let Some(id) = id::parse(id) else { return Ok(None) };
    let input = GetDocumentRequest { id: id.to_string() };
    let request = outgoing.request(SERVICE, context.account(), context.deadline, input)?;
    match QuoteServiceClient::new(outgoing.channel(SERVICE)?).get_quote(request).await {
        Ok(found) => Ok(found.into_inner().data),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(lookup_failed(SERVICE, "Quotes", &status).into()),
    }
}

/// Stores the number of the project with its quote. Repeating it has no effect.
pub(super) async fn set_project(
    outgoing: &Outgoing,
    context: &Context,
    id: &str,
    project_number: &str,
) -> Result<(), Error> {
    let input = SetQuoteProjectRequest { id: id.to_owned(), project_number: project_number.to_owned() };
    let request = outgoing.caused_request(SERVICE, context, input)?;
    match QuoteServiceClient::new(outgoing.channel(SERVICE)?).set_quote_project(request).await {
        Ok(_) => Ok(()),
        // The quote was deleted or names another project. The caller gets the answer of billing; the project stays.
        Err(status) if matches!(status.code(), Code::FailedPrecondition | Code::NotFound) => {
            Err(chassis_base::Error::Peer(Box::new(status)).into())
        }
        Err(status) => Err(lookup_failed(SERVICE, "Quotes", &status).into()),
    }
}
