//! Writes the services. Clients and servers of plain rpcs share one copy of tonic's machinery (`src/unary.rs`); services
//! with a stream are as tonic writes them. Tonic's own servers contain it once for every rpc, some 5,000 lines of LLVM's code
//! each, which was a third of what the compiler had to do for a service.

use std::fmt::Write;

use prost_build::{Method, Service, ServiceGenerator};

use crate::clients::write_client;
use crate::names::snake;

/// Clients and servers of all services.
pub(crate) fn generator() -> Box<dyn ServiceGenerator> {
    Box::new(Services { of_tonic: tonic_prost_build::configure().service_generator() })
}

struct Services {
    /// For services with a stream.
    of_tonic: Box<dyn ServiceGenerator>,
}

impl ServiceGenerator for Services {
    fn generate(&mut self, service: Service, code: &mut String) {
        if service.methods.iter().any(|method| method.client_streaming || method.server_streaming) {
            return self.of_tonic.generate(service, code);
        }
        // Writing to a String cannot fail.
        let _ = write_server(&service, code);
        let _ = write_client(&service, code);
    }

    fn finalize(&mut self, code: &mut String) {
        self.of_tonic.finalize(code);
    }

    fn finalize_package(&mut self, package: &str, code: &mut String) {
        self.of_tonic.finalize_package(package, code);
    }
}

/// A trait of the rpcs, and a server of it, with the names that tonic gives them.
fn write_server(service: &Service, code: &mut String) -> std::fmt::Result {
    let Service { name, package, proto_name, .. } = service;
    let mut rpcs = String::new();
    let mut arms = String::new();
    for method in &service.methods {
        let Method { name: rpc, proto_name: path, input_type, output_type, .. } = method;
        method.comments.append_with_indent(2, &mut rpcs);
        writeln!(
            rpcs,
            "        async fn {rpc}(&self, request: Request<super::{input_type}>)
            -> Result<Response<super::{output_type}>, Status>;"
        )?;
        writeln!(
            arms,
            "                \"/{package}.{proto_name}/{path}\" => Box::new(move |request| Box::pin(async move {{
                    unary::encode(inner.{rpc}(unary::decode(request)?).await?)
                }})),"
        )?;
    }
    let module = snake(name);
    let mut comments = String::new();
    service.comments.append_with_indent(1, &mut comments);
    write!(
        code,
        "/// Generated server.
pub mod {module}_server {{
    use std::{{convert::Infallible, sync::Arc, task::{{Context, Poll}}}};
    use tonic::{{Request, Response, Status, body::Body, codegen::{{Service, http}}, server::NamedService}};
    use crate::unary::{{self, Answer, Handler}};

{comments}    #[tonic::async_trait]
    pub trait {name}: Send + Sync + 'static {{
{rpcs}    }}

{comments}    #[derive(Debug)]
    pub struct {name}Server<T> {{
        inner: Arc<T>,
        max_decoding_message_size: Option<usize>,
    }}

    impl<T> {name}Server<T> {{
        pub fn new(inner: T) -> Self {{
            Self::from_arc(Arc::new(inner))
        }}

        pub fn from_arc(inner: Arc<T>) -> Self {{
            Self {{ inner, max_decoding_message_size: None }}
        }}

        /// The most bytes of a request; 4 MB unless told.
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {{
            self.max_decoding_message_size = Some(limit);
            self
        }}
    }}

    impl<T: {name}> Service<http::Request<Body>> for {name}Server<T> {{
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = Answer;

        fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {{
            Poll::Ready(Ok(()))
        }}

        fn call(&mut self, request: http::Request<Body>) -> Answer {{
            let inner = Arc::clone(&self.inner);
            let handler: Handler = match request.uri().path() {{
{arms}                _ => return unary::unimplemented(),
            }};
            unary::call(request, handler, self.max_decoding_message_size)
        }}
    }}

    impl<T> Clone for {name}Server<T> {{
        fn clone(&self) -> Self {{
            Self {{ inner: Arc::clone(&self.inner), ..*self }}
        }}
    }}

    impl<T> NamedService for {name}Server<T> {{
        const NAME: &'static str = \"{package}.{proto_name}\";
    }}
}}
"
    )
}
