//! Calls that carry a link instead of a key: finds the account that they belong to.

use chassis_base::{AccountId, Error};
use chassis_rpc::link::unknown_link;
use chassis_rpc::{Call, Link};
use prost::Message;
use proto::Check;

use crate::db::Db;

impl Db {
    /// Opens a call of a public rpc; `token` returns the link in the request. The call then belongs to the link's
    /// account. The service must check that the account has a record with the link's secret; if not, it
    /// returns [`unknown_link`].
    pub async fn follow<R: Check + Message>(
        &self,
        call: Call<R>,
        token: impl FnOnce(&R) -> &str,
    ) -> Result<(Call<R>, Link), Error> {
        let link = Link::parse(token(&call.input)).ok_or_else(unknown_link)?;
        Ok((self.admit(call, link.account).await?, link))
    }

    /// Assigns a call of a public rpc to the account that its link names.
    pub async fn admit<R: Check>(&self, call: Call<R>, account: AccountId) -> Result<Call<R>, Error> {
        let account = self.account(account).await?.ok_or_else(unknown_link)?;
        call.for_account(account)
    }
}
