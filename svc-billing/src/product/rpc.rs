//! `ProductService`: parse, decide, write, reply.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_base::update_mask::UpdateMask;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::billing::product_service_server::ProductService;
use proto::billing::{
    CreateProductRequest, CreateProductResponse, DeleteProductRequest, DeleteProductResponse,
    GetProductRequest, GetProductResponse, ListProductsRequest, ListProductsResponse, Product, ProductInput,
    UpdateProductRequest, UpdateProductResponse,
};
use tonic::{Request, Response, Status};

use super::{LIST, Record, rules, store};
use crate::Error;

const UNKNOWN: Error = Error::NotFound("product");

pub struct Products {
    pub db: Db,
}

#[tonic::async_trait]
impl ProductService for Products {
    async fn list_products(
        &self,
        request: Request<ListProductsRequest>,
    ) -> Result<Response<ListProductsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let search = input.search.trim();
        let page = Page::new(input.page, input.per_page);
        let (records, meta) = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), search, page).await)
            .await?;
        let data = records.into_iter().map(Product::from).collect();
        Ok(Response::new(ListProductsResponse { data, meta: Some(meta) }))
    }

    async fn create_product(
        &self,
        request: Request<CreateProductRequest>,
    ) -> Result<Response<CreateProductResponse>, Status> {
        self.db.write(Call::open(request)?, create).await
    }

    async fn get_product(
        &self,
        request: Request<GetProductRequest>,
    ) -> Result<Response<GetProductResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(UNKNOWN)?;
        let found =
            self.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        let data = found.map(Product::from).ok_or(UNKNOWN)?;
        Ok(Response::new(GetProductResponse { data: Some(data) }))
    }

    async fn update_product(
        &self,
        request: Request<UpdateProductRequest>,
    ) -> Result<Response<UpdateProductResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_product(
        &self,
        request: Request<DeleteProductRequest>,
    ) -> Result<Response<DeleteProductResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }
}

async fn create(tx: &mut Tx<'_>, input: &CreateProductRequest) -> Result<CreateProductResponse, Error> {
    let given = input.product.clone().unwrap_or_default();
    let values = rules::apply(UpdateMask::All, &given, &ProductInput::default(), &mut tx.faults);
    tx.valid()?;
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    if !store::insert(tx.db(), account, id, &values, now).await? {
        return Err(Error::CodeTaken { holder: store::find_holder(tx.db(), account, &values.code).await? });
    }
    tx.count(LIST, now, 1);
    let record = Record { id, values, created_at: now, updated_at: now };
    Ok(CreateProductResponse { data: Some(record.into()) })
}

/// Changes what the mask names; without a mask, everything. A change of nothing leaves no trace.
async fn update(tx: &mut Tx<'_>, input: &UpdateProductRequest) -> Result<UpdateProductResponse, Error> {
    id::ignore_malformed(&mut tx.faults);
    let named = UpdateMask::from(input.update_mask.as_ref());
    let given = input.product.clone().unwrap_or_default();
    let (account, now) = (tx.account(), tx.now());
    let found = match id::parse(&input.id) {
        Some(id) => store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let current = found.as_ref().map(|record| record.values.clone()).unwrap_or_default();
    let values = rules::apply(named, &given, &current, &mut tx.faults);
    // The faults of the body come before an unknown id.
    tx.valid()?;
    let mut record = found.ok_or(UNKNOWN)?;
    if values != record.values {
        // Looked up first, because a refused update would end the transaction before the holder could be named.
        if values.code != record.values.code
            && let Some(holder) = store::find_holder(tx.db(), account, &values.code).await?
        {
            return Err(Error::CodeTaken { holder: Some(holder) });
        }
        store::update(tx.db(), account, record.id, &values, now).await?;
        record.values = values;
        record.updated_at = now;
    }
    Ok(UpdateProductResponse { data: Some(record.into()) })
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteProductRequest) -> Result<DeleteProductResponse, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let created_at = store::delete(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    tx.count(LIST, created_at, -1);
    tx.removed("product", id);
    Ok(DeleteProductResponse {})
}
