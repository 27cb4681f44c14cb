//! `WorkorderService`.

use proto::billing::workorder_service_server::WorkorderService;
use proto::billing::{
    CreateDocumentRequest, CreateDocumentResponse, DeleteDocumentRequest, DeleteWorkorderResponse,
    FinalizeDocumentRequest, FinalizeDocumentResponse, GetDocumentPdfRequest, GetDocumentPdfResponse,
    GetDocumentRequest, GetDocumentResponse, ListDocumentsRequest, ListDocumentsResponse,
    SendDocumentRequest, SendDocumentResponse, UpdateDocumentRequest, UpdateDocumentResponse,
};
use tonic::{Request, Response, Status};

use super::DocumentService;

#[tonic::async_trait]
impl WorkorderService for DocumentService {
    async fn list_workorders(
        &self,
        request: Request<ListDocumentsRequest>,
    ) -> Result<Response<ListDocumentsResponse>, Status> {
        self.list(request).await
    }

    async fn create_workorder(
        &self,
        request: Request<CreateDocumentRequest>,
    ) -> Result<Response<CreateDocumentResponse>, Status> {
        self.create(request).await
    }

    async fn get_workorder(
        &self,
        request: Request<GetDocumentRequest>,
    ) -> Result<Response<GetDocumentResponse>, Status> {
        self.get(request).await
    }

    async fn update_workorder(
        &self,
        request: Request<UpdateDocumentRequest>,
    ) -> Result<Response<UpdateDocumentResponse>, Status> {
        self.update(request).await
    }

    async fn delete_workorder(
        &self,
        request: Request<DeleteDocumentRequest>,
    ) -> Result<Response<DeleteWorkorderResponse>, Status> {
        // The contract answers without a body here.
        self.delete(request).await.map(|response| response.map(|_| DeleteWorkorderResponse {}))
    }

    async fn finalize_workorder(
        &self,
        request: Request<FinalizeDocumentRequest>,
    ) -> Result<Response<FinalizeDocumentResponse>, Status> {
        self.finalize(request).await
    }

    async fn send_workorder(
        &self,
        request: Request<SendDocumentRequest>,
    ) -> Result<Response<SendDocumentResponse>, Status> {
        self.send(request).await
    }

    async fn get_workorder_pdf(
        &self,
        request: Request<GetDocumentPdfRequest>,
    ) -> Result<Response<GetDocumentPdfResponse>, Status> {
        self.pdf(request).await
    }
}
