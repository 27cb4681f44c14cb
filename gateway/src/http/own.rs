//! Operations that the gateway answers itself, because they are about several services.

use bytes::Bytes;
use chassis_base::Error;
use prost::Message as _;
use proto::Faults;
use tonic::{Response, Status};

use super::admission::Admitted;
use super::app::App;
use super::batch::{self, Origin};
use super::changes;
use super::upstream::UpstreamCall;
use crate::ledger;

const GET_LEDGER: &str = "/admin.gateway.v1.LedgerService/GetLedger";
const EXECUTE_BATCH: &str = "/admin.gateway.v1.BatchService/ExecuteBatch";
const LIST_CHANGES: &str = "/admin.gateway.v1.ChangeService/ListChanges";

/// Answers a request as a service would. `faults` are those that were found while the request was read.
pub(super) async fn answer(
    app: &App,
    admitted: &Admitted,
    call: &UpstreamCall,
    faults: &Faults,
    origin: &Origin<'_>,
) -> Result<Response<Bytes>, Status> {
    let Admitted::Key(caller) = admitted else {
        return Err(Status::internal("an operation of the gateway is public"));
    };
    match call.path.as_str() {
        GET_LEDGER if !faults.is_empty() => Err(Error::from(faults.clone()).into()),
        GET_LEDGER => {
            let ledger = ledger::heads(&app.runtime, &caller.account, call.timeout).await?;
            Ok(Response::new(ledger.encode_to_vec().into()))
        }
        LIST_CHANGES => {
            let changes = Box::pin(changes::list(app, caller, call, faults)).await?;
            Ok(Response::new(changes.encode_to_vec().into()))
        }
        EXECUTE_BATCH => {
            let answers = Box::pin(batch::execute(app, call, faults, origin)).await?;
            Ok(Response::new(answers.encode_to_vec().into()))
        }
        _ => app.own.call(call).await,
    }
}
