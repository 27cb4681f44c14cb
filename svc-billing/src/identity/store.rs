use crate::Error;
use crate::document::Seller;
use chassis::AccountId;
use render::paper::Look;
use sqlx::PgConnection;
pub async fn find_seller(_: &mut PgConnection, _: AccountId) -> Result<Seller, Error> {
    Ok(Seller::default())
}
pub async fn find_look(_: &mut PgConnection, _: AccountId) -> Result<Look, Error> {
    Ok(Look::default())
}
