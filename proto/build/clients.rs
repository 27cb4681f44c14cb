//! Writes clients that share one copy of tonic's machinery (`src/unary.rs`). Tonic's own contain it once for every rpc in each
//! crate that calls it, tests included.

use std::fmt::Write;

use prost_build::{Method, Service};

use crate::names::snake;

/// A client with the names that tonic gives it. It speaks over a channel: with another transport it has no rpcs.
pub(crate) fn write_client(service: &Service, code: &mut String) -> std::fmt::Result {
    let Service { name, package, proto_name, .. } = service;
    let mut rpcs = String::new();
    for method in &service.methods {
        let Method { name: rpc, proto_name: path, input_type, output_type, .. } = method;
        method.comments.append_with_indent(2, &mut rpcs);
        writeln!(
            rpcs,
            "        pub async fn {rpc}(&mut self, request: impl IntoRequest<super::{input_type}>)
            -> Result<Response<super::{output_type}>, Status>
        {{
            unary::send(&self.inner, \"/{package}.{proto_name}/{path}\", request.into_request()).await
        }}"
        )?;
    }
    let module = snake(name);
    let mut comments = String::new();
    service.comments.append_with_indent(1, &mut comments);
    write!(
        code,
        "/// Generated client.
pub mod {module}_client {{
    use tonic::{{IntoRequest, Response, Status, transport::Channel}};
    use crate::unary;

{comments}    #[derive(Clone, Debug)]
    pub struct {name}Client<T> {{
        inner: T,
    }}

    impl {name}Client<Channel> {{
        pub fn new(inner: Channel) -> Self {{
            Self {{ inner }}
        }}

{rpcs}    }}
}}
"
    )
}
