//! Calls that come with a link instead of a key: whose they are.

use chassis_base::{AccountId, Error};
use chassis_rpc::link::unknown_link;
use chassis_rpc::{Call, Link};
use prost::Message;
use proto::Check;

use crate::db::Db;

impl Db {
    /// Opens a call of a public rpc: `token` picks the link out of the request. The call then belongs to the link's
    /// account; whether that account has a record with this secret is for the service to find out, and
    /// [`unknown_link`] its answer when not.
    pub async fn follow<R: Check + Message>(
        &self,
        call: Call<R>,
        token: impl FnOnce(&R) -> &str,
    ) -> Result<(Call<R>, Link), Error> {
        let link = Link::parse(token(&call.input)).ok_or_else(unknown_link)?;
        Ok((self.admit(call, link.account).await?, link))
    }

    /// The call of a public rpc for the account that its link names.
    pub async fn admit<R: Check>(&self, call: Call<R>, account: AccountId) -> Result<Call<R>, Error> {
        let account = self.account(account).await?.ok_or_else(unknown_link)?;
        call.for_account(account)
    }
}
