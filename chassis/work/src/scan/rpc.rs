//! The thresholds of an account, over gRPC.

use std::sync::Arc;

use chassis_base::Error;
use chassis_data::db::Db;
use chassis_data::write::Tx;
use chassis_rpc::call::Call;
use proto::At;
use proto::api::Fault;
use proto::scans::scan_service_server::{ScanService, ScanServiceServer};
use proto::scans::{
    ListThresholdsRequest, ListThresholdsResponse, RunScansRequest, RunScansResponse, SetThresholdRequest,
    SetThresholdResponse, Threshold as Message, ThresholdUnit,
};
use tonic::{Request, Response, Status};

use super::{Scan, Threshold, store};

pub fn server(scans: Vec<Scan>, db: Db) -> ScanServiceServer<Scans> {
    ScanServiceServer::new(Scans { scans: scans.into(), db })
}

pub struct Scans {
    scans: Arc<[Scan]>,
    db: Db,
}

#[tonic::async_trait]
impl ScanService for Scans {
    async fn list_thresholds(
        &self,
        request: Request<ListThresholdsRequest>,
    ) -> Result<Response<ListThresholdsResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let set = self
            .db
            .read(async |connection| store::list_thresholds(connection, context.account_id()).await)
            .await?;
        let shown = |scan: &Scan| message(scan, set.get(scan.event).copied());
        Ok(Response::new(ListThresholdsResponse { thresholds: self.scans.iter().map(shown).collect() }))
    }

    async fn set_threshold(
        &self,
        request: Request<SetThresholdRequest>,
    ) -> Result<Response<SetThresholdResponse>, Status> {
        self.db.write_with(Call::open(request)?, Arc::clone(&self.scans), set).await
    }

    async fn run_scans(
        &self,
        request: Request<RunScansRequest>,
    ) -> Result<Response<RunScansResponse>, Status> {
        self.db.write(Call::open(request)?, run).await
    }
}

fn message(scan: &Scan, value: Option<i32>) -> Message {
    let unit = match scan.threshold {
        Threshold::None => ThresholdUnit::Unspecified,
        Threshold::Days(_) | Threshold::DaysBefore(_) => ThresholdUnit::Days,
        Threshold::Hours(_) => ThresholdUnit::Hours,
    };
    Message {
        event: scan.event.to_owned(),
        unit: unit.into(),
        default_value: scan.threshold.default_amount(),
        value,
    }
}

async fn set(
    tx: &mut Tx<'_>,
    input: &SetThresholdRequest,
    scans: &Arc<[Scan]>,
) -> Result<SetThresholdResponse, Error> {
    let scan = scans.iter().find(|scan| scan.event == input.event);
    match scan {
        // An empty event has a fault already.
        None if input.event.is_empty() => {}
        None => {
            let events: Vec<&str> = scans.iter().map(|scan| scan.event).collect();
            let detail = format!("event must be one of: {}", events.join(", "));
            tx.faults.add(&At::ROOT.name("event"), Fault::NotAllowed, detail);
        }
        Some(scan) if scan.threshold == Threshold::None && input.value.is_some() => {
            let detail = format!("value must be absent: {} has no threshold, a date decides", scan.event);
            tx.faults.add(&At::ROOT.name("value"), Fault::NotAllowed, detail);
        }
        Some(_) => {}
    }
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    store::set_threshold(tx.db(), account, &input.event, input.value, now).await?;
    store::request_turn(tx.db(), account, now).await?;
    let threshold = scan.map(|scan| message(scan, input.value));
    if let Some(threshold) = &threshold {
        tx.changed("threshold", &threshold.event, threshold);
    }
    Ok(SetThresholdResponse { threshold })
}

async fn run(tx: &mut Tx<'_>, _: &RunScansRequest) -> Result<RunScansResponse, Error> {
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    store::request_turn(tx.db(), account, now).await?;
    Ok(RunScansResponse {})
}
