//! Reflection: open while developing, closed in production.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use chassis_testing::Started;
use chassis_testing::bare::{Bare, database};
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServiceResponse};
use tonic_reflection::pb::v1alpha;

async fn services(service: &Started) -> Option<Vec<ServiceResponse>> {
    services_with(service, None).await
}

async fn services_with(service: &Started, token: Option<&str>) -> Option<Vec<ServiceResponse>> {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut client = ServerReflectionClient::new(service.channel());
    let mut request = tonic::Request::new(futures::stream::iter([request]));
    if let Some(token) = token {
        request.metadata_mut().insert(chassis_rpc::token::HEADER, token.parse().unwrap());
    }
    let mut answers = client.server_reflection_info(request).await.ok()?.into_inner();
    match answers.message().await.ok()??.message_response? {
        MessageResponse::ListServicesResponse(list) => Some(list.service),
        _ => None,
    }
}

#[tokio::test]
async fn services_can_be_explored_outside_production_only() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let open = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let names: Vec<String> = services(&open).await.unwrap().into_iter().map(|service| service.name).collect();
    assert!(names.contains(&"admin.api.v1.ProvisioningService".to_owned()), "{names:?}");
    let closed =
        chassis_testing::start_with::<Bare>(database.url(), &clock, &["--environment", "production"]).await;
    assert!(services(&closed).await.is_none());
}

#[tokio::test]
async fn whoever_explores_needs_no_token_and_may_send_one() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let token = chassis_rpc::token::Tokens::new(chassis_testing::secret()).to_self().mint_public(clock.now());
    let open = services(&service).await.unwrap();
    assert_eq!(services_with(&service, Some(&token)).await, Some(open.clone()));
    assert_eq!(services_with(&service, Some("an old one")).await, Some(open));
}

#[tokio::test]
async fn tools_that_speak_the_first_version_are_answered_too() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1alpha::server_reflection_request::MessageRequest::FileContainingSymbol(
            "admin.api.v1.ProvisioningService".to_owned(),
        )),
    };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(service.channel());
    let mut answers =
        client.server_reflection_info(futures::stream::iter([request])).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let v1alpha::server_reflection_response::MessageResponse::FileDescriptorResponse(files) = answer else {
        panic!("{answer:?}")
    };
    assert!(!files.file_descriptor_proto.is_empty());
}
