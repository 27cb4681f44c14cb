//! `InvoiceService`.

use chassis_data::Tx;
use chassis_rpc::Call;
use proto::api::HttpBody;
use proto::billing::invoice_service_server::InvoiceService;
use proto::billing::{
    CreateDocumentRequest, CreateDocumentResponse, CreditInvoiceRequest, CreditInvoiceResponse,
    DeleteDocumentRequest, DeleteDocumentResponse, FinalizeDocumentRequest, FinalizeDocumentResponse,
    GetDocumentPdfRequest, GetDocumentPdfResponse, GetDocumentRequest, GetDocumentResponse,
    GetInvoiceUblRequest, ListDocumentsRequest, ListDocumentsResponse, SendDocumentRequest,
    SendDocumentResponse, UpdateDocumentRequest, UpdateDocumentResponse,
};
use render::text::file_name;
use tonic::{Request, Response, Status};

use super::DocumentService;
use crate::document::operations::{self, OperationContext};
use crate::error::Error;

#[tonic::async_trait]
impl InvoiceService for DocumentService {
    async fn list_invoices(
        &self,
        request: Request<ListDocumentsRequest>,
    ) -> Result<Response<ListDocumentsResponse>, Status> {
        self.list(request).await
    }

    async fn create_invoice(
        &self,
        request: Request<CreateDocumentRequest>,
    ) -> Result<Response<CreateDocumentResponse>, Status> {
        self.create(request).await
    }

    async fn get_invoice(
        &self,
        request: Request<GetDocumentRequest>,
    ) -> Result<Response<GetDocumentResponse>, Status> {
        self.get(request).await
    }

    async fn update_invoice(
        &self,
        request: Request<UpdateDocumentRequest>,
    ) -> Result<Response<UpdateDocumentResponse>, Status> {
        self.update(request).await
    }

    async fn delete_invoice(
        &self,
        request: Request<DeleteDocumentRequest>,
    ) -> Result<Response<DeleteDocumentResponse>, Status> {
        self.delete(request).await
    }

    async fn finalize_invoice(
        &self,
        request: Request<FinalizeDocumentRequest>,
    ) -> Result<Response<FinalizeDocumentResponse>, Status> {
        self.finalize(request).await
    }

    async fn send_invoice(
        &self,
        request: Request<SendDocumentRequest>,
    ) -> Result<Response<SendDocumentResponse>, Status> {
        self.send(request).await
    }

    async fn get_invoice_pdf(
        &self,
        request: Request<GetDocumentPdfRequest>,
    ) -> Result<Response<GetDocumentPdfResponse>, Status> {
        self.pdf(request).await
    }

    async fn credit_invoice(
        &self,
        request: Request<CreditInvoiceRequest>,
    ) -> Result<Response<CreditInvoiceResponse>, Status> {
        let call = Call::open(request)?;
        let context = call.context.clone();
        let mut response = self.shared.db.write_with(call, self.context(None), credit).await?;
        self.render_pdf(&context, &mut response, |answer| &mut answer.data).await;
        Ok(response)
    }

    async fn get_invoice_ubl(
        &self,
        request: Request<GetInvoiceUblRequest>,
    ) -> Result<Response<HttpBody>, Status> {
        let Call { context, input, .. } = Call::open(request)?;
        let full = self.find(&context, &input.id).await?;
        if !full.record.is_final {
            return Err(Error::IsDraft.into());
        }
        let xml = self.shared.renderer.ubl(context.account(), &full).await?;
        let name = file_name(&full.record.number);
        Ok(Response::new(HttpBody {
            content_type: "application/xml".to_owned(),
            data: xml.into(),
            disposition: format!("attachment; filename=\"{name}.xml\""),
            ..HttpBody::default()
        }))
    }
}

async fn credit(
    tx: &mut Tx<'_>,
    input: &CreditInvoiceRequest,
    context: &OperationContext,
) -> Result<CreditInvoiceResponse, Error> {
    let given = input.credit.clone().unwrap_or_default();
    Ok(CreditInvoiceResponse { data: Some(operations::credit(tx, context, &input.id, &given).await?) })
}
