//! `NoteService`: parses requests, looks up references, calls the operations, answers.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_base::update_mask::UpdateMask as Mask;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_rpc::references::{Lookup, References};
use proto::At;
use proto::work::note_service_server::NoteService;
use proto::work::{
    CreateNoteRequest, CreateNoteResponse, DeleteNoteRequest, DeleteNoteResponse, ListNotesRequest,
    ListNotesResponse, Note, UpdateNoteRequest, UpdateNoteResponse,
};
use tonic::{Request, Response, Status};

use super::{Related, operations, store};
use crate::error::Error;
use crate::references::{CLIENT, DEAL, INVOICE};

pub(crate) struct Notes {
    pub db: Db,
    pub references: References,
}

#[tonic::async_trait]
impl NoteService for Notes {
    async fn list_notes(
        &self,
        request: Request<ListNotesRequest>,
    ) -> Result<Response<ListNotesResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let related = Related {
            client: id::filter(&input.client_id),
            invoice: id::filter(&input.invoice_id),
            project: id::filter(&input.project_id),
            deal: id::filter(&input.deal_id),
        };
        let page = Page::new(input.page, input.per_page);
        let selection = Selection::new(context.account(), &input);
        let (records, meta) = self
            .db
            .read(async |connection| {
                store::list(connection, context.account_id(), &selection, related, page).await
            })
            .await?;
        let data = records.into_iter().map(Note::from).collect();
        Ok(Response::new(ListNotesResponse { data, meta: Some(meta) }))
    }

    async fn create_note(
        &self,
        request: Request<CreateNoteRequest>,
    ) -> Result<Response<CreateNoteResponse>, Status> {
        let mut call = Call::open(request)?;
        let given = call.input.note.clone().unwrap_or_default();
        let at = At::ROOT.name("note");
        let named = [
            Lookup { kind: CLIENT, at: &at.name("client_id"), id: &given.client_id },
            Lookup { kind: INVOICE, at: &at.name("invoice_id"), id: &given.invoice_id },
            Lookup { kind: DEAL, at: &at.name("deal_id"), id: &given.deal_id },
        ];
        self.references.check(&mut call, &named).await?;
        let create = async |tx: &mut Tx<'_>, input: &CreateNoteRequest| {
            let given = input.note.clone().unwrap_or_default();
            let record = operations::create(tx, &given).await?;
            Ok::<_, Error>(CreateNoteResponse { data: Some(record.into()) })
        };
        self.db.write(call, create).await
    }

    async fn update_note(
        &self,
        request: Request<UpdateNoteRequest>,
    ) -> Result<Response<UpdateNoteResponse>, Status> {
        let update = async |tx: &mut Tx<'_>, input: &UpdateNoteRequest| {
            let given = input.note.clone().unwrap_or_default();
            let named = Mask::from(input.update_mask.as_ref());
            let record = operations::update(tx, &input.id, &given.body, named).await?;
            Ok::<_, Error>(UpdateNoteResponse { data: Some(record.into()) })
        };
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_note(
        &self,
        request: Request<DeleteNoteRequest>,
    ) -> Result<Response<DeleteNoteResponse>, Status> {
        let delete = async |tx: &mut Tx<'_>, input: &DeleteNoteRequest| {
            operations::delete(tx, &input.id).await?;
            Ok::<_, Error>(DeleteNoteResponse {})
        };
        self.db.write(Call::open(request)?, delete).await
    }
}
