//! `ThresholdService`: how long something has to be so before an event tells of it. Every service has thresholds of its own
//! events; here they are one list.

use chassis_base::Error;
use chassis_rpc::call::REQUEST_ID;
use chassis_rpc::peer::Peer;
use chassis_rpc::{Call, Context};
use futures::future::try_join_all;
use proto::api::Fault;
use proto::gateway::threshold_service_server::ThresholdService;
use proto::gateway::{
    ListEventThresholdsRequest, ListEventThresholdsResponse, SetEventThresholdRequest,
    SetEventThresholdResponse,
};
use proto::scans::scan_service_client::ScanServiceClient;
use proto::scans::{ListThresholdsRequest, SetThresholdRequest, Threshold, ThresholdUnit};
use proto::{At, Faults};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Response, Status};

use crate::runtime::Runtime;

pub(crate) struct Thresholds {
    pub runtime: Runtime,
}

#[tonic::async_trait]
impl ThresholdService for Thresholds {
    async fn list_event_thresholds(
        &self,
        request: Request<ListEventThresholdsRequest>,
    ) -> Result<Response<ListEventThresholdsResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let data = self.all(&context).await?.into_iter().map(|(_, threshold)| threshold).collect();
        Ok(Response::new(ListEventThresholdsResponse { data }))
    }

    async fn set_event_threshold(
        &self,
        request: Request<SetEventThresholdRequest>,
    ) -> Result<Response<SetEventThresholdResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let mut all = self.all(&context).await?.into_iter();
        let found = all.find(|(_, threshold)| threshold.event == input.event);
        let (peer, threshold) = found.ok_or_else(|| Error::not_found("event with a threshold"))?;
        if threshold.unit() == ThresholdUnit::Unspecified && input.value.is_some() {
            let mut faults = Faults::default();
            let detail =
                format!("value must be left out: the date itself decides when {} is told", input.event);
            faults.add(&At::ROOT.name("value"), Fault::NotAllowed, detail);
            return Err(Error::from(faults).into());
        }
        let message = SetThresholdRequest { event: input.event, value: input.value };
        let request = self.request(peer, &context, message)?;
        let answer = ScanServiceClient::new(peer.channel()).set_threshold(request).await?;
        Ok(Response::new(SetEventThresholdResponse { data: answer.into_inner().threshold }))
    }
}

impl Thresholds {
    /// Every threshold with the service that has it, by its event.
    async fn all(&self, context: &Context) -> Result<Vec<(&Peer, Threshold)>, Status> {
        let all = try_join_all(self.runtime.peers.iter().map(|peer| self.of(peer, context))).await?;
        let mut all: Vec<_> = all.into_iter().flatten().collect();
        all.sort_by(|(_, one), (_, other)| one.event.cmp(&other.event));
        Ok(all)
    }

    async fn of<'p>(&self, peer: &'p Peer, context: &Context) -> Result<Vec<(&'p Peer, Threshold)>, Status> {
        let request = self.request(peer, context, ListThresholdsRequest {})?;
        match ScanServiceClient::new(peer.channel()).list_thresholds(request).await {
            Ok(answer) => Ok(answer.into_inner().thresholds.into_iter().map(|one| (peer, one)).collect()),
            // A service that tells of nothing that happens by time passing.
            Err(status) if status.code() == Code::Unimplemented => Ok(Vec::new()),
            Err(status) => Err(status),
        }
    }

    fn request<T>(&self, peer: &Peer, context: &Context, message: T) -> Result<Request<T>, Error> {
        let (now, actor) = (context.clock.now(), context.identity.actor.as_str());
        let mut request = self.runtime.mesh_request(peer.name(), context.account(), actor, now, message)?;
        // The entry in the service's log names the request that led to it.
        if let Ok(id) = MetadataValue::try_from(&*context.request_id) {
            request.metadata_mut().insert(REQUEST_ID, id);
        }
        request.set_timeout(context.deadline.saturating_duration_since(std::time::Instant::now()));
        Ok(request)
    }
}
