//! Runs the gateway, or one of its commands.

fn main() -> std::process::ExitCode {
    gateway::cli::main()
}
