//! `NoteService`: parse, look references up, write, reply.

use chassis::mask::Named as Mask;
use chassis::paging::Page;
use chassis::references::{Named, References};
use chassis::{Call, Db, Tx, id};
use proto::At;
use proto::api::Fault;
use proto::work::note_service_server::NoteService;
use proto::work::{
    CreateNoteRequest, CreateNoteResponse, DeleteNoteRequest, DeleteNoteResponse, ListNotesRequest,
    ListNotesResponse, Note, NoteInput, UpdateNoteRequest, UpdateNoteResponse,
};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{About, LIST, Record, store};
use crate::project::wanted;
use crate::refer::{CLIENT, DEAL, INVOICE};
use crate::{Error, project};

const UNKNOWN: Error = Error::NotFound("note");
/// What the audit log calls it.
const AUDITED: &str = "note";

pub struct Notes {
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
        let about = About {
            client: wanted(&input.client_id),
            invoice: wanted(&input.invoice_id),
            project: wanted(&input.project_id),
            deal: wanted(&input.deal_id),
        };
        let page = Page::new(input.page, input.per_page);
        let mut connection = self.db.read().await?;
        let (records, meta) = store::list(&mut connection, context.account_id(), about, page).await?;
        connection.done();
        let data = records.into_iter().map(Note::from).collect();
        Ok(Response::new(ListNotesResponse { data, meta: Some(meta) }))
    }

    async fn create_note(
        &self,
        request: Request<CreateNoteRequest>,
    ) -> Result<Response<CreateNoteResponse>, Status> {
        let mut call = Call::open(request)?;
        let (given, at) = (call.input.note.clone().unwrap_or_default(), At::ROOT.name("note"));
        let named = [
            Named { kind: CLIENT, at: &at.name("client_id"), id: &given.client_id },
            Named { kind: INVOICE, at: &at.name("invoice_id"), id: &given.invoice_id },
            Named { kind: DEAL, at: &at.name("deal_id"), id: &given.deal_id },
        ];
        self.references.check(&mut call, &named).await?;
        self.db.write(call, create).await
    }

    async fn update_note(
        &self,
        request: Request<UpdateNoteRequest>,
    ) -> Result<Response<UpdateNoteResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_note(
        &self,
        request: Request<DeleteNoteRequest>,
    ) -> Result<Response<DeleteNoteResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }
}

async fn create(tx: &mut Tx<'_>, input: &CreateNoteRequest) -> Result<CreateNoteResponse, Error> {
    let given = input.note.clone().unwrap_or_default();
    let about = about(tx, &given).await?;
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let record = Record { id: tx.id(), body: given.body, about, created_at: now, updated_at: now };
    store::insert(tx.db(), account, &record).await?;
    tx.count(LIST, now, 1);
    tx.changed(AUDITED, record.id, &Note::from(record.clone()));
    Ok(CreateNoteResponse { data: Some(record.into()) })
}

/// What the note is about. Records of other services have been looked up before.
async fn about(tx: &mut Tx<'_>, given: &NoteInput) -> Result<About, Error> {
    let at = At::ROOT.name("note");
    let project = project::referred(tx, &at.name("project_id"), &given.project_id).await?;
    Ok(About {
        client: id::parse(&given.client_id),
        invoice: id::parse(&given.invoice_id),
        project,
        deal: id::parse(&given.deal_id),
    })
}

/// Replaces the text, the only thing of a note that changes.
async fn update(tx: &mut Tx<'_>, input: &UpdateNoteRequest) -> Result<UpdateNoteResponse, Error> {
    id::forgive(&mut tx.faults);
    let given = input.note.clone().unwrap_or_default();
    let named = Mask::from(input.update_mask.as_ref());
    named.check(|name| name == "body", "note", &mut tx.faults);
    if !named.has("body") {
        let at = At::ROOT.name("note");
        tx.faults.add(&at.name("body"), Fault::Required, "body is required");
    }
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let changed = store::update(tx.db(), account, id, &given.body, now).await?;
    Ok(UpdateNoteResponse { data: Some(changed.ok_or(UNKNOWN)?.into()) })
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteNoteRequest) -> Result<DeleteNoteResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let created_at = store::delete(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    tx.count(LIST, created_at, -1);
    tx.removed(AUDITED, id);
    Ok(DeleteNoteResponse {})
}

/// Lets notes be about none of these deals and invoices, which are gone.
pub async fn forget(tx: &mut Tx<'_>, deals: &[Uuid], invoices: &[Uuid]) -> Result<(), Error> {
    if deals.is_empty() && invoices.is_empty() {
        return Ok(());
    }
    let (account, now) = (tx.account(), tx.now());
    for record in store::forget(tx.db(), account, (deals, invoices), now).await? {
        tx.changed(AUDITED, record.id, &Note::from(record));
    }
    Ok(())
}
