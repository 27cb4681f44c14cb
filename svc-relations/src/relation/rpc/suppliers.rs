//! `SupplierService`: parse, call, answer.

use chassis_base::formats::vat;
use chassis_base::paging::Page;
use chassis_data::list::Selection;
use chassis_data::{Db, LazyTx};
use chassis_rpc::Call;
use proto::relations::supplier_service_server::SupplierService;
use proto::relations::{
    ClientInput, CreateSupplierRequest, CreateSupplierResponse, GetSupplierRequest, GetSupplierResponse,
    ListSuppliersRequest, ListSuppliersResponse, SupplierInput, UpdateSupplierRequest,
    UpdateSupplierResponse,
};
use tonic::{Request, Response, Status};

use super::{country, get, list};
use crate::error::Error;
use crate::relation::store::Filter;
use crate::relation::{Role, fields, operations};
use crate::relation_type;

const ROLE: Role = Role::Supplier;

pub(crate) struct Suppliers {
    pub db: Db,
}

#[tonic::async_trait]
impl SupplierService for Suppliers {
    async fn list_suppliers(
        &self,
        request: Request<ListSuppliersRequest>,
    ) -> Result<Response<ListSuppliersResponse>, Status> {
        let mut call = Call::open(request)?;
        let country = country(&call.input.country, &mut call.faults);
        let (context, input) = call.valid()?;
        let page = Page::new(input.page, input.per_page);
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            search: input.search.trim(),
            // Another text than the name of a type does not filter.
            kind: relation_type::from_name(&input.contact_type),
            external_id: &input.external_id,
            email: &input.email,
            vat_number: vat::comparable(&input.vat_number),
            debtor_number: &input.debtor_number,
            city: &input.city,
            country,
        };
        let (data, meta) = list(&self.db, context.account_id(), ROLE, &filter, page).await?;
        Ok(Response::new(ListSuppliersResponse { data, meta: Some(meta) }))
    }

    async fn create_supplier(
        &self,
        request: Request<CreateSupplierRequest>,
    ) -> Result<Response<CreateSupplierResponse>, Status> {
        self.db.write_lazily(Call::open(request)?, create).await
    }

    async fn get_supplier(
        &self,
        request: Request<GetSupplierRequest>,
    ) -> Result<Response<GetSupplierResponse>, Status> {
        // `valid` is not called: a malformed id is answered as not found, and no other field can be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let data = get(&self.db, context.account_id(), ROLE, &input.id).await?;
        Ok(Response::new(GetSupplierResponse { data: Some(data) }))
    }

    async fn update_supplier(
        &self,
        request: Request<UpdateSupplierRequest>,
    ) -> Result<Response<UpdateSupplierResponse>, Status> {
        self.db.write_lazily(Call::open(request)?, update).await
    }
}

async fn create(tx: &mut LazyTx<'_>, input: &CreateSupplierRequest) -> Result<CreateSupplierResponse, Error> {
    let data = operations::create(tx, ROLE, given(input.supplier.as_ref())).await?;
    Ok(CreateSupplierResponse { data: Some(data) })
}

async fn update(tx: &mut LazyTx<'_>, input: &UpdateSupplierRequest) -> Result<UpdateSupplierResponse, Error> {
    let given = given(input.supplier.as_ref());
    let data = operations::update(tx, ROLE, &input.id, given, input.update_mask.as_ref()).await?;
    Ok(UpdateSupplierResponse { data: Some(data) })
}

fn given(input: Option<&SupplierInput>) -> ClientInput {
    input.map(fields::from_supplier).unwrap_or_default()
}
