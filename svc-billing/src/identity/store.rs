use chassis::AccountId;
use sqlx::PgConnection;
use crate::Error;
use crate::document::Seller;
use render::paper::Look;
pub async fn find_seller(_: &mut PgConnection, _: AccountId) -> Result<Seller, Error> { Ok(Seller::default()) }
pub async fn find_look(_: &mut PgConnection, _: AccountId) -> Result<Look, Error> { Ok(Look::default()) }
