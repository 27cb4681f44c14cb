//! `ProductService`.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_base::update_mask::UpdateMask;
use chassis_data::list::Selection;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::billing::product_service_server::ProductService;
use proto::billing::{
    CreateProductRequest, CreateProductResponse, DeleteProductRequest, DeleteProductResponse,
    GetProductRequest, GetProductResponse, ListProductsRequest, ListProductsResponse, Product,
    UpdateProductRequest, UpdateProductResponse,
};
use tonic::{Request, Response, Status};

use super::store::Filter;
use super::{NOT_FOUND, operations, store};
use crate::error::Error;

pub(crate) struct Products {
    pub db: Db,
}

#[tonic::async_trait]
impl ProductService for Products {
    async fn list_products(
        &self,
        request: Request<ListProductsRequest>,
    ) -> Result<Response<ListProductsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            code: &input.code,
            active: input.active,
            search: input.search.trim(),
        };
        let (records, meta) = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), &filter, page).await)
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
        // Not `valid`: an id of another form does not exist, and nothing else in the request can be invalid.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let found =
            self.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        let data = found.map(Product::from).ok_or(NOT_FOUND)?;
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
    Ok(CreateProductResponse { data: Some(operations::create(tx, &given).await?.into()) })
}

async fn update(tx: &mut Tx<'_>, input: &UpdateProductRequest) -> Result<UpdateProductResponse, Error> {
    let mask = UpdateMask::from(input.update_mask.as_ref());
    let given = input.product.clone().unwrap_or_default();
    Ok(UpdateProductResponse { data: Some(operations::update(tx, &input.id, mask, &given).await?.into()) })
}

async fn delete(tx: &mut Tx<'_>, input: &DeleteProductRequest) -> Result<DeleteProductResponse, Error> {
    operations::delete(tx, &input.id).await?;
    Ok(DeleteProductResponse {})
}
