//! Serves the pages alone, to look at them: `cargo run -p gateway --example pages -- 127.0.0.1:8099`.

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8099".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(listener, gateway::pages::router()).await
}
