//! `QuoteService`.

use chassis_data::Tx;
use chassis_rpc::Call;
use proto::billing::quote_service_server::QuoteService;
use proto::billing::{
    AcceptQuoteRequest, AcceptQuoteResponse, CreateDocumentRequest, CreateDocumentResponse,
    DeleteDocumentRequest, DeleteDocumentResponse, FinalizeDocumentRequest, FinalizeDocumentResponse,
    GetDocumentPdfRequest, GetDocumentPdfResponse, GetDocumentRequest, GetDocumentResponse,
    ListDocumentsRequest, ListDocumentsResponse, SendDocumentRequest, SendDocumentResponse,
    SetQuoteProjectRequest, SetQuoteProjectResponse, UpdateDocumentRequest, UpdateDocumentResponse,
};
use tonic::{Request, Response, Status};

use super::DocumentService;
use crate::document::operations::{self, OperationContext};
use crate::error::Error;

#[tonic::async_trait]
impl QuoteService for DocumentService {
    async fn list_quotes(
        &self,
        request: Request<ListDocumentsRequest>,
    ) -> Result<Response<ListDocumentsResponse>, Status> {
        self.list(request).await
    }

    async fn create_quote(
        &self,
        request: Request<CreateDocumentRequest>,
    ) -> Result<Response<CreateDocumentResponse>, Status> {
        self.create(request).await
    }

    async fn get_quote(
        &self,
        request: Request<GetDocumentRequest>,
    ) -> Result<Response<GetDocumentResponse>, Status> {
        self.get(request).await
    }

    async fn update_quote(
        &self,
        request: Request<UpdateDocumentRequest>,
    ) -> Result<Response<UpdateDocumentResponse>, Status> {
        self.update(request).await
    }

    async fn delete_quote(
        &self,
        request: Request<DeleteDocumentRequest>,
    ) -> Result<Response<DeleteDocumentResponse>, Status> {
        self.delete(request).await
    }

    async fn finalize_quote(
        &self,
        request: Request<FinalizeDocumentRequest>,
    ) -> Result<Response<FinalizeDocumentResponse>, Status> {
        self.finalize(request).await
    }

    async fn send_quote(
        &self,
        request: Request<SendDocumentRequest>,
    ) -> Result<Response<SendDocumentResponse>, Status> {
        self.send(request).await
    }

    async fn get_quote_pdf(
        &self,
        request: Request<GetDocumentPdfRequest>,
    ) -> Result<Response<GetDocumentPdfResponse>, Status> {
        self.pdf(request).await
    }

    async fn accept_quote(
        &self,
        request: Request<AcceptQuoteRequest>,
    ) -> Result<Response<AcceptQuoteResponse>, Status> {
        let call = Call::open(request)?;
        let context = call.context.clone();
        let client = self.client_of_draft(&context, &call.input.id).await?;
        let mut response = self.shared.db.write_with(call, self.context(client), accept).await?;
        self.render_pdf(&context, &mut response, |answer| &mut answer.data).await;
        Ok(response)
    }

    async fn set_quote_project(
        &self,
        request: Request<SetQuoteProjectRequest>,
    ) -> Result<Response<SetQuoteProjectResponse>, Status> {
        self.shared.db.write_with(Call::open(request)?, self.context(None), set_project).await
    }
}

async fn set_project(
    tx: &mut Tx<'_>,
    input: &SetQuoteProjectRequest,
    context: &OperationContext,
) -> Result<SetQuoteProjectResponse, Error> {
    operations::set_project(tx, context, &input.id, &input.project_number).await?;
    Ok(SetQuoteProjectResponse {})
}

async fn accept(
    tx: &mut Tx<'_>,
    input: &AcceptQuoteRequest,
    context: &OperationContext,
) -> Result<AcceptQuoteResponse, Error> {
    Ok(AcceptQuoteResponse { data: Some(operations::accept(tx, context, &input.id).await?) })
}
